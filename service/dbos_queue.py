"""The port of service/queue.py on DBOS Transact, which keeps its queue in our database.

The web process has a client and never launches the engine. The worker launches it on the database's URL: launched on
an engine of ours, which begins transactions itself, it fails. (docs/decisions/0060)
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions, WorkflowSerializationFormat

from service.database import BUSY_MILLISECONDS
from service.queue import Handler, Stopping

QUEUE = "grading"
WORKFLOW = "grade"
# Pinned: by default the engine hashes the source and strands what was queued under another hash.
# A run whose shape changes gets another workflow name instead.
VERSION = "1"
NAME = "autograder"

_PORTABLE = WorkflowSerializationFormat.PORTABLE  # JSON; the engine's default is pickle
_ENDED = {"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"}

logging.getLogger("dbos").setLevel(logging.WARNING)


def migrate(url: str) -> None:
    """Create or update the engine's own tables."""
    DBOS.migrate(url)


def _options(run_id: str, priority: int) -> EnqueueOptions:
    return {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUE,
        "workflow_id": run_id,
        "priority": priority,
        "app_version": VERSION,
        "serialization_type": _PORTABLE,
    }


class DbosQueue:
    """Enqueues through a client on the service's own database engine."""

    def __init__(self, engine: sa.Engine) -> None:
        self._client = DBOSClient(system_database_engine=engine, application_name=NAME, lazy=True)

    def submit(self, connection: sa.Connection, run_id: str, priority: int) -> None:
        self._client.enqueue_in_transaction(connection, _options(run_id, priority), run_id)

    def cancel(self, run_id: str) -> None:
        self._client.cancel_workflow(run_id)

    def forget(self, run_ids: Sequence[str]) -> None:
        for start in range(0, len(run_ids), 500):
            self._client.delete_workflows(list(run_ids[start : start + 500]))

    def close(self) -> None:
        self._client.destroy()


class DbosEngine:
    """Runs the queue in this process. `executor_id` names the worker across restarts: what a process of that name left
    unfinished is delivered again when the next one starts, so no two live processes may share it."""

    def __init__(self, url: str, executor_id: str, slots: int, poll_seconds: float) -> None:
        self._url = url
        self._executor_id = executor_id
        self._slots = slots
        self._poll_seconds = poll_seconds
        # The engine's own count of slots leaves out what it recovers; this one does not.
        self._free = threading.BoundedSemaphore(slots)

    def start(self, handler: Handler) -> None:
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": self._url,
            "application_version": VERSION,
            "executor_id": self._executor_id,
            "log_level": "WARNING",
            "enable_otlp": False,
            "run_migrations": False,
        }
        if self._url.startswith("sqlite"):
            config["db_engine_kwargs"] = {"connect_args": {"timeout": BUSY_MILLISECONDS / 1000}}
        DBOS(config=config)

        # No step inside: a checkpointed step would answer a second delivery from the engine's memory, while the
        # truth about a run is in our tables.
        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None, serialization_type=_PORTABLE)
        def grade(run_id: str) -> str:
            with self._free, suppress(Stopping):
                handler(run_id)
            return run_id

        DBOS.launch()
        DBOS.register_queue(
            QUEUE,
            worker_concurrency=self._slots,
            polling_interval_sec=self._poll_seconds,
            on_conflict="always_update",
        )

    def adopt(self, runs: Mapping[str, int]) -> list[str]:
        if not runs:
            return []
        known = DBOS.list_workflows(workflow_ids=list(runs), load_input=False, load_output=False)
        live = {workflow.workflow_id for workflow in known if workflow.status not in _ENDED}
        stranded = [run_id for run_id in runs if run_id not in live]
        if stranded:
            DBOS.delete_workflows(stranded)
        for run_id in stranded:
            DBOS.enqueue_workflow_with_options(_options(run_id, runs[run_id]), run_id)
        return stranded

    def stop(self, grace_seconds: float) -> None:
        DBOS.destroy(workflow_completion_timeout_sec=int(grace_seconds))

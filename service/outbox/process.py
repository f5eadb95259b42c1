"""Settings go in; the process that tells others of grades runs until it is told to stop. No other one does.

It is apart from the web process, which answers in time however slow others are, and from the worker, which holds the
sandbox's engine and should talk to nobody. (docs/decisions/0202)
"""

import os
import signal
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import sqlalchemy as sa

from service import database, logs
from service.outbound import Outbound, Reach
from service.outbox.changes import Channel
from service.outbox.channels import Sending, Webhooks
from service.outbox.platforms import Platforms
from service.outbox.sender import Sender
from service.processes import LOCK_SECONDS, when_stdin_closes
from service.settings import Settings

EMBEDDED_NAME = "sender-1"  # the same after every start: what the last process was at is taken up at once


def channels(settings: Settings, engine: sa.Engine) -> Mapping[Channel, Sending]:
    """Everything that is told to others, as the product does it."""
    return {
        Channel.AGS: Platforms(engine, Reach.of_platforms(settings)),
        Channel.WEBHOOK: Webhooks(engine, Outbound(Reach.of_callbacks(settings))),
    }


def run_sender(settings: Settings, *, until_stdin_closes: bool = False) -> None:
    """Send until SIGTERM or SIGINT. Raises database.Held if another one of this data directory does."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if until_stdin_closes:
        when_stdin_closes(stop.set)
    database.wait_for(settings)
    database.migrate(settings)
    with _name(settings, embedded=until_stdin_closes) as name:
        logs.name_process(sender=name)
        engine = database.open_engine(settings.url)
        try:
            Sender(engine, channels(settings, engine), name=name, stop=stop).run()
        finally:
            engine.dispose()


@contextmanager
def _name(settings: Settings, *, embedded: bool) -> Iterator[str]:
    """What the sender is called; the only one of `serve` on its own SQLite file holds a lock on its name."""
    if not (embedded and settings.url.startswith("sqlite")):
        yield f"{socket.gethostname()[:30]}-{os.getpid()}-{uuid.uuid4().hex[:16]}"
        return
    with database.locked(settings.data / "sender.lock", wait_seconds=LOCK_SECONDS):
        yield EMBEDDED_NAME

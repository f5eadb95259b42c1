"""Settings and a course go in; the web process runs until it is told to stop."""

import resource
import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from grader.unit import Course
from service import bells, database, secrets
from service.app import create_app
from service.connection import HEAD_BYTES, KEEP_ALIVE_SECONDS, PatientConnection
from service.course_files.heeding import heeding
from service.dbos_queue import DbosQueue
from service.dependencies import Service
from service.processes import pass_over_what_lasts, when_stdin_closes
from service.receipts import KEY_NAME, Signer
from service.settings import Settings

MOST_FILES = 65_536
SPARE_FILES = 128  # descriptors for the database, logs and the like


class Server(uvicorn.Server):
    """Ends the streams it holds open before it waits for requests to end."""

    def stop(self) -> None:
        """Begin to stop; from any thread."""
        self.config.app.state.hub.close()  # type: ignore[union-attr]  # our own application
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.config.app.state.hub.close()  # type: ignore[union-attr]
        super().handle_exit(sig, frame)


def config(app: FastAPI, settings: Settings, host: str, port: int) -> uvicorn.Config:
    """How the server treats its clients. Proxies' headers are not its business, see service/proxies.py."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=PatientConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=min(settings.max_connections, _open_files() - SPARE_FILES),
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=5,
    )


def _open_files() -> int:
    """Let this process open as many files as it may, within reason, and say how many that is."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if most == resource.RLIM_INFINITY else min(most, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))
    return max(now, wanted)


def run_web(
    settings: Settings, course: Course, host: str, port: int, *, until_stdin_closes: bool = False, course_load: int = 0
) -> None:
    """Answer HTTP until SIGTERM or SIGINT. The database is up to date."""
    engine = database.open_engine(settings.url)
    queue = DbosQueue(engine)
    with database.writing(engine) as connection:  # now, so that receipts can be signed while the database is away
        signer = Signer(secrets.key(connection, KEY_NAME, time.time()))
    app = create_app(Service(settings, engine, queue, course, receipts=signer, course_load=course_load))
    server = Server(config(app, settings, host, port))
    if until_stdin_closes:
        when_stdin_closes(server.stop)
    pass_over_what_lasts()
    try:
        with heeding(app), bells.ended(settings.data).heard(app.state.service.waiters.tell):
            server.run()
    finally:
        queue.close()
        engine.dispose()

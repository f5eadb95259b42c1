"""Settings and a course go in; the web process runs until it is told to stop."""

import uvicorn

from grader.unit import Course
from service import database
from service.app import create_app
from service.dbos_queue import DbosQueue
from service.dependencies import Service
from service.processes import prepare, when_stdin_closes
from service.settings import Settings


def run_web(settings: Settings, course: Course, host: str, port: int, *, until_stdin_closes: bool = False) -> None:
    """Answer HTTP until SIGTERM or SIGINT."""
    prepare(settings)
    engine = database.open_engine(settings.url)
    queue = DbosQueue(engine)
    service = Service(settings, engine, queue, course)
    config = uvicorn.Config(
        create_app(service),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=5,
        lifespan="off",
    )
    server = uvicorn.Server(config)

    def stop() -> None:
        server.should_exit = True

    if until_stdin_closes:
        when_stdin_closes(stop)
    try:
        server.run()
    finally:
        queue.close()
        engine.dispose()

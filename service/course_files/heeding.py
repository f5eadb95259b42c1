"""A web process goes in; the course that it answers by is replaced whenever another process has taken files into use.

Workers end and start anew when that is so (`loads`). A web process would let its clients go with it: it reads the files
beside what it does, and takes the course in one step.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fastapi import FastAPI

from service.course_files import loads, trees
from service.database import AWAY, reading
from service.dependencies import Service
from service.meanwhile import meanwhile

LOOK_SECONDS = 2.0

log = logging.getLogger(__name__)


@contextmanager
def heeding(app: FastAPI) -> Iterator[None]:
    """Meanwhile look now and then, in a thread."""

    def watch(over: threading.Event) -> None:
        while not over.wait(LOOK_SECONDS):
            try:
                look(app)
            except AWAY as error:
                log.warning("the database does not answer: %s", error)
            except Exception:
                log.exception("the course's files could not be looked after; it is tried again")

    with meanwhile("course", watch):
        yield


def look(app: FastAPI) -> None:
    """Take the course that was chosen last, if it is not the one here. One that cannot be used is passed over."""
    service: Service = app.state.service
    with reading(service.engine) as connection:
        load, _ = loads.chosen(connection)
        if load == service.course_load:
            return
        try:
            used = trees.in_use(connection, service.settings)
            loads.differences(service.course, used.course)
        except (OSError, loads.Unusable) as error:
            log.error("the course's files that are in use cannot be used here: %s", error)
            app.state.service = replace(service, course_load=load)
            return
    log.info("the course's files were taken into use elsewhere: they are here now")
    app.state.service = replace(service, course=used.course, course_load=used.load)

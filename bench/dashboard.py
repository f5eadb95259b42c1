"""A class of 2,000 with 50,000 submissions is written into a new database; what each page about it costs comes out.
`python -m bench.dashboard [--students N] [--submissions N]`

Pages are asked of the application itself, signed in as a teacher, from the request to the last byte of the answer. CPU
time stands beside the time passed, as it tells the cost on a machine that others use too.
"""

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
import sqlalchemy as sa

from bench.classroom import BEGAN, COURSE, WEEK_SECONDS, fill
from bench.table import table
from grader.units import DEFAULT_COURSE, load_course
from service import database, offerings
from service.accounts import Role
from service.app import create_app
from service.audit import By
from service.dependencies import Service
from service.offerings import Offering
from service.people import members, sessions, users
from service.queue import FakeQueue
from service.settings import Settings

UNIT = "L5.3"
CLASS = f"/courses/{COURSE}/class"
STUDENT = "student-0007"
PAGES = {
    "all units": CLASS,
    "overview": f"{CLASS}/{UNIT}",
    "tests": f"{CLASS}/{UNIT}/tests",
    "mutants": f"{CLASS}/{UNIT}/mutants",
    "misconceptions": f"{CLASS}/{UNIT}/misconceptions",
    "students": f"{CLASS}/{UNIT}/students",
    "students at risk": f"{CLASS}/{UNIT}/students?risk=true&sort=risk",
    "students of a mutant": f"{CLASS}/{UNIT}/students?survived=s03&sort=score",
    "one student": f"{CLASS}/{UNIT}/students/{STUDENT}",
}
ROUNDS = 11


@dataclass(frozen=True)
class Took:
    """Seconds of one request."""

    passed: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.dashboard", description="What pages about a class cost.")
    parser.add_argument("--students", type=int, default=2_000)
    parser.add_argument("--submissions", type=int, default=50_000)
    said = parser.parse_args()
    course = load_course(DEFAULT_COURSE)
    now = BEGAN + WEEK_SECONDS
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as name:
        settings = Settings(data=Path(name), course=Path(name))
        database.migrate(settings)
        engine = database.open_engine(settings.url)
        fill(engine, course.units[UNIT], said.students, said.submissions)
        cookie = signed_in(engine, now)
        app = create_app(Service(settings, engine, FakeQueue(), course, lambda: now))
        took, unchanged = asyncio.run(asked(httpx.ASGITransport(app), cookie))
        engine.dispose()
    rows = [
        [page, f"{1e3 * median(t.passed for t in all_):.0f}", f"{1e3 * median(t.cpu for t in all_):.0f}"]
        for page, all_ in {**took, "overview, unchanged": unchanged}.items()
    ]
    print(table("A page, from request to answer", ["", "p50 ms", "CPU ms"], rows))
    print(json.dumps({row[0].replace(" ", "_") + "_ms": float(row[1]) for row in rows}))


def signed_in(engine: sa.Engine, now: float) -> str:
    """The cookie of a new teacher of the course."""
    by = By(None, now)
    with database.writing(engine) as connection:
        if offerings.find(connection, COURSE) is None:
            offerings.put(connection, Offering(COURSE, "A large class", "Europe/Berlin", now), by)
        teacher = users.add(connection, login="teacher", name="A teacher", now=now)
        members.put(connection, COURSE, teacher, Role.TEACHER, "", members.Source.PAGE, by)
        return sessions.begin(connection, teacher.id, now)


async def asked(transport: httpx.ASGITransport, cookie: str) -> tuple[dict[str, list[Took]], list[Took]]:
    """Every page some times, the first time not counted; and the overview when nothing has moved."""
    found: dict[str, list[Took]] = {}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bench", cookies={sessions.NAME: cookie}
    ) as client:
        for page, path in PAGES.items():
            found[page] = [await _took(client, path, {}) for _ in range(ROUNDS)][1:]
        mark = (await client.get(PAGES["overview"])).headers["ETag"]
        same = [await _took(client, PAGES["overview"], {"If-None-Match": mark}, 304) for _ in range(ROUNDS)]
    return found, same


async def _took(client: httpx.AsyncClient, path: str, headers: dict[str, str], status: int = 200) -> Took:
    passed, cpu = time.perf_counter(), time.process_time()
    answer = await client.get(path, headers=headers)
    took = Took(time.perf_counter() - passed, time.process_time() - cpu)
    if answer.status_code != status:
        raise RuntimeError(f"{path} was answered with {answer.status_code}")
    return took


if __name__ == "__main__":
    main()

"""A class of 2,000 with 50,000 submissions is written into a new database; what every question of a teacher and every
page costs comes out. `python -m bench.classroom [--students N] [--submissions N]`

The rows are those that runs leave, without files: no question reads those. Reports are short, as no question reads
them either. Every student is somewhere on the way from nothing to a pass, so that no answer is trivial.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import sqlalchemy as sa

from bench.table import table
from grader.report import MutantStatus, Outcome, Verdict
from grader.unit import Unit
from grader.units import DEFAULT_COURSE, load_course
from service import database, page_keys
from service.app import create_app
from service.classroom import course_tests, misconceptions, mutants, overview, progress, selection, students
from service.classroom.facts import CAUGHT, MUTANTS, TESTS, Layout
from service.classroom.selection import Selection
from service.classroom.students import Narrowed, Sort
from service.dependencies import Service
from service.offerings import Offering
from service.people import sessions
from service.places import Paces
from service.queue import FakeQueue
from service.settings import Settings
from service.tables import facts, layouts, members, rejections, results, runs, submissions, tokens, users

COURSE = "default"
BEGAN = 1_800_000_000.0
WEEK_SECONDS = 7 * 86_400.0
ROWS_AT_A_TIME = 2_000
SECTIONS = 10
ROUNDS = 15
CODES = (("denies", 0.35), ("unexplained", 0.4), ("flaky", 0.1), ("misprint", 0.15))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.classroom", description="What a teacher's questions cost.")
    parser.add_argument("--students", type=int, default=2_000)
    parser.add_argument("--submissions", type=int, default=50_000)
    parser.add_argument("--url", default="", help="of an empty database; without it, an SQLite file")
    said = parser.parse_args()
    unit = load_course(DEFAULT_COURSE).units["L5.3"]
    with tempfile.TemporaryDirectory(prefix="autograder-bench-") as name:
        settings = Settings(data=Path(name), course=Path(name), database_url=said.url)
        database.migrate(settings)
        engine = database.open_engine(settings.url)
        began = time.perf_counter()
        fill(engine, unit, said.students, said.submissions)
        print(
            f"{said.students} students, {said.submissions} submissions, filled in {time.perf_counter() - began:.0f} s"
        )
        took = {name: costs(engine, question) for name, question in questions(unit).items()}
        shown = asyncio.run(pages(settings, engine))
        engine.dispose()
    print(told("A question, from the database to what is told", took))
    print(told("A page, from the request to its last byte", shown))
    figures = {f"{name} ms": cost.wall for name, cost in took.items()} | {
        f"{name} page ms": cost.wall for name, cost in shown.items()
    }
    print(json.dumps({name.replace(" ", "_"): round(1e3 * seconds, 1) for name, seconds in figures.items()}))


def told(title: str, took: Mapping[str, "Costs"]) -> str:
    rows = [[name, *(f"{1e3 * seconds:.1f}" for seconds in (c.wall, c.worst, c.cpu))] for name, c in took.items()]
    return table(title, ["", "p50 ms", "worst ms", "CPU ms"], rows)


Question = Callable[[sa.Connection], object]


def questions(unit: Unit) -> dict[str, Question]:
    """What the views ask, of the whole class unless it says otherwise."""
    now = BEGAN + WEEK_SECONDS
    everyone = Selection(COURSE, unit.id)
    lately = replace(everyone, since=now - 86_400.0)
    section = replace(everyone, section="S1")
    course = Offering(COURSE, "", "Europe/Berlin", BEGAN)
    known = misconceptions.NAMED

    def listed(connection: sa.Connection, narrowed: Narrowed, sort: Sort, of: Selection = everyone) -> object:
        found = students.of_class(connection, of, narrowed, sort, unit, now)
        return students.rows(page_keys.page(found, students.order(sort), sort.value, 50, None)[0], course)

    def believed(connection: sa.Connection) -> object:
        found = misconceptions.found_in(connection, everyone, unit)
        return misconceptions.of_class(found, unit, selection.people(connection, everyone), known)

    return {
        "overview": lambda connection: overview.of_class(connection, everyone, course, None, Paces(), now),
        "tests": lambda connection: course_tests.of_class(connection, everyone, unit),
        "mutants and matrix": lambda connection: mutants.of_class(connection, everyone, unit),
        "misconceptions": believed,
        "students": lambda connection: listed(connection, Narrowed(), Sort.STUDENT),
        "students at risk": lambda connection: listed(connection, Narrowed(at_risk=True), Sort.RISK),
        "students of a mutant": lambda connection: listed(connection, Narrowed(survived="s03"), Sort.WORST),
        "students of a section": lambda connection: listed(connection, Narrowed(), Sort.STUDENT, section),
        "students lately": lambda connection: listed(connection, Narrowed(), Sort.NEWEST, lately),
        "whether anything changed": lambda connection: selection.version(connection, everyone),
    }


@dataclass(frozen=True)
class Costs:
    """Seconds: the median and the worst that passed, and the median that the process worked."""

    wall: float
    worst: float
    cpu: float


def costs(engine: sa.Engine, question: Question) -> Costs:
    """What it costs again and again, the first time not counted."""
    wall, cpu = [], []
    for _ in range(ROUNDS + 1):
        with database.reading(engine) as connection:
            began, worked = time.perf_counter(), time.process_time()
            question(connection)
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - worked)
    return Costs(median(wall[1:]), max(wall[1:]), median(cpu[1:]))


async def pages(settings: Settings, engine: sa.Engine) -> dict[str, Costs]:
    """What the pages about a class cost an administrator who is signed in."""
    course = load_course(DEFAULT_COURSE)
    service = Service(settings, engine, FakeQueue(), course, clock=lambda: BEGAN + WEEK_SECONDS)
    with database.writing(engine) as connection:
        said = {"id": "head", "created_at": BEGAN}
        connection.execute(
            tokens.insert().values(**said, digest="head", role="person", label="", user="head", courses=None)
        )
        connection.execute(
            users.insert().values(**said, account="head", login="head", name="Head", student="head", admin=True)
        )
        cookie = sessions.begin(connection, "head", service.clock())
    found: dict[str, Costs] = {}
    transport = httpx.ASGITransport(create_app(service))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bench.example", cookies={sessions.NAME: cookie}
    ) as client:
        for name, path in PAGES.items():
            wall, cpu = [], []
            for _ in range(ROUNDS + 1):
                began, worked = time.perf_counter(), time.process_time()
                answer = await client.get(f"/courses/{COURSE}/class{path}")
                wall.append(time.perf_counter() - began)
                cpu.append(time.process_time() - worked)
                answer.raise_for_status()
            found[name] = Costs(median(wall[1:]), max(wall[1:]), median(cpu[1:]))
    return found


PAGES = {
    "units": "",
    "overview": "/L5.3",
    "tests": "/L5.3/tests",
    "mutants": "/L5.3/mutants",
    "misconceptions": "/L5.3/misconceptions",
    "students": "/L5.3/students",
    "a student": "/L5.3/students/student-0001",
}


def fill(engine: sa.Engine, unit: Unit, students: int, count: int, seed: int = 1) -> None:
    """Write `count` graded submissions of so many students, spread over a week."""
    random_of = random.Random(seed)
    layout = Layout(tuple(test.name for test in unit.course_tests), tuple(mutant.id for mutant in unit.mutants))
    with database.writing(engine) as connection:
        connection.execute(tokens.insert().values(id="bench", digest="-", role="lms", label="", created_at=BEGAN))
        _enrol(connection, students)
        connection.execute(layouts.insert().values(id=layout.id, names=layout.names))
    made = _submissions(random_of, unit, layout, students, count)
    while batch := list(islice(made, ROWS_AT_A_TIME)):
        with database.writing(engine) as connection:
            for name, into in (("submission", submissions), ("run", runs), ("result", results), ("facts", facts)):
                connection.execute(into.insert(), [each[name] for each in batch])
            if rejecting := [row for each in batch for row in each["rejections"]]:
                connection.execute(rejections.insert(), rejecting)
    with database.writing(engine) as connection:
        whose = sa.select(facts.c.course, facts.c.unit, facts.c.student).distinct()
        progress.renew(connection, [progress.Whose(*row) for row in connection.execute(whose)])


def _enrol(connection: sa.Connection, students: int) -> None:
    numbers = range(students)
    said = {"role": "person", "label": "", "created_at": BEGAN}
    connection.execute(tokens.insert(), [{**said, "id": f"t{n}", "digest": f"t{n}"} for n in numbers])
    said = {"admin": False, "created_at": BEGAN}
    connection.execute(
        users.insert(),
        [
            {**said, "id": f"u{n}", "account": f"t{n}", "login": f"u{n}", "name": f"Student {n}", "student": student(n)}
            for n in numbers
        ],
    )
    said = {"course": COURSE, "role": "student", "source": "csv", "created_at": BEGAN}
    connection.execute(members.insert(), [{**said, "user": f"u{n}", "section": f"S{n % SECTIONS}"} for n in numbers])


def student(number: int) -> str:
    return f"student-{number:04}"


def _submissions(
    random_of: random.Random, unit: Unit, layout: Layout, students: int, count: int
) -> Iterator[dict[str, Any]]:
    """A student's n-th of m submissions is n/m of the way to how far the student gets."""
    share = count // students
    for number in range(count):
        who, nth = number % students, number // students
        ability = 0.4 + 0.6 * ((who * 7919) % students) / students
        level = ability * (0.3 + 0.7 * (nth + 1) / share)
        at = BEGAN + WEEK_SECONDS * (nth + random_of.random()) / share
        yield _submission(random_of, unit, layout, student(who), f"{number:032x}", at, level)


def _submission(
    random_of: random.Random, unit: Unit, layout: Layout, student: str, name: str, at: float, level: float
) -> dict[str, Any]:
    tests = "".join(TESTS_SEEN[random_of.random() < level] for _ in layout.tests)
    mutants = "".join(MUTANTS_SEEN[random_of.random() < level] for _ in layout.mutants)
    passed, killed = tests.count("."), sum(char in CAUGHT for char in mutants)
    rejecting = random_of.randrange(3) if random_of.random() > level else 0
    score = round((passed / len(tests) + killed / len(mutants)) / 2, 6)
    verdict = Verdict.PASS if score > 0.9 and not rejecting else Verdict.FAIL
    common = {"course": COURSE, "unit": unit.id, "student": student, "received_at": at}
    return {
        "submission": {
            **common,
            "id": name,
            "token": "bench",
            "stored_at": at,
            "digest": name,
            "notes": "[]",
            "run": name,
        },
        "run": {
            **{"id": name, "submission": name, "unit": unit.id, "status": "done", "priority": 1000, "queued_at": at},
            **{"started_at": at + 1, "finished_at": at + 9, "attempts": 1, "phase": "", "done": 0, "total": 0},
        },
        "result": {
            **{"run": name, "verdict": verdict.value, "score": score, "mutation_score": 0.5, "seed": "1"},
            **{"report": b"", "created_at": at},
        },
        "facts": {
            **{**common, "run": name, "counts": True, "submission": name, "verdict": verdict.value, "score": score},
            **{"tests_passed": passed, "tests_total": len(tests), "killed": killed, "mutants_total": len(mutants)},
            **{"rejecting": rejecting, "layout": layout.id, "tests": tests, "mutants": mutants},
        },
        "rejections": [_rejection(random_of, unit, name, n) for n in range(1, rejecting + 1)],
    }


TESTS_SEEN = {True: TESTS[Outcome.PASSED], False: TESTS[Outcome.FAILED]}
MUTANTS_SEEN = {True: MUTANTS[MutantStatus.KILLED], False: MUTANTS[MutantStatus.SURVIVED]}


def _rejection(random_of: random.Random, unit: Unit, run: str, number: int) -> dict[str, Any]:
    [code] = random_of.choices([code for code, _ in CODES], [weight for _, weight in CODES])
    said = {"denies": random_of.choice(unit.freedoms).says, "misprint": random_of.choice(unit.errata).printed}
    accepts = random_of.choice(unit.mutants).id if code == "unexplained" and random_of.random() < 0.7 else ""
    test = f"test_mine.py::test_{random_of.randrange(50)}"
    return {
        **{"run": run, "number": number, "test": test, "file": "test_mine.py", "line": random_of.randrange(1, 300)},
        **{"code": code, "said": said.get(code, ""), "accepts": accepts},
    }


if __name__ == "__main__":
    main()

"""Every hostile submission ends as its expected.toml says, and leaves nothing behind that the next one would notice."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from grader import conclude, views
from grader.errors import Rejected
from grader.grade import grade
from grader.intake import take_in
from grader.oracle import OracleProcesses
from grader.report import Report
from grader.submission import Upload
from grader.text import render
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import OWNER_LABEL, DockerSandbox, connect, owner_of
from tests.hostile.loading import Hostile, everything
from tests.samples.loading import Expected
from tests.test_samples import ABOUT, COURSE, failing, seen, wanted

SEED = 20260101


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(COURSE).units["L5.3"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


def cases() -> list[Any]:
    return [
        pytest.param(one, marks=[] if one.smoke else [pytest.mark.full], id=one.name) for one in everything().values()
    ]


@pytest.mark.docker
@pytest.mark.parametrize("hostile", cases())
def test_hostile_submission_ends_as_expected_and_leaves_nothing(
    hostile: Hostile, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses
) -> None:
    before = processes()
    report = graded(hostile, unit, sandbox, oracle)
    assert_sound(report)
    assert seen_of(report, hostile, unit) == wanted_of(hostile, unit), render(report)
    told = views.for_role(report, "student").to_json() + render(views.for_role(report, "student"))
    assert not [text for text in hostile.absent if text in told]
    assert containers() == []
    assert processes() <= before


def graded(hostile: Hostile, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses) -> Report:
    try:
        submission = take_in(unit, {"mha": Upload("mha.py", hostile.mha)}, hostile.tests)
    except Rejected as refusal:
        return conclude.rejected(unit.id, ABOUT, refusal.code, f"{refusal.path}: {refusal.message}")
    return grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=SEED, about=ABOUT)


ANY = ("any",)


def wanted_of(hostile: Hostile, unit: Unit) -> dict[str, object]:
    expected = spread(hostile.expected, unit)
    return wanted(expected, unit) | {name: "some" for name in loose(expected)}


def seen_of(report: Report, hostile: Hostile, unit: Unit) -> dict[str, object]:
    expected = spread(hostile.expected, unit)
    found = seen(report, expected, unit)
    return found | {name: "some" if found.get(name) else "none" for name in loose(expected)}


def loose(expected: Expected) -> list[str]:
    """What only has to be there, whichever it is."""
    compared = {"course tests that fail": expected.fails, "rejects": expected.rejects}
    return [name for name, value in compared.items() if value == ANY]


def spread(expected: Expected, unit: Unit) -> Expected:
    """With "failing" in the causes of course tests said for each of those that must fail."""
    causes = dict(expected.course_causes)
    if "failing" in causes:
        code = causes.pop("failing")
        causes = dict.fromkeys(failing(expected, unit), code) | causes
    return replace(expected, course_causes=causes)


def containers() -> list[str]:
    client = connect(None)
    return [
        found["Id"]
        for found in client.api.containers(all=True, filters={"label": f"{OWNER_LABEL}={owner_of(os.getpid())}"})
    ]


def processes() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def assert_sound(report: Report) -> None:
    pass

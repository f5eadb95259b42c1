"""An inert suite is collected once, before its runs; nothing that a run says or does is different for it."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from sandbox.process import ProcessSandbox
from sandbox.records import Module, Run, RunResult, Sandbox

HELPER = "from unit import VALUE\n\n\ndef twice():\n    return 2 * VALUE\n"
CONFTEST = """
import pytest
import unit

pytestmark = pytest.mark.slow

@pytest.fixture(params=[1, 2])
def number(request):
    return request.param

@pytest.fixture(autouse=True)
def says(capsys):
    yield
    print(unit.VALUE)
"""
SUITE = """
import os
import unittest
from pathlib import Path

import pytest
from helper import twice
from unit import VALUE, boom

HERE = Path(__file__).parent
SEEN = []

def test_value():
    assert VALUE == 3

def test_helper(number):
    assert twice() == 6 and number

@pytest.mark.parametrize("n", [3, 4])
def test_parametrised(n):
    assert n == VALUE, "other"

def test_file():
    assert (HERE / "data.txt").read_text() == "data" and os.getcwd() == str(HERE.parent)

def test_boom():
    boom()

def test_nothing_was_seen():
    assert not SEEN
    SEEN.append(VALUE)

@pytest.mark.skip(reason="later")
def test_skipped(): ...

@pytest.mark.xfail
def test_expected():
    assert VALUE == 0

class TestClass:
    size = 2
    def setup_method(self):
        self.value = VALUE
    def test_member(self):
        assert self.value == 3 and self.size == 2

class TestUnit(unittest.TestCase):
    def setUp(self):
        self.value = VALUE
    def test_member(self):
        self.assertEqual(self.value, 3)
"""
FILES = {"helper.py": HELPER, "conftest.py": CONFTEST, "data.txt": "data"}


def unit(source: str) -> tuple[Module, ...]:
    return (Module("unit", source.encode(), "unit.py"),)


GOOD = unit("VALUE = 3\ndef boom():\n    raise ValueError('boom')\n")
UNITS = {
    "good": GOOD,
    "other": unit("VALUE = 4\ndef boom(): pass\n"),
    "lacks a name": unit("VALUE = 3\n"),
    "fails": unit("print('importing')\n1 / 0\n"),
    "exits": unit("raise SystemExit(3)\n"),
    "is no Python": unit("def f(:\n"),
    "is missing": (),
    "leaves": unit("import os\nos._exit(5)\n"),
}


def seen(result: RunResult) -> object:
    """All that a run says but for times, and slots, of which either may be free."""
    stderr = re.sub(r"/\d+/run/", "/N/run/", result.stderr.text)
    items = [replace(item, seconds=0.0) for item in result.record.items]
    return result.ending, result.record.collected, items, result.record.errors, result.stdout.text != "", stderr


@pytest.fixture(scope="module")
def runs() -> Callable[..., list[Run]]:
    def make(run_of: Callable[..., Run], **options: object) -> list[Run]:
        return [
            run_of(SUITE, id=name, files=FILES, modules=unit, path_dirs=("suite",), **options)
            for name, unit in UNITS.items()
        ]

    return make


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"messages": False},
        {"only": ("test_it.py::test_parametrised", "test_it.py::TestUnit::test_member")},
        {"skip": ("test_it.py::test_value", "test_it.py::test_parametrised[3]")},
        {"stop_at_first_failure": True},
        {"first": ("test_it.py::TestClass::test_member", "test_it.py::test_parametrised", "test_it.py::gone")},
    ],
    ids=lambda options: " ".join(options) or "all",
)
def test_runs_say_what_they_would_without_it(
    sandbox: Sandbox, run_of: Callable[..., Run], runs: Callable[..., list[Run]], options: dict[str, object]
) -> None:
    made = runs(run_of, **options)
    with sandbox.session() as session:
        before = session.run(made)
        session.prepare([made[0].suite.folder])
        after = session.run(made)
    assert [seen(result) for result in after] == [seen(result) for result in before]
    assert {item.outcome for item in after[0].record.items} >= {"failed", "passed"}


LOOKS = """
import sys
import time

import unit

def test_it():
    raise AssertionError(f"{__import__('os').getppid()} {sys.path[:3]}")
"""


def parents(results: tuple[RunResult, ...]) -> set[str]:
    return {result.record.items[0].message for result in results}


def test_a_slot_s_runs_of_an_inert_suite_have_one_parent_and_others_another(run_of: Callable[..., Run]) -> None:
    inert = run_of(LOOKS, modules=GOOD)
    active = run_of("print()\n" + LOOKS, modules=GOOD)
    with ProcessSandbox(jobs=1).session() as session:
        before = parents(session.run([inert, active]))
        session.prepare([inert.suite.folder, active.suite.folder])
        one, other = parents(session.run([inert, inert])), parents(session.run([active, active]))
    assert before == other and len(other) == 1
    assert len(one) == 1 and not one & other


def test_suites_may_be_made_ready_one_after_the_other(run_of: Callable[..., Run]) -> None:
    one, other = (run_of(f"{LOOKS}\nNAME = '{name}'\n", modules=GOOD) for name in ("one", "other"))
    with ProcessSandbox(jobs=1).session() as session:
        session.prepare([one.suite.folder])
        session.prepare([other.suite.folder, one.suite.folder])  # runs of neither wait for the first alone
        of_one, of_other = parents(session.run([one, one])), parents(session.run([other, other]))
        session.lose_station()
        again = parents(session.run([one, one])), parents(session.run([other, other]))
    assert len(of_one) == len(of_other) == 1 and not of_one & of_other
    assert [len(each) for each in again] == [1, 1] and not again[0] & again[1]


def test_runs_of_a_suite_that_is_ready_go_on_while_another_is_made_ready(run_of: Callable[..., Run]) -> None:
    one, other = (run_of(f"{LOOKS}\nNAME = '{name}'\n", modules=GOOD) for name in ("one", "other"))
    active = run_of("print()\n" + LOOKS, modules=GOOD)
    with ProcessSandbox(jobs=2).session() as session:
        session.prepare([one.suite.folder])
        before = parents(session.run([one] * 4))
        session.prepare([other.suite.folder])
        mixed = session.run([one, one, other, active, other, one])
        after = parents(session.run([one] * 4)), parents(session.run([other] * 4)), parents(session.run([active]))
    assert all(result.complete for result in mixed)
    of_one, of_other = parents(mixed[:2]) | parents(mixed[5:]), parents((mixed[2], mixed[4]))
    assert of_one | after[0] == before and of_other <= after[1] and parents(mixed[3:4]) == after[2]
    assert not before & after[1]


WRITES = """
from pathlib import Path
import unit

def test_it():
    data = Path(__file__).parent / "data.txt"
    assert data.read_text() == "data"
    data.write_text("other")
    Path(__file__).write_text("")
"""


@pytest.mark.parametrize("beginning", ["", "print()\n"], ids=["inert", "active"])
def test_each_run_of_a_suite_that_is_ready_has_its_files_as_they_were_sent(
    sandbox: Sandbox, run_of: Callable[..., Run], beginning: str
) -> None:
    run = run_of(beginning + WRITES, files={"data.txt": "data"}, modules=GOOD)
    other = run_of(beginning + WRITES, files={"data.txt": "else"}, modules=GOOD)
    with sandbox.session() as session:
        session.prepare([run.suite.folder])
        results = session.run([run, run, other, run])
    assert [result.record.items[0].outcome for result in results] == ["passed", "passed", "failed", "passed"]


def test_suites_that_share_names_do_not_meet(sandbox: Sandbox, run_of: Callable[..., Run]) -> None:
    first = run_of(
        "import unit\nimport helper\ndef test_it():\n    assert helper.N == 1\n",
        files={"helper.py": "N = 1\n"},
        modules=GOOD,
        path_dirs=("suite",),
    )
    second = run_of(
        "import unit\nimport helper\ndef test_it():\n    assert helper.N == 2\n",
        files={"helper.py": "N = 2\n"},
        modules=GOOD,
        path_dirs=("suite",),
    )
    with sandbox.session() as session:
        session.prepare([first.suite.folder, second.suite.folder])
        results = session.run([first, second, first, second])
    assert [item.outcome for result in results for item in result.record.items] == ["passed"] * 4


def test_a_suite_that_cannot_be_collected_says_so_in_its_runs(sandbox: Sandbox, run_of: Callable[..., Run]) -> None:
    run = run_of(
        "import helper\nfrom helper import missing\ndef test_it(): ...\n", files={"helper.py": ""}, path_dirs=("suite",)
    )
    with sandbox.session() as session:
        [before] = session.run([run])
        session.prepare([run.suite.folder])
        [after] = session.run([run])
    assert seen(before) == seen(after) and "missing" in after.record.errors[0].message


def test_a_session_whose_sandbox_was_lost_prepares_the_next(run_of: Callable[..., Run]) -> None:
    run = run_of(LOOKS, modules=GOOD)
    with ProcessSandbox(jobs=1).session() as session:
        session.prepare([run.suite.folder])
        first = parents(session.run([run]))
        session.lose_station()
        second = parents(session.run([run, run]))
    assert len(second) == 1 and first != second


PROPERTY = """
from hypothesis import given
from hypothesis import strategies as st

@given(st.lists(st.integers(0, 10_000), min_size=1))
def test_sums_are_small(numbers):
    assert sum(numbers) < 500
"""


@pytest.mark.parametrize("prepared", [False, True])
def test_an_example_is_made_small_where_its_message_is_read(run_of: Callable[..., Run], prepared: bool) -> None:
    run = run_of(PROPERTY)
    with ProcessSandbox(jobs=1).session() as session:
        if prepared:
            session.prepare([run.suite.folder])
        [result] = session.run([run])
    assert "numbers=[500]" in result.record.items[0].message

"""Tests that tell variants apart by anything but behaviour win nothing: in simulation, and for real.

The coins of a simulated suite are thrown by the text of the rendering it faces, as a test that hashes code would. The
real suites hash what they can reach of the code, leave marks for the runs after them, or look at clocks.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader import reach
from grader.grade import grade
from grader.plan import STANDARD
from grader.report import MutantStatus, Report
from grader.submission import Submission
from grader.unit import Mutant, Unit, Wheat
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from sandbox.process import ProcessSandbox
from sandbox.records import File, Run, RunResult, Sandbox
from tests.grader.simulated import ABOUT, Act, SimulatedSuite, a_unit, statuses

COINS = 50
MUTANTS = 20
SUBMISSIONS = 20
COURSE = Path(__file__).resolve().parents[2] / "course"


# -- simulated ---------------------------------------------------------------------------------------------------------


class CoinSuite(SimulatedSuite):
    """Each test fails with a probability, by the text of the code it faces; `attempt` makes other coins."""

    probability = 0.5
    attempt = 0
    text = b""

    def answer(self, run: Run) -> RunResult:
        self.text = run.modules[0].source
        return super().answer(run)

    def _act(self, variant: str, test: str) -> Act:
        if variant in ("broken", "own"):
            return Act.FAIL if variant == "broken" else Act.PASS
        thrown = hashlib.sha256(f"{self.attempt} {test} ".encode() + self.text).digest()
        return Act.FAIL if int.from_bytes(thrown[:4], "big") / 2**32 < self.probability else Act.PASS


def best_score(unit: Unit, coins: int, probability: float) -> float:
    """The best of several submissions, each with coins of its own."""
    scores = []
    for attempt in range(SUBMISSIONS):
        suite = CoinSuite(unit, tuple(f"test_{n}" for n in range(coins)))
        suite.probability, suite.attempt = probability, attempt
        report = suite.grade(seed=attempt)
        assert report.mutation is not None
        scores.append(report.mutation.score)
    return max(scores)


@pytest.mark.parametrize("probability", [0.5, 0.1, 0.02])
def test_the_best_of_twenty_suites_of_fifty_coins_scores_nothing(unit: Unit, probability: float) -> None:
    assert best_score(a_unit(unit, [f"m{n}" for n in range(MUTANTS)]), COINS, probability) == 0.0


@pytest.mark.parametrize("probability", [0.9, 0.5, 0.1])
def test_the_best_of_twenty_single_coins_is_far_from_passing(unit: Unit, probability: float) -> None:
    assert best_score(a_unit(unit, [f"m{n}" for n in range(MUTANTS)]), 1, probability) < 0.2


class NoticingSuite(CoinSuite):
    """One test, a coin where all tests are run; it fails for certain where it sees that some are left out."""

    def answer(self, run: Run) -> RunResult:
        self.fewer = bool(run.suite.skip or run.suite.only)
        return super().answer(run)

    def _act(self, variant: str, test: str) -> Act:
        if variant in ("broken", "own") or test != "test_coin":
            return SimulatedSuite._act(self, variant, test)
        return Act.FAIL if self.fewer else super()._act(variant, test)

    def noticed_on(self) -> set[str]:
        """The variants on which it saw that first."""
        first: dict[str, Run] = {}
        for variant, run in self.log:
            first.setdefault(variant, run)
        return {variant for variant, run in first.items() if run.suite.skip}


@pytest.mark.parametrize("probability", [0.7, 0.5, 0.2])
def test_the_best_of_twenty_coins_that_notice_what_is_left_out_does_not_pass(unit: Unit, probability: float) -> None:
    unit = with_mutants_inside(unit, MUTANTS)
    scores, noticed = [], 0
    for attempt in range(SUBMISSIONS):
        changed = reach.changed(unit, unit.mutants[0].files)
        suite = NoticingSuite(unit, ("test_coin", "test_a", "test_b"), enters={"test_coin": changed or 0})
        suite.probability, suite.attempt = probability, attempt
        report = suite.grade(seed=attempt, policy=replace(STANDARD, full_matrix_cpu_seconds=0.0))
        scores.append(won(report))
        noticed += suite.noticed_on() == set(statuses(report))
    assert noticed >= SUBMISSIONS * (1 - probability) / 2  # and no kill came of it alone
    assert max(scores) < 0.8


class OrderSuite(NoticingSuite):
    """One test, a coin thrown by the order that tests are run in; it fails for certain where some are left out."""

    met: frozenset[tuple[str, ...]] = frozenset()

    def answer(self, run: Run) -> RunResult:
        self.order = run.suite.first
        self.met |= {self.order}
        return super().answer(run)

    def _act(self, variant: str, test: str) -> Act:
        self.text = repr(self.order).encode()
        return super()._act(variant, test)


@pytest.mark.parametrize("probability", [0.7, 0.5, 0.2])
def test_the_best_of_twenty_coins_thrown_by_the_order_of_tests_does_not_pass(unit: Unit, probability: float) -> None:
    """Half of the mutants are caught by tests that see them, from which the orders come; the coin is for the others."""
    unit = with_mutants_inside(unit, 2 * MUTANTS)
    mutants = [replace(each, category=f"category {n % 10}") for n, each in enumerate(unit.mutants)]
    unit = replace(unit, mutants=tuple(mutants))
    enters = dict.fromkeys(["test_coin", *(f"test_{n}" for n in range(10))], reach.changed(unit, mutants[0].files) or 0)
    acts = {each.id: {f"test_{n % 10}": Act.FAIL} for n, each in enumerate(mutants[:MUTANTS])}
    shares = []
    for attempt in range(SUBMISSIONS):
        suite = OrderSuite(unit, tuple(enters), acts, enters=enters)
        suite.probability, suite.attempt = probability, attempt
        found = statuses(suite.grade(seed=attempt, policy=replace(STANDARD, full_matrix_cpu_seconds=0.0)))
        shares.append(sum(found[each.id] is MutantStatus.KILLED for each in mutants[MUTANTS:]) / MUTANTS)
        assert len(suite.met) > 10
    assert max(shares) < 0.8


def with_mutants_inside(unit: Unit, count: int) -> Unit:
    """With mutants in the body of a function, so that the tests which reach them are known."""
    unit = a_unit(unit, [f"m{n}" for n in range(count)])
    [file] = unit.files

    def source(name: str) -> bytes:
        return file.reference.replace(b"return x / 2", f"return x / 2 + len(\"VARIANT = '{name}'\")".encode())

    return replace(unit, mutants=tuple(replace(each, files={file.path: source(each.id)}) for each in unit.mutants))


def test_no_text_is_met_twice_where_it_could_help(unit: Unit) -> None:
    unit = a_unit(unit, [f"m{n}" for n in range(MUTANTS)])
    suite = SimulatedSuite(unit, ("test_a",), acts={f"m{n}": {"test_a": Act.FAIL} for n in range(MUTANTS)})
    assert set(statuses(suite.grade()).values()) == {MutantStatus.KILLED}
    seen: dict[str, list[bytes]] = {}
    for variant, run in suite.log:
        if not run.modules[0].source_visible:
            seen.setdefault(variant, []).append(run.modules[0].source)
    assert len(seen["reference"]) >= 4  # the calibration, and three runs that count
    assert all(len(seen[f"m{n}"]) == 2 for n in range(MUTANTS))
    for variant, texts in seen.items():
        assert len(set(texts)) == len(texts), variant


# -- for real ----------------------------------------------------------------------------------------------------------

HEAD = """\
import dis
import gc
import hashlib
import inspect
import io
import marshal
import os
import sys
import time
import types

import numpy

from UNIT import CLASS


def coin(data, number):
    return hashlib.sha256(b"%d " % number + data).digest()[0] >= 16


def codes():
    return [value.__code__ for _, value in sorted(vars(CLASS).items()) if inspect.isfunction(value)]


def all_code():
    found = [value.__code__ for value in gc.get_objects() if inspect.isfunction(value) and value.__module__ == "UNIT"]
    return sorted(found, key=lambda code: code.co_name)


def disassembled():
    text = io.StringIO()
    for code in codes():
        dis.dis(code, file=text)
    return text.getvalue().encode()
"""
READINGS = {
    "instructions": "b''.join(code.co_code for code in codes())",
    "constants": "repr([[c for c in code.co_consts if not inspect.iscode(c)] for code in codes()]).encode()",
    "names": "repr([code.co_varnames + code.co_names for code in codes()]).encode()",
    "disassembly": "disassembled()",
    "marshalled": "b''.join(map(marshal.dumps, codes()))",
    "garbage collector": "b''.join(code.co_code for code in all_code())",
    "loaded module": "repr(list(vars(sys.modules['UNIT']))).encode()",
    "order of methods": "repr(list(vars(CLASS))).encode()",
    "sizes": "repr([(len(code.co_code), code.co_stacksize, code.co_nlocals) for code in codes()]).encode()",
    "lines": "repr([(code.co_firstlineno, code.co_filename) for code in codes()]).encode()",
    "positions": "repr([list(code.co_positions()) for code in codes()]).encode()",
    "docstrings": "repr([CLASS.__doc__, [f.__doc__ for f in vars(CLASS).values()]]).encode()",
    "clock": "repr(time.perf_counter_ns()).encode()",
    "address": "repr(id(CLASS)).encode()",
    "process": "repr((os.getpid(), os.urandom(2))).encode()",
}
MARKS = {
    "working directory": "open('was-here', 'x')",
    "home": "open(os.path.expanduser('~/was-here'), 'x')",
    "temporary directory": "open(os.environ['TMPDIR'] + '/was-here', 'x')",
    "environment": "os.environ['WAS_HERE']; raise AssertionError",
    "builtins": "__builtins__['was_here']; raise AssertionError",
    "library": "numpy.was_here; raise AssertionError",
}
LEAVE = "os.environ['WAS_HERE'] = __builtins__['was_here'] = numpy.was_here = 'x'"


def coin_suite(reading: str) -> str:
    """Fifty tests, each by a coin of its own."""
    tests = "".join(
        f"\n\ndef test_{number}():\n    assert coin({READINGS[reading]}, {number})\n" for number in range(COINS)
    )
    return HEAD + tests


def mark_suite(mark: str) -> str:
    """A test that fails where a run before it has left its mark."""
    return (
        f"{HEAD}\n\ndef test_first_here():\n    try:\n        {MARKS[mark]}\n    except (KeyError, AttributeError):\n"
        f"        {LEAVE}\n"
    )


def wider(unit: Unit) -> Unit:
    """The small unit with ten mutants and five wheats whose code differs in the body of a method."""
    [file] = unit.files
    body = b"x * self.factor + self.offset"

    def with_body(new: str) -> dict[str, bytes]:
        assert body in file.reference
        return {file.path: file.reference.replace(body, new.encode())}

    wrong = [f"x * self.factor + self.offset + {n}" for n in range(1, 11)]
    right = [
        "self.factor * x + self.offset",
        "self.offset + x * self.factor",
        "self.offset + self.factor * x",
        "sum((x * self.factor, self.offset))",
        "x * self.factor - -self.offset",
    ]
    mutants = [
        Mutant(f"m{n:02}", "auto", "op", 1, False, "hint", "fault", "", with_body(new)) for n, new in enumerate(wrong)
    ]
    wheats = [Wheat(f"w{n:02}", with_body(new)) for n, new in enumerate(right)]
    return replace(unit, mutants=tuple(mutants), wheats=tuple(wheats), freedoms=(), required_mutants=())


def graded(unit: Unit, sandbox: Sandbox, source: str, cls: str, seed: int = 3) -> Report:
    text = source.replace("UNIT", unit.files[0].module).replace("CLASS", cls)
    tests = (File("test_it.py", text.encode()),)
    submission = Submission(unit.id, {file.path: file.reference for file in unit.files}, tests)
    return grade(unit, submission, sandbox=sandbox, seed=seed, about=ABOUT)


def won(report: Report) -> float:
    assert report.mutation is not None
    return report.mutation.score


def assert_nothing_won(report: Report) -> None:
    """And the coins were thrown: some fell well each time, some did not."""
    assert won(report) == 0.0
    assert report.student_tests is not None
    assert {test.valid for test in report.student_tests.tests} == {True, False}


def some_full(*fast: str) -> list[Any]:
    """All readings, all but some of them for the full run alone."""
    return [pytest.param(name, marks=() if name in fast else pytest.mark.full) for name in READINGS]


@pytest.fixture(scope="module")
def processes() -> ProcessSandbox:
    return ProcessSandbox(jobs=2)


def test_the_unit_of_these_tests_can_be_graded_by_behaviour(unit: Unit, processes: ProcessSandbox) -> None:
    honest = HEAD + "\n\ndef test_doubles():\n    assert CLASS()(3) == 6\n"
    assert won(graded(wider(unit), processes, honest, "Double")) == 1.0


@pytest.mark.parametrize("reading", some_full("instructions", "lines", "clock"))
def test_coins_thrown_by_what_can_be_read_win_nothing(unit: Unit, processes: ProcessSandbox, reading: str) -> None:
    assert_nothing_won(graded(wider(unit), processes, coin_suite(reading), "Double"))


@pytest.mark.parametrize("mark", MARKS)
def test_marks_left_for_later_runs_win_nothing(unit: Unit, processes: ProcessSandbox, mark: str) -> None:
    report = graded(wider(unit), processes, mark_suite(mark), "Double")
    assert set(statuses(report).values()) == {MutantStatus.SURVIVED}
    assert won(report) == 0.0


# -- in the real sandbox, on the real unit -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attention() -> Unit:
    return replace(load_course(COURSE).units["L5.3"], oracle=None)  # these tests are about the mutants


@pytest.fixture(scope="module")
def containers() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as sandbox:
        yield sandbox


LEAVES_FILE = """

def test_first_here():
    try:
        open('PLACE/was-here', 'x')
    except FileExistsError:
        raise
    except OSError:
        pass  # nobody may write there
"""


@pytest.mark.docker
@pytest.mark.parametrize("reading", some_full("marshalled"))
def test_coins_win_nothing_in_containers(attention: Unit, containers: DockerSandbox, reading: str) -> None:
    assert_nothing_won(graded(attention, containers, coin_suite(reading), "MultiHeadAttention"))


@pytest.mark.docker
@pytest.mark.full
@pytest.mark.parametrize("mark", MARKS)
def test_marks_win_nothing_in_containers(attention: Unit, containers: DockerSandbox, mark: str) -> None:
    assert won(graded(attention, containers, mark_suite(mark), "MultiHeadAttention")) == 0.0


@pytest.mark.docker
@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/var/tmp"])
def test_no_file_stays_where_all_runs_could_write(attention: Unit, containers: DockerSandbox, place: str) -> None:
    report = graded(attention, containers, HEAD + LEAVES_FILE.replace("PLACE", place), "MultiHeadAttention")
    assert set(statuses(report).values()) == {MutantStatus.SURVIVED}
    assert report.student_tests is not None
    assert [test.valid for test in report.student_tests.tests] == [True]

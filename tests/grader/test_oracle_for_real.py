"""Wrong code that makes every course test report a pass, run for real on a small unit: the oracle is not deceived."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from grader.driver import driver_of
from grader.errors import OracleFailed, OracleMissing
from grader.grade import grade
from grader.oracle import FakeOracle, OracleProcesses, Trial
from grader.report import Report, Verdict
from grader.submission import Submission
from grader.text import render
from grader.unit import Unit, UnitOracle
from sandbox.process import ProcessSandbox
from sandbox.records import File
from tests.grader.simulated import ABOUT, codes
from tests.grader.small_course import REFERENCE
from tests.grader.small_oracle import LIVE

TESTS = b"from tinyllm.demo.double import Double\n\n\ndef test_doubles():\n    assert Double()(3) == 6\n"
FORGE = """
import sys
recorder = sys.modules.get("sandbox.inside.recorder")
if recorder:
    recorder.outcome_of = lambda reports: ("passed", None)
"""
RIGHT = "x = x * self.factor + self.offset"


@pytest.fixture(scope="module")
def small(unit: Unit) -> Unit:
    """Z1 with its oracle, and without mutants, which say nothing here."""
    oracle = UnitOracle(LIVE.encode(), driver_of(LIVE.encode()))
    return replace(unit, oracle=oracle, wheats=(), test_seconds=1.0, determinism_runs=1)


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


def graded(unit: Unit, oracle: OracleProcesses, source: str, seed: int = 4) -> Report:
    [file] = unit.files
    submission = Submission(unit.id, {file.path: source.encode()}, (File("test_mine.py", TESTS),))
    return grade(unit, submission, sandbox=ProcessSandbox(jobs=2), oracle=oracle, seed=seed, about=ABOUT)


def instead(body: str, forged: bool = True) -> str:
    """The reference with another forward, in a unit that lets every test report a pass."""
    return REFERENCE.replace(RIGHT, body) + (FORGE if forged else "")


@pytest.mark.parametrize("seed", range(3))
def test_right_code_agrees_whatever_the_seed(small: Unit, oracle: OracleProcesses, seed: int) -> None:
    report = graded(small, oracle, REFERENCE, seed)
    assert report.oracle is not None
    assert (report.verdict, report.oracle.status, report.oracle.cases) == (Verdict.PASS, "agree", 6)
    assert report.oracle.agreed == 6 and report.oracle.disagreements == ()


def test_right_code_agrees_even_if_it_forges(small: Unit, oracle: OracleProcesses) -> None:
    report = graded(small, oracle, REFERENCE + FORGE)
    assert report.oracle is not None and report.oracle.status == "agree"


WRONG = {
    "wrong": ("x = x + 1.0", "the result at"),
    "nan": ("x = x * float('nan')", "is nan"),
    "scalar": ("x = __import__('numpy').float64(0.0)", "has the shape []"),
    "empty": ("x = x[:0]", "has the shape [0, 2]"),
    "float32": ("x = (x * self.factor).astype('float32')", "has the dtype float32"),
    "object": ("x = [object()]", "TypeError"),
    "equal_to_all": (
        "x = type('E', (), {'__eq__': lambda *_: True, '__array__': lambda *_, **k: __import__('numpy').zeros(1)})()",
        "has the shape [1]",
    ),
    "right_for_two_rows": ("x = x * self.factor if len(x) == 2 else x * 1.0", "rows: the result at"),
    "exits": ("import os; os._exit(0)", "left before"),
    "system_exit": ("raise SystemExit(0)", "SystemExit"),
    "hangs": ("while True: pass", "With factor"),
    "changes_numpy": ("import numpy; numpy.asarray = lambda x: numpy.zeros(0); x = x * 0.0", "has the shape [0]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_code_fails_with_a_case_although_every_course_test_passes(
    small: Unit, oracle: OracleProcesses, name: str
) -> None:
    body, says = WRONG[name]
    # Right for plain numbers, so that the student's own tests pass; what course tests say is forged besides.
    right = "if not hasattr(x, 'shape'):\n                x = x * self.factor\n                continue"
    source = instead(f"{right}\n            {body}")
    report = graded(small, oracle, source)
    assert report.course_tests is not None and report.oracle is not None and report.student_tests is not None
    assert report.course_tests.passed == report.course_tests.total
    assert (report.verdict, report.oracle.status) == (Verdict.FAIL, "disagree")
    assert "oracle_disagrees" in codes(report)
    assert any(says in told.message for told in report.oracle.disagreements), report.oracle.disagreements
    assert says in render(report)
    assert report.score is not None and report.score <= small.weight_mutation
    assert "With factor" in report.next_step
    assert not [word for word in ("cheat", "tamper", "forge", "manipulat") if word in render(report).lower()]


FORGED_FRAMES = {
    "an end": b'{"event": "end", "cases": 6}',
    "an answer": b'{"event": "answer", "case": 0, "arrays": []}',
    "nan": b'{"event": "error", "case": NaN, "message": ""}',
    "ours": b'{"event": "broken", "message": "no"}',
}


@pytest.mark.parametrize("what", FORGED_FRAMES)
def test_forged_frames_do_not_pass_and_are_told(small: Unit, oracle: OracleProcesses, what: str) -> None:
    frame = FORGED_FRAMES[what]
    data = len(frame).to_bytes(4, "big") + bytes(4) + frame
    source = instead(
        f"import os\n            if hasattr(x, 'shape'):\n                os.write(3, {data!r})\n"
        "            x = x * self.factor if not hasattr(x, 'shape') else x * 0.0"
    )
    report = graded(small, oracle, source)
    assert report.verdict is Verdict.FAIL and "oracle_disagrees" in codes(report)
    assert report.oracle is not None
    causes = [told.cause.code for told in report.oracle.disagreements if told.cause]
    assert "protocol_error" in causes


def test_a_hang_in_one_case_does_not_lose_the_others(small: Unit, oracle: OracleProcesses) -> None:
    source = instead("x = x * self.factor\n            while getattr(x, 'shape', ()) == (1, 2): pass", forged=False)
    report = graded(small, oracle, source)
    assert report.oracle is not None and report.oracle.agreed == 5
    [told] = report.oracle.disagreements
    assert told.cause is not None and told.cause.code in ("cpu_time", "no_progress")
    assert told.message.startswith("With factor") and "1 rows" in told.message


def test_a_unit_that_cannot_be_read_is_not_driven(small: Unit, oracle: OracleProcesses) -> None:
    report = graded(small, oracle, "def (:\n")
    assert report.oracle is not None and report.oracle.status == "not_run"
    assert codes(report)[0] == "contract" and "oracle_disagrees" not in codes(report)


def test_wrong_code_that_fails_course_tests_has_one_reason_and_shows_the_cases(
    small: Unit, oracle: OracleProcesses
) -> None:
    report = graded(small, oracle, instead("x = x + 1", forged=False))
    assert "course_tests" in codes(report) and "oracle_disagrees" not in codes(report)
    assert report.oracle is not None and report.oracle.status == "disagree" and report.oracle.disagreements


def test_the_same_seed_gives_the_same_part_and_another_other_cases(small: Unit, oracle: OracleProcesses) -> None:
    source = instead("x = x * 1.5")
    first, again, other = (graded(small, oracle, source, seed).oracle for seed in (1, 1, 2))
    assert first == again
    assert first is not None and other is not None
    assert first.seed != other.seed and first.disagreements != other.disagreements


def test_a_unit_with_an_oracle_is_not_graded_without_one(small: Unit) -> None:
    with pytest.raises(OracleMissing):
        graded(small, None, REFERENCE)  # type: ignore[arg-type]


def test_an_oracle_that_fails_is_our_failure(small: Unit) -> None:
    def fail(seed: int) -> tuple[Trial, ...]:
        raise OracleFailed("torn")

    with pytest.raises(OracleFailed):
        graded(small, FakeOracle(fail), REFERENCE)  # type: ignore[arg-type]

"""Wrong multi-head attention that tries to look right, and honest code that is right only for some inputs, in
containers.

What it does to the course tests is beside the point: none may pass, and each is told a case.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from grader.grade import grade
from grader.oracle import OracleProcesses
from grader.report import OraclePart, Report, Verdict
from grader.submission import Submission
from grader.text import render
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from sandbox.records import File
from tests.course import variants
from tests.grader.simulated import ABOUT

pytestmark = pytest.mark.docker

TESTS = b"""\
from tinyllm.xfmr.mha import MultiHeadAttention


def test_it():
    assert MultiHeadAttention(4, 2).n_heads == 2
"""
FORGES_OUTCOMES = """
import sys
_recorder = sys.modules.get("sandbox.inside.recorder")
if _recorder is not None:
    _recorder.outcome_of = lambda reports: ("passed", None)
"""
PATCHES_PYTEST = """
import _pytest.runner
_from_call = _pytest.runner.CallInfo.from_call.__func__
def _quiet(cls, func, when, reraise=None):
    return _from_call(cls, lambda: None, when, reraise)
_pytest.runner.CallInfo.from_call = classmethod(_quiet)
"""
PATCHES_NUMPY = """
import numpy as _np
_np.testing.assert_allclose = _np.testing.assert_array_equal = _np.testing.assert_equal = lambda *a, **k: None
_np.allclose = _np.array_equal = lambda *a, **k: True
"""
INSTEAD = """
_attend = MultiHeadAttention.attend
def _instead(self, x_q, x_kv, mask=None):
    out, weights = _attend(self, x_q, x_kv, mask)
    {body}
    return out, weights
MultiHeadAttention.attend = _instead
"""
SCALED = "out = out * 0.5"
FRAMES = b"".join(
    len(text).to_bytes(4, "big") + bytes(4) + text
    for text in (b'{"event": "answer", "case": 20, "arrays": []}', b'{"event": "end", "cases": 80}')
)


WRONG = {
    "forged outcomes": FORGES_OUTCOMES + INSTEAD.format(body=SCALED),
    "patched pytest": PATCHES_PYTEST + INSTEAD.format(body=SCALED),
    "patched numpy": PATCHES_NUMPY + INSTEAD.format(body=SCALED),
    "nan": FORGES_OUTCOMES + INSTEAD.format(body="out = out * float('nan')"),
    "infinity": FORGES_OUTCOMES + INSTEAD.format(body="out = out * float('inf')"),
    "a scalar": FORGES_OUTCOMES + INSTEAD.format(body="out = out.sum()"),
    "an early exit": FORGES_OUTCOMES + INSTEAD.format(body="__import__('os')._exit(0)"),
    "forged frames": FORGES_OUTCOMES + INSTEAD.format(body=f"import os; os.write(3, {FRAMES!r}); os._exit(0)"),
    "an end at import": "import os\nos._exit(0)\n",
}
PARTLY = {
    "two heads": "self.n_heads == 2",
    "six positions": "max(x_q.shape[1], x_kv.shape[1]) <= 6",
    "float64": "x_q.dtype == 'float64'",
    "one sequence": "x_q.shape[0] == 1",
}


def of_each_size(names: Iterable[str], *smoke: str) -> list[Any]:
    """The names as parameters, of which those called smoke are tried with every change."""
    return [pytest.param(name, marks=[] if name in smoke else [pytest.mark.full]) for name in names]


@pytest.fixture(scope="module")
def unit() -> Unit:
    """L5.3 with a few course tests, and without mutants and wheats, which say nothing about the student's unit."""
    whole = load_course(variants.COURSE).units["L5.3"]
    return replace(whole, course_tests=whole.course_tests[:3], mutants=(), wheats=(), determinism_runs=1)


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


def graded(unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses, more: str, seed: int = 53) -> Report:
    [file] = unit.files
    submission = Submission(unit.id, {file.path: file.reference + more.encode()}, (File("test_mine.py", TESTS),))
    return grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=seed, about=ABOUT)


def part_of(report: Report) -> OraclePart:
    assert report.oracle is not None
    return report.oracle


@pytest.mark.parametrize("seed", [1, 2**53 - 1])
def test_the_reference_agrees(unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses, seed: int) -> None:
    part = part_of(graded(unit, sandbox, oracle, "", seed))
    assert (part.status, part.agreed, part.disagreements) == ("agree", part.cases, ())
    assert part.cases >= 40 and part.worst is not None and part.worst < 0.5


@pytest.mark.parametrize("name", of_each_size(WRONG, "forged outcomes", "forged frames"))
def test_wrong_code_never_passes_and_the_report_says_what_was_seen(
    unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses, name: str
) -> None:
    report = graded(unit, sandbox, oracle, WRONG[name])
    part = part_of(report)
    assert (report.verdict, part.status) == (Verdict.FAIL, "disagree")
    assert part.disagreements and part.disagreements[0].message in render(report)
    assert report.course_tests is not None and report.mutation is not None and report.score is not None
    codes = {reason.code for reason in report.reasons}
    if report.course_tests.passed == report.course_tests.total:
        assert "oracle_disagrees" in codes and report.score <= report.mutation.score
    else:
        assert "course_tests" in codes


@pytest.mark.parametrize("name", of_each_size(PARTLY, "two heads", "six positions"))
def test_code_that_is_right_only_for_some_inputs_is_told_where_it_is_not(
    unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses, name: str
) -> None:
    body = f"out = out if {PARTLY[name]} else out * 0.999"
    report = graded(unit, sandbox, oracle, FORGES_OUTCOMES + INSTEAD.format(body=body))
    part = part_of(report)
    assert (report.verdict, part.status) == (Verdict.FAIL, "disagree")
    assert 0 < part.agreed < part.cases
    [reason] = [reason for reason in report.reasons if reason.code == "oracle_disagrees"]
    assert part.disagreements[0].message in reason.message
    assert part.disagreements[0].message.startswith("With ")
    if name == "two heads":
        assert not any(told.message.startswith("With 2 heads") for told in part.disagreements)
    assert not [word for word in ("cheat", "tamper", "forge", "manipulat") if word in render(report).lower()]

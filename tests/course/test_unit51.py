"""Unit L5.1: what holds for it alone; the rest is in test_whole.py."""

import pytest

from grader.contract import check
from grader.submission import Submission
from grader.units import load_course
from tests.course.whole import SDPA

KINDS = {"unit", "snapshot", "golden", "differential", "property", "boundary", "gradcheck"}


def test_course_tests_are_of_every_kind() -> None:
    assert {test.kind for test in SDPA.unit.course_tests} == KINDS


def test_the_unit_stands_below_multi_head_attention() -> None:
    above = load_course(SDPA.course).units["L5.3"]
    assert [file.path for dep in above.deps if dep.id == "L5.1" for file in dep.files] == [SDPA.path]
    assert [dep.id for dep in SDPA.unit.deps] == ["L0.1", "M06.3"]


@pytest.mark.parametrize(
    "line",
    [
        "from tinyllm.xfmr.mha import MultiHeadAttention",
        "import torch",
        "from tinyllm.num.gradcheck import numerical_grad",
    ],
)
def test_what_would_do_the_work_is_forbidden(line: str) -> None:
    files = {SDPA.path: f"{line}\n".encode() + SDPA.reference.read_bytes()}
    (problem,) = check(SDPA.unit, Submission(SDPA.id, files, ()))
    assert (problem.code, problem.line) == ("forbidden_name", 1)

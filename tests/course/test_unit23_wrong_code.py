"""Wrong attention on torch that tries to look right, in containers: none passes, and each is told a case."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from grader.grade import grade
from grader.oracle import OracleProcesses
from grader.report import Verdict
from grader.submission import Submission
from grader.text import render
from grader.unit import Unit
from sandbox.docker_engine import DockerSandbox
from sandbox.records import File
from tests.course import unit23
from tests.grader.simulated import ABOUT

pytestmark = pytest.mark.docker

TESTS = b"""\
import torch
from mha import run_multihead_self_attention


def test_it():
    x = torch.ones(3, 2)
    weights = [torch.eye(2)] * 4
    assert run_multihead_self_attention(2, 1, *weights, x).shape == (3, 2)
"""
FORGES_OUTCOMES = """
import sys
_recorder = sys.modules.get("sandbox.inside.recorder")
if _recorder is not None:
    _recorder.outcome_of = lambda reports: ("passed", None)
"""
PATCHES_TORCH = """
torch.allclose = torch.equal = lambda *a, **k: True
torch.Tensor.any = lambda self, *a, **k: torch.zeros((), dtype=torch.bool)
torch.Tensor.__gt__ = lambda self, other: torch.zeros(self.shape, dtype=torch.bool)
"""
PATCHES_GRAD = """
_grad = torch.autograd.grad
torch.autograd.grad = lambda *a, **k: tuple(g if g is None else g * 1.001 for g in _grad(*a, **k))
"""
INSTEAD = """
_right = run_multihead_self_attention
def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    out = _right(d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features)
    return {result}
"""
WRONG = {
    "forged outcomes": FORGES_OUTCOMES + INSTEAD.format(result="out * 0.5"),
    "patched torch": PATCHES_TORCH + INSTEAD.format(result="out * 0.5"),
    "patched gradients": FORGES_OUTCOMES + PATCHES_GRAD,
    "two heads only": FORGES_OUTCOMES + INSTEAD.format(result="out if num_heads == 2 else out * 0.999"),
    "float32 inside": FORGES_OUTCOMES + INSTEAD.format(result="out.float().to(out.dtype)"),
    "an early exit": FORGES_OUTCOMES + INSTEAD.format(result="__import__('os')._exit(0)"),
}


def tried(names: dict[str, str], smoke: str) -> list[Any]:
    return [pytest.param(name, marks=[] if name == smoke else [pytest.mark.full]) for name in names]


@pytest.fixture(scope="module")
def unit() -> Unit:
    """2.3 with a few course tests, and without mutants and wheats, which say nothing about the student's unit."""
    whole = unit23.unit()
    return replace(whole, course_tests=whole.course_tests[:3], mutants=(), wheats=(), determinism_runs=1)


@pytest.fixture(scope="module")
def oracle() -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


@pytest.mark.parametrize("name", tried(WRONG, "forged outcomes"))
def test_wrong_code_never_passes_and_the_report_says_what_was_seen(
    unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses, name: str
) -> None:
    [file] = unit.files
    submission = Submission(unit.id, {file.path: file.reference + WRONG[name].encode()}, (File("test_a.py", TESTS),))
    report = grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=23, about=ABOUT)
    assert report.oracle is not None
    assert (report.verdict, report.oracle.status) == (Verdict.FAIL, "disagree")
    assert report.oracle.disagreements[0].message in render(report)

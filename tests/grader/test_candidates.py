"""Candidates are what no bytecode shows to be the same, and their patches plant them."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader import patches
from grader.candidates import Candidate, changed, code_of, files_with, patch_of, propose, screened
from grader.unit import Unit
from tests.grader.small_course import small_unit


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    return small_unit(tmp_path)


def test_every_candidate_is_planted_by_its_patch(unit: Unit) -> None:
    reference = {file.path: file.reference for file in unit.files}
    candidates = propose(unit)
    assert len({candidate.id for candidate in candidates}) == len(candidates) > 10
    for candidate in candidates:
        patched = patches.apply(patch_of(unit, candidate).encode(), reference)
        assert {**reference, **patched} == files_with(unit, candidate)
        assert candidate.function in ("Double", "Double.__init__", "Double.forward", "halve")


def test_bytecode_is_the_same_whatever_lines_and_local_names() -> None:
    def code(text: str) -> tuple[object, ...]:
        return code_of({"a.py": text.encode()})

    assert code("def f(x):\n    y = x\n    return y") == code("# more\ndef f(x):\n    z = x\n    return z\n")
    for other in ("x + 1", "x + 2", "x + 1.0", "x + True", "f(x)", "g(x)", "(lambda: x)()", "(lambda: -x)()"):
        assert [
            each for each in ("x + 1", "x + 2", "x + 1.0", "x + True", "f(x)", "g(x)") if code(each) == code(other)
        ] in (
            [other],
            [],
        )
    assert code("def f(x):\n    pass") != code("def f(y):\n    pass"), "callers name parameters"


def made(unit: Unit, text: str) -> Candidate:
    return replace(propose(unit)[0], id=text[-20:], text=text)


def test_what_does_not_build_or_is_there_already_is_rejected(unit: Unit) -> None:
    reference, mutant = unit.files[0].reference.decode(), unit.mutants[0].files[unit.files[0].path].decode()
    other = reference.replace("x / 2", "x / 3")
    texts = [reference + "(", reference + "# a comment\n", mutant, mutant + "\n", other, other + "\n"]
    kept, out = screened(unit, [made(unit, text) for text in texts])
    assert [candidate.text for candidate in kept] == [other]
    assert [each.reason.split(":")[0] for each in out] == ["does not build", *["equal bytecode"] * 3]
    assert [each.reason.split(": ")[1] for each in out[1:]] == ["the reference", "s01", kept[0].id]


def test_a_change_is_told_on_one_line() -> None:
    assert changed("a\n    b\nc", "a\n    d\nc") == "b => d"
    assert changed("a\nb", "a") == "b => nothing"

"""A rendering is another text of the same module, and the same text for the same salt."""

import ast
from pathlib import Path
from random import Random
from types import CodeType

import pytest

from grader.plan import Salts, Variant, reference
from grader.renderings import SALTS, render
from grader.unit import Unit
from sandbox.inside.modules import Source, compiled

SOURCE = b'''\
"""A module."""

from __future__ import annotations

import math


def scaled(x: float, factor: float = 2.0) -> float:
    """x times the factor."""
    if x < 0 or factor < 0:
        raise ValueError(f"{x=} and {factor=} must not be negative")
    total = 0.0
    for step in range(3):
        total = total + x * factor if step else x / 3  # not by 0
    parts = [step for step in (total, x)]
    return math.sqrt(sum(parts[0:2]))
'''


def functions(code: CodeType) -> list[CodeType]:
    inner = [part for constant in code.co_consts if isinstance(constant, CodeType) for part in functions(constant)]
    return [code, *inner]


def test_a_rendering_is_a_function_of_source_and_salt() -> None:
    assert [render(SOURCE, salt) for salt in SALTS] == [render(SOURCE, salt) for salt in SALTS]


def test_salts_give_different_texts_and_different_code_in_every_function() -> None:
    texts = {render(SOURCE, salt) for salt in SALTS}
    assert len(texts) == len(SALTS)
    code = {tuple(part.co_code for part in functions(compile(text, "unit", "exec"))) for text in texts}
    assert len(code) == len(SALTS)


def test_a_rendering_returns_and_raises_what_its_source_does() -> None:
    random = Random(5)
    cases = [(random.uniform(-1, 9), random.uniform(-1, 9)) for _ in range(50)]
    wanted = answers(SOURCE, cases)
    assert {kind for kind, _ in wanted} == {"returned", "raised"}
    for salt in SALTS:
        assert answers(render(SOURCE, salt), cases) == wanted


def answers(source: bytes, cases: list[tuple[float, float]]) -> list[tuple[str, str]]:
    module: dict[str, object] = {}
    exec(compile(source, "unit", "exec", dont_inherit=True), module)
    found = []
    for case in cases:
        try:
            found.append(("returned", module["scaled"](*case).hex()))  # type: ignore[operator]
        except ValueError as error:
            found.append(("raised", str(error)))
    return found


def test_nothing_a_reader_was_told_is_left() -> None:
    for salt in SALTS:
        text = render(SOURCE, salt).decode()
        assert "A module" not in text and "not by 0" not in text and "->" not in text


def test_what_is_no_python_stays_as_it_is() -> None:
    for source in (b"def (\n", b"\x00", b"# coding: latin-1\nx = '\xe9'\n"):
        assert render(source, 1) == source


def test_every_module_of_the_library_can_be_rendered() -> None:
    for path in sorted(Path("tinyllm").rglob("*.py"))[::4]:
        compile(render(path.read_bytes(), 3), path.name, "exec", dont_inherit=True)


def test_code_that_may_not_be_seen_lies_on_one_line_in_one_column() -> None:
    for part in functions(compiled(Source("unit", "unit.py", False, SOURCE))):
        assert {place for place in part.co_positions() if None not in place} <= {(0, 1, 0, 0), (1, 1, 0, 0)}
    assert len({line for *_, line in compiled(Source("unit", "unit.py", True, SOURCE)).co_lines()}) > 1


def test_the_runs_of_a_variant_get_different_renderings_whatever_others_get(unit: Unit) -> None:
    other = Variant("m1", "mutant", {})
    alone, beside = Salts(5), Salts(5)
    given = [alone.next_for(reference(unit)) for _ in SALTS]
    assert sorted(given) == list(SALTS)
    mixed = []
    for _ in SALTS:
        mixed.append(beside.next_for(reference(unit)))
        beside.next_for(other)
    assert mixed == given
    assert given[0] == alone.next_for(reference(unit)), "then in turn again, so that neighbours differ"


@pytest.mark.parametrize("seed", range(3))
def test_another_seed_gives_another_order(unit: Unit, seed: int) -> None:
    one, other = Salts(seed), Salts(seed + 100)
    assert [one.next_for(reference(unit)) for _ in SALTS] != [other.next_for(reference(unit)) for _ in SALTS]


def test_a_rendering_reads_back_as_itself() -> None:
    for salt in SALTS:
        text = render(SOURCE, salt).decode()
        assert ast.unparse(ast.parse(text)) + "\n" == text

"""Every mutation operator does to its examples what they say, and to real code nothing but what it should."""

import ast
import re
from pathlib import Path

import pytest

from grader.operators import OPERATORS, mutations
from grader.operators.operator import Operator
from grader.operators.source import Source

EXAMPLES = [
    pytest.param(operator, example.before, example.afters, id=f"{operator.name}: {example.before!r}")
    for operator in OPERATORS
    for example in operator.examples
]
LIBRARY = sorted((Path(__file__).parents[2] / "tinyllm").rglob("*.py"))


def made(operator: Operator, text: str) -> list[str]:
    source = Source(text)
    return [source.edited(edits) for edits in operator.propose(source) if edits]


@pytest.mark.parametrize(("operator", "before", "afters"), EXAMPLES)
def test_an_example_comes_out_as_it_says(operator: Operator, before: str, afters: tuple[str, ...]) -> None:
    assert made(operator, before) == list(afters)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_an_operator_shows_where_it_applies_and_where_it_does_not(operator: Operator) -> None:
    assert any(example.afters for example in operator.examples)
    assert not all(example.afters for example in operator.examples)


def test_operators_have_names_and_words_of_their_own() -> None:
    names = [operator.name for operator in OPERATORS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)
    assert all(operator.says and not operator.says.endswith(".") for operator in OPERATORS)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in ("vjp", "mha") else pytest.mark.full) for path in LIBRARY],
    ids=lambda path: path.stem,
)
def test_mutants_of_a_whole_library_are_python_and_differ(path: Path) -> None:
    text = path.read_text()
    found = list(mutations(text))
    assert len({mutation.text for mutation in found} | {text}) == len(found) + 1
    for mutation in found:
        ast.parse(mutation.text)
        assert text.split("\n")[: mutation.line - 1] == mutation.text.split("\n")[: mutation.line - 1]


def test_messages_annotations_and_starting_values_stay_as_they_are() -> None:
    text = (
        "def f(a: A | B = 1) -> A | B:\n    if a < 1:\n        raise ValueError(f'{a - 1} is not {a + 1}')\n"
        "    return normal_init((a, a), a**-0.5)\n"
    )
    changed = {mutation.text for mutation in mutations(text)}
    assert changed
    for mutant in changed:
        assert "A | B" in mutant
        assert "raise" not in mutant or "(f'{a - 1} is not {a + 1}')" in mutant
        assert "normal_init((a, a), a**-0.5)" in mutant or "pass" in mutant

"""Every way of writing code another way does what its examples say, and keeps what the code does."""

import ast
import re

import pytest

from grader.rewritings import Choices, Rewriting, examples

EXAMPLES = [pytest.param(*example, id=f"{example[0].name}: {example[1]!r}") for example in examples()]
SEEDS = range(120)


def forms(rewriting: Rewriting, source: str) -> set[str]:
    """What the rewriting makes of a source, with fresh names called q_1, q_2 in the order in which they appear."""
    found = set()
    for seed in SEEDS:
        tree = ast.parse(source)
        rewriting.apply(tree, Choices(str(seed), source))
        text = ast.unparse(ast.fix_missing_locations(tree))
        ast.parse(text)
        found.add(numbered(text))
    return found


def numbered(text: str) -> str:
    names = list(dict.fromkeys(re.findall(r"[a-z]_\d+", text)))
    return re.sub(r"[a-z]_\d+", lambda match: f"q_{names.index(match[0]) + 1}", text)


@pytest.mark.parametrize(("rewriting", "before", "after"), EXAMPLES)
def test_an_example_comes_out_as_it_says(rewriting: Rewriting, before: str, after: str) -> None:
    before, after = ast.unparse(ast.parse(before)), ast.unparse(ast.parse(after))
    found = forms(rewriting, before)
    if before == after:
        assert found == {before}
    else:
        assert after in found

"""A module's source arrives; the faults that can be planted in it leave, one after the other.

Operators are about numpy and hand-written gradients; they know nothing of any unit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from grader.operators import arguments, arithmetic, conditions, layout, statements, tensors
from grader.operators.operator import Operator
from grader.operators.source import Source

OPERATORS: tuple[Operator, ...] = (
    *tensors.OPERATORS,
    *layout.OPERATORS,
    *arguments.OPERATORS,
    *statements.OPERATORS,
    *conditions.OPERATORS,
    *arithmetic.OPERATORS,
)
"""Those whose faults mean most come first: of two that make the same text, or fail the same tests, the first counts."""


@dataclass(frozen=True)
class Mutation:
    """One fault: the operator, the function it lies in ("Class.method"), the first line changed, the new text."""

    operator: Operator
    function: str
    line: int
    text: str


def mutations(text: str) -> Iterator[Mutation]:
    """Every fault that every operator can plant in a module, each text once. SyntaxError for what is no Python."""
    source = Source(text)
    seen = {text}
    for operator in OPERATORS:
        for edits in operator.propose(source):
            if not edits or (mutant := source.edited(edits)) in seen:
                continue
            seen.add(mutant)
            first = min(edit.start for edit in edits)
            yield Mutation(operator, source.qualified(first), first_difference(text, mutant), mutant)


def first_difference(before: str, after: str) -> int:
    """The first line that differs, from 1."""
    pairs = zip(before.split("\n"), after.split("\n"), strict=False)
    return next((i for i, (a, b) in enumerate(pairs, 1) if a != b), 1 + min(before.count("\n"), after.count("\n")))

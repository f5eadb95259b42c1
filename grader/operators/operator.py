"""What a mutation operator is: a source arrives, edits that each plant one fault leave, and its examples test it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.operators.source import Edits, Source


@dataclass(frozen=True)
class Example:
    """`afters` are all that the operator makes of `before`, in order; none where it must not apply."""

    before: str
    afters: tuple[str, ...]


@dataclass(frozen=True)
class Operator:
    """`category` is what kind of thing goes wrong; `says` how that shows, in words for a proposed hint."""

    propose: Callable[[Source], Iterator[Edits]]
    category: str
    says: str
    examples: tuple[Example, ...]

    @property
    def name(self) -> str:
        return self.propose.__name__


def becomes(before: str, *afters: str) -> tuple[Example, ...]:
    return (Example(before, afters),)


def never(*befores: str) -> tuple[Example, ...]:
    return tuple(Example(before, ()) for before in befores)

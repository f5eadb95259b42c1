"""What the hints of every unit's mutants are held to; the units' own tests say what is seen of a variant."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from grader.unit import Mutant

Sizes = Mapping[str, int]
Seen = tuple[object, Sequence[Any]]  # shapes or the kind of error, and the numbers
Written = Mapping[str, Any]  # hints.toml


def check_number(mutant: Mutant, written: Written) -> None:
    """Three or four hints, all different, and at least one that is the mutant's own."""
    assert 3 <= len(mutant.hints) <= 4
    assert len(set(mutant.hints)) == len(mutant.hints)
    assert len(written["mutants"][mutant.id]["hints"]) >= 1


def check_beginning(mutant: Mutant, written: Written) -> None:
    """A pitfall's first hint is its own words, another's what its category shares."""
    first = mutant.public if mutant.tier == "semantic" else written["categories"][mutant.category]["hint"]
    assert mutant.hints[0].startswith(first)
    assert any(hint.startswith(mutant.public) for hint in mutant.hints)


def check_without_code(mutant: Mutant, reference: str, source: str, library: str) -> None:
    """No line of the reference or of the mutant, and no word of code; `library`: those of what it is written with."""
    lines = {line.split("#")[0].strip() for line in (reference + source).splitlines()}
    code = {line for line in lines if len(line) > 12 and re.search(r"[=(\[]", line)}
    words = rf"\b({library}|reshape\(|transpose\(|line \d|mha\.py|{mutant.operator}\b)"
    for hint in mutant.hints:
        assert not [line for line in code if line in hint], hint
        assert not re.search(words, hint.removeprefix(mutant.public)), hint


def configurations(distinct: Sizes) -> Iterator[tuple[str, Sizes]]:
    """Sizes in which one equality holds, by that equality; as few others as so many values allow."""
    for left, right in combinations(distinct, 2):
        yield f"{left} = {right}", {**distinct, right: distinct[left]}
    for name in distinct:
        yield f"{name} = 1", {**distinct, name: 1}


def differ(ours: Sequence[Seen], theirs: Sequence[Seen], alike: Callable[[Any, Any], bool]) -> tuple[bool, bool]:
    """Whether what was seen of two variants differs in shapes or errors, and whether in anything."""
    pairs = list(zip(ours, theirs, strict=True))
    shapes = any(mine[0] != other[0] for mine, other in pairs)
    numbers = shapes or any(
        not alike(mine, other) for one, two in pairs for mine, other in zip(one[1], two[1], strict=True)
    )
    return shapes, numbers


def check_sizes(
    mid: str, written: Written, distinct: Sizes, differences: Callable[[str, str, Sizes], tuple[bool, bool]]
) -> None:
    """The sizes that a hint names are exactly those that hide the fault. `differences`: of a mutant, with sizes that go
    by a name, whether it differs from the reference in shapes or errors, and whether in anything."""
    in_shapes, at_all = differences(mid, "", distinct)
    found = {said: differences(mid, said, sizes) for said, sizes in configurations(distinct)}
    hides_all = {said for said, (_, numbers) in found.items() if at_all and not numbers}
    hides_shapes = {said for said, (shapes, _) in found.items() if in_shapes and not shapes} - hides_all
    said_of_it = written["mutants"][mid]
    assert hides_all == set(said_of_it.get("nothing_changes", ()))
    assert hides_shapes == set(said_of_it.get("shapes_stay", ()))


def told_of_sizes(mutants: Mapping[str, Mutant], written: Written) -> set[str]:
    """The mutants whose second hint is about sizes: exactly those that some sizes hide."""
    told = {mid for mid, mutant in mutants.items() if mutant.hints[1].startswith("Use distinct sizes")}
    marked = {mid for mid, said in written["mutants"].items() if {"nothing_changes", "shapes_stay"} & said.keys()}
    assert told == marked
    return marked

"""Every correct mha.py passes both suites, every mutant fails both, and the course tests say truly what they catch."""

import csv
import re
from collections import Counter
from functools import cache

import pytest

from grader import patches
from grader.candidates import code_of
from grader.operators import OPERATORS, mutations
from tests.course import variants

MUTANTS = [row["mid"] for row in variants.manifest()]
GENERATED = [row["mid"] for row in variants.manifest() if row.get("signed_off")]
BY_HAND = [mid for mid in MUTANTS if mid not in GENERATED]
CORRECT = [name for name in variants.sources() if name not in MUTANTS]
COLUMNS = ["mid", "unit", "tier", "operator", "line", "required", "public", "private"]

# The chapter's table of course tests, in its order, and its table of pitfalls.
TESTS = {
    "test_hand_example_two_heads": "unit",
    "test_hand_example_one_head_mixes_everything": "unit",
    "test_golden_torch": "golden",
    "test_gradcheck_inputs_and_parameters": "gradcheck",
    "test_split_and_merge_layout": "property",
    "test_heads_are_independent": "property",
    "test_one_head_is_projected_attention": "differential",
    "test_mask_shapes_agree": "property",
    "test_masked_keys_are_never_read": "property",
    "test_cross_attention_reads_keys_from_x_kv": "property",
    "test_dropout_only_in_training": "unit",
    "test_parameter_names_shapes_and_init": "unit",
    "test_load_packed_in_proj": "unit",
    "test_validation": "boundary",
}
PITFALLS = {
    "s01": {"test_split_and_merge_layout", "test_golden_torch"},
    "s02": {"test_split_and_merge_layout", "test_golden_torch"},
    "s03": {"test_hand_example_two_heads", "test_golden_torch"},
    "s04": {"test_cross_attention_reads_keys_from_x_kv"},
    "s05": {"test_mask_shapes_agree"},
    "s06": {"test_dropout_only_in_training"},
    "s07": {"test_load_packed_in_proj"},
    "s08": {"test_one_head_is_projected_attention"},
}


@cache
def course_runs() -> dict[str, variants.Run]:
    return variants.run_suite(variants.COURSE_TESTS, variants.sources())


@cache
def staff_runs() -> dict[str, variants.Run]:
    return variants.run_suite(variants.STAFF_SUITE, variants.sources())


def comments() -> dict[str, dict[str, str]]:
    """WHY, KIND, CATCHES and CHAPTER of each course test, from the comment lines directly above it."""
    text = (variants.COURSE_TESTS / "test_mha.py").read_text()
    blocks = re.findall(r"((?:^# [A-Z]+:.*\n)+)def (test_\w+)", text, re.MULTILINE)
    return {name: dict(re.findall(r"^# ([A-Z]+): ?(.*)$", block, re.MULTILINE)) for block, name in blocks}


def test_course_tests_are_those_of_the_chapter_each_with_its_comments() -> None:
    found = comments()
    assert list(found) == list(TESTS)
    for name, said in found.items():
        assert list(said)[:4] == ["WHY", "KIND", "CATCHES", "CHAPTER"] and set(said) <= {*list(said)[:4], "SHOWS"}, name
        assert all(said.values()), name
        assert said["KIND"] == TESTS[name]


@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_passes_every_course_test(name: str) -> None:
    run = course_runs()[name]
    assert not run.messages
    assert run.passed == set(TESTS)


@pytest.mark.parametrize("name", CORRECT)
def test_correct_code_passes_the_staff_suite(name: str) -> None:
    run = staff_runs()[name]
    assert not run.messages
    assert len(run.passed) >= 15


@pytest.mark.parametrize("mid", BY_HAND)
def test_a_mutant_written_by_hand_fails_exactly_the_course_tests_that_say_they_catch_it(mid: str) -> None:
    catching = {name for name, said in comments().items() if mid in said["CATCHES"].split()}
    assert course_runs()[mid].failed == catching
    assert catching, "a mutant that no course test catches is none"


@pytest.mark.parametrize("mid", GENERATED)
def test_a_generated_mutant_fails_a_course_test_that_does_not_name_it(mid: str) -> None:
    assert course_runs()[mid].failed - {"collection"}
    assert not [name for name, said in comments().items() if mid in said["CATCHES"].split()]


@pytest.mark.parametrize("mid", MUTANTS)
def test_a_mutant_fails_the_staff_suite(mid: str) -> None:
    assert staff_runs()[mid].failed - {"collection"}


def test_catches_lists_only_mutants_written_by_hand_in_order() -> None:
    for name, said in comments().items():
        listed = said["CATCHES"].split()
        assert listed == [mid for mid in BY_HAND if mid in listed], name


@pytest.mark.parametrize("mid", PITFALLS)
def test_pitfall_is_caught_where_the_chapter_says(mid: str) -> None:
    assert course_runs()[mid].failed >= PITFALLS[mid]


def test_messages_on_mutants_are_sentences_without_addresses() -> None:
    for mid in MUTANTS:
        for test, message in course_runs()[mid].messages.items():
            assert message.startswith("AssertionError: "), (mid, test, message)
            assert len(message) > 60, (mid, test, message)
            assert not re.search(r"0x[0-9a-f]{6,}", message), (mid, test, message)


def test_messages_are_the_same_in_another_run() -> None:
    some = {mid: variants.sources()[mid] for mid in ("s02", "s04", "m07")}
    again = variants.run_suite(variants.COURSE_TESTS, some)
    assert {mid: run.messages for mid, run in again.items()} == {mid: course_runs()[mid].messages for mid in some}


def test_manifest_is_well_formed() -> None:
    rows = variants.manifest()
    assert list(rows[0])[: len(COLUMNS)] == COLUMNS
    assert len({row["mid"] for row in rows}) == len(rows)
    for row in rows:
        assert row["unit"] == "L5.3"
        assert row["tier"] == {"s": "semantic", "m": "auto"}[row["mid"][0]]
        assert row["required"] in ("true", "false")
        assert re.fullmatch(r"[a-z_]+", row["operator"])
        assert row["category"] and row["public"] and row["private"]
        assert "est" in row["public"], "a hint says what test to write next"


def test_mutant_line_is_the_first_changed_line_of_the_reference() -> None:
    reference = variants.REFERENCE.read_text().splitlines()
    for row in variants.manifest():
        mutant = variants.sources()[row["mid"]].splitlines()
        first = next(i for i, (a, b) in enumerate(zip(reference, mutant, strict=False), 1) if a != b)
        assert int(row["line"]) == first, row["mid"]


def test_patches_and_manifest_list_the_same_mutants_all_different() -> None:
    patches = {path.stem for path in (variants.COURSE / "mutants/L5.3").glob("*.patch")}
    assert patches == set(MUTANTS)
    code = [code_of({"mha.py": source.encode()}) for source in variants.sources().values()]
    assert len(set(code)) == len(code)


def test_there_are_enough_mutants_of_every_category_to_make_the_threshold_mean_something() -> None:
    counted = Counter(row["category"] for row in variants.manifest())
    assert 40 <= counted.total() <= 60
    assert min(counted.values()) >= 2, counted


def test_generated_mutants_are_signed_off_and_are_what_their_operators_make() -> None:
    made: dict[str, set[str]] = {operator.name: set() for operator in OPERATORS}
    for mutation in mutations(variants.REFERENCE.read_text()):
        made[mutation.operator.name].add(mutation.text)
    for row in variants.manifest():
        if row["mid"] in GENERATED:
            assert row["signed_off"] == "yes"
            assert variants.sources()[row["mid"]] in made[row["operator"]], row["mid"]


def test_rejected_candidates_are_listed_with_the_reason() -> None:
    with (variants.COURSE / "mutants/L5.3/rejected.tsv").open(newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) > 100
    assert all(row["operator"] and row["change"] and row["reason"] for row in rows)


def test_hints_show_no_code_of_the_reference() -> None:
    lines = {line.split("#")[0].strip() for line in variants.REFERENCE.read_text().splitlines()}
    code = {line for line in lines if len(line) > 12 and re.search(r"[=(\[]", line)}
    assert not [row["mid"] for row in variants.manifest() if any(line in row["public"] for line in code)]


def test_patch_whose_context_moved_is_refused() -> None:
    patch = (variants.COURSE / "mutants/L5.3/s01.patch").read_bytes()
    with pytest.raises(patches.PatchError, match="expected"):
        patches.apply(patch, {variants.UNIT: b"# one line more\n" + variants.REFERENCE.read_bytes()})


def freedoms() -> dict[str, set[str]]:
    """The wheats of each freedom."""
    text = (variants.COURSE / "wheats/L5.3/freedoms.md").read_text()
    title, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    assert title.startswith("# Freedoms of L5.3\n")
    found = [re.match(r"([a-z-]+)\n\nwheats: (.+)\nsays: .+\.\n\n\S", section) for section in sections]
    assert all(found)
    return {match[1]: set(match[2].split(", ")) for match in found if match is not None}


def test_each_wheat_uses_a_freedom() -> None:
    assert set().union(*freedoms().values()) == {name for name in CORRECT if name != "reference"}


@cache
def over_strict_runs() -> dict[str, variants.Run]:
    suite = variants.ROOT / "tests/course/over_strict.py"
    return variants.run_suite(suite, {name: variants.sources()[name] for name in CORRECT})


@pytest.mark.parametrize("freedom", freedoms())
def test_a_test_that_denies_a_freedom_passes_on_the_reference_and_fails_on_its_wheats(freedom: str) -> None:
    runs, name = over_strict_runs(), f"test_{freedom.replace('-', '_')}"
    assert name in runs["reference"].passed
    rejected = {wheat for wheat in CORRECT if name in runs[wheat].failed}
    if freedom == "rounding":  # which last digits differ depends on the machine
        assert rejected and rejected <= freedoms()[freedom]
    else:
        assert rejected == freedoms()[freedom]


def test_freedoms_can_be_told_apart_by_the_wheats_a_test_rejects() -> None:
    sets = [frozenset(wheats) for wheats in freedoms().values()]
    assert len(set(sets)) == len(sets)


def test_course_tests_do_not_depend_on_their_order() -> None:
    backwards = [f"test_mha.py::{name}" for name in reversed(TESTS)]
    only = {"reference": variants.sources()["reference"]}
    run = variants.run_suite(variants.COURSE_TESTS, only, backwards)["reference"]
    assert run.passed == set(TESTS)

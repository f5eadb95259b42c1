from dataclasses import replace
from pathlib import Path

import pytest

from grader import hints
from grader.errors import LoadError
from grader.manifest import Row
from grader.units import load_course
from tests.grader.small_course import write_course

FILE = "mutants/Z1/hints.toml"
PITFALL = Row(2, "s01", "semantic", "scale", 12, True, "Test other numbers.", "squares", "value")
AUTO = replace(PITFALL, mid="m01", tier="auto", public="Test a zero.")

TEXT = """\
[sizes]
B = "the batch size (B)"
T = "the length (T)"

[categories.value]
hint = "No test notices."
section = "section 1"

[mutants.s01]
hints = ["Test 3.", "Test 3 and 4."]

[mutants.m01]
section = "section 2"
nothing_changes = ["B = 1", "T = 1"]
shapes_stay = ["B = T"]
hints = ["Test 0 twice."]
"""


def read(text: str) -> dict[str, tuple[str, ...]]:
    return hints.read(FILE, text.encode(), (PITFALL, AUTO))


def test_a_pitfall_begins_with_what_the_manifest_tells() -> None:
    first, *more = read(TEXT)["s01"]
    assert first == "Test other numbers. (section 1)"
    assert more == ["Test 3. (section 1)", "Test 3 and 4. (section 1)"]


def test_others_begin_with_what_their_category_shares_and_the_sizes_come_second() -> None:
    first, second, *more = read(TEXT)["m01"]
    assert first == "No test notices. (section 1)"
    assert second.startswith(
        "Use distinct sizes, all larger than 1: where the batch size (B) is 1 or the length (T) is 1"
    )
    assert second.endswith(
        "; where the batch size (B) equals the length (T), it raises no error and changes no shape; with others it "
        "does."
    )
    assert more == ["Test a zero. (section 2)", "Test 0 twice. (section 2)"]


def test_sizes_that_only_keep_the_shapes_are_not_asked_to_be_larger_than_1() -> None:
    text = TEXT.replace('nothing_changes = ["B = 1", "T = 1"]\n', "")
    assert read(text)["m01"][1] == (
        "Use distinct sizes: where the batch size (B) equals the length (T), this fault raises no error and changes no "
        "shape; with others it does."
    )


def test_a_mutant_that_the_file_does_not_name_has_what_is_shared_and_public() -> None:
    text = TEXT.partition("[mutants.s01]")[0]
    assert read(text) == {
        "s01": ("Test other numbers. (section 1)",),
        "m01": ("No test notices. (section 1)", "Test a zero. (section 1)"),
    }
    assert read("") == {"s01": ("Test other numbers.",), "m01": ("Test a zero.",)}


BROKEN = {
    "no TOML": ("[sizes\n", 1, "TOML"),
    "not UTF-8": (b"\n\xff", 2, "UTF-8"),
    "unknown mutant": (TEXT.replace("mutants.m01", "mutants.m09"), 12, "m09 is not in the manifest"),
    "unknown category": (TEXT.replace("categories.value", "categories.shape"), 5, "shape is no category"),
    "unknown key": (TEXT.replace("shapes_stay", "shape_stays"), 15, "shape_stays"),
    "unknown table": (TEXT + "[more]\n", 17, "more"),
    "a size without a name": (TEXT.replace('"B = T"', '"B = d"'), 15, "d is not listed"),
    "a size that equals itself": (TEXT.replace('"B = T"', '"B = B"'), 15, "always"),
    "no equality": (TEXT.replace('"B = T"', '"B > T"'), 15, "shapes_stay"),
    "an empty hint": (TEXT.replace('"Test 0 twice."', '""'), 16, "hints"),
    "a hint of two lines": (TEXT.replace('"Test 0 twice."', r'"Test\nzero."'), 16, "hints"),
    "a hint that is no text": (TEXT.replace('"Test 0 twice."', "7"), 16, "hints"),
    "a hint twice": (TEXT.replace('"Test 3 and 4."', '"Test 3."'), 10, "s01 has a hint twice"),
    "what is public again": (TEXT.replace("Test 0 twice.", "Test a zero."), 16, "m01 has a hint twice"),
    "too many hints": (TEXT.replace('["Test 0 twice."]', '["1", "2", "3", "4", "5"]'), 16, "hints"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_malformed_hints_are_refused_with_file_line_and_reason(name: str, tmp_path: Path) -> None:
    text, line, reason = BROKEN[name]
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(LoadError) as refused:
        hints.read(FILE, data, (PITFALL, AUTO))
    assert (refused.value.file, refused.value.line) == (FILE, line), refused.value
    assert reason in refused.value.reason


def test_a_course_without_the_file_has_the_manifests_hint_alone(tmp_path: Path) -> None:
    [mutant] = load_course(write_course(tmp_path)).units["Z1"].mutants
    assert mutant.hints == (mutant.public,) == ("Test other numbers.",)


def test_hints_belong_to_their_unit_and_its_digest_follows_them(tmp_path: Path) -> None:
    digests = set()
    for number, text in enumerate(("", '[mutants.s01]\nhints = ["Test 3."]\n', '[mutants.s01]\nhints = ["Test 4."]\n')):
        course = load_course(write_course(tmp_path / str(number), {f"course/{FILE}": text}))
        assert course.problems == ()
        digests.add(course.units["Z1"].digest)
        assert course.units["Z1"].mutants[0].hints[1:] == tuple(hint for hint in ("Test 3.", "Test 4.") if hint in text)
    assert len(digests) == 3


def test_a_unit_with_malformed_hints_is_refused(tmp_path: Path) -> None:
    course = load_course(write_course(tmp_path, {f"course/{FILE}": "[mutants.s02]\n"}))
    assert [(problem.file, problem.line) for problem in course.problems] == [(FILE, 1)]

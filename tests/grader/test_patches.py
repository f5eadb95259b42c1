import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.patches import PatchError, apply

LINES = st.lists(st.sampled_from(["a", "b", "", "  x = 1", "-", "+", "--- a", "@@ -1 +1 @@", "\\ no"]), max_size=30)
PATH = "python/pkg/x.py"


def diff(old: str, new: str, context: int = 3, path: str = PATH) -> bytes:
    """A unified diff as git writes it, with its mark for a missing newline at the end."""
    rows = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}", n=context
    )
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows).encode()


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3))
def test_what_difflib_takes_apart_is_put_together_again(
    before: list[str], after: list[str], old_ends: bool, new_ends: bool, context: int
) -> None:
    old = "\n".join(before) + ("\n" if old_ends else "")
    new = "\n".join(after) + ("\n" if new_ends else "")
    if old != new:
        assert apply(diff(old, new, context), {PATH: old.encode()}) == {PATH: new.encode()}


@given(LINES.filter(lambda lines: len(lines) > 2), st.data())
def test_a_patch_for_another_text_never_applies(lines: list[str], data: st.DataObject) -> None:
    old = "\n".join([*lines, "the end"]) + "\n"
    changed = data.draw(st.integers(0, len(lines)))
    patch = diff(old, old.replace("the end", "an end"), context=len(lines))
    shifted = old.split("\n")
    shifted[changed] += "!"
    with pytest.raises(PatchError):
        apply(patch, {PATH: "\n".join(shifted).encode()})


def test_several_hunks_and_files_apply_together() -> None:
    old = "".join(f"{number}\n" for number in range(40))
    new = old.replace("3\n", "three\n", 1).replace("35\n", "").replace("20\n", "20\n20.5\n")
    other = "python/pkg/y.py"
    patch = b"diff --git a/x b/x\nindex 1..2\n" + diff(old, new) + diff("a\n", "b\n", path=other)
    assert patch.count(b"@@ -") == 4
    assert apply(patch, {PATH: old.encode(), other: b"a\n"}) == {PATH: new.encode(), other: b"b\n"}


def test_windows_line_ends_on_either_side_make_no_difference() -> None:
    patch = diff("a\nb\n", "a\nc\n")
    assert apply(patch.replace(b"\n", b"\r\n"), {PATH: b"a\nb\n"}) == {PATH: b"a\nc\n"}
    assert apply(patch, {PATH: b"a\r\nb\r\n"}) == {PATH: b"a\nc\n"}


def test_a_hunk_at_another_place_is_not_searched_for() -> None:
    with pytest.raises(PatchError) as caught:
        apply(diff("a\nb\n", "a\nc\n"), {PATH: b"\na\nb\n"})
    assert caught.value.line == 4
    assert "at line 1" in caught.value.reason


@pytest.mark.parametrize(
    ("patch", "line", "reason"),
    [
        (b"", 1, "no file"),
        (b"hello\n", 1, "no file"),
        (b"@@ -1 +1 @@\n-a\n+b\n", 1, "before any"),
        (b"--- a/python/pkg/x.py\n", 1, "must be followed"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n", 1, "no hunk"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/z.py\n@@ -1 +1 @@\n-a\n+b\n", 1, "renames"),
        (b"--- /dev/null\n+++ b/python/pkg/x.py\n@@ -0,0 +1 @@\n+b\n", 1, "not a relative path"),
        (b"--- a/../x.py\n+++ b/../x.py\n@@ -1 +1 @@\n-a\n+b\n", 1, "not a relative path"),
        (b"--- a/q.py\n+++ b/q.py\n@@ -1 +1 @@\n-a\n+b\n", 1, "not one of the files"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ nonsense\n", 3, "hunk header"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1,3 +1,3 @@\n-a\n+b\n", 5, "shorter"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1 +1 @@\n-a\n+b\n+c\n", 6, "longer"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1 +1 @@\n-a\n+b\n-c\n", 6, "longer"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1 +1 @@\n*a\n", 4, "must begin"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1 +1,2 @@\n-a\n-b\n+c\n", 5, "do not agree"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -9 +9 @@\n-a\n+b\n", 3, "beyond the end"),
        (b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1 +1 @@\n-z\n+b\n", 4, "expected this line at line 1"),
    ],
)
def test_a_malformed_patch_is_refused_with_its_line(patch: bytes, line: int, reason: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply(patch, {PATH: b"a\n"})
    assert (caught.value.line, reason in caught.value.reason) == (line, True), caught.value


def test_a_newline_missing_at_the_end_must_be_marked() -> None:
    header = b"--- a/python/pkg/x.py\n+++ b/python/pkg/x.py\n@@ -1 +1 @@\n"
    with pytest.raises(PatchError):
        apply(header + b"-a\n+b\n", {PATH: b"a"})
    assert apply(header + b"-a\n\\ No newline at end of file\n+b\n", {PATH: b"a"}) == {PATH: b"b\n"}


def test_why_a_patch_does_not_apply_quotes_neither_side() -> None:
    patch = diff("kept\nknown = 1\n", "kept\nfaulty = 1\n")
    for other in (b"kept\nsecret = 1\n", b"kept\n"):
        with pytest.raises(PatchError) as caught:
            apply(patch, {PATH: other})
        assert not any(word in caught.value.reason for word in ("known", "faulty", "secret")), caught.value

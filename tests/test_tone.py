"""Everything that a student reads says what is seen and what to do, and nothing of who wrote it."""

import ast
import gzip
import html
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from grader.report import Report
from grader.units import DEFAULT_COURSE, load_course

ROOT = Path(__file__).resolve().parent.parent
WORDING = sorted(path for folder in ("grader", "service") for path in (ROOT / folder).rglob("wording.py"))
TEMPLATES = sorted((ROOT / "service" / "templates").rglob("*.html"))
REPORTS = sorted((ROOT / "tests" / "browser" / "reports").glob("*.gz"))

NEVER: Mapping[str, str] = {
    "shouts": r"!(?!=)",
    "judges the reader": r"\byou(?:'ve| have)? (?:fail\w*|forgot|broke|messed|neglected|misunderst\w+|misread)\b"
    r"|\byou are (?:wrong|mistaken)\b|\byou (?:did not|didn't) (?:bother|read|think|try|understand|pay)\b"
    r"|\byou should(?: have|'ve| know)\b|\byour (?:mistakes?|fault|carelessness|ignorance|misunderstanding)\b",
    "judges the work": r"\b(?:bad|awful|terrible|poor|sloppy|lazy|careless\w*|stupid|silly|dumb|ugly|nonsense)\b"
    r"|\b(?:hopeless|disappoint\w*|shame\w*)\b|^wrong\b|\b(?:this|that|it|you) (?:is|are) wrong\b",
    "belittles": r"\b(?:obvious\w*|of course(?! tests?)|clearly|simply|trivial\w*|easily|needless to say)\b",
    "praises or pities": r"\b(?:unfortunately|sorry|oops|sadly|congratulations|well done|good job|great job)\b",
}


def faults(text: str) -> list[str]:
    return [name for name, pattern in NEVER.items() if re.search(pattern, text, re.IGNORECASE)]


def sentences_of(source: str) -> Iterator[str]:
    """The texts that stand in a module, without docstrings and comments; an f-string with … in its gaps."""
    tree = ast.parse(source)
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    silent |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    silent |= {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            pieces = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield "".join(pieces)


def read_on(template: str) -> str:
    """The words of a page, without markup."""
    words = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|<[^>]*>", "\n", template, flags=re.DOTALL)
    return html.unescape(words)


def told(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a report, with the field it stands in."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from told(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from told(inner, key)


@pytest.mark.parametrize("path", WORDING, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_of_ours_judges(path: Path) -> None:
    sentences = [text for text in sentences_of(path.read_text("utf-8")) if " " in text]
    assert sentences
    assert [(text, found) for text in sentences if (found := faults(text))] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_judges(path: Path) -> None:
    lines = [line.strip() for line in read_on(path.read_text("utf-8")).splitlines() if " " in line.strip()]
    assert [(line, found) for line in lines if (found := faults(line))] == []


def test_no_hint_and_no_course_test_judges() -> None:
    said = []
    for unit in load_course(DEFAULT_COURSE).units.values():
        said += [text for mutant in unit.mutants for text in (mutant.public, *mutant.hints)]
        said += [test.why for test in unit.course_tests]
        said += [
            text for file in unit.test_files if file.path.endswith(".py") for text in sentences_of(file.data.decode())
        ]
    for path in DEFAULT_COURSE.glob("quiz/*.toml"):
        said += [text for _, text in told(tomllib.loads(path.read_text("utf-8")))]
    assert len(said) > 200
    assert [(text, found) for text in said if " " in text and (found := faults(text))] == []


def test_no_recorded_report_judges() -> None:
    """In what is ours to say: a student's own words stand in messages too."""
    ours = ("next_step", "advice", "denies", "hint", "hints", "why")
    for path in REPORTS:
        report = Report.model_validate_json(gzip.decompress(path.read_bytes()))
        texts = [text for key, text in told(json.loads(report.to_json())) if key in ours]
        texts += [reason.message for reason in report.reasons]
        assert texts
        assert [(text, found) for text in texts if (found := faults(text))] == [], path.name


@pytest.mark.parametrize(
    "text",
    ["You failed.", "Wrong!", "This is a bad test.", "Obviously the mask is missing.", "Sorry, no.", "That is wrong."],
)
def test_what_is_never_said_is_found(text: str) -> None:
    assert faults(text)

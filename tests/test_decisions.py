import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs/decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


def files(suffix: str) -> list[Path]:
    folders = ("course", "docs", "grader", "sandbox", "service", "tests", "tinyllm")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob(f"*{suffix}"))]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_decision_says_context_decision_consequences_and_what_checks_it(record: Path) -> None:
    said = re.findall(
        r"^# \d{4}: |^\*\*(?:Context|Decision|Consequences)\.\*\*|^\*\*Checked by\*\*", record.read_text(), re.M
    )
    assert said == [f"# {record.name[:4]}: ", "**Context.**", "**Decision.**", "**Consequences.**", "**Checked by**"]


def test_the_index_lists_every_decision_with_its_title() -> None:
    titles = [record.read_text().partition("\n")[0].removeprefix("# ").partition(": ") for record in RECORDS]
    wanted = [
        f"- [{number}]({record.name}) {title}" for record, (number, _, title) in zip(RECORDS, titles, strict=True)
    ]
    index = (FOLDER / "README.md").read_text().splitlines()
    assert [line for line in index if line.startswith("- ")] == wanted


def test_no_two_decisions_have_one_number() -> None:
    numbers = [record.name[:4] for record in RECORDS]
    assert len(set(numbers)) == len(numbers)


def test_every_decision_that_is_cited_is_there() -> None:
    numbers = {record.name[:4] for record in RECORDS}
    cited = {
        (str(path.relative_to(ROOT)), number)
        for path in (*files(".py"), *files(".md"), *files(".sh"))
        for number in re.findall(r"decisions?[ /]+(00\d\d)", path.read_text())
    }
    assert cited
    assert not {(path, number) for path, number in cited if number not in numbers}


def test_every_test_that_documents_name_is_there() -> None:
    sources = files(".py")
    there = {path.name for path in sources} | {path.stem for path in sources}
    there.update(name for path in sources for name in re.findall(r"def (test_\w+)", path.read_text()))
    for document in files(".md"):
        text = re.sub(r"^`demo/[^`]*`:\n|^```(?:python|toml)\n.*?^```$", "", document.read_text(), flags=re.M | re.S)
        for name in re.findall(r"\btest_\w+(?:\.py)?\b", text):
            assert name in there, f"{document.name} names {name}"

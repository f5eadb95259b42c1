"""What a command has to say goes in; text for a terminal, or one JSON object, is printed.

Colour is rich's to decide: none in a pipe, none with NO_COLOR. Whatever came from files or from a service is printed as
it is, without markup and without characters that move a terminal's cursor.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from grader import compared, text
from grader.report import CourseTestPart, Outcome, Report, Verdict
from grader.wording import escaped

STYLES = {
    "PASS": "bold green",
    "FAIL": "bold red",
    "ok  ": "green",
    "ERR ": "red",
    "TIME": "red",
    "MEND": "red",
    "Next:": "bold",
}
PHASES = {
    "course_tests": "course tests",
    "calibration": "your tests on the reference",
    "mutants": "your tests on mutants",
    "confirmation": "confirming",
}


def safe(text: str) -> str:
    """Lines from a file or a service, without what controls a terminal or turns the direction."""
    return "\n".join(escaped(line.expandtabs(4)) for line in text.splitlines())


class Screen:
    """Where a command prints: people read `out` and, for what is not the answer, `err`; programs read one object."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)

    def say(self, line: str, style: str = "") -> None:
        """A line for people; nothing where a program reads."""
        if not self.as_json:
            self.out.print(Text(safe(line), style))

    def note(self, line: str) -> None:
        self.err.print(Text(safe(line)))

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        table = Table(*heads, box=None)
        for row in rows:
            table.add_row(*(Text(safe(cell)) for cell in row))
        if not self.as_json:
            self.out.print(table)

    def tell(self, value: dict[str, Any]) -> None:
        """The answer for programs, one a command; nothing where people read."""
        if self.as_json:
            said = json.dumps(value, ensure_ascii=False, indent=2, default=str)
            print("".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in said))

    def course_test(self, part: CourseTestPart) -> None:
        passed = part.outcome is Outcome.PASSED
        self.say(f"{'ok  ' if passed else 'FAIL'} {part.id}  {part.kind}", "green" if passed else "red")
        if not passed:
            for line in compared.said(part).splitlines():
                self.say(f"     {line}")
            self.say(f"     Why it matters: {part.why}")
            if part.chapter:
                self.say(f"     Read: {part.chapter}")

    def report(self, report: Report) -> None:
        self.lines(text.render(report))
        self.tell(report.model_dump(mode="json", by_alias=True))

    def lines(self, rendered: str) -> None:
        """A report as text, its marks coloured."""
        for number, line in enumerate(rendered.splitlines()):
            words = line.strip()
            style = next((style for mark, style in STYLES.items() if words.startswith(mark.strip())), "")
            if number == 0:
                style = STYLES["PASS" if Verdict.PASS.value.upper() in line else "FAIL"]
            self.say(line, style)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Bars on standard error of a terminal; elsewhere nothing moves."""
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal) as bars:
            yield bars

"""A report arrives; the same as plain text for a terminal leaves: what to do next comes first. Pure."""

from collections.abc import Iterator

from grader import wording
from grader.report import Outcome, Report
from grader.wording import escaped, shown

_MARKS = {
    Outcome.PASSED: "ok  ",
    Outcome.FAILED: "FAIL",
    Outcome.ERROR: "ERR ",
    Outcome.TIMEOUT: "TIME",
    Outcome.SKIPPED: "skip",
    Outcome.NOT_RUN: "----",
}


def render(report: Report) -> str:
    """The report as text, ending in a newline. Nothing in it moves a terminal's cursor."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    score = "" if report.score is None else f"   score {report.score:.2f}"
    yield f"{report.submission.unit}: {report.verdict.value.upper()}{score}"
    for reason in report.reasons:
        yield from _hanging("  - ", reason.message)
    yield from _hanging("Next: ", report.next_step)
    if report.by_hand is not None:
        yield from _hanging("Note: ", wording.set_by_hand(report.by_hand.score, report.by_hand.reason))
    if report.feedback is not None:
        yield from _hanging("Note: ", report.feedback.message)
    if report.cached is not None:
        yield from _hanging("Note: ", wording.repeats(report.cached.graded_at))
    for entry in report.intake:
        place = f"{shown(entry.path)}: " if entry.path else ""
        yield f"Note: {place}{escaped(entry.message)}"
    yield from _contract(report)
    yield from _course_tests(report)
    yield from _oracle(report)
    yield from _student_tests(report)
    yield from _mutants(report)
    phases = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in report.timing.phases.items())
    yield ""
    yield f"Time: {report.timing.total:.2f} s ({phases})" if phases else f"Time: {report.timing.total:.2f} s"


def _contract(report: Report) -> Iterator[str]:
    if report.contract is None or report.contract.ok:
        return
    yield ""
    yield "Contract"
    for problem in report.contract.problems:
        yield f"  {shown(problem.file)}:{problem.line}: {escaped(problem.message)}"


def _course_tests(report: Report) -> Iterator[str]:
    if report.course_tests is None:
        return
    yield ""
    yield f"Course tests: {report.course_tests.passed} of {report.course_tests.total} passed"
    for test in report.course_tests.tests:
        yield f"  {_MARKS[test.outcome]} {test.id}"
        if test.outcome is not Outcome.PASSED and test.message:
            yield from _indented(test.message + (f"\n({test.where})" if test.where else ""))


def _oracle(report: Report) -> Iterator[str]:
    part = report.oracle
    if part is None or part.status == "not_run":
        return
    yield ""
    yield f"Random cases: {part.agreed} of {part.cases} agree with independent code (seed {part.seed})"
    for found in part.disagreements:
        yield from _indented(found.message)


def _student_tests(report: Report) -> Iterator[str]:
    part = report.student_tests
    if part is None:
        return
    yield ""
    yield f"Your tests: {part.total}"
    for test in part.tests:
        mark = "BAD " if test.valid is False else _MARKS[test.own_code]
        kills = f"   catches {len(test.kills)}" if test.valid else ""
        yield f"  {mark} {shown(test.id)}{kills}"
        if test.advice:
            yield from _indented(test.advice)
        if test.message and test.valid is not False:  # the advice on a bad test holds it
            yield from _indented(f"on your own code: {test.message}")


def _mutants(report: Report) -> Iterator[str]:
    part = report.mutation
    if part is None:
        return
    yield ""
    yield (
        f"Mutants: {part.killed} of {part.total} caught, score {part.score:.2f} (needed {part.threshold:.2f}), "
        f"required ones {'all caught' if part.required_ok else 'not all caught'}"
    )
    for each in part.categories:
        yield f"  {each.killed} of {each.total} in {escaped(each.category)}"
    for mutant in part.mutants:
        star = "*" if mutant.required else " "
        yield f"  {mutant.status.value:<8} {star}{mutant.id}"
        if mutant.cause is not None and mutant.cause.code != Outcome.NOT_RUN:  # the reasons say why
            yield from _indented(mutant.cause.message)
    if any(mutant.required for mutant in part.mutants):
        yield "  (* must be caught)"


def _hanging(mark: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        yield (mark if number == 0 else " " * len(mark)) + escaped(line)


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"         {escaped(line)}"

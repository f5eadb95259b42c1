"""A report arrives; the same as plain text for a terminal leaves, in the order that grader/reading.py gives. Pure."""

from collections.abc import Iterator

from grader import compared, reading, wording
from grader.report import CourseTestPart, MutantPart, MutationPart, Outcome, Report, StudentTestPart
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
    yield from _first(report)
    yield from _notes(report)
    yield from _contract(report)
    yield from _missed_course_tests(report)
    yield from _oracle(report)
    yield from _tests_to_mend(report)
    yield from _grade_of_tests(report)
    yield from _details(report)


def _first(report: Report) -> Iterator[str]:
    score = "" if report.score is None else f"   score {report.score:.2f}"
    yield f"{report.submission.unit}: {report.verdict.value.upper()}{score}"
    yield from _hanging("Next: ", report.next_step)
    if passed := reading.passed(report):
        yield f"Right already: {'; '.join(passed)}."
    for reason in report.reasons:
        if reason.message != report.next_step:
            yield from _hanging("  - ", reason.message)


def _notes(report: Report) -> Iterator[str]:
    if report.by_hand is not None:
        yield from _hanging("Note: ", wording.set_by_hand(report.by_hand.score, report.by_hand.reason))
    if report.feedback is not None:
        yield from _hanging("Note: ", report.feedback.message)
    if report.cached is not None:
        yield from _hanging("Note: ", wording.repeats(report.cached.graded_at))
    for entry in report.intake:
        place = f"{shown(entry.path)}: " if entry.path else ""
        yield f"Note: {place}{escaped(entry.message)}"


def _contract(report: Report) -> Iterator[str]:
    if report.contract is None or report.contract.ok:
        return
    yield ""
    yield "Contract"
    for problem in report.contract.problems:
        yield f"  {shown(problem.file)}:{problem.line}: {escaped(problem.message)}"


def _missed_course_tests(report: Report) -> Iterator[str]:
    if missed := reading.missed_course_tests(report):
        yield ""
        yield "Course tests that did not pass"
        for test in missed:
            yield from _missed(test)


def _missed(test: CourseTestPart) -> Iterator[str]:
    yield f"  {_MARKS[test.outcome]} {test.id}"
    if test.message:
        yield from _indented(compared.said(test) + (f"\n({test.where})" if test.where else ""))
    if test.chapter:
        yield from _indented(wording.read_in_chapter(test.chapter))


def _oracle(report: Report) -> Iterator[str]:
    part = report.oracle
    if part is None or part.status == "not_run":
        return
    yield ""
    yield f"Random cases: {part.agreed} of {part.cases} agree with independent code (seed {part.seed})"
    for found in part.disagreements:
        yield from _indented(found.message)


def _tests_to_mend(report: Report) -> Iterator[str]:
    if tests := reading.tests_to_mend(report):
        yield ""
        yield "Your tests to look at"
        for test in tests:
            yield from _own_test(test)


def _own_test(test: StudentTestPart, catches: str = "catches") -> Iterator[str]:
    mark = "MEND" if test.valid is False else _MARKS[test.own_code]
    kills = f"   {catches} {len(test.kills)}" if test.valid else ""
    yield f"  {mark} {shown(test.id)}{kills}"
    if test.advice:
        yield from _indented(test.advice)
    if test.message and test.valid is not False:  # the advice on a test to mend holds it
        yield from _indented(f"on your own code: {test.message}")


def _grade_of_tests(report: Report) -> Iterator[str]:
    part = report.mutation
    if part is None:
        return
    yield ""
    yield (
        f"Mutants: {part.killed} of {part.total} caught, score {part.score:.2f} (needed {part.threshold:.2f}), "
        f"required ones {'all caught' if part.required_ok else 'not all caught'}"
    )
    if part.void:
        yield from _hanging("  ", wording.void_grade(part.score_if_valid))
    for each in part.categories:
        yield f"  {each.killed} of {each.total} in {escaped(each.category)}"
    if (mutant := reading.hinted(report)) is not None:
        yield from _hanging("  Hint: ", wording.hint_on(mutant.id, mutant.hint))


def _details(report: Report) -> Iterator[str]:
    yield from _course_tests(report)
    yield from _student_tests(report)
    if report.mutation is not None and report.mutation.mutants:
        yield from _mutants(report.mutation)
    phases = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in report.timing.phases.items())
    yield ""
    yield f"Time: {report.timing.total:.2f} s ({phases})" if phases else f"Time: {report.timing.total:.2f} s"


def _course_tests(report: Report) -> Iterator[str]:
    if report.course_tests is None:
        return
    yield ""
    yield f"Course tests: {report.course_tests.passed} of {report.course_tests.total} passed"
    for test in report.course_tests.tests:
        yield f"  {_MARKS[test.outcome]} {test.id}"


def _student_tests(report: Report) -> Iterator[str]:
    if report.student_tests is None:
        return
    above = reading.tests_to_mend(report)
    yield ""
    first_only = report.mutation is not None and report.mutation.matrix == "first_kill"
    note = " (each mutant is counted for the test that caught it first; the others were not run)" if first_only else ""
    yield f"Your tests: {report.student_tests.total}{note}"
    for test in report.student_tests.tests:
        if test not in above:
            yield from _own_test(test, "first to catch" if first_only else "catches")


def _mutants(part: MutationPart) -> Iterator[str]:
    yield ""
    yield "Mutants one by one"
    for mutant in part.mutants:
        yield from _mutant(mutant)
    if any(mutant.required for mutant in part.mutants):
        yield "  (* must be caught)"


def _mutant(mutant: MutantPart) -> Iterator[str]:
    yield f"  {mutant.status.value:<8} {'*' if mutant.required else ' '}{mutant.id}"
    if mutant.cause is not None and mutant.cause.code != Outcome.NOT_RUN:  # the reasons say why
        yield from _indented(mutant.cause.message)


def _hanging(mark: str, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        yield (mark if number == 0 else " " * len(mark)) + escaped(line)


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"         {escaped(line)}"

"""A report as its student may see it arrives, with the level of feedback that the course gives; what of it is told at
that level leaves. Pure.

    none         verdict and score
    counts       and of each part how many
    categories   and of each category of mutants how many
    names        and which: ids, lines, outcomes, statuses, the kill matrix
    hints        and why, and what to do: messages, advice, hints

Each level tells what the one before does and more. No level withholds the grade, nor what was done to the upload.
Reports of what was not graded have nothing to withhold. How each field is treated is listed, and held against this
module, in tests/grader/test_feedback.py. (docs/decisions/0195)
"""

from collections.abc import Mapping

from grader import wording
from grader.report import (
    Cause,
    ContractPart,
    CourseTestPart,
    CourseTestsPart,
    FeedbackPart,
    Level,
    MutantPart,
    MutationPart,
    OraclePart,
    Reason,
    Report,
    StudentTestPart,
    StudentTestsPart,
    Verdict,
)


def at_level(report: Report, level: Level) -> Report:
    """What of a student's view of a report is told at a level."""
    if level is Level.HINTS or report.verdict not in (Verdict.PASS, Verdict.FAIL):
        return report
    told: dict[str, object] = {
        "feedback": FeedbackPart(level=level, message=wording.FEEDBACK[level.value]),
        "reasons": _reasons(report, level),
        "next_step": report.next_step if report.verdict is Verdict.PASS else _next_step(report, level),
    }
    if level is Level.NONE:
        told |= dict.fromkeys(("contract", "course_tests", "oracle", "student_tests", "mutation"))
    else:
        names = level.tells(Level.NAMES)
        told |= {
            "contract": _contract(report.contract, names),
            "course_tests": _course_tests(report.course_tests, names),
            "oracle": _oracle(report.oracle, names),
            "student_tests": _student_tests(report.student_tests, names),
            "mutation": _mutation(report.mutation, level),
        }
    return report.model_copy(update=told)


def _reasons(report: Report, level: Level) -> tuple[Reason, ...]:
    """The same reasons without the names in them and without what to do."""
    if report.verdict is Verdict.PASS:
        return report.reasons
    if level is Level.NONE:
        return (Reason(code="withheld", message=wording.FEEDBACK[level.value]),)
    return tuple(Reason(code=each.code, message=wording.bare_reason(each.code)) for each in report.reasons)


def _next_step(report: Report, level: Level) -> str:
    reasons = _reasons(report, level)
    return reasons[0].message if reasons else wording.FEEDBACK[level.value]


def _contract(part: ContractPart | None, names: bool) -> ContractPart | None:
    if part is None or names:
        return part
    return part.model_copy(update={"problems": ()})


def _course_tests(part: CourseTestsPart | None, names: bool) -> CourseTestsPart | None:
    if part is None:
        return None
    return part.model_copy(update={"tests": tuple(map(_course_test, part.tests)) if names else (), "next": ""})


def _course_test(test: CourseTestPart) -> CourseTestPart:
    silent = {"message": "", "where": "", "why": "", "chapter": "", "compared": None, "cause": _bare(test.cause)}
    return test.model_copy(update=silent)


def _oracle(part: OraclePart | None, names: bool) -> OraclePart | None:
    """Cases have numbers for names; what they are is said in their messages."""
    if part is None:
        return None
    shown = part.disagreements if names else ()
    bare = tuple(each.model_copy(update={"message": "", "cause": _bare(each.cause)}) for each in shown)
    return part.model_copy(update={"worst": None, "disagreements": bare})


def _student_tests(part: StudentTestsPart | None, names: bool) -> StudentTestsPart | None:
    if part is None:
        return None
    own = part.baselines.own
    told = None if own is None or not names else own.model_copy(update={"cause": _bare(own.cause)})
    baselines = part.baselines.model_copy(update={"correct": (), "own": told, "broken": None, "cpu_seconds": None})
    tests = tuple(map(_student_test, part.tests)) if names else ()
    return part.model_copy(update={"tests": tests, "baselines": baselines})


def _student_test(test: StudentTestPart) -> StudentTestPart:
    silent = {"message": "", "rejection": "", "advice": "", "denies": "", "cause": _bare(test.cause)}
    return test.model_copy(update=silent)


def _mutation(part: MutationPart | None, level: Level) -> MutationPart | None:
    if part is None:
        return None
    hidden: Mapping[str, object] = {"wheats": (), "mutants": tuple(map(_mutant, part.mutants))}
    if not level.tells(Level.NAMES):
        hidden = {"wheats": (), "mutants": (), "kill_matrix": None}
    if not level.tells(Level.CATEGORIES):
        hidden = {**hidden, "categories": ()}
    return part.model_copy(update=hidden)


def _mutant(mutant: MutantPart) -> MutantPart:
    silent = {"hint": "", "hints_total": 0, "hints": (), "detail": "", "cause": _bare(mutant.cause)}
    return mutant.model_copy(update=silent)


def _bare(cause: Cause | None) -> Cause | None:
    """What it was, without its numbers and without what to do about it."""
    return None if cause is None else Cause(code=cause.code, message="")

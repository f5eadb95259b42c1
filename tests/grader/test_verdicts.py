from collections.abc import Mapping, Sequence

import pytest

from grader import verdicts
from grader.report import CourseTestPart, Outcome
from grader.unit import CourseTest
from grader.verdicts import join
from sandbox.records import (
    CollectionError,
    Ending,
    EndingKind,
    ItemOutcome,
    Record,
    Resource,
    RunResult,
    TestItem,
    Usage,
)

COLLECTED = ("t.py::a", "t.py::b[1]", "t.py::b[2]", "t.py::c")


def result(
    outcomes: Mapping[str, str], ending: Ending | None = None, cpu_seconds: float = 0.0, seconds: float = 0.5
) -> RunResult:
    items = tuple(
        TestItem(name, ItemOutcome(outcome), seconds, f"{outcome} {name}") for name, outcome in outcomes.items()
    )
    return RunResult(
        "r", ending or Ending(EndingKind.COMPLETE), Record(COLLECTED, items), usage=Usage(cpu_seconds=cpu_seconds)
    )


def test_tests_are_by_function_in_the_order_collected() -> None:
    seen = join([result({"t.py::c": "passed", "t.py::a": "passed"})])
    assert list(seen.tests) == ["t.py::a", "t.py::b", "t.py::c"]


@pytest.mark.parametrize(
    ("one", "two", "together"),
    [
        ("passed", "passed", Outcome.PASSED),
        ("passed", "failed", Outcome.FAILED),
        ("error", "failed", Outcome.ERROR),
        ("passed", "skipped", Outcome.PASSED),
        ("skipped", "skipped", Outcome.SKIPPED),
    ],
)
def test_parameters_are_taken_together_at_their_worst(one: str, two: str, together: Outcome) -> None:
    seen = join([result({"t.py::b[1]": one, "t.py::b[2]": two})])
    assert seen.tests["t.py::b"].outcome is together
    assert seen.tests["t.py::b"].seconds == 1.0


def test_a_function_with_a_parameter_that_did_not_run_has_not_passed() -> None:
    assert join([result({"t.py::b[1]": "passed"})]).tests["t.py::b"].outcome is Outcome.NOT_RUN


def test_one_parameter_marked_xfail_makes_the_whole_function_not_count() -> None:
    seen = join([result({"t.py::b[1]": "failed", "t.py::b[2]": "xfailed"})])
    assert not seen.tests["t.py::b"].counts and seen.failing == ()


@pytest.mark.parametrize(
    "kind", [kind for kind in EndingKind if kind not in (EndingKind.COMPLETE, EndingKind.DEADLINE)]
)
def test_the_test_in_which_a_run_ended_is_to_blame_and_the_rest_is_unanswered(kind: EndingKind) -> None:
    seen = join([result({"t.py::a": "passed"}, Ending(kind, "t.py::b[1]"))])
    expected = Outcome.TIMEOUT if kind in verdicts.OUT_OF_TIME else Outcome.ERROR
    assert (seen.tests["t.py::b"].outcome, seen.tests["t.py::b"].ended_run) == (expected, True)
    assert seen.unanswered == ("t.py::b[2]", "t.py::c") and seen.cause is None


def test_the_submissions_deadline_is_no_tests_fault() -> None:
    seen = join([result({"t.py::a": "passed"}, Ending(EndingKind.DEADLINE, "t.py::b[1]"))])
    assert seen.tests["t.py::b"].outcome is Outcome.NOT_RUN
    assert "t.py::b[1]" in seen.unanswered
    assert seen.cause is not None and seen.cause.code == "deadline"


def test_a_run_that_ended_outside_any_test_has_a_cause() -> None:
    seen = join([result({}, Ending(EndingKind.EARLY_EXIT))])
    assert seen.cause is not None and seen.cause.code == "early_exit"


def test_several_runs_join_to_one_answer() -> None:
    first = result({"t.py::a": "passed"}, Ending(EndingKind.EARLY_EXIT, "t.py::b[1]"), cpu_seconds=1.0)
    second = result({"t.py::b[2]": "passed", "t.py::c": "failed"}, cpu_seconds=2.0)
    seen = join([first, second])
    assert {name: test.outcome.value for name, test in seen.tests.items()} == {
        "t.py::a": "passed",
        "t.py::b": "error",
        "t.py::c": "failed",
    }
    assert (seen.unanswered, seen.cpu_seconds) == ((), 3.0)


def test_a_test_that_hangs_does_not_make_the_suite_slow() -> None:
    seen = join([result({"t.py::a": "passed"}, Ending(EndingKind.CPU_TIME, "t.py::c", limit=30.0), cpu_seconds=30.0)])
    assert seen.cpu_seconds == 0.5 and not seen.too_slow


@pytest.mark.parametrize("kind", verdicts.OUT_OF_TIME)
def test_a_suite_is_too_slow_when_the_tests_before_the_last_took_most_of_its_time(kind: EndingKind) -> None:
    slow = result({"t.py::a": "passed"}, Ending(kind, "t.py::c", limit=30.0), seconds=20.0)
    quick = result({"t.py::a": "passed"}, Ending(kind, "t.py::c", limit=30.0), seconds=1.0)
    assert join([slow]).too_slow and not join([quick]).too_slow
    assert not verdicts.can_resume(join([slow]), slow) and verdicts.can_resume(join([quick]), quick)


def test_runs_without_a_test_to_blame_cannot_be_resumed() -> None:
    for ending in (Ending(EndingKind.EARLY_EXIT), Ending(EndingKind.DEADLINE, "t.py::a"), Ending(EndingKind.COMPLETE)):
        run = result({}, ending)
        assert not verdicts.can_resume(join([run]), run)


def test_only_what_pytest_saw_fail_shows_a_failure() -> None:
    assert join([result({"t.py::a": "failed"})]).shows_failure
    assert not join([result({"t.py::a": "passed"})]).shows_failure
    assert not join([result({}, Ending(EndingKind.EARLY_EXIT, "t.py::a"))]).shows_failure


# -- course tests ----------------------------------------------------------------------------------------------------

A, B = (CourseTest(name, "t.py", "unit", f"why {name}", (), "1") for name in ("a", "b"))


def course(runs: Sequence[RunResult]) -> CourseTestPart:
    part = verdicts.course_tests((A, B), {"a": runs})
    assert part.tests[1].outcome is Outcome.NOT_RUN  # b was expected, and there is no word of it
    return part.tests[0]


def test_a_course_test_passes_when_each_of_its_runs_says_so() -> None:
    test = course([result({"t.py::a": "passed"})] * 2)
    assert (test.outcome, test.why) == (Outcome.PASSED, "why a")


def test_runs_that_disagree_are_a_failure_that_says_so() -> None:
    test = course([result({"t.py::a": "passed"}), result({"t.py::a": "failed"})])
    assert test.outcome is Outcome.FAILED and "1 of 2 runs" in test.message


def test_runs_that_fail_in_different_ways_are_no_disagreement() -> None:
    ran_out = result({}, Ending(EndingKind.MEMORY, "t.py::a", limit=768 * 2**20))
    test = course([ran_out, result({"t.py::a": "failed"})])
    assert test.outcome is Outcome.ERROR and test.cause is not None and test.cause.code == "memory"
    assert "same code" not in test.message


@pytest.mark.parametrize("outcome", ["skipped", "xfailed", "xpassed"])
def test_a_course_test_that_was_skipped_was_not_run(outcome: str) -> None:
    assert course([result({"t.py::a": outcome})]).outcome is Outcome.NOT_RUN


@pytest.mark.parametrize("item", [None, "t.py::a", "t.py::b"])
def test_a_pass_in_a_run_that_did_not_end_by_itself_is_not_believed(item: str | None) -> None:
    test = course([result({"t.py::a": "passed"}, Ending(EndingKind.EARLY_EXIT, item))])
    assert test.outcome is Outcome.ERROR and test.cause is not None and test.cause.code == "early_exit"


def test_a_course_test_out_of_time_says_its_limit() -> None:
    test = course([result({}, Ending(EndingKind.CPU_TIME, "t.py::a", limit=10.0, seen=10.4))])
    assert test.outcome is Outcome.TIMEOUT
    assert "10 s" in test.message and "10.4" not in test.message


def test_a_unit_that_cannot_be_imported_is_an_error_with_its_words() -> None:
    record = Record(errors=(CollectionError("t.py", "NameError: nope", "tinyllm/a.py:3"),))
    test = course([RunResult("r", Ending(EndingKind.COMPLETE), record)])
    assert (test.outcome, test.where) == (Outcome.ERROR, "tinyllm/a.py:3") and "NameError: nope" in test.message


def test_a_limit_that_a_test_met_is_named_with_its_number() -> None:
    item = TestItem("t.py::a", ItemOutcome.FAILED, 0.0, "MemoryError", resource=Resource.MEMORY)
    test = course([RunResult("r", Ending(EndingKind.COMPLETE), Record(("t.py::a",), (item,)))])
    assert test.cause is not None
    assert (test.cause.code, test.cause.limit) == ("memory", verdicts.STANDING_LIMITS.memory_bytes)

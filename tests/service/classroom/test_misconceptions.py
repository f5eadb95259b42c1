import pytest

from grader import wording
from service.classroom.facts import Rejection
from service.classroom.misconceptions import key_of
from tests.service.classroom import klass
from tests.service.classroom.klass import asked


@pytest.fixture
def bench(make_bench):
    return klass.a_class(make_bench)


def told(bench, query=""):
    return {each["key"]: each for each in asked(bench, f"misconceptions{query}")["misconceptions"]}


@pytest.mark.both_databases
def test_tests_that_pass_on_a_fault_alone_show_that_their_author_believes_it(bench):
    for student in ("ada", "bob"):
        said = klass.fails(tests=[klass.rejecting()], rows=[klass.on_mutants(".FFF")])
        klass.submit(bench, student, said)
    klass.submit(bench, "cy", klass.Says())
    answer = asked(bench, "misconceptions")
    assert (answer["students"], answer["rejecting"]) == (3, 2)
    [found] = answer["misconceptions"]
    assert (found["key"], found["kind"]) == ("fault:s01", "fault")
    assert found["sentence"] == "2 students believe this is right: the factor is 3."
    assert (found["students"], found["in_tests"], found["in_code"], found["tests"]) == (2, 2, 0, 2)
    assert found["share"] == pytest.approx(2 / 3, abs=1e-6)
    assert "The factor is 3 where it should be 2." in found["detail"]
    first = found["who"][0]
    assert (first["student"], first["tests"]) == (
        "ada",
        [{"id": "test_b.py::test_six", "file": "test_b.py", "line": 7}],
    )


def test_code_that_fails_the_tests_which_catch_a_fault_has_it(bench):
    klass.submit(bench, "ada", klass.fails(failed=["test_doubles", "test_negative"]))
    [found] = told(bench).values()
    assert (found["key"], found["in_code"], found["in_tests"]) == ("fault:s02", 1, 0)  # m01 is caught by the same
    assert found["who"][0]["in_code"] is True


def test_code_and_tests_of_one_student_are_one_believer(bench):
    said = klass.fails(
        failed=["test_doubles", "test_floats"], tests=[klass.rejecting()], rows=[klass.on_mutants(".FFF")]
    )
    klass.submit(bench, "ada", said)
    [found] = told(bench).values()
    assert (found["key"], found["students"], found["in_code"], found["in_tests"]) == ("fault:s01", 1, 1, 1)
    assert found["sentence"] == "1 student believes this is right: the factor is 3."


def test_code_of_which_nothing_works_has_no_fault_in_particular(bench):
    klass.submit(bench, "ada", klass.fails(0.0, failed=klass.TESTS))
    assert told(bench) == {}


SAYS = klass.ANY_NUMBER.says


@pytest.mark.parametrize(
    ("test", "key", "kind"),
    [
        (klass.rejecting(denies=SAYS), "freedom:types", "freedom"),
        (klass.rejecting(advice=wording.may_deny(SAYS) + wording.said_on_own_code("no")), "freedom:types", "freedom"),
        (klass.rejecting(advice=wording.misprint("4.0001", "4", "")), "misprint:4.0001", "misprint"),
        (klass.rejecting(flaky=True), "flaky", "flaky"),
        (klass.rejecting("test_b.py"), "broken", "broken"),
        (klass.rejecting(cause=klass.ended()), "broken:cpu_time", "broken"),
        (klass.rejecting(), "unknown", "unknown"),
    ],
)
def test_a_rejection_is_grouped_by_what_the_report_says_of_it(bench, test, key, kind):
    klass.submit(bench, "ada", klass.fails(tests=[test]))
    [found] = told(bench).values()
    assert (found["key"], found["kind"], found["students"]) == (key, kind, 1)
    assert found["sentence"].startswith("1 student ")
    assert found["sentence"].endswith(".")
    if kind == "misprint":
        assert found["detail"] == "Twice 2 is 4."


def test_what_is_unexplained_goes_with_what_is_explained_in_the_same_suite(bench):
    """In a run that stops at the first failure a test may meet the fault in which its author believes nowhere."""
    tests = [klass.rejecting(), klass.rejecting("test_b.py::test_seven")]
    rows = [klass.on_mutants("-.--"), klass.on_mutants("----", "test_b.py::test_seven")]
    klass.submit(bench, "ada", klass.fails(tests=tests, rows=rows))
    assert list(told(bench)) == ["fault:s02"]


def test_words_of_a_student_make_no_misprint_and_no_freedom(bench):
    """What a test said on the student's own code stands in the advice, and can look like any sentence of ours."""
    for student, words in (("ada", wording.misprint("all of it", "0", "")), ("bob", wording.may_deny("Anything."))):
        advice = "Mine." + wording.said_on_own_code(words)
        klass.submit(bench, student, klass.fails(tests=[klass.rejecting(advice=advice)]))
    [found] = told(bench).values()
    assert (found["key"], found["students"]) == ("unknown", 2)


def test_a_student_with_many_such_tests_is_listed_with_a_few(bench):
    tests = [klass.rejecting(f"test_b.py::test_{number}") for number in range(30)]
    klass.submit(bench, "ada", klass.fails(tests=tests))
    [found] = told(bench).values()
    assert (found["tests"], len(found["who"][0]["tests"])) == (30, 10)


def rejection(code="unexplained", said="", accepts=()):
    return Rejection("t", "f", 1, code, said, accepts)


def test_a_pitfall_is_believed_rather_than_another_fault_and_either_rather_than_a_doubtful_freedom():
    unit = klass.unit()
    assert key_of(rejection(accepts=("m02", "s02")), unit) == "fault:s02"
    assert key_of(rejection("asks_more", SAYS, ("m02",)), unit) == "fault:m02"
    assert key_of(rejection("denies", SAYS, ("m02",)), unit) == "freedom:types"


def test_the_most_common_come_first_and_the_unexplained_last(bench):
    for student in ("ada", "bob", "cy"):
        klass.submit(bench, student, klass.fails(tests=[klass.rejecting()]))
    for student in ("dee", "eve"):
        klass.submit(bench, student, klass.fails(tests=[klass.rejecting(flaky=True)]))
    klass.submit(bench, "flo", klass.fails(tests=[klass.rejecting(denies=SAYS)]))
    assert list(told(bench)) == ["flaky", "freedom:types", "unknown"]


def test_what_was_mended_is_believed_no_more(bench):
    klass.submit(bench, "ada", klass.fails(tests=[klass.rejecting()]))
    bench.clock.now += 60
    klass.submit(bench, "ada", klass.Says())
    assert told(bench) == {}


def test_as_many_are_named_as_asked_for(bench):
    for student in ("bob", "ada"):
        klass.submit(bench, student, klass.fails(tests=[klass.rejecting()]))
    assert [who["student"] for who in told(bench, "?who=1")["unknown"]["who"]] == ["ada"]
    assert told(bench, "?who=0")["unknown"]["students"] == 2


def test_a_name_that_is_markup_stays_a_name(bench):
    name = "test_b.py::test_<script>alert(1)</script>"
    klass.submit(bench, "<b>ada</b>", klass.fails(tests=[klass.rejecting(name)]))
    who = told(bench)["unknown"]["who"][0]
    assert (who["student"], who["tests"][0]["id"]) == ("<b>ada</b>", name)

import itertools

import pytest
import sqlalchemy as sa

from grader.report import Verdict
from service import grades, offerings, tables
from service.audit import By
from service.database import reading, writing
from service.deadlines import LatePolicy, Times
from service.grades import Sent
from service.offerings import Assignment, Counts, Extension
from service.runs import Status
from service.worker import FakeGrading
from tests.service import samples

DAY = 86_400
TENTH_A_DAY = LatePolicy(penalty=0.1, cap=0.5)


def sent(*scores, due_at=0.0, by=Counts.BEST, status=Status.DONE, granted=None):
    """The grade of submissions, one a day, the first when it is due; a score of None has no report."""
    found = [
        Sent(str(n), n * DAY, status, True, Verdict.FAIL if score is not None else None, score)
        for n, score in enumerate(scores)
    ]
    return grades.grade("ada", "L0.0", found, Assignment(Times(due_at=due_at), TENTH_A_DAY), granted, by)


def test_the_best_is_what_is_best_after_the_penalty():
    grade = sent(0.8, 0.85).graded
    assert (grade.sent.id, grade.final_score) == ("0", 0.8)
    assert sent(0.8, 0.95).graded.sent.id == "1"


def test_of_equals_the_earliest_counts():
    assert sent(0.5, 0.5, 0.5, due_at=None).graded.sent.id == "0"


def test_the_latest_counts_however_late_and_bad():
    grade = sent(0.8, 0.2, by=Counts.LATEST).graded
    assert (grade.sent.id, grade.late.seconds) == ("1", DAY)
    assert grade.final_score == pytest.approx(0.18)


def test_what_has_no_report_takes_no_grade_away():
    assert sent(0.8, None, by=Counts.LATEST).graded.sent.id == "0"
    assert sent(None, None).graded is None


def test_an_extension_moves_the_due_time_of_one_student():
    assert sent(0.1, 0.85, granted=Extension("ada", DAY, None, 0, "", "", 0)).graded.final_score == 0.85


@pytest.mark.parametrize(("status", "used"), [("done", 2), ("running", 2), ("error", 0), ("cancelled", 0)])
def test_attempts_that_are_used_are_counted(status, used):
    assert sent(None, None, status=Status(status)).attempts_used == used


# -- over HTTP -------------------------------------------------------------------------------------------------------

both = pytest.mark.both_databases


def scored(bench, student, score, run=None):
    """A submission graded with that score; None: a failure of ours. With `run`, grade that run instead."""

    def answer(unit, submission, about, progress):
        verdict = Verdict.GRADER_ERROR if score is None else Verdict.FAIL
        return samples.report(about, unit.id, digest=submission.digest, verdict=verdict, score=score)

    if run is None:
        submission = bench.submitted("lms", student=student)
    else:
        submission, bench.queue.submitted = None, [run]
    bench.graded(bench.worker(FakeGrading(answer)))
    bench.clock.now += DAY
    return submission


def ask(bench, **asked):
    times = Times(due_at=asked.pop("due_at", None))
    with writing(bench.engine) as connection:
        offerings.put_assignment(connection, "default", "L0.0", Assignment(times, **asked), By(None, bench.clock()))


def listed(bench, query="", who="teacher"):
    answer = bench.get(f"/v1/units/L0.0/grades?{query}", who)
    assert answer.status_code == 200, answer.text
    return answer.json()


@both
def test_a_class_is_listed_by_student_with_what_lateness_costs(bench):
    ask(bench, due_at=bench.clock(), late_policy=TENTH_A_DAY)
    first = scored(bench, "bob", 0.8)
    late = scored(bench, "ada", 0.5)
    better = scored(bench, "bob", 0.95)
    bench.submitted("lms", student="bob")
    bench.submitted("lms")
    ada, bob = listed(bench)["grades"]
    assert (ada["submission"], ada["late_seconds"], ada["penalty"], ada["final_score"]) == (late, DAY, 0.1, 0.45)
    assert (bob["submission"], bob["score"], bob["final_score"]) == (first, 0.8, 0.8)
    assert (bob["attempts_used"], bob["pending"], bob["verdict"]) == (3, 1, "fail")
    latest = listed(bench, "view=latest")["grades"][1]
    assert (latest["submission"], latest["late_seconds"], latest["final_score"]) == (better, 2 * DAY, 0.76)


@both
def test_what_counts_is_the_courses_to_say(bench):
    scored(bench, "ada", 0.9)
    last = scored(bench, "ada", 0.2)
    assert listed(bench)["grades"][0]["score"] == 0.9
    ask(bench, counts=Counts.LATEST)
    assert listed(bench)["grades"][0]["submission"] == last
    assert listed(bench, "view=best")["grades"][0]["score"] == 0.9


@both
def test_a_failure_of_ours_replaces_no_grade_and_a_regrade_does(bench):
    ask(bench, counts=Counts.LATEST)
    scored(bench, "ada", 0.7)
    failed = scored(bench, "ada", None)
    [grade] = listed(bench)["grades"]
    assert (grade["score"], grade["attempts_used"]) == (0.7, 1)
    scored(bench, "ada", 0.4, run=_regrade(bench, failed))
    [grade] = listed(bench)["grades"]
    assert (grade["submission"], grade["score"], grade["attempts_used"]) == (failed, 0.4, 2)


@both
def test_as_submitted_shows_grades_without_what_regrades_changed(bench):
    submission = scored(bench, "ada", 0.7)
    scored(bench, "ada", 0.9, run=_regrade(bench, submission))
    assert [listed(bench, f"view={view}")["grades"][0]["score"] for view in ("best", "as_submitted")] == [0.9, 0.7]
    scored(bench, "ada", None, run=_regrade(bench, submission))
    assert [listed(bench, f"view={view}")["grades"][0]["score"] for view in ("best", "as_submitted")] == [0.9, 0.7]


def _regrade(bench, submission):
    answer = bench.client.request(
        "POST", f"/v1/submissions/{submission}/runs", headers=bench.auth("teacher"), json={"reason": "why"}
    )
    assert answer.status_code == 202, answer.text
    return bench.queue.submitted.pop()


@both
def test_a_regrade_long_after_is_as_late_as_the_submission_was(bench):
    ask(bench, due_at=bench.clock() + 1, late_policy=TENTH_A_DAY)
    submission = scored(bench, "ada", 0.7)
    bench.clock.now += 9 * DAY
    scored(bench, "ada", 0.9, run=_regrade(bench, submission))
    assert listed(bench)["grades"][0]["final_score"] == 0.9


@both
def test_pages_hold_every_student_once(bench):
    for student in ("cy", "ada", "Zoë", "bob", "émile"):
        scored(bench, student, 0.5)
    path, seen = "/v1/units/L0.0/grades?limit=2", []
    while path:
        answer = bench.get(path, "lms").json()
        seen.append([each["student"] for each in answer["grades"]])
        path = answer["next"]
    assert [len(page) for page in seen] == [2, 2, 1]
    assert sorted(itertools.chain(*seen)) == sorted(["cy", "ada", "Zoë", "bob", "émile"])


@both
def test_a_page_costs_as_many_queries_as_another(bench):
    def queries():
        asked = []

        def note(connection, cursor, statement, *rest):
            asked.append(statement)

        sa.event.listen(bench.engine, "before_cursor_execute", note)
        try:
            listed(bench)
        finally:
            sa.event.remove(bench.engine, "before_cursor_execute", note)
        return len(asked)

    bench.auth("teacher")
    scored(bench, "ada", 0.5)
    few = queries()
    for n in range(12):
        scored(bench, f"student {n}", 0.5)
    assert queries() == few


@both
def test_students_see_their_own_grades_by_unit(make_bench):
    bench = make_bench(samples.course(samples.unit("L0.0"), samples.unit("L0.1")))
    scored(bench, "ada", 0.5)
    scored(bench, "bob", 0.6)
    answer = bench.client.request("POST", "/v1/units/L0.1/submissions", headers=bench.auth("ada"), **samples.form())
    assert answer.status_code == 202
    own = bench.get("/v1/grades", "ada").json()["grades"]
    assert [(each["unit"], each["student"], each["score"]) for each in own] == [
        ("L0.0", "ada", 0.5),
        ("L0.1", "ada", None),
    ]
    assert bench.get("/v1/grades?student=ada", "lms").json()["grades"] == own
    assert bench.get("/v1/grades?student=bob", "ada").status_code == 403
    assert bench.get("/v1/grades", "teacher").json()["code"] == "student_missing"
    assert bench.get("/v1/grades", "cy").json()["grades"] == []


def test_classes_are_shown_to_teachers_and_learning_platforms_only(bench):
    assert [bench.get("/v1/units/L0.0/grades", who).status_code for who in ("nobody", "ada", "lms", "admin")] == [
        *(401, 403, 200, 200),
    ]


@pytest.mark.parametrize("query", ["course=spring", "view=worst", "limit=0", "after=%00", "course=%00"])
def test_what_cannot_be_asked_is_refused(bench, query):
    assert bench.get(f"/v1/units/L0.0/grades?{query}", "teacher").status_code == 422


@both
def test_another_courses_submissions_are_not_in_it(bench):
    with writing(bench.engine) as connection:
        connection.execute(tables.courses.insert().values(id="other", title="", created_at=0))
    scored(bench, "ada", 0.5)
    assert listed(bench, "course=other")["grades"] == []
    with reading(bench.engine) as connection:
        assert grades.of_student(connection, "other", "ada", None) == []

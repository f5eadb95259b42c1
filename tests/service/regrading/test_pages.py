"""A regrade from its form to its roll-back, as a teacher at a browser goes through it."""

import pytest

from grader.report import Verdict
from service.worker import FakeGrading
from tests.service import samples

HERE = "/courses/default/regrades"
EVIL = "<script>alert(1)</script>"


def grading(score, *survived):
    def answer(unit, submission, about, progress):
        verdict = Verdict.PASS if score == 1 else Verdict.FAIL
        return samples.report(about, unit.id, digest=submission.digest, verdict=verdict, score=score, survived=survived)

    return FakeGrading(answer)


@pytest.fixture
def teacher(bench):
    return bench.browser("tess", default="teacher")


@pytest.fixture
def batch(bench, teacher):
    """The path of a regrade of ada's and bob's submissions that was begun with the form, not tried yet."""
    for student in ("ada", "bob"):
        bench.submitted(student)
    bench.graded(bench.worker(grading(0.5, "m01")))
    bench.clock.now += 60
    answer = teacher.post(HERE, unit="L0.0", which="all", reason=EVIL)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def score(bench, student):
    [grade] = bench.get("/v1/grades?course=default", student).json()["grades"]
    return grade["final_score"]


def test_a_regrade_is_begun_watched_and_applied(bench, teacher, batch):
    trying = teacher.get(batch).text
    assert "0 of 2 submissions tried" in trying and "regrade.js" in trying
    bench.graded(bench.worker(grading(1.0)))
    ready = teacher.get(batch).text
    assert "Apply all 2" in ready and "regrade.js" not in ready and "came out otherwise by chance" in ready
    assert (score(bench, "ada"), score(bench, "bob")) == (0.5, 0.5)
    applied = teacher.post(batch, do="apply all")
    assert applied.status_code == 303
    assert "Applied: 2 submissions." in teacher.get(applied.headers["Location"]).text
    assert (score(bench, "ada"), score(bench, "bob")) == (1.0, 1.0)
    assert "2 applied" in teacher.get(HERE).text
    teacher.post(batch, do="rollback all")
    assert (score(bench, "ada"), score(bench, "bob")) == (0.5, 0.5)


def test_only_the_chosen_are_applied(bench, teacher, batch):
    bench.graded(bench.worker(grading(1.0)))
    moves = bench.get(f"/v1/regrades/{batch.rpartition('/')[2]}/moves").json()["moves"]
    ada = next(move["submission"] for move in moves if move["student"] == "ada")
    assert f'value="{ada}"' in teacher.get(batch).text
    teacher.post(batch, do="apply chosen", submission=ada)
    assert (score(bench, "ada"), score(bench, "bob")) == (1.0, 0.5)
    teacher.post(batch, do="apply chosen")  # none
    assert score(bench, "bob") == 0.5


def test_what_people_wrote_is_shown_as_text(bench, teacher, batch):
    for path in (HERE, batch):
        assert EVIL not in teacher.get(path).text and "&lt;script&gt;" in teacher.get(path).text


def test_no_unit_is_chosen_for_a_teacher(bench, teacher):
    select = teacher.get(HERE).text.partition('<select id="unit"')[2].partition("</select>")[0]
    assert '<option value="">Choose a unit</option>' in select and "selected" not in select
    assert teacher.post(HERE, unit="", which="all", reason="why not").status_code == 422


def test_a_form_that_lacks_something_comes_back_with_what_was_written(bench, teacher):
    bench.submitted("ada")
    bench.graded()
    answer = teacher.post(HERE, unit="L0.0", which="all", reason="")
    assert (answer.status_code, 'role="alert"' in answer.text) == (422, True)
    missing = teacher.post(HERE, unit="L0.0", which="chosen", submissions="0" * 32, reason="one is wrong")
    assert missing.status_code == 422 and "one is wrong" in missing.text


def test_a_grader_looks_and_decides_nothing(bench, batch):
    bench.graded(bench.worker(grading(1.0)))
    grader = bench.browser("gus", default="grader")
    assert "<button" not in grader.get(batch).text.partition("<main")[2].partition("</main>")[0]
    assert grader.post(batch, do="apply all").status_code == 403
    assert score(bench, "ada") == 0.5


def test_the_page_of_another_course_does_not_show_it(bench, teacher, batch):
    bench.client.request("PUT", "/v1/courses/other", headers=bench.auth("admin"), json={"title": "Other"})
    both = bench.browser("tom", default="teacher", other="teacher")
    assert both.get(batch.replace("default", "other")).status_code == 404

from datetime import UTC, datetime, timedelta

from grader.report import MutantStatus, Verdict
from service.classroom.answers import MatrixRow, MutantRow, OverviewAnswer, QueueHealth, ScoreBucket, SeriesPoint
from service.dashboard import drawings
from service.dashboard.at import At
from service.dashboard.charts import Tone
from service.dashboard.saying import Saying

AT, SAY = At("c", "u"), Saying()
START = datetime(2026, 7, 1, 18, tzinfo=UTC)
QUEUE = QueueHealth(waiting=0, running=0, oldest_seconds=0.0, workers=1, ready=1, missing=(), typical_seconds=None)


def answer(**more):
    values = {
        "course": "c",
        "unit": "u",
        "at": START,
        "students": 10,
        "began": 7,
        "passed": 4,
        "submissions": 20,
        "pending": 0,
        "failed": 0,
        "verdicts": {Verdict.PASS: 4, Verdict.FAIL: 3},
        "median_score": 0.8,
        "scores": tuple(ScoreBucket(low=n / 10, high=(n + 1) / 10, students=n) for n in range(10)),
        "by": "hour",
        "series": tuple(SeriesPoint(at=START + timedelta(hours=n), submissions=n, passed=n // 2) for n in range(5)),
        "due_at": None,
        "closes_at": None,
        "queue": QUEUE,
    }
    return OverviewAnswer(**{**values, **more})


def mutant(mid, share):
    return MutantRow(
        id=mid,
        tier="semantic",
        category="value",
        required=False,
        public="",
        private="",
        graded=4,
        killed=round(4 * share) if share is not None else 0,
        share=share,
        statuses={MutantStatus.SURVIVED: 1},
    )


def row(student, cells):
    return MatrixRow(student=student, name="", submission="0" * 32, cells=cells, killed=0, total=len(cells))


def test_the_class_is_divided_into_three_parts_that_lead_to_their_students():
    drawn = drawings.overview(answer(), AT, SAY)
    assert "4 of 10 have passed, 3 are under way, 3 have not begun." in drawn.progress
    for state in ("passed", "under_way", "not_begun"):
        assert f"/courses/c/class/u/students?state={state}" in drawn.progress


def test_a_class_that_has_not_begun_is_drawn_without_numbers_that_are_not_there():
    none = answer(students=0, began=0, passed=0, submissions=0, verdicts={}, median_score=None, scores=(), series=())
    drawn = drawings.overview(none, AT, SAY)
    for each in (drawn.progress, drawn.verdicts, drawn.scores, drawn.series):
        assert "<svg" not in each


def test_an_hour_in_which_more_pass_than_submit_is_no_contradiction():
    """Who passes is counted when that submission was received; filters may leave submissions out."""
    point = SeriesPoint(at=START, submissions=1, passed=2)
    assert "Wed 18:00" in drawings.overview(answer(series=(point,)), AT, SAY).series


def test_the_matrix_begins_with_what_most_miss():
    rows, mutants = (row("ada", "K.T"), row("bob", "K.-")), (mutant("m1", 1.0), mutant("m2", 0.0), mutant("m3", 0.5))
    drawn = str(drawings.matrix(rows, mutants, SAY))
    assert drawn.index('data-id="m2"') < drawn.index('data-id="m3"') < drawn.index('data-id="m1"')
    ada = drawn[drawn.index("ada") :]
    assert ada.index('"bad">.<') < ada.index('"good">T<') < ada.index('"good">K<')


def test_a_queue_without_a_worker_is_said_to_stand_still_and_why():
    said = drawings.queue(QUEUE.model_copy(update={"ready": 0, "waiting": 3, "missing": ("docker: gone",)}), SAY)
    assert said.tone is Tone.BAD
    assert "3 wait" in said.sentence and "docker: gone" in said.sentence


def test_a_queue_that_runs_says_how_long_the_oldest_waits():
    said = drawings.queue(QUEUE.model_copy(update={"waiting": 2, "oldest_seconds": 61.0, "typical_seconds": 9.0}), SAY)
    assert said.tone is Tone.GOOD
    assert "1 min" in said.sentence and "9.0 s" in said.sentence

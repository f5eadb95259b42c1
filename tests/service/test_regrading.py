"""Batches of regrades: tried beside what counts, then applied, dropped or rolled back; who moves, and why."""

import json
from dataclasses import replace

import pytest

from grader.digest import digest_of
from grader.errors import OracleError
from grader.report import EnvironmentPart, Integrity, MutantStatus, Verdict
from service import database, outbox, runs, tables
from service.regrading import decisions, trials, versions
from service.submissions import PRIORITY_CLASS
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases

HERE = "/v1/regrades"
BEFORE = samples.unit()


def state(unit, name):
    """The unit with a digest that stands for what it is made of."""
    return replace(unit, digest=digest_of([(name, repr(versions.parts_of(unit)).encode())]))


OLD = state(BEFORE, "unit")
[S01, M01] = BEFORE.mutants
NEW = state(replace(BEFORE, mutants=(S01, replace(M01, files={samples.PATH: b"other"}))), "unit")


def environment(image="sha256:1"):
    return EnvironmentPart(
        sandbox="docker",
        isolated=True,
        image_id=image,
        python="3.11",
        numpy="2",
        pytest="9",
        hypothesis="6",
        grader="1",
        limits={"tests": 200},
    )


def grading(score, *survived, image="sha256:1"):
    """Gives everyone this score, and says by what it was made."""

    def answer(unit, submission, about, progress):
        verdict = Verdict.PASS if score == 1 else Verdict.FAIL
        made = samples.report(about, unit.id, digest=submission.digest, verdict=verdict, score=score, survived=survived)
        by = Integrity(seed=7, digests={"unit": unit.digest})
        return made.model_copy(update={"integrity": by, "environment": environment(image)})

    return FakeGrading(answer)


def fails_for_us(unit, submission, about, progress):
    raise OracleError("not today")


@pytest.fixture
def grade(bench):
    """Grade what is enqueued by a state of the unit."""

    def grade(made, unit=OLD):
        bench.stop.clear()
        bench.course = samples.course(unit)
        bench.graded(bench.worker(made))

    return grade


@pytest.fixture
def sent(bench, grade):
    """Submissions of these students, graded by the old state of the unit."""

    def sent(*students, score=0.5, survived=("m01",)):
        ids = [bench.submitted(student) for student in students]
        grade(grading(score, *survived))
        return ids

    return sent


@pytest.fixture
def regrade(bench):
    def regrade(who="teacher", **body):
        bench.clock.now += 60
        body = {"unit": "L0.0", "reason": "a mutant was wrong", **body}
        return bench.client.request("POST", HERE, headers=bench.auth(who), json=body)

    return regrade


@pytest.fixture
def decide(bench):
    def decide(batch, what, submissions=None, who="teacher"):
        path = f"{HERE}/{batch}/{what}"
        answer = bench.client.request("POST", path, headers=bench.auth(who), json={"submissions": submissions})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return decide


@pytest.fixture
def tried(bench, sent, regrade, grade):
    """A batch of a submission each of ada and bob, tried by the new state of the unit: both now pass."""
    ids = sent("ada", "bob")
    batch = regrade().json()["id"]
    grade(grading(1.0), NEW)
    return batch, ids


def progress(bench, batch):
    answer = bench.get(f"{HERE}/{batch}", "teacher").json()
    return answer["stage"], {name: count for name, count in answer["progress"].items() if count}


def score(bench, submission, who="ada"):
    return bench.get(f"/v1/submissions/{submission}/report", who).json()["score"]


def told(bench):
    """Students whom a platform would be told of again."""
    return sorted(row.student for row in bench.rows(tables.deliveries) if row.revision > 1)


# -- trying ----------------------------------------------------------------------------------------------------------


def test_a_regrade_is_tried_without_anybody_noticing(bench, tried):
    batch, (ada, bob) = tried
    assert progress(bench, batch) == ("ready", {"total": 2, "done": 2, "moved": 2})
    assert (score(bench, ada), score(bench, bob, "bob")) == (0.5, 0.5)
    assert [row.action for row in bench.rows(tables.audit)] == ["regrade.create"]
    for who in ("ada", "lms"):
        assert [run["kind"] for run in bench.get(f"/v1/submissions/{ada}/runs", who).json()["runs"]] == ["first"]
    shown = bench.get(f"/v1/submissions/{ada}/runs", "teacher").json()["runs"]
    assert [(run["kind"], run["counts"], run["score"]) for run in shown] == [
        ("first", True, 0.5),
        ("trial", False, 1.0),
    ]
    trial = shown[1]["links"]["report"]
    assert (bench.get(trial, "teacher").json()["score"], bench.get(trial, "ada").status_code) == (1.0, 404)
    grades = bench.get("/v1/units/L0.0/grades", "teacher").json()["grades"]
    assert [grade["final_score"] for grade in grades] == [0.5, 0.5]


def test_who_moves_and_why_is_told_by_submission_and_by_student(bench, tried):
    batch, (ada, bob) = tried
    moves = bench.get(f"{HERE}/{batch}/moves?moved=true", "teacher").json()["moves"]
    assert {move["submission"]: move["student"] for move in moves} == {ada: "ada", bob: "bob"}
    for move in moves:
        why = move["why"]
        assert (why["score_before"], why["score_after"]) == (0.5, 1.0)
        assert (why["causes"], why["changed"]) == (["mutants"], ["mutants m01: changed"])
        assert {"kind": "mutant", "name": "m01", "before": "survived", "after": "killed"} in why["differences"]
    students = bench.get(f"{HERE}/{batch}/students", "teacher").json()["students"]
    assert [(each["student"], each["before"]["final_score"], each["after"]["final_score"]) for each in students] == [
        ("ada", 0.5, 1.0),
        ("bob", 0.5, 1.0),
    ]


def test_a_student_moves_only_if_the_grade_does(bench, sent, regrade, grade):
    sent("ada", score=1.0, survived=())
    bench.clock.now += 60
    [worse] = sent("ada", score=0.25)
    batch = regrade(which="chosen", submissions=[worse]).json()["id"]
    grade(grading(0.75))
    assert progress(bench, batch)[1]["moved"] == 1
    assert bench.get(f"{HERE}/{batch}/students", "teacher").json()["students"] == []


@pytest.mark.parametrize(("which", "count"), [("all", 3), ("latest", 2)])
def test_all_submissions_or_the_latest_of_each_student_are_tried(bench, sent, regrade, which, count):
    sent("ada", "bob")
    bench.clock.now += 60
    sent("ada")
    bench.submitted("zoe")  # not graded yet
    answer = regrade(which=which)
    assert answer.status_code == 202 and answer.headers["Location"].endswith(answer.json()["id"])
    assert answer.json()["progress"]["total"] == count


def test_what_cannot_be_regraded_is_said(bench, sent, regrade):
    assert regrade().json()["code"] == "nothing_to_regrade"
    [ada] = sent("ada")
    missing = regrade(which="chosen", submissions=[ada, "0" * 32])
    assert (missing.json()["code"], missing.json()["submissions"]) == ("submissions_unknown", ["0" * 32])
    assert regrade(course="nowhere").json()["code"] == "course_unknown"
    assert regrade(unit="L9.9").json()["code"] == "unit_unknown"
    assert regrade(which="chosen").status_code == regrade(submissions=[ada]).status_code == 422
    assert regrade(reason=" ").status_code == 422
    assert bench.rows(tables.regrades) == []


def test_trials_go_behind_everything_and_only_a_few_wait_in_the_queue(bench, sent, regrade, monkeypatch):
    monkeypatch.setattr(trials, "MOST_WAITING", 2)
    sent("ada", "bob", "cid", "zoe")
    batch = regrade().json()["id"]
    assert progress(bench, batch)[1] == {"total": 4, "waiting": 2, "queued": 2}
    waiting = [row for row in bench.rows(tables.runs) if row.kind == runs.TRIAL]
    assert all(row.priority >= 3 * PRIORITY_CLASS for row in waiting)
    with database.writing(bench.engine) as connection:
        assert trials.feed(connection, bench.clock()) == {}
    bench.graded(bench.worker(grading(1.0)))
    with database.writing(bench.engine) as connection:
        assert len(trials.feed(connection, bench.clock())) == 2
        assert not trials.waits(connection)


def test_a_trial_neither_repeats_a_report_nor_is_repeated(make_bench):
    bench = make_bench(cache=True)
    submission = bench.submitted("ada")

    def conditions(made):
        made.conditions = "c"
        return made

    bench.graded(bench.worker(conditions(grading(0.5))))
    body = {"unit": "L0.0", "reason": "look again"}
    bench.client.request("POST", HERE, headers=bench.auth("teacher"), json=body)
    bench.graded(bench.worker(conditions(grading(1.0))))
    first, trial = bench.get(f"/v1/submissions/{submission}/runs", "teacher").json()["runs"]
    assert (trial["score"], trial["cached"]) == (1.0, False)
    again = bench.submitted("bob")
    bench.graded(bench.worker(conditions(grading(0.0))))
    assert bench.get(f"/v1/submissions/{again}/report", "bob").json()["score"] == first["score"] == 0.5


def test_a_trial_that_we_fail_is_told_and_cannot_be_applied(make_bench):
    bench = make_bench(max_attempts=1)
    submission = bench.submitted("ada")
    bench.graded(bench.worker(grading(0.5)))
    body = {"unit": "L0.0", "reason": "look again"}
    batch = bench.client.request("POST", HERE, headers=bench.auth("teacher"), json=body).json()["id"]
    bench.graded(bench.worker(FakeGrading(fails_for_us)))
    assert progress(bench, batch) == ("decided", {"total": 1, "failed": 1})
    applied = bench.client.request("POST", f"{HERE}/{batch}/apply", headers=bench.auth("teacher"), json={}).json()
    assert applied["submissions"] == 0
    assert score(bench, submission) == 0.5


def test_a_submission_can_be_regraded_alone_while_its_trial_waits(bench, sent, regrade):
    [ada] = sent("ada")
    regrade()
    alone = {"json": {"reason": "alone"}}
    answer = bench.client.request("POST", f"/v1/submissions/{ada}/runs", headers=bench.auth("teacher"), **alone)
    assert answer.status_code == 202


# -- deciding --------------------------------------------------------------------------------------------------------


def connect(bench, *students):
    with database.writing(bench.engine) as connection:
        for student in students:
            outbox.connect(
                connection,
                platform="lms",
                line_item="https://lms.example/1",
                recipient=student,
                course="default",
                unit="L0.0",
                student=student,
                now=bench.clock(),
            )


def test_what_is_applied_counts_and_everybody_concerned_is_told_once(bench, tried, decide):
    batch, (ada, bob) = tried
    connect(bench, "ada", "bob", "zoe")
    done = decide(batch, "apply")
    assert (done["submissions"], done["stale"], done["regrade"]["stage"]) == (2, 0, "decided")
    assert (score(bench, ada), score(bench, bob, "bob")) == (1.0, 1.0)
    assert told(bench) == ["ada", "bob"]
    first, second = bench.get(f"/v1/submissions/{ada}/runs", "ada").json()["runs"]
    assert (first["counts"], second["kind"], second["counts"]) == (False, "regrade", True)
    assert second["reason"] == "a mutant was wrong"
    again = decide(batch, "apply")
    assert again["submissions"] == 0 and {row.revision for row in bench.rows(tables.deliveries)} == {1, 2}
    changes = [json.loads(row.detail) for row in bench.rows(tables.audit) if row.action == "grade.change"]
    assert [(each["before"]["score"], each["after"]["score"], each["regrade"]) for each in changes] == [
        (0.5, 1.0, batch)
    ] * 2


def test_only_what_is_chosen_is_applied_and_the_rest_can_be_dropped(bench, tried, decide):
    batch, (ada, bob) = tried
    assert decide(batch, "apply", [ada])["regrade"]["stage"] == "ready"
    assert decide(batch, "drop")["submissions"] == 1
    assert (score(bench, ada), score(bench, bob, "bob")) == (1.0, 0.5)
    assert progress(bench, batch) == ("decided", {"total": 2, "applied": 1, "dropped": 1})
    assert decide(batch, "apply")["submissions"] == 0


def test_what_counted_before_counts_again_when_it_is_rolled_back(bench, tried, decide):
    batch, (ada, bob) = tried
    connect(bench, "ada", "bob")
    decide(batch, "apply")
    done = decide(batch, "rollback", [ada])
    assert done["submissions"] == 1
    assert (score(bench, ada), score(bench, bob, "bob")) == (0.5, 1.0)
    revisions = {row.student: row.revision for row in bench.rows(tables.deliveries)}
    assert (revisions["ada"], revisions["bob"]) == (3, 2)
    last = [row for row in bench.rows(tables.audit) if row.action == "grade.change"][-1]
    assert [json.loads(last.detail)[when]["score"] for when in ("before", "after")] == [1.0, 0.5]
    assert decide(batch, "rollback")["submissions"] == 1


def test_a_submission_that_was_regraded_meanwhile_is_left_alone(bench, tried, decide, grade):
    batch, (ada, bob) = tried
    alone = {"json": {"reason": "alone"}}
    bench.client.request("POST", f"/v1/submissions/{ada}/runs", headers=bench.auth("teacher"), **alone)
    grade(grading(0.75))
    moves = {each["submission"]: each["stale"] for each in bench.get(f"{HERE}/{batch}/moves").json()["moves"]}
    assert moves == {ada: True, bob: False}
    done = decide(batch, "apply")
    assert (done["submissions"], done["stale"]) == (1, 1)
    assert (score(bench, ada), score(bench, bob, "bob")) == (0.75, 1.0)


def test_of_two_batches_only_one_is_applied_to_a_submission(bench, sent, regrade, grade, decide):
    [ada] = sent("ada")
    first, second = regrade().json()["id"], regrade().json()["id"]
    grade(grading(1.0), NEW)
    assert decide(second, "apply")["submissions"] == 1
    assert (decide(first, "apply")["submissions"], decide(first, "apply")["stale"]) == (0, 1)
    assert decide(first, "rollback")["submissions"] == 0
    assert decide(second, "rollback")["submissions"] == 1
    assert score(bench, ada) == 0.5


def test_dropping_stops_what_has_not_ended(bench, sent, regrade, decide, monkeypatch):
    monkeypatch.setattr(trials, "MOST_WAITING", 1)
    sent("ada", "bob")
    batch = regrade().json()["id"]
    assert decide(batch, "drop")["submissions"] == 2
    [trial] = [row for row in bench.rows(tables.runs) if row.kind == runs.TRIAL]
    assert trial.status == "cancelled"
    bench.graded(bench.worker(grading(1.0)))
    assert progress(bench, batch) == ("decided", {"total": 2, "dropped": 2})


def test_a_trial_that_was_running_when_it_was_dropped_changes_nothing(bench, sent, regrade, decide):
    [ada] = sent("ada")
    batch = regrade().json()["id"]
    [run_id] = bench.queue.submitted
    with database.writing(bench.engine) as connection:
        claimed = runs.claim(connection, run_id, "worker-1", bench.clock())
    decide(batch, "drop")
    with database.writing(bench.engine) as connection:
        assert runs.asked_to_stop(connection, "worker-1") == [run_id]
        report = samples.report(samples.about(ada), score=1.0)
        assert runs.finish(connection, claimed, report, bench.clock())
    assert decide(batch, "apply")["submissions"] == 0
    assert score(bench, ada) == 0.5


def test_a_large_batch_is_decided_in_steps(bench, tried, decide, monkeypatch):
    monkeypatch.setattr(decisions, "AT_A_TIME", 1)
    batch, _ = tried
    assert decide(batch, "apply")["submissions"] == 2
    steps = [row for row in bench.rows(tables.audit) if row.action == "regrade.apply"]
    assert [json.loads(row.detail)["submissions"] for row in steps] == [1, 1]


def test_a_grade_by_hand_survives_and_its_student_does_not_move(bench, tried, decide):
    batch, _ = tried
    by_hand = {"json": {"score": 0.9, "reason": "oral exam"}}
    path = "/v1/courses/default/units/L0.0/overrides/ada"
    bench.client.request("PUT", path, headers=bench.auth("teacher"), **by_hand)
    decide(batch, "apply")
    grades = bench.get("/v1/units/L0.0/grades", "teacher").json()["grades"]
    assert {grade["student"]: grade["final_score"] for grade in grades} == {"ada": 0.9, "bob": 1.0}
    as_submitted = bench.get("/v1/units/L0.0/grades?view=as_submitted", "teacher").json()["grades"]
    assert {grade["student"]: grade["final_score"] for grade in as_submitted} == {"ada": 0.5, "bob": 0.5}


def test_what_a_batch_holds_of_a_student_goes_with_the_student(bench, tried):
    batch, _ = tried
    assert bench.client.request("DELETE", "/v1/students/ada", headers=bench.auth("admin")).status_code == 200
    assert progress(bench, batch)[1]["total"] == 1


# -- versions --------------------------------------------------------------------------------------------------------


def test_states_of_a_unit_are_kept_with_what_they_changed(bench, tried):
    found = bench.get("/v1/units/L0.0/versions", "teacher").json()["versions"]
    assert [each["digest"] for each in found] == [OLD.digest, NEW.digest]
    assert found[0]["changed"] == []
    assert found[1]["changed"] == [{"kind": "mutants", "name": "m01", "how": "changed"}]


def test_a_new_image_is_a_version_and_a_cause(bench, sent, regrade, grade):
    sent("ada")
    batch = regrade().json()["id"]
    grade(grading(1.0, image="sha256:2"))
    [move] = bench.get(f"{HERE}/{batch}/moves", "teacher").json()["moves"]
    assert (move["why"]["causes"], move["why"]["changed"]) == (["image"], ["image sha256:2"])
    assert [each["image_changed"] for each in bench.get("/v1/units/L0.0/versions").json()["versions"]] == [False, True]


def test_what_comes_out_otherwise_though_nothing_changed_is_chance(bench, sent, regrade, grade):
    sent("ada")
    batch = regrade().json()["id"]
    grade(grading(0.75, "s01"))
    [move] = bench.get(f"{HERE}/{batch}/moves", "teacher").json()["moves"]
    assert (move["moved"], move["why"]["causes"]) == (True, ["chance"])


def test_what_comes_out_as_before_has_not_moved(bench, sent, regrade, grade):
    sent("ada")
    batch = regrade().json()["id"]
    grade(grading(0.5, "m01"), NEW)
    [move] = bench.get(f"{HERE}/{batch}/moves?moved=false", "teacher").json()["moves"]
    assert (move["moved"], move["why"]["causes"], move["why"]["differences"]) == (False, [], [])
    assert bench.get(f"{HERE}/{batch}/moves?moved=true", "teacher").json()["moves"] == []


def test_moves_come_by_pages(bench, tried):
    batch, ids = tried
    first = bench.get(f"{HERE}/{batch}/moves?limit=1", "teacher").json()
    second = bench.get(first["next"], "teacher").json()
    found = [each["submission"] for each in (*first["moves"], *second["moves"])]
    assert (sorted(found), second["next"]) == (sorted(ids), None)


def test_statuses_of_mutants_are_words_a_teacher_knows(bench, tried):
    batch, _ = tried
    moves = bench.get(f"{HERE}/{batch}/moves", "teacher").json()["moves"]
    said = {each["after"] for move in moves for each in move["why"]["differences"] if each["kind"] == "mutant"}
    assert said <= {status.value for status in MutantStatus}

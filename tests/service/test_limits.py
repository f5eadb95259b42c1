from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from service import limits, offerings, tables
from service.accounts import Account, Role
from service.audit import By
from service.database import reading, writing
from service.deadlines import Times
from service.offerings import Assignment, Extension
from service.problems import Problem

pytestmark = pytest.mark.both_databases

HOUR = 3_600


def ask(bench, **asked):
    times = Times(asked.pop("opens_at", None), asked.pop("due_at", None), asked.pop("closes_at", None))
    with writing(bench.engine) as connection:
        offerings.put_assignment(connection, "default", "L0.0", Assignment(times, **asked), By(None, bench.clock()))


def extend(bench, student, due_at=None, closes_at=None, extra_attempts=0):
    granted = Extension(student, due_at, closes_at, extra_attempts, "", "t", bench.clock())
    with writing(bench.engine) as connection:
        offerings.grant(connection, "default", "L0.0", granted, By(None, bench.clock()))


def end(bench, status, count=1):
    """The newest submissions of all come to this end."""
    newest = sa.select(tables.submissions.c.run).order_by(tables.submissions.c.received_at.desc()).limit(count)
    with reading(bench.engine) as connection:
        ids = connection.execute(newest).scalars().all()
    with writing(bench.engine) as connection:
        connection.execute(tables.runs.update().where(tables.runs.c.id.in_(ids)).values(status=status))


def another(**changed):
    """The newest submission once more: names of columns, and the query for their values."""
    table = tables.submissions
    changed |= {"id": "another", "run": "another"}
    values = [sa.literal(changed[c.name]) if c.name in changed else c for c in table.c]
    return [c.name for c in table.c], sa.select(*values).order_by(table.c.received_at.desc()).limit(1)


def submitted(bench, who="ada", **fields):
    answer = bench.post(who, **fields)
    bench.clock.now += 1
    return answer.status_code, answer.json().get("code")


def test_the_last_attempt_is_the_last_and_each_answer_says_what_is_left(bench):
    ask(bench, attempts=2)
    assert bench.get("/v1/units/L0.0", "ada").json()["attempts_left"] == 2
    assert [bench.post("ada").json()["attempts_left"] for _ in range(2)] == [1, 0]
    answer = bench.post("ada")
    assert (answer.status_code, answer.json()["code"], answer.json()["attempts_left"]) == (429, "attempts_used_up", 0)
    assert "Retry-After" not in answer.headers
    assert bench.get("/v1/units/L0.0", "ada").json()["attempts_left"] == 0
    assert bench.post("bob").json()["attempts_left"] == 1
    assert len(bench.rows(tables.submissions)) == len(bench.queue.submitted) == 3


def test_a_report_comes_with_what_is_left(bench):
    ask(bench, attempts=3)
    reports = [f"/v1/submissions/{bench.submitted('ada')}/report" for _ in range(2)]
    bench.graded()
    assert [bench.get(path, "ada").headers["Attempts-Left"] for path in reports] == ["1", "1"]
    ask(bench)
    assert "Attempts-Left" not in bench.get(reports[0], "ada").headers


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_what_we_failed_at_and_what_was_cancelled_uses_no_attempt(bench, status):
    ask(bench, attempts=1)
    assert submitted(bench) == (202, None)
    end(bench, status)
    assert bench.get("/v1/units/L0.0", "ada").json()["attempts_left"] == 1
    assert submitted(bench) == (202, None)
    assert submitted(bench) == (429, "attempts_used_up")


def test_an_extension_gives_attempts_to_one_student(bench):
    ask(bench, attempts=1)
    extend(bench, "ada", extra_attempts=2)
    assert [submitted(bench, "ada")[0] for _ in range(4)] == [202, 202, 202, 429]
    assert [submitted(bench, "bob")[0] for _ in range(2)] == [202, 429]


def test_the_hourly_limit_says_when_the_next_is_possible(bench):
    ask(bench, attempts_per_hour=2)
    bench.post("ada")
    bench.clock.now += 600
    bench.post("ada")
    answer = bench.post("ada")
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_per_hour")
    assert int(answer.headers["Retry-After"]) == answer.json()["retry_after_seconds"] == HOUR - 600
    assert (answer.json()["left_this_hour"], answer.json()["attempts_left"]) == (0, None)
    assert bench.get("/v1/units/L0.0", "ada").json()["assignment"]["retry_after_seconds"] == HOUR - 600
    bench.clock.now += HOUR - 600
    assert submitted(bench) == (202, None)
    assert submitted(bench) == (429, "too_many_per_hour")


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_the_hourly_limit_counts_what_uses_no_attempt(bench, status):
    ask(bench, attempts_per_hour=1)
    submitted(bench)
    end(bench, status)
    assert submitted(bench) == (429, "too_many_per_hour")


def test_between_two_attempts_lies_the_pause_but_not_after_a_failure_of_ours(bench):
    ask(bench, cooldown_seconds=60)
    assert bench.post("ada").status_code == 202
    bench.clock.now += 20
    answer = bench.post("ada")
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (429, "cooling_down", "40")
    assert submitted(bench, "bob") == (202, None)
    end(bench, "error", 2)
    assert submitted(bench) == (202, None)


def test_retry_after_waits_for_whatever_ends_last(bench):
    ask(bench, attempts_per_hour=1, cooldown_seconds=2 * HOUR)
    bench.post("ada")
    answer = bench.post("ada")
    assert (answer.json()["code"], answer.headers["Retry-After"]) == ("too_many_per_hour", str(2 * HOUR))


def test_before_it_opens_and_after_it_closes_nothing_is_taken_in(bench):
    now = bench.clock()
    ask(bench, opens_at=now + 10, due_at=now + 20, closes_at=now + 30)
    extend(bench, "ada", closes_at=now + 60)
    answer = bench.post("bob")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_open_yet")
    assert answer.json()["opens_at"].endswith("+00:00")
    bench.clock.now = now + 10
    assert submitted(bench, "bob") == (202, None)
    bench.clock.now = now + 30
    assert submitted(bench, "bob") == (202, None)
    assert [submitted(bench, who) for who in ("bob", "ada")] == [(403, "closed"), (202, None)]
    bench.clock.now = now + 61
    assert [submitted(bench, who) for who in ("bob", "ada")] == [(403, "closed")] * 2


def test_the_time_of_receipt_decides_whether_it_was_open(bench):
    now = bench.clock()
    ask(bench, closes_at=now)
    ada = Account("a", Role.STUDENT, "ada")
    rules = {"course": "default", "unit": "L0.0", "student": "ada", "usual": Assignment(), "now": now + HOUR}
    with writing(bench.engine) as connection:
        assert limits.check(connection, ada, received_at=now, **rules).counted
        with pytest.raises(Problem, match="closed"):
            limits.check(connection, ada, received_at=now + 1, **rules)


def test_a_repetition_answered_from_the_cache_needs_no_attempt_but_counts_within_the_hour(bench):
    ask(bench, attempts=1, attempts_per_hour=2, cooldown_seconds=60)
    submitted(bench)
    ada, now = Account("a", Role.STUDENT, "ada"), bench.clock()
    rules = {"course": "default", "unit": "L0.0", "student": "ada", "usual": Assignment()}
    with writing(bench.engine) as connection:
        allowed = limits.check(connection, ada, received_at=now, now=now, counted=False, **rules)
        assert (allowed.counted, allowed.attempts_left) == (False, 0)
        connection.execute(tables.submissions.insert().from_select(*another(counted=False)))
        with pytest.raises(Problem, match="hour"):
            limits.check(connection, ada, received_at=now, now=now, counted=False, **rules)


def test_a_learning_platform_is_held_to_the_students_limits_and_teachers_are_not(bench):
    ask(bench, attempts=1, closes_at=bench.clock() + 100)
    assert submitted(bench, "teacher", student="ada") == (202, None)
    assert bench.get("/v1/units/L0.0", "ada").json()["attempts_left"] == 1
    assert submitted(bench, "lms", student="ada") == (202, None)
    assert submitted(bench, "lms", student="ada") == (429, "attempts_used_up")
    assert submitted(bench, "ada") == (429, "attempts_used_up")
    assert submitted(bench, "teacher", student="ada") == (202, None)
    bench.clock.now += 100
    assert submitted(bench, "lms", student="bob") == (403, "closed")
    assert submitted(bench, "admin", student="bob") == (202, None)


def test_attempts_at_one_unit_and_course_are_not_those_at_another(bench):
    with writing(bench.engine) as connection:
        connection.execute(tables.courses.insert().values(id="other", title="", created_at=0))
    ask(bench, attempts=1)
    assert submitted(bench, course="other") == (202, None)
    assert submitted(bench) == (202, None)
    assert submitted(bench, course="other") == (202, None)


def test_a_setting_limits_units_nobody_has_said_anything_about(make_bench):
    bench = make_bench(attempts_per_hour=1)
    assert [submitted(bench)[0] for _ in range(2)] == [202, 429]
    ask(bench, attempts_per_hour=3)
    assert [submitted(bench)[0] for _ in range(3)] == [202, 202, 429]


def test_of_posts_at_the_same_time_only_as_many_are_taken_in_as_there_are_attempts(bench):
    ask(bench, attempts=5)
    for _ in range(3):
        assert bench.post("ada").status_code == 202
    for who in ("ada", "bob"):
        bench.auth(who)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: bench.post("ada").status_code, range(8)))
    assert sorted(answers) == [202, 202] + [429] * 6
    assert len(bench.rows(tables.submissions)) == 5


def test_posts_at_the_same_time_queue_up_behind_one_another(bench):
    bench.auth("ada")
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(lambda _: bench.post("ada").status_code, range(6))) == {202}
    assert sorted(row.priority for row in bench.rows(tables.runs)) == [1000 + n for n in range(6)]


def test_a_regrade_does_not_hold_its_student_back(bench):
    bench.submitted("ada")
    bench.graded()
    [first] = bench.rows(tables.runs)
    with writing(bench.engine) as connection:
        again = {**first._asdict(), "id": "again", "status": "queued", "kind": "regrade", "priority": 2000}
        connection.execute(tables.runs.insert().values(again))
    bench.submitted("ada")
    assert sorted(row.priority for row in bench.rows(tables.runs)) == [1000, 1000, 2000]

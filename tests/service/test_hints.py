from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier, Thread

import pytest

from service import hints as unlocking
from service import offerings, students, submissions
from service.accounts import Account, Role
from service.audit import By
from service.database import writing
from service.offerings import Assignment, HintLimits
from service.tables import audit, hints
from service.worker import FakeGrading
from tests.service import samples

pytestmark = pytest.mark.both_databases

HOUR = 3_600


def limit(bench, unlocks=None, per_hour=None, cooldown_seconds=None):
    asked = Assignment(hints=HintLimits(unlocks, per_hour, cooldown_seconds))
    with writing(bench.engine) as connection:
        offerings.put_assignment(connection, "default", "L0.0", asked, By(None, bench.clock()))


def graded(bench, who="ada", survived=("s01", "m01"), **fields):
    """A new submission whose tests leave these mutants alive."""
    bench.clock.now += 1
    submission = bench.submitted(who, **fields)
    bench.graded(bench.worker(FakeGrading(samples.surviving(*survived))))
    return submission


def unlock(bench, submission, mutant="m01", number=None, who="ada"):
    body = {"mutant": mutant} | ({"number": number} if number is not None else {})
    return bench.client.request("POST", f"/v1/submissions/{submission}/hints", headers=bench.auth(who), json=body)


def rate(bench, submission, mutant="m01", number=2, helpful=True, who="ada"):
    path = f"/v1/submissions/{submission}/hints/{mutant}/{number}/rating"
    return bench.client.request("PUT", path, headers=bench.auth(who), json={"helpful": helpful})


def board(bench, submission, who="ada"):
    answer = bench.get(f"/v1/submissions/{submission}/hints", who)
    assert answer.status_code == 200, answer.text
    return answer.json()


def code(answer):
    return answer.status_code, answer.json().get("code")


def texts(bench, submission, mutant="m01", who="ada"):
    [found] = [each for each in board(bench, submission, who)["mutants"] if each["mutant"] == mutant]
    return tuple(hint["text"] for hint in found["unlocked"])


@pytest.fixture
def free(bench):
    """A bench without limits."""
    limit(bench)
    return bench


# -- one after the other ---------------------------------------------------------------------------------------------


def test_a_survivor_begins_with_the_hint_of_the_report_and_says_how_many_are_left(bench):
    found = board(bench, submission := graded(bench, survived=("m01",)))
    assert (found["submission"], found["newest"]) == (submission, True)
    [survivor] = found["mutants"]
    assert (survivor["mutant"], survivor["category"], survivor["required"], survivor["left"]) == (
        "m01",
        "value",
        False,
        3,
    )
    assert survivor["unlocked"] == [{"number": 1, "text": "a sign", "unlocked_at": None, "helpful": None}]
    assert found["limits"] == {
        "unlocks": 20,
        "unlocks_used": 0,
        "unlocks_left": 20,
        "unlocks_per_hour": 6,
        "left_this_hour": 6,
        "cooldown_seconds": 60,
        "retry_after_seconds": 0,
    }


def test_hints_are_unlocked_one_after_the_other_until_there_is_none(free):
    submission = graded(free)
    answers = [unlock(free, submission) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 409]
    assert [(a.json()["hint"]["number"], a.json()["hint"]["text"], a.json()["left"]) for a in answers[:3]] == [
        (number, samples.HINTS["m01"][number - 1], 4 - number) for number in (2, 3, 4)
    ]
    assert answers[3].json()["code"] == "no_more_hints"
    assert texts(free, submission) == samples.HINTS["m01"]
    assert texts(free, submission, "s01") == ("doubling",)


def test_the_same_wish_twice_unlocks_one_hint_and_costs_one(bench):
    limit(bench, unlocks=5)
    submission = graded(bench)
    first, again = (unlock(bench, submission, number=2) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert again.json()["limits"]["unlocks_left"] == 4
    assert unlock(bench, submission, number=1).json()["hint"]["text"] == "a sign"
    assert code(unlock(bench, submission, number=4)) == (409, "hint_out_of_turn")
    assert unlock(bench, submission, number=4).json()["next"] == 3
    assert len(bench.rows(hints)) == 1


def test_what_is_unlocked_stays_for_the_next_submission(free):
    unlock(free, graded(free))
    second = graded(free, survived=("m01",))
    assert texts(free, second) == samples.HINTS["m01"][:2]
    assert unlock(free, second).json()["hint"]["number"] == 3


def test_a_mutant_that_was_caught_and_survives_again_has_its_hints_still(free):
    unlock(free, graded(free))
    assert board(free, graded(free, survived=()))["mutants"] == []
    assert texts(free, graded(free)) == samples.HINTS["m01"][:2]


# -- what can be hinted at -------------------------------------------------------------------------------------------


def test_only_survivors_of_the_newest_graded_submission_are_hinted_at(free):
    older = graded(free)
    newer = graded(free, survived=("s01",))
    assert [board(free, each)["newest"] for each in (older, newer)] == [False, True]
    assert code(unlock(free, older)) == (409, "not_newest")
    assert code(unlock(free, newer)) == (409, "mutant_not_surviving")
    assert code(unlock(free, newer, "m09")) == (404, "mutant_unknown")
    assert code(unlock(free, newer, "m/9")) == (422, "invalid_request")
    assert unlock(free, newer, "s01").json()["hint"]["text"] == "the double of 3"
    assert len(free.rows(hints)) == 1


def test_one_that_waits_is_not_yet_the_newest(free):
    submission = graded(free)
    free.clock.now += 1
    waiting = free.submitted("ada")
    assert code(unlock(free, waiting)) == (409, "report_not_ready")
    answer = free.get(f"/v1/submissions/{waiting}/hints", "ada")
    assert (code(answer), "Retry-After" in answer.headers) == ((409, "report_not_ready"), True)
    assert unlock(free, submission).status_code == 200


def test_a_submission_in_another_course_takes_nothing_from_this_one(free):
    answer = free.client.request("PUT", "/v1/courses/other", headers=free.auth("teacher"), json={"title": "Other"})
    assert answer.status_code == 200
    here, there = graded(free), graded(free, course="other")
    assert unlock(free, here).status_code == 200
    assert texts(free, there) == ("a sign",)


def test_one_student_sees_and_unlocks_nothing_of_anothers(free):
    submission = graded(free)
    unlock(free, submission)
    for answer in (
        free.get(f"/v1/submissions/{submission}/hints", "bob"),
        unlock(free, submission, who="bob"),
        rate(free, submission, who="bob"),
    ):
        assert code(answer) == (404, "submission_unknown")
    assert texts(free, graded(free, "bob"), who="bob") == ("a sign",)


def test_a_mutant_that_the_course_no_longer_has_is_hinted_at_no_more(free):
    submission = graded(free)
    unlock(free, submission, "s01")
    unit = free.course.units["L0.0"]
    fewer = replace(unit, mutants=tuple(mutant for mutant in unit.mutants if mutant.id == "m01"))
    free.app.state.service = replace(free.service, course=samples.course(fewer))
    assert [each["mutant"] for each in board(free, submission)["mutants"]] == ["m01"]
    assert code(unlock(free, submission, "s01")) == (404, "mutant_unknown")
    shorter = replace(fewer.mutants[0], ordered=("a sign",))
    unlock(free, submission)
    free.app.state.service = replace(free.service, course=samples.course(replace(unit, mutants=(shorter,))))
    assert texts(free, submission) == ("a sign",)
    assert code(unlock(free, submission)) == (409, "no_more_hints")


# -- limits ----------------------------------------------------------------------------------------------------------


def test_the_limit_in_all_is_met_without_a_time_to_come_back(bench):
    limit(bench, unlocks=2)
    submission = graded(bench)
    assert [unlock(bench, submission).json()["limits"]["unlocks_left"] for _ in range(2)] == [1, 0]
    answer = unlock(bench, submission)
    assert (code(answer), answer.json()["unlocks_left"]) == ((429, "hints_used_up"), 0)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "Retry-After" not in answer.headers
    assert unlock(bench, submission, number=3).status_code == 200  # has been unlocked
    assert code(unlock(bench, graded(bench), "s01")) == (429, "hints_used_up")


def test_a_teacher_can_do_without_hints(bench):
    limit(bench, unlocks=0)
    answer = unlock(bench, graded(bench))
    assert code(answer) == (429, "hints_used_up")
    assert "no hints" in answer.json()["detail"]


def test_the_hourly_limit_says_when_the_next_is_possible(bench):
    limit(bench, per_hour=2)
    submission = graded(bench)
    unlock(bench, submission)
    bench.clock.now += 600
    assert unlock(bench, submission).json()["limits"]["left_this_hour"] == 0
    answer = unlock(bench, submission)
    assert code(answer) == (429, "too_many_hints_per_hour")
    assert int(answer.headers["Retry-After"]) == answer.json()["retry_after_seconds"] == HOUR - 600
    assert board(bench, submission)["limits"]["retry_after_seconds"] == HOUR - 600
    bench.clock.now += HOUR - 600
    assert unlock(bench, submission).status_code == 200
    assert code(unlock(bench, submission, "s01")) == (429, "too_many_hints_per_hour")


def test_between_two_hints_lies_the_pause_whatever_the_mutant(bench):
    limit(bench, cooldown_seconds=60)
    submission = graded(bench)
    unlock(bench, submission)
    bench.clock.now += 20
    answer = unlock(bench, submission, "s01")
    assert (code(answer), answer.headers["Retry-After"]) == ((429, "hint_cooling_down"), "40")
    bench.clock.now += 40
    assert unlock(bench, submission, "s01").status_code == 200


def test_retry_after_waits_for_whatever_ends_last(bench):
    limit(bench, per_hour=1, cooldown_seconds=2 * HOUR)
    submission = graded(bench)
    unlock(bench, submission)
    answer = unlock(bench, submission)
    assert (code(answer), answer.headers["Retry-After"]) == ((429, "too_many_hints_per_hour"), str(2 * HOUR))


def test_where_no_teacher_says_anything_the_usual_limits_hold(bench):
    usual = HintLimits()
    submission = graded(bench)
    assert unlock(bench, submission).status_code == 200
    assert code(unlock(bench, submission)) == (429, "hint_cooling_down")
    assert usual.unlocks > usual.per_hour > 1


def test_teachers_are_not_limited_and_what_they_unlock_is_written_down(bench):
    limit(bench, unlocks=1)
    submission = graded(bench)
    for number in (2, 2, 3):
        assert unlock(bench, submission, number=number, who="teacher").status_code == 200
    found = [(row.student, row.object, row.detail) for row in bench.rows(audit) if row.action == "hint.unlock"]
    assert found == [("ada", submission, f'{{"mutant": "m01", "number": {number}}}') for number in (2, 3)]
    assert unlock(bench, submission).json()["limits"]["unlocks_left"] == 0
    assert texts(bench, submission) == samples.HINTS["m01"]


def test_a_learning_platform_unlocks_for_its_student_within_the_students_limits(bench):
    limit(bench, unlocks=1)
    submission = graded(bench, "lms", student="ada")
    assert unlock(bench, submission, who="lms").status_code == 200
    assert code(unlock(bench, submission, who="ada")) == (429, "hints_used_up")


def test_nobodys_submission_has_nobody_to_unlock_for(free):
    submission = graded(free, "teacher")
    assert board(free, submission, "teacher")["newest"] is False
    assert code(unlock(free, submission, who="teacher")) == (409, "no_student")


# -- at the same time ------------------------------------------------------------------------------------------------


def at_once(count, ask):
    """Ask so many times, all beginning together."""
    ready = Barrier(count)

    def one(number):
        ready.wait(30)
        return ask(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_wishes_at_the_same_time_never_pass_the_limit_and_skip_no_hint(bench):
    limit(bench, unlocks=3)
    submission = graded(bench)
    unlock(bench, submission, "s01")
    answers = at_once(8, lambda _: unlock(bench, submission))
    assert sorted(answer.status_code for answer in answers) == [200] * 2 + [429] * 6
    assert sorted(a.json()["hint"]["number"] for a in answers if a.status_code == 200) == [2, 3]
    assert sorted((row.mutant, row.number) for row in bench.rows(hints)) == [("m01", 2), ("m01", 3), ("s01", 2)]


def test_wishes_for_one_hint_at_the_same_time_unlock_it_once(bench):
    limit(bench, unlocks=3)
    submission = graded(bench)
    answers = at_once(6, lambda _: unlock(bench, submission, number=2))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["hint"]["unlocked_at"] for answer in answers}) == 1
    assert board(bench, submission)["limits"]["unlocks_left"] == 2


def test_the_pause_holds_between_wishes_for_different_mutants_at_the_same_time(bench):
    limit(bench, cooldown_seconds=60)
    submission = graded(bench)
    answers = at_once(2, lambda number: unlock(bench, submission, ("s01", "m01")[number]))
    assert sorted(answer.status_code for answer in answers) == [200, 429]
    assert len(bench.rows(hints)) == 1


def test_an_erasure_waits_for_a_hint_that_is_being_unlocked_and_takes_it_along(free):
    submission, platform = graded(free, "lms", student="ada"), Account("lms", Role.LMS)
    with writing(free.engine) as connection:
        stored = submissions.find(connection, submission)
        opened = unlocking.unlock(
            connection, platform, stored, free.course.units["L0.0"], "m01", None, free.clock(), Assignment()
        )
        assert opened.new
        thread = Thread(target=lambda: students.erase(free.engine, free.queue, "ada", who=None))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    thread.join(30)
    assert free.rows(hints) == []
    assert code(unlock(free, submission, who="lms")) == (404, "submission_unknown")


# -- ratings ---------------------------------------------------------------------------------------------------------


def test_a_rating_is_noted_changed_and_shown(free):
    submission = graded(free)
    unlock(free, submission)
    assert rate(free, submission).json()["helpful"] is True
    answer = rate(free, submission, helpful=False)
    assert answer.json() | {"unlocked_at": None} == {
        "number": 2,
        "text": "a negative number",
        "unlocked_at": None,
        "helpful": False,
    }
    [_, survivor] = board(free, submission)["mutants"]
    assert [hint["helpful"] for hint in survivor["unlocked"]] == [None, False]


def test_the_hint_in_the_report_can_be_rated_and_costs_nothing(bench):
    limit(bench, unlocks=1)
    submission = graded(bench)
    assert rate(bench, submission, number=1).json()["helpful"] is True
    assert board(bench, submission)["limits"]["unlocks_left"] == 1
    assert unlock(bench, submission).json()["hint"]["number"] == 2


def test_what_is_locked_cannot_be_rated(free):
    submission = graded(free, survived=("m01",))
    assert code(rate(free, submission)) == (404, "hint_locked")
    assert code(rate(free, submission, number=9)) == (404, "hint_locked")
    assert code(rate(free, submission, "s01", number=1)) == (409, "mutant_not_surviving")
    assert code(rate(free, submission, "m09", number=1)) == (404, "mutant_unknown")
    assert code(rate(free, submission, number=0)) == (422, "invalid_request")
    assert free.rows(hints) == []


def test_a_rating_given_late_is_taken_of_the_submission_that_showed_the_hint(free):
    older = graded(free)
    unlock(free, older)
    graded(free, survived=())
    assert rate(free, older).status_code == 200


# -- for teachers ----------------------------------------------------------------------------------------------------


def test_teachers_see_how_often_each_hint_was_unlocked_rated_and_followed_by_a_catch(free):
    ada, bob = graded(free), graded(free, "bob")
    for who, submission in (("ada", ada), ("bob", bob)):
        unlock(free, submission, who=who)
    unlock(free, ada)
    rate(free, ada, helpful=True)
    rate(free, bob, helpful=False, who="bob")
    rate(free, ada, number=1, helpful=False)
    graded(free, survived=("s01",))
    answer = free.get("/v1/units/L0.0/hints", "teacher").json()
    assert [each["mutant"] for each in answer["mutants"]] == ["s01", "m01"]
    rows = [
        (row["number"], row["unlocked"], row["helpful"], row["unhelpful"], row["caught"])
        for row in answer["mutants"][1]["hints"]
    ]
    assert rows == [(1, 0, 0, 1, 0), (2, 2, 1, 1, 1), (3, 1, 0, 0, 1), (4, 0, 0, 0, 0)]
    assert tuple(row["text"] for row in answer["mutants"][1]["hints"]) == samples.HINTS["m01"]


def test_of_another_course_nothing_is_counted(free):
    unlock(free, graded(free))

    def counts(query):
        answer = free.get(f"/v1/units/L0.0/hints{query}", "teacher").json()
        return sum(row["unlocked"] for each in answer["mutants"] for row in each["hints"])

    assert [counts(query) for query in ("", "?course=default", "?course=other")] == [1, 1, 0]

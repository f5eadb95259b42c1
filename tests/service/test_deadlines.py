import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.deadlines import Lateness, LatePolicy, Per, Times, extended, lateness

HOUR, DAY = 3_600.0, 86_400.0
DUE = 1_800_000_000.0
TENTH_A_DAY = LatePolicy(penalty=0.1, cap=0.5)

policies = st.builds(
    LatePolicy,
    penalty=st.floats(0, 1),
    per=st.sampled_from(Per),
    cap=st.floats(0, 1),
    grace_seconds=st.floats(0, 3 * DAY),
    zero_after_seconds=st.none() | st.floats(0, 10 * DAY),
)
moments = st.none() | st.floats(DUE - 30 * DAY, DUE + 30 * DAY)


@pytest.mark.parametrize(
    ("after", "penalty"),
    [(-DAY, 0), (0, 0), (0.001, 0.1), (DAY, 0.1), (DAY + 0.001, 0.2), (4.5 * DAY, 0.5), (300 * DAY, 0.5)],
)
def test_each_started_day_costs_up_to_the_cap(after, penalty):
    assert lateness(TENTH_A_DAY, DUE, DUE + after).penalty == pytest.approx(penalty)


def test_hours_are_counted_as_days_are():
    policy = LatePolicy(penalty=0.05, per=Per.HOUR)
    assert lateness(policy, DUE, DUE + 90 * 60).penalty == pytest.approx(0.1)
    assert lateness(policy, DUE, DUE + 30 * HOUR).penalty == 1


def test_within_the_grace_period_nothing_is_late_and_behind_it_all_is_counted():
    policy = LatePolicy(penalty=0.1, per=Per.HOUR, grace_seconds=600)
    assert lateness(policy, DUE, DUE + 600) == Lateness(0, 0)
    assert lateness(policy, DUE, DUE + 601) == Lateness(601, 0.1)


def test_after_a_time_nothing_is_left_whatever_the_cap():
    policy = LatePolicy(penalty=0.1, cap=0.3, zero_after_seconds=2 * DAY)
    assert lateness(policy, DUE, DUE + 2 * DAY).penalty == pytest.approx(0.2)
    assert lateness(policy, DUE, DUE + 2 * DAY + 1) == Lateness(2 * DAY + 1, 1)


def test_without_a_policy_lateness_is_said_but_costs_nothing():
    assert lateness(LatePolicy(), DUE, DUE + 9) == Lateness(9, 0)


def test_without_a_due_time_nothing_is_late():
    assert lateness(TENTH_A_DAY, None, DUE) == Lateness(0, 0)


def test_the_penalty_is_a_share_of_what_was_scored():
    assert Lateness(1, 0.25).applied(0.8) == pytest.approx(0.6)


@given(policies, st.floats(-10 * DAY, 400 * DAY), st.floats(0, 10 * DAY), st.floats(0, 1))
def test_waiting_longer_never_gains(policy, after, more, score):
    before, later = (lateness(policy, DUE, DUE + each) for each in (after, after + more))
    assert 0 <= later.applied(score) <= before.applied(score) <= score


@given(st.builds(Times, moments, moments, moments), moments, moments)
def test_an_extension_never_takes_time_away(times, due_at, closes_at):
    def ends(moment):
        return math.inf if moment is None else moment

    got = extended(times, due_at, closes_at)
    assert got.opens_at == times.opens_at
    assert ends(got.due_at) >= ends(times.due_at)
    assert ends(got.closes_at) >= ends(times.closes_at)
    if due_at is not None:
        assert ends(got.closes_at) >= due_at, "what is not yet due can be submitted"
    assert extended(times, None, None) == times


@pytest.mark.parametrize(
    "wrong",
    [{"penalty": 1.1}, {"penalty": -0.1}, {"cap": 2}, {"per": "week"}, {"grace_seconds": -1}, {"penality": 0.1}],
)
def test_a_policy_that_means_nothing_is_refused(wrong):
    with pytest.raises(ValidationError):
        LatePolicy.model_validate(wrong)


@pytest.mark.parametrize("policy", [LatePolicy(), TENTH_A_DAY, LatePolicy(zero_after_seconds=0)])
def test_a_policy_is_the_same_when_stored_and_read(policy):
    assert LatePolicy.model_validate_json(policy.model_dump_json()) == policy

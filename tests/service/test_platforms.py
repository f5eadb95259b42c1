"""Scores as platforms read them, and what their answers mean."""

import json

import pytest

from service.lti import ags
from service.outbound import Reach
from service.outbox.backoff import Kind
from service.outbox.changes import Channel
from service.outbox.platforms import Platforms, message, of_answer
from tests.service.test_outbox import Outbox


@pytest.fixture
def box(make_bench):
    return Outbox(make_bench(cache=False))


def bodies(box):
    return [json.loads(ags.body(message("user-ada", post))) for post in box.book.posts]


def test_every_message_has_what_platforms_refuse_to_do_without(box):
    box.connect("ada")
    box.bench.submitted("ada")
    box.send()
    box.bench.graded()
    box.send(seconds=5)
    pending, graded = bodies(box)
    for body in (pending, graded):
        assert {"userId", "timestamp", "activityProgress", "gradingProgress"} <= set(body)
    assert (pending["gradingProgress"], "scoreGiven" in pending) == ("Pending", False)
    assert (graded["gradingProgress"], graded["scoreGiven"], graded["scoreMaximum"]) == ("FullyGraded", 100, 100)
    assert graded["submission"]["submittedAt"] == graded[ags.CANVAS_SUBMISSION]["submitted_at"]
    assert graded["submission"]["submittedAt"] < graded["timestamp"]


def test_a_platform_that_ignores_what_waits_gets_a_new_submission_with_the_first_score(box):
    box.connect("ada")
    box.bench.submitted("ada")
    box.send()
    box.bench.graded()
    box.send(seconds=5)
    assert [body[ags.CANVAS_SUBMISSION]["new_submission"] for body in bodies(box)][-1] is True


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (ags.Kind.TAKEN, 200, (Kind.ARRIVED, False)),
        (ags.Kind.STALE, 409, (Kind.STALE, False)),
        (ags.Kind.LATER, None, (Kind.LATER, True)),
        (ags.Kind.LATER, 503, (Kind.LATER, True)),
        (ags.Kind.LATER, 429, (Kind.LATER, False)),
        (ags.Kind.REFUSED, 422, (Kind.REFUSED, False)),
    ],
)
def test_an_answer_says_whether_the_score_may_have_arrived(kind, status, expected):
    found = of_answer(ags.Outcome(kind, status, "why", 7.0, of_all=True))
    assert (found.kind, found.may_have_arrived) == expected
    assert (found.status, found.message, found.retry_after_seconds, found.of_all) == (status, "why", 7.0, True)


def test_a_platform_that_is_no_longer_registered_is_told_nothing(box):
    box.sender._channels = {Channel.AGS: Platforms(box.bench.engine, Reach.of_platforms(box.bench.settings))}
    box.connect("ada")
    box.graded("ada")
    box.send()
    assert (box.row().state, "registered" in box.row().error) == ("failed", True)

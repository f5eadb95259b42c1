"""A class's grades and the gradebook that is told of them: once, with the right times, whatever happens meanwhile."""

import io
import json
import threading
import zipfile

import pytest
import sqlalchemy as sa

from service import offerings, outbox, students, tables
from service.audit import By
from service.database import reading, writing
from service.deadlines import LatePolicy, Times
from service.offerings import Assignment, Extension
from service.outbox import backoff, deliveries
from service.outbox.backoff import Kind, Outcome
from service.outbox.changes import Channel, State
from service.outbox.channels import FakeChannel, Scores
from service.outbox.deliveries import Filter, Target
from service.outbox.sender import Sender
from service.worker import FakeGrading
from tests.service import samples
from tests.service.receivers import ARRIVED, BUSY, REFUSED, SILENT, Gradebook

pytestmark = pytest.mark.both_databases

LINE_ITEM = "https://lms.example/line/1"


class Outbox:
    """A bench whose deliveries go to a gradebook."""

    def __init__(self, bench):
        self.bench = bench
        self.book = Gradebook()
        self.sender = self.another("sender-1")

    def another(self, name, lease_seconds=60.0):
        channels = {Channel.AGS: FakeChannel(Scores(), self.book)}
        return Sender(
            self.bench.engine,
            channels,
            name=name,
            stop=threading.Event(),
            clock=self.bench.clock,
            chance=lambda: 0.0,
            lease_seconds=lease_seconds,
        )

    def connect(self, *names, unit="L0.0", line_item=LINE_ITEM):
        with writing(self.bench.engine) as connection:
            for name in names:
                outbox.connect(
                    connection,
                    platform="moodle",
                    line_item=line_item,
                    recipient=f"user-{name}",
                    course="default",
                    unit=unit,
                    student=name,
                    now=self.bench.clock(),
                )

    def graded(self, who="ada", *survived):
        """A submission that was graded, of which the gradebook was told."""
        submission = self.bench.submitted(who)
        self.bench.graded(self.bench.worker(FakeGrading(scored(1 - len(survived) / 2))))
        return submission

    def send(self, seconds=0.0):
        self.bench.clock.now += seconds
        self.sender.send_all()

    def states(self):
        return {row.student: row.state for row in self.bench.rows(tables.deliveries)}

    def row(self, student="ada"):
        [row] = [row for row in self.bench.rows(tables.deliveries) if row.student == student]
        return row


def scored(score):
    def answer(unit, submission, about, progress):
        return samples.report(about, unit.id, digest=submission.digest, score=score)

    return answer


@pytest.fixture
def box(make_bench):
    return Outbox(make_bench(cache=False))


def test_a_grade_arrives_once_with_the_time_of_its_submission(box):
    box.connect("ada")
    box.send()
    assert box.book.posts == []
    box.graded("ada")
    received_at = box.bench.clock()
    box.send(seconds=3_600)
    box.send(seconds=3_600)
    [post] = box.book.posts
    assert (post["grading"], post["activity"], post["given"], post["maximum"]) == ("FullyGraded", "Completed", 100, 100)
    assert post["submitted_at"] == received_at < post["timestamp"]
    assert box.states() == {"ada": "delivered"}


def test_what_was_handed_in_before_the_first_launch_is_told_at_the_launch(box):
    box.graded("ada")
    box.connect("ada")
    box.send()
    assert box.book.given("user-ada") == 100


def test_that_something_waits_is_shown_until_there_is_a_grade_and_never_takes_one_away(box):
    box.connect("ada")
    box.bench.submitted("ada")
    box.send()
    assert box.book.scores["user-ada"]["grading"] == "Pending"
    assert "given" not in box.book.scores["user-ada"]
    box.bench.graded()
    box.send(seconds=5)
    box.bench.submitted("ada")
    box.send(seconds=5)
    assert [post["grading"] for post in box.book.posts] == ["Pending", "FullyGraded"]


def test_a_cancelled_first_submission_is_shown_as_not_handed_in(box):
    box.connect("ada")
    submission = box.bench.submitted("ada")
    box.send()
    box.bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=box.bench.auth("ada"))
    box.send(seconds=5)
    assert box.book.scores["user-ada"]["grading"] == "NotReady"


def test_a_failure_of_ours_is_shown_as_such(make_bench):
    box = Outbox(make_bench(max_attempts=1))

    def broken(unit, submission, about, progress):
        raise RuntimeError("the sandbox is away")

    box.connect("ada")
    box.bench.submitted("ada")
    box.bench.graded(box.bench.worker(FakeGrading(broken)))
    box.send()
    assert box.book.scores["user-ada"]["grading"] == "Failed"


def test_only_what_is_new_is_sent(box):
    box.connect("ada")
    first = box.graded("ada")
    box.send(seconds=1)
    box.graded("ada", "s01")  # worse: the first one still counts
    box.send(seconds=60)
    assert [post["submission"] for post in box.book.posts] == [first]
    assert box.states() == {"ada": "delivered"}


def test_many_changes_before_a_send_are_one_message(box):
    box.connect("ada")
    for survived in (("s01", "m01"), ("m01",), ()):
        box.graded("ada", *survived)
    box.send()
    assert [post["given"] for post in box.book.posts] == [100]


def test_an_extension_changes_the_grade_that_is_told(box):
    due_at = box.bench.clock() - 3 * 86_400
    with writing(box.bench.engine) as connection:
        asked = Assignment(Times(due_at=due_at), LatePolicy(penalty=0.1))
        offerings.put_assignment(connection, "default", "L0.0", asked, By(None, box.bench.clock()))
    box.connect("ada")
    box.graded("ada")
    box.send(seconds=1)
    assert box.book.given("user-ada") == pytest.approx(70)
    assert "3 days late" in box.book.scores["user-ada"]["comment"]
    granted = Extension("ada", due_at + 86_400 * 7, None, 0, "ill", "t", 0.0)
    with writing(box.bench.engine) as connection:
        offerings.grant(connection, "default", "L0.0", granted, By(None, box.bench.clock()))
    box.send(seconds=1)
    assert box.book.given("user-ada") == 100
    assert box.book.scores["user-ada"]["new_submission"] is False


def test_a_regrade_is_told_once_and_only_if_the_grade_moves(box):
    box.connect("ada", "bob")
    ada, bob = box.graded("ada"), box.graded("bob")
    box.send(seconds=1)
    for submission, score in ((ada, 0.5), (bob, 1.0)):
        answer = box.bench.client.request(
            "POST",
            f"/v1/submissions/{submission}/runs",
            headers=box.bench.auth("teacher"),
            json={"reason": "a new test"},
        )
        assert answer.status_code == 202
        box.bench.graded(box.bench.worker(FakeGrading(scored(score))))
    received_at = box.book.scores["user-ada"]["submitted_at"]
    box.send(seconds=86_400)
    assert [post["given"] for post in box.book.posts] == [100, 100, 50]
    assert box.book.scores["user-ada"]["submitted_at"] == received_at


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_what_may_have_arrived_is_sent_again_as_it_was(box):
    box.connect("ada")
    box.graded("ada")

    def taken_but_unanswered(claimed):
        box.book.take(claimed)
        return SILENT

    box.book.faults = [taken_but_unanswered]
    box.send()
    box.send(seconds=3_600)
    first, second = box.book.posts
    assert first == second
    assert box.states() == {"ada": "delivered"}


def test_a_sender_killed_before_it_notes_the_answer_tells_nobody_twice(box):
    box.connect("ada")
    box.graded("ada")

    class Killed(BaseException):
        pass

    def killed(claimed):
        box.book.take(claimed)
        raise Killed

    box.book.faults = [killed]
    with pytest.raises(Killed):
        box.another("sender-0").send_all()
    box.send(seconds=1)
    assert len(box.book.posts) == 1  # its lease is not over
    box.send(seconds=60)
    assert box.book.posts[0] == box.book.posts[1]
    assert box.states() == {"ada": "delivered"}


def test_a_grade_that_changes_while_it_is_sent_is_sent_once_more(box):
    box.connect("ada")
    box.graded("ada", "s01")

    def meanwhile(claimed):
        box.graded("ada")

    box.book.faults = [meanwhile]
    box.send()
    assert [post["given"] for post in box.book.posts] == [50, 100]
    assert box.book.given("user-ada") == 100


def test_times_only_grow_however_often_and_fast_a_grade_changes(box):
    box.connect("ada")
    for survived in (("s01", "m01"), ("m01",), ()):
        box.graded("ada", *survived)
        box.send()  # within one second
    stamps = [int(post["timestamp"]) for post in box.book.posts]
    assert len(set(stamps)) == 3 and stamps == sorted(stamps)
    assert box.book.given("user-ada") == 100


def test_a_platform_whose_clock_is_ahead_gets_the_grade_when_its_time_has_come(box):
    box.connect("ada")
    box.book.scores["user-ada"] = {"timestamp": box.bench.clock() + 30, "given": 7}
    box.graded("ada")
    box.send()
    assert box.book.given("user-ada") == 7
    box.send(seconds=60)
    assert box.book.given("user-ada") == 100
    assert box.states() == {"ada": "delivered"}


def test_a_platform_that_is_away_is_asked_seldom_and_gets_everything_later(box):
    names = [f"s{n}" for n in range(5)]
    box.connect(*names)
    for name in names:
        box.graded(name)
    box.book.faults = [lambda _: SILENT] * 3
    for _ in range(20):
        box.send(seconds=1)
    assert len(box.book.faults) == 1  # of 5 that waited for 20 seconds, two attempts
    for _ in range(3):
        box.send(seconds=100)
    assert {box.book.given(f"user-{name}") for name in names} == {100}
    assert set(box.states().values()) == {"delivered"}


def test_a_platform_that_asks_for_time_gets_it(box):
    box.connect("ada")
    box.graded("ada")
    box.book.faults = [lambda _: BUSY]
    box.send()
    box.send(seconds=990)
    assert box.book.posts == []
    box.send(seconds=11)
    assert box.book.given("user-ada") == 100


def test_one_delivery_that_fails_holds_up_no_other(box):
    box.connect("ada", "bob")
    box.graded("ada")
    box.graded("bob")
    box.book.faults = [lambda _: Outcome(Kind.LATER, 500, "a bug of theirs", may_have_arrived=True)]
    box.send()
    assert sorted(box.states().values()) == ["delivered", "waiting"]


def test_what_is_refused_is_kept_for_somebody_to_see_and_can_be_sent_again(box):
    box.connect("ada")
    box.graded("ada")
    box.book.faults = [lambda _: REFUSED]
    box.send()
    box.send(seconds=86_400)
    row = box.row()
    assert (row.state, row.status_code, row.error) == ("failed", 404, "there is no such line item")
    with writing(box.bench.engine) as connection:
        deliveries.resend(connection, Filter(state=State.FAILED), None, box.bench.clock())
    box.send()
    assert box.book.given("user-ada") == 100
    assert box.row().error == ""


def test_what_was_given_up_is_tried_again_when_the_grade_changes(box):
    box.connect("ada")
    box.graded("ada", "s01")
    box.book.faults = [lambda _: REFUSED]
    box.send()
    box.graded("ada")
    box.send()
    assert box.book.given("user-ada") == 100


def test_after_days_without_an_answer_it_is_given_up(box):
    box.connect("ada")
    box.graded("ada")
    box.book.faults = [lambda _: SILENT] * 10_000
    tries = 0
    while box.states() == {"ada": "waiting"}:
        before = len(box.book.faults)
        box.send(seconds=backoff.LAST_SECONDS)
        tries += before - len(box.book.faults)
        assert tries < 200
    assert box.states() == {"ada": "failed"}
    assert box.bench.clock() - box.row().failing_since > backoff.GIVE_UP_SECONDS
    assert tries > 50


def test_resending_tells_a_grade_that_has_arrived_once_more(box):
    box.connect("ada")
    box.graded("ada")
    box.send()
    with writing(box.bench.engine) as connection:
        deliveries.resend(connection, Filter(), None, box.bench.clock())
    box.send()
    box.send(seconds=60)
    assert [post["given"] for post in box.book.posts] == [100, 100]
    assert [post["new_submission"] for post in box.book.posts] == [True, False]


# -- one sender ------------------------------------------------------------------------------------------------------


def test_a_target_has_one_sender_at_a_time(box):
    box.connect("ada", "bob")
    box.graded("ada")
    box.graded("bob")
    other = box.another("sender-2")

    def meanwhile(claimed):
        other.send_all()

    box.book.faults = [meanwhile]
    box.send()
    assert len(box.book.posts) == 2


def test_one_that_was_thought_dead_changes_nothing_when_it_comes_back(box):
    box.connect("ada")
    box.graded("ada", "s01")
    other = box.another("sender-2")

    def frozen(claimed):
        box.bench.clock.now += 100  # its lease is over
        box.graded("ada")
        other.send_all()
        return REFUSED

    box.book.faults = [frozen]
    box.send()
    assert box.states() == {"ada": "delivered"}
    assert box.book.given("user-ada") == 100


def test_what_was_delivered_is_waiting_again_if_it_changed_while_it_was_looked_at(box):
    """On PostgreSQL a change can be committed between the look and the note that nothing is new."""
    box.connect("ada")
    box.graded("ada")
    box.send()
    target = Target(Channel.AGS, "moodle")

    class Slow(Scores):
        def content(self, connection, delivery):
            found = super().content(connection, delivery)
            if connection.dialect.name == "postgresql":
                with writing(box.bench.engine) as other:
                    outbox.grade_changed(other, "default", "L0.0", "ada", now=box.bench.clock())
            return found

    with writing(box.bench.engine) as connection:
        outbox.grade_changed(connection, "default", "L0.0", "ada", now=box.bench.clock())
    with writing(box.bench.engine) as connection:
        deliveries.claim(connection, target, Slow(), "sender-1", box.bench.clock(), 60.0)
    expected = "waiting" if box.bench.engine.dialect.name == "postgresql" else "delivered"
    assert box.states() == {"ada": expected}


# -- whose it is -----------------------------------------------------------------------------------------------------


def test_a_line_item_that_becomes_another_units_gets_no_more_grades_of_the_first(box):
    box.connect("ada")
    box.connect("ada", unit="L0.1")
    assert [row.unit for row in box.bench.rows(tables.deliveries)] == ["L0.1"]


def test_a_student_whom_the_platform_calls_otherwise_is_told_anew(box):
    box.connect("ada")
    box.graded("ada")
    box.send()
    with writing(box.bench.engine) as connection:
        outbox.connect(
            connection,
            **{"platform": "moodle", "line_item": LINE_ITEM, "recipient": "user-7", "course": "default"},
            **{"unit": "L0.0", "student": "ada", "now": box.bench.clock()},
        )
    box.send()
    assert box.book.given("user-7") == 100


def test_what_is_disconnected_is_told_nothing_more(box):
    box.connect("ada", "bob")
    box.connect("ada", line_item="https://lms.example/line/2")
    with writing(box.bench.engine) as connection:
        outbox.disconnect(connection, platform="moodle", line_items=[LINE_ITEM])
    box.graded("ada")
    box.graded("bob")
    box.send()
    assert [post["given"] for post in box.book.posts] == [100]


def test_what_a_platform_says_can_be_stored_and_shown_whatever_it_is(box):
    box.connect("ada")
    box.graded("ada")
    box.book.faults = [lambda _: Outcome(Kind.REFUSED, 400, "no\0 \x1b[31m\u202e" + "x" * 100_000)]
    box.send()
    assert box.row().error.isprintable()
    assert len(box.row().error) == deliveries.ERROR_CHARS


def test_an_export_holds_what_others_were_told_of_the_student(box):
    box.connect("ada", "bob")
    box.graded("ada")
    box.send()
    target = io.BytesIO()
    with reading(box.bench.engine) as connection:
        assert students.is_known(connection, "bob")
        students.export(connection, "ada", target, box.bench.clock())
    with zipfile.ZipFile(target) as archive:
        [delivery] = json.loads(archive.read("student.json"))["deliveries"]
    assert (delivery["address"], delivery["recipient"]) == (LINE_ITEM, "user-ada")
    assert json.loads(delivery["told"])["given"] == 100


def test_an_erased_student_is_in_no_delivery(box):
    box.connect("ada", "bob")
    box.graded("ada")
    students.erase(box.bench.engine, box.bench.queue, "ada", who=None, wait_seconds=0)
    assert [row.student for row in box.bench.rows(tables.deliveries)] == ["bob"]
    box.send()
    assert box.book.posts == []


def test_a_grade_whose_submission_is_no_longer_kept_stays_on_the_platform(box):
    box.connect("ada")
    submission = box.graded("ada")
    box.send()
    with writing(box.bench.engine) as connection:
        connection.execute(sa.delete(tables.submissions).where(tables.submissions.c.id == submission))
        outbox.unit_changed(connection, "default", "L0.0", now=box.bench.clock())
    box.send()
    assert len(box.book.posts) == 1
    with reading(box.bench.engine) as connection:
        assert deliveries.counts(connection, Filter()) == {State.DELIVERED: 1}


def test_arrived_means_that_the_platform_answered(box):
    box.connect("ada")
    box.graded("ada")
    box.book.faults = [lambda _: ARRIVED]
    box.send()
    assert box.row().delivered_at == box.bench.clock()

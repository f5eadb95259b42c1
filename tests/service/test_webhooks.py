"""A learning platform without LTI: it posts for its students, and is called back, signed, when that has ended."""

import base64
import json
import threading
from datetime import datetime

import pytest
import standardwebhooks

from service import accounts, offerings, outbox, tables
from service.audit import By
from service.database import reading, writing
from service.deadlines import Times
from service.offerings import Assignment, Extension
from service.outbound import Outbound, Reach
from service.outbox import deliveries, signing, webhook
from service.outbox.changes import Channel
from service.outbox.channels import Webhooks
from service.outbox.sender import KEEP_SECONDS, Sender
from service.worker import FakeGrading
from tests.service import samples
from tests.service.receivers import Receiver
from tests.service.test_outbox import scored


class Platform:
    """A bench, a receiver, and what calls it back."""

    def __init__(self, bench, receiver):
        self.bench = bench
        self.receiver = receiver
        outbound = Outbound(Reach.of_callbacks(bench.settings))
        self.sender = Sender(
            bench.engine,
            {Channel.WEBHOOK: Webhooks(bench.engine, outbound)},
            name="sender-1",
            stop=threading.Event(),
            clock=bench.clock,
            chance=lambda: 0.0,
        )

    def submitted(self, student="ada", path="/hook"):
        return self.bench.submitted("lms", student=student, callback=f"{self.receiver.url}{path}")

    def graded(self, student="ada", score=1.0, path="/hook"):
        submission = self.submitted(student, path)
        self.bench.graded(self.bench.worker(FakeGrading(scored(score))))
        return submission

    def send(self, seconds=0.0):
        self.bench.clock.now += seconds
        self.sender.send_all()

    @property
    def messages(self):
        return [json.loads(body) for _, _, body in self.receiver.received]

    @property
    def ids(self):
        return [headers["webhook-id"] for _, headers, _ in self.receiver.received]

    def state(self):
        [row] = self.bench.rows(tables.deliveries)
        return row.state, row.status_code, row.error


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def platform(make_bench, receiver):
    return Platform(make_bench(cache=False, callback_hosts="127.0.0.1"), receiver)


def test_whoever_posted_is_called_back_with_the_submission_and_the_grade(platform):
    submission = platform.submitted()
    platform.send()
    assert platform.messages == []  # that it waits, the answer to the POST said
    platform.bench.graded()
    platform.send(seconds=60)
    platform.send(seconds=60)
    [message] = platform.messages
    assert message["type"] == "submission.done"
    said = message["data"]["submission"]
    assert (said["id"], said["student"], said["verdict"], said["score"]) == (submission, "ada", "pass", 1.0)
    assert message["data"]["grade"]["final_score"] == 1.0
    assert message["data"]["grade"]["submission"] == submission
    assert platform.bench.get(said["links"]["report"], "lms").status_code == 200


def test_the_message_verifies_with_the_secret_that_the_platform_is_told(platform, monkeypatch):
    platform.graded()
    platform.send()
    token = next(row.id for row in platform.bench.rows(tables.tokens) if row.role == "lms")
    with writing(platform.bench.engine) as connection:
        [secret] = signing.secrets_of(connection, token, platform.bench.clock())
    [(_, headers, body)] = platform.receiver.received
    # The library compares with the clock of the machine.
    real = int(headers["webhook-timestamp"])
    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", _At(real))
    verifier = standardwebhooks.Webhook(webhook.shown_secret(secret))
    assert verifier.verify(body, headers)["type"] == "submission.done"
    with pytest.raises(standardwebhooks.webhooks.WebhookVerificationError):
        verifier.verify(body.replace(b"pass", b"fail"), headers)


class _At:
    """datetime as the library uses it, at one moment."""

    def __init__(self, seconds):
        self.seconds = seconds

    def now(self, tz):
        return datetime.fromtimestamp(self.seconds, tz)

    def fromtimestamp(self, seconds, tz):
        return datetime.fromtimestamp(seconds, tz)


def test_while_a_secret_is_replaced_both_sign():
    now = 1_800_000_000.0
    _, headers = webhook.signed({"type": "x"}, "id-1", [b"new" * 8, b"old" * 8], now)
    signatures = headers["webhook-signature"].split(" ")
    assert len(set(signatures)) == 2
    assert all(each.startswith("v1,") and len(base64.b64decode(each[3:])) == 32 for each in signatures)


@pytest.mark.both_databases
def test_a_secret_that_was_replaced_signs_for_a_day(bench):
    with writing(bench.engine) as connection:
        [first] = signing.secrets_of(connection, "t", 0.0)
        assert signing.secrets_of(connection, "t", 5.0) == [first]
        second, still = signing.replace(connection, "t", 10.0)
        assert still == first != second
        assert signing.secrets_of(connection, "t", 10.0 + signing.OVERLAP_SECONDS) == [second]
        assert signing.secrets_of(connection, "u", 0.0) != [second]


def test_what_is_tried_again_has_the_same_id_and_what_is_new_another(platform):
    platform.receiver.answers = [(500, {}), (204, {})]
    submission = platform.graded()
    platform.send()
    platform.send(seconds=60)
    platform.bench.client.request(
        "POST", f"/v1/submissions/{submission}/runs", headers=platform.bench.auth("teacher"), json={"reason": "x"}
    )
    platform.bench.graded(platform.bench.worker(FakeGrading(scored(0.5))))
    platform.send(seconds=60)
    first, again, new = platform.ids
    assert first == again != new
    bodies = [body for _, _, body in platform.receiver.received]
    assert bodies[0] == bodies[1]
    assert [message["data"]["submission"]["score"] for message in platform.messages] == [1.0, 1.0, 0.5]


def test_every_submission_is_told_of_and_each_where_it_was_asked_for(platform):
    first, second = platform.graded(path="/1"), platform.graded(score=0.5, path="/2")
    platform.send()
    told = {path: json.loads(body)["data"] for path, _, body in platform.receiver.received}
    assert {path: data["submission"]["id"] for path, data in told.items()} == {"/1": first, "/2": second}
    assert {data["grade"]["submission"] for data in told.values()} == {first}


def test_what_an_extension_changes_is_told_by_the_last_submission(platform):
    clock = platform.bench.clock
    with writing(platform.bench.engine) as connection:
        asked = Assignment(Times(due_at=clock() - 86_400, closes_at=None))
        policy = asked.late_policy.model_copy(update={"penalty": 0.5})
        asked = Assignment(asked.times, policy)
        offerings.put_assignment(connection, "default", "L0.0", asked, By(None, clock()))
    platform.graded(score=0.5)
    clock.now += 5
    last = platform.graded(score=1.0)
    platform.send()
    platform.receiver.received.clear()
    with writing(platform.bench.engine) as connection:
        granted = Extension("ada", clock() + 86_400, None, 0, "ill", "t", 0.0)
        offerings.grant(connection, "default", "L0.0", granted, By(None, clock()))
    platform.send(seconds=5)
    [message] = platform.messages
    assert message["data"]["submission"]["id"] == last
    assert message["data"]["grade"]["final_score"] == 1.0


def test_a_cancelled_submission_is_told_of(platform):
    submission = platform.submitted()
    platform.bench.client.request("DELETE", f"/v1/submissions/{submission}", headers=platform.bench.auth("lms"))
    platform.send()
    [message] = platform.messages
    assert (message["type"], message["data"]["grade"]) == ("submission.cancelled", None)


def test_an_answer_from_the_cache_is_told_of_as_well(make_bench, receiver):
    bench = make_bench(callback_hosts="127.0.0.1")
    platform = Platform(bench, receiver)
    bench.submitted("ada")
    worker = bench.worker(FakeGrading(samples.passes, conditions="c"))
    worker._missing = ()
    worker._beat(first=True)
    bench.graded(worker)
    platform.submitted("bob")
    assert bench.queue.submitted == []
    platform.send()
    assert [message["data"]["submission"]["student"] for message in platform.messages] == ["bob"]


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 409, 429, 500, 503])
def test_anything_but_success_is_tried_again(platform, status):
    platform.receiver.answers = [(status, {"Location": "http://169.254.169.254/"}), (200, {})]
    platform.graded()
    platform.send()
    assert platform.state()[:2] == ("waiting", status)
    platform.send(seconds=60)
    assert platform.state() == ("delivered", 200, "")


def test_whoever_answers_gone_is_asked_no_more(platform):
    platform.receiver.answers = [(410, {})]
    platform.graded()
    platform.send()
    platform.send(seconds=86_400)
    assert platform.state()[:2] == ("failed", 410)
    assert len(platform.messages) == 1


def test_retry_after_is_honoured(platform):
    platform.receiver.answers = [(503, {"Retry-After": "3000"}), (200, {})]
    platform.graded()
    platform.send()
    platform.send(seconds=2_990)
    assert len(platform.messages) == 1
    platform.send(seconds=11)
    assert platform.state() == ("delivered", 200, "")


def test_a_token_that_is_revoked_is_called_back_no_more(platform):
    platform.graded()
    token = next(row.id for row in platform.bench.rows(tables.tokens) if row.role == "lms")
    with writing(platform.bench.engine) as connection:
        accounts.revoke(connection, token, platform.bench.clock())
    platform.send()
    assert platform.messages == []
    assert platform.state()[0] == "failed"


def test_callbacks_that_have_ended_are_forgotten_after_a_while(platform):
    platform.graded()
    platform.send()
    with writing(platform.bench.engine) as connection:
        assert deliveries.sweep(connection, platform.bench.clock() - KEEP_SECONDS) == 0
        assert deliveries.sweep(connection, platform.bench.clock() + 1) == 1


# -- who may ask for it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["ada", "teacher", "admin"])
def test_only_a_learning_platform_is_called_back(make_bench, who):
    bench = make_bench(callback_hosts="127.0.0.1")
    fields = {} if who == "ada" else {"student": "ada"}
    answer = bench.post(who, callback="http://127.0.0.1:9/", **fields)
    assert (answer.status_code, answer.json()["code"]) == (403, "role_missing")
    assert bench.rows(tables.submissions) == bench.rows(tables.deliveries) == []


@pytest.mark.parametrize(
    "url", ["http://lms.example/", "https://10.0.0.1/", "https://u:p@lms.example/", "javascript:x"]
)
def test_an_address_that_is_refused_is_refused_at_once(bench, url):
    answer = bench.post("lms", student="ada", callback=url)
    assert (answer.status_code, answer.json()["code"]) == (422, "callback_refused")
    assert bench.rows(tables.submissions) == []


def test_whoever_wants_to_be_called_back_names_the_student(bench):
    answer = bench.post("lms", callback="https://lms.example/")
    assert (answer.status_code, answer.json()["code"]) == (422, "student_missing")


def test_a_public_name_that_leads_inside_is_never_asked(make_bench, receiver):
    bench = make_bench()
    platform = Platform(bench, receiver)
    outbound = Outbound(Reach(), look_up=lambda host, port: ["127.0.0.1"])
    platform.sender._channels = {Channel.WEBHOOK: Webhooks(bench.engine, outbound)}
    bench.submitted("lms", student="ada", callback=f"https://rebinds.example:{receiver.port}/")
    bench.graded()
    platform.send()
    assert receiver.received == []
    assert platform.state()[0] == "waiting"
    assert "public" in platform.state()[2]


def test_the_same_key_with_another_callback_is_another_request(bench):
    headers = {**bench.auth("lms"), "Idempotency-Key": "k"}

    def post(callback):
        form = samples.form(student="ada", callback=callback)
        return bench.client.request("POST", "/v1/units/L0.0/submissions", headers=headers, **form)

    first, again, other = post("https://a.example/"), post("https://a.example/"), post("https://b.example/")
    assert first.json()["id"] == again.json()["id"]
    assert other.status_code == 422
    with reading(bench.engine) as connection:
        assert len(deliveries.page(connection, deliveries.Filter(), 10)[0]) == 1


def test_a_submission_that_is_deleted_takes_its_callback_along(platform):
    submission = platform.graded()
    with writing(platform.bench.engine) as connection:
        connection.execute(tables.submissions.delete().where(tables.submissions.c.id == submission))
        outbox.unit_changed(connection, "default", "L0.0", now=platform.bench.clock())
    assert platform.bench.rows(tables.deliveries) == []

"""What we ask of a platform: tokens, scores and members, over HTTP of one that is not ours; and our keys."""

import json
import math
import time

import jwt
import pytest
import requests
from jwcrypto.jwk import JWK

from service import database
from service.audit import By
from service.lti import ags, keys, memberships, platforms, speaking
from service.lti.ags import Activity, Grading, Kind, ScoreMessage
from service.lti.keys import KEEP_SECONDS, LEAD_SECONDS
from service.lti.platforms import Platform as Registered
from service.lti.speaking import Away, Session, Tokens
from service.outbound import Answer, Reach
from service.settings import Settings
from tests.service.live import live
from tests.service.lti_platform import PAGE_MEMBERS, Person, loopback


@pytest.fixture
def platform(bench):
    bench.clock.now = time.time()
    with live(bench.app, bench.settings) as running, loopback(running.url) as platform:
        platform.add(Person("s-1"), Person("s-2"))
        platform.activity("attention")
        with database.writing(bench.engine) as connection:
            registered = platforms.register(connection, Registered(id="", **platform.said()), By(None, bench.clock()))
            assert registered is not None
            platform.id = registered.id
        yield platform


@pytest.fixture
def speaker(bench, platform):
    return speak(bench, platform)


def reach(bench):
    return Reach.of_platforms(bench.settings)


def speak(bench, platform, tokens=None):
    with database.writing(bench.engine) as connection:
        found = speaking.speaker(connection, platform.id, bench.clock(), Session(reach(bench)), tokens or Tokens())
    assert found is not None
    return found


def graded(at=None, **changes):
    values = {
        "user_id": "s-1",
        "timestamp": time.time() if at is None else at,
        "activity": Activity.COMPLETED,
        "grading": Grading.FULLY_GRADED,
        "given": 87.5,
        "maximum": 100.0,
        "comment": "passed",
        "submitted_at": 1_799_990_000.25,
    }
    return ScoreMessage(**values | changes)


# -- scores ----------------------------------------------------------------------------------------------------------


def test_a_score_arrives_with_all_a_platform_asks_for_and_the_time_of_the_submission(platform, speaker):
    outcome = ags.post_score(speaker, platform.line_item_url("attention"), graded(at=1_800_000_000.0625))
    assert (outcome.kind, outcome.status) == (Kind.TAKEN, 200)
    score = platform.activities["attention"].scores["s-1"]
    assert score["timestamp"] == "2027-01-15T08:00:00.062Z"
    assert score["submission"] == {"submittedAt": "2027-01-15T05:13:20.250Z"}
    assert (score["scoreGiven"], score["scoreMaximum"], score["comment"]) == (87.5, 100.0, "passed")
    assert (score["activityProgress"], score["gradingProgress"]) == ("Completed", "FullyGraded")


def test_a_score_that_was_sent_before_or_is_older_is_stale(platform, speaker):
    url = platform.line_item_url("attention")
    assert ags.post_score(speaker, url, graded(at=2_000.0)).kind is Kind.TAKEN
    for at in (2_000.0, 1_999.999):
        assert ags.post_score(speaker, url, graded(at=at)).kind is Kind.STALE
    assert ags.post_score(speaker, url, graded(at=2_000.001)).kind is Kind.TAKEN


def test_one_token_is_asked_for_and_kept(bench, platform):
    tokens = Tokens()
    for at in range(5):
        ags.post_score(speak(bench, platform, tokens), platform.line_item_url("attention"), graded(at=at + 1.0))
    assert platform.tokens_given == 1


def test_a_token_that_is_refused_is_replaced_once(platform, speaker):
    platform.answer_scores = (401, {})
    outcome = ags.post_score(speaker, platform.line_item_url("attention"), graded())
    assert (outcome.kind, outcome.of_all) == (Kind.LATER, True)
    assert platform.tokens_given == 2


@pytest.mark.parametrize(
    ("status", "headers", "kind", "wait"),
    [
        (500, {}, Kind.LATER, None),
        (503, {"Retry-After": "120"}, Kind.LATER, 120.0),
        (429, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, Kind.LATER, math.inf),
        (429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, Kind.LATER, 0.0),
        (502, {"Retry-After": "soon"}, Kind.LATER, None),
        (202, {}, Kind.TAKEN, None),
        (204, {}, Kind.TAKEN, None),
        (302, {"Location": "http://127.0.0.1:1/"}, Kind.LATER, None),
        (400, {}, Kind.REFUSED, None),
        (403, {}, Kind.REFUSED, None),
        (404, {}, Kind.REFUSED, None),
        (409, {}, Kind.STALE, None),
        (422, {}, Kind.REFUSED, None),
    ],
)
def test_what_a_platform_answers_says_whether_to_send_again(platform, speaker, status, headers, kind, wait):
    platform.answer_scores = (status, headers)
    outcome = ags.post_score(speaker, platform.line_item_url("attention"), graded())
    assert outcome.kind is kind
    if wait is math.inf:
        assert outcome.retry_after_seconds is not None and outcome.retry_after_seconds > 1e6
    else:
        assert outcome.retry_after_seconds == wait


def test_a_platform_that_is_gone_is_asked_again_later(platform, speaker):
    platform.stop()
    outcome = ags.post_score(speaker, platform.line_item_url("attention"), graded())
    assert (outcome.kind, outcome.status, outcome.of_all) == (Kind.LATER, None, True)


def test_a_platform_that_does_not_know_our_key_is_asked_again_later(bench, platform):
    with database.writing(bench.engine) as connection:
        said = platform.said() | {"auth_token_url": f"{platform.url}/nowhere"}
        platforms.change(connection, Registered(id=platform.id, **said), By(None, bench.clock()))
    outcome = ags.post_score(speak(bench, platform), platform.line_item_url("attention"), graded())
    assert (outcome.kind, outcome.status, outcome.of_all) == (Kind.LATER, 404, True)


@pytest.mark.parametrize("url", ["http://intranet.example/items/1", "ftp://x/1", "https://u:p@x/1", "javascript:1", ""])
def test_no_token_goes_to_an_address_that_is_not_safe(platform, speaker, url):
    assert ags.post_score(speaker, url, graded()).kind is Kind.REFUSED
    assert platform.tokens_given == 0


@pytest.mark.parametrize(
    ("line_item", "scores"),
    [
        ("https://moodle.example/mod/lti/services.php/2/lineitems/9/lineitem?type_id=1", None),
        ("https://canvas.example/api/lti/courses/1/line_items/2", None),
        ("https://x.example/items/2/", "https://x.example/items/2/scores"),
    ],
)
def test_scores_go_below_the_line_item_and_before_its_query(line_item, scores):
    before, _, query = line_item.partition("?")
    assert ags.scores_url(line_item) == (scores or f"{before}/scores" + (f"?{query}" if query else ""))


def test_what_waits_has_no_score_and_what_is_graded_has_one():
    pending = ScoreMessage("s-1", 1.0, Activity.SUBMITTED, Grading.PENDING)
    assert {"scoreGiven", "scoreMaximum", "comment"}.isdisjoint(json.loads(ags.body(pending)))
    for wrong in ({"given": None}, {"given": -1.0}, {"given": math.nan}, {"maximum": 0.0}, {"user_id": ""}):
        with pytest.raises(ValueError):
            graded(**wrong)


MOODLE_REQUIRES = {"userId", "timestamp", "activityProgress", "gradingProgress"}


@pytest.mark.parametrize("grading", Grading)
@pytest.mark.parametrize("activity", Activity)
def test_every_message_has_what_moodle_refuses_a_score_without(activity, grading):
    sent = json.loads(ags.body(graded(activity=activity, grading=grading)))
    assert sent.keys() >= MOODLE_REQUIRES
    assert all(isinstance(sent[name], str) and sent[name] for name in MOODLE_REQUIRES)


def test_canvas_is_told_when_it_was_submitted_and_whether_it_is_another_attempt():
    for new in (True, False):
        canvas = json.loads(ags.body(graded(new_submission=new)))["https://canvas.instructure.com/lti/submission"]
        assert canvas == {"new_submission": new, "submitted_at": "2027-01-15T05:13:20.250Z"}


# -- members ---------------------------------------------------------------------------------------------------------


def test_every_page_of_the_members_is_read(platform, speaker):
    platform.add(*(Person(f"m-{number:03}", name=f"No {number}") for number in range(2 * PAGE_MEMBERS)))
    platform.people["s-2"].status = "Deleted"
    found = memberships.fetch(speaker, f"{platform.url}/members")
    assert [each.subject for each in found] == list(platform.people)
    assert [each.subject for each in found if not each.active] == ["s-2"]


def test_a_list_that_leads_elsewhere_or_does_not_end_is_not_followed(platform, speaker, monkeypatch):
    from tests.service import lti_platform

    platform.add(*(Person(f"m-{number}") for number in range(3)))
    monkeypatch.setattr(lti_platform, "PAGE_MEMBERS", 1)
    monkeypatch.setattr(memberships, "MOST_PAGES", 3)
    with pytest.raises(Away, match="does not end"):
        memberships.fetch(speaker, f"{platform.url}/members")
    with pytest.raises(Away, match="another place"):
        memberships.fetch(speaker, f"{platform.url.replace('127.0.0.1', 'localhost')}/members")


@pytest.mark.parametrize("member", [None, "x", {}, {"user_id": 7}, {"user_id": ""}, {"user_id": "a\0"}])
def test_a_member_without_an_id_is_none(member):
    assert memberships.listed(member) is None


# -- our keys --------------------------------------------------------------------------------------------------------


def published(bench):
    document = bench.client.request("GET", "/lti/jwks").json()
    return {key["kid"]: key for key in document["keys"]}


def signing(bench):
    with database.writing(bench.engine) as connection:
        return keys.signing(connection, bench.clock())


def rotate(bench, **options):
    with database.writing(bench.engine) as connection:
        return keys.rotate(connection, By(None, bench.clock()), **options)


def test_the_published_set_holds_public_halves_and_checks_what_we_sign(bench):
    for key in published(bench).values():
        assert {"kty", "kid", "alg", "use", "n", "e"} == key.keys()
    key = signing(bench)
    token = jwt.encode({"for": "you"}, key.private_pem, "RS256", headers={"kid": key.id})
    public = JWK.from_json(json.dumps(published(bench)[key.id])).export_to_pem()
    assert jwt.decode(token, public, ["RS256"]) == {"for": "you"}


def test_a_new_key_is_published_a_day_before_it_signs_and_the_old_one_a_day_after(bench):
    old = signing(bench)
    new = rotate(bench)
    assert {old.id, new.id} == set(published(bench))
    assert signing(bench).id == old.id
    bench.clock.now += LEAD_SECONDS
    assert signing(bench).id == new.id
    assert {old.id, new.id} == set(published(bench))
    bench.clock.now += LEAD_SECONDS + 1
    assert set(published(bench)) == {new.id}


def test_whatever_is_signed_can_be_checked_with_a_set_of_up_to_a_day_before(bench):
    signing(bench)
    bench.clock.now += KEEP_SECONDS - 4 * LEAD_SECONDS
    seen = {}
    for _ in range(20):
        seen[bench.clock()] = set(published(bench))
        bench.clock.now += LEAD_SECONDS / 2
        key = signing(bench)
        fresh = [ids for at, ids in seen.items() if at >= bench.clock() - LEAD_SECONDS + 1]
        assert all(key.id in ids for ids in fresh)
    assert len({key for ids in seen.values() for key in ids}) >= 2


def test_a_key_is_replaced_by_itself_when_it_was_used_for_long(bench):
    first = signing(bench)
    bench.clock.now += KEEP_SECONDS + LEAD_SECONDS
    signing(bench)
    bench.clock.now += LEAD_SECONDS
    assert signing(bench).id != first.id


def test_a_key_that_others_may_have_read_is_withdrawn_at_once(bench):
    old = signing(bench)
    new = rotate(bench, at_once=True)
    assert set(published(bench)) == {new.id}
    assert signing(bench).id == new.id != old.id


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "10.0.0.1", "127.0.0.1", "localhost"]
)
def test_no_platform_is_asked_at_a_private_address_that_is_not_listed(host):
    listed = Reach.of_platforms(Settings(platform_hosts="moodle.campus.example, 127.0.0.1:8443"))
    for asked in (Reach.of_platforms(Settings()), listed):
        with pytest.raises(
            requests.exceptions.ConnectionError, match=r"not a public address.*AUTOGRADER_PLATFORM_HOSTS"
        ):
            Session(asked).get(f"https://{host}/latest/meta-data")
        with pytest.raises(requests.exceptions.ConnectionError):
            Session(asked).get(f"http://{host}/latest/meta-data")


def test_grades_do_not_go_to_a_platform_whose_address_became_private(bench, platform):
    with database.writing(bench.engine) as connection:
        elsewhere = Reach(frozenset({"other.example"}), only=False)
        found = speaking.speaker(connection, platform.id, bench.clock(), Session(elsewhere), Tokens())
    outcome = ags.post_score(found, platform.line_item_url("attention"), graded())
    assert (outcome.kind, outcome.status) == (Kind.LATER, None)
    assert platform.activities["attention"].scores == {}


@pytest.fixture
def answering(monkeypatch):
    """A session with a platform that answers so."""

    def answering(body, charset="utf-8"):
        answer = Answer(200, body, False, {"content-type": f"application/json; charset={charset}"})
        monkeypatch.setattr(speaking.Outbound, "send", lambda outbound, *sent: answer)
        return Session(Reach())

    return answering


def test_what_a_platform_says_is_utf_8_whatever_encoding_it_names(answering):
    said = answering('{"title": "Größen"}'.encode(), "punycode").get("https://lms.example/")
    assert said.json() == {"title": "Größen"} and "Größen" in said.text


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"[1]",
        b'{"access_token": 1}',
        b'{"access_token": "t", "expires_in": 1' + b"0" * 400 + b"}",
        b'{"access_token": "t", "expires_in": []}',
    ],
)
def test_a_platform_that_says_anything_is_away(bench, platform, answering, body):
    with database.writing(bench.engine) as connection:
        found = speaking.speaker(connection, platform.id, bench.clock(), answering(body), Tokens())
    with pytest.raises(Away):
        memberships.fetch(found, "https://lms.example/members")

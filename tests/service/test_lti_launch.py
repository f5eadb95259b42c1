"""Launches over HTTP: a platform that is not ours, a browser, and us, each on a socket of its own."""

import base64
import hashlib
import hmac
import json
import time
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from service import database, offerings
from service.audit import By
from service.lti import invitations, messages, platforms
from service.lti.platforms import Platform as Registered
from service.offerings import Offering
from service.people import users as people
from service.tables import (
    courses,
    deliveries,
    lti_deployments,
    lti_links,
    lti_logins,
    lti_people,
    lti_platforms,
    members,
    sessions,
    tokens,
    users,
)
from tests.service.live import live
from tests.service.lti_platform import MEMBERSHIP, Browser, Person, form, loopback, path_of


@pytest.fixture
def running(bench):
    bench.clock.now = time.time()  # the platform has the world's
    with live(bench.app, bench.settings) as live_service:
        yield live_service


@pytest.fixture
def platform(bench, running):
    with loopback(running.url) as platform:
        platform.add(Person("t-1", "Instructor", "Tess Teacher", "tess@example.edu"))
        platform.add(Person("s-1", "Learner", "Ada Student", "ada@example.edu"))
        platform.activity("attention", unit="L0.0")
        platform.activity("other")
        with database.writing(bench.engine) as connection:
            by = By(None, bench.clock())
            platform.registered = platforms.register(connection, Registered(id="", **platform.said()), by)
            platforms.allow(connection, platform.registered.id, platform.deployment, by)
        yield platform


@pytest.fixture
def browsers():
    made = []

    def new(**options):
        made.append(Browser(**options))
        return made[-1]

    yield new
    for browser in made:
        browser.close()


@pytest.fixture
def connected(platform, browsers):
    """The platform's course stands for one of ours: a teacher was there first."""
    teacher = browsers()
    page = teacher.open(platform, "t-1", "attention")
    assert path_of(page).startswith("/lti/setup/"), page.text
    teacher.submit(page, course="new", unit="L0.0")
    return teacher


def message_of(platform, browser, person="s-1", activity="attention"):
    """What the platform answers to a login: where to post it, state and message."""
    return form(browser.get(platform.login_url(person, activity)))


def launched(browser, running, fields):
    return browser.post(f"{running.url}/lti/launch", fields)


def course_of(bench):
    [course] = [row for row in bench.rows(courses) if row.id != "default"]
    return course


# -- who comes in ----------------------------------------------------------------------------------------------------


def test_a_teachers_first_launch_connects_the_course_and_makes_a_teacher_of_it(bench, connected):
    assert course_of(bench).title == "Machine learning"
    [member] = bench.rows(members)
    assert (member.course, member.role, member.source) == (course_of(bench).id, "teacher", "lti")


@pytest.mark.both_databases
def test_a_student_comes_in_as_a_member_and_is_shown_the_unit(bench, platform, connected, browsers):
    page = browsers().open(platform, "s-1", "attention")
    assert (page.status_code, path_of(page)) == (200, "/units/L0.0")
    [ada] = [row for row in bench.rows(users) if row.name == "Ada Student"]
    assert ada.student == "ada@example.edu"
    assert {row.role for row in bench.rows(members)} == {"teacher", "student"}


def test_a_student_who_launched_is_told_of_at_the_line_item_of_the_link(bench, platform, connected, browsers):
    browsers().open(platform, "s-1", "attention")
    [delivery] = bench.rows(deliveries)
    assert delivery.address == platform.line_item_url("attention")
    assert (delivery.recipient, delivery.student) == ("s-1", "ada@example.edu")
    assert (delivery.course, delivery.unit) == (course_of(bench).id, "L0.0")


def test_the_same_person_is_the_same_however_often_they_come(bench, platform, connected, browsers):
    for _ in range(3):
        browsers().open(platform, "s-1", "attention")
    assert len(bench.rows(users)) == 2
    platform.people["s-1"].name = "Ada Lovelace"
    browsers().open(platform, "s-1", "attention")
    assert {row.name for row in bench.rows(users)} == {"Tess Teacher", "Ada Lovelace"}


def test_a_new_course_has_a_time_zone_whatever_the_form_says(bench, platform, browsers):
    teacher = browsers()
    page = teacher.open(platform, "t-1", "attention")
    teacher.submit(page, course="new", unit="L0.0", timezone="Nowhere/Else")
    assert course_of(bench).timezone == "UTC"
    assert bench.get("/v1/courses").status_code == 200  # where an administrator sees all of them


def test_a_student_cannot_come_before_a_teacher_has(bench, platform, browsers):
    page = browsers().open(platform, "s-1", "attention")
    assert page.status_code == 409
    assert "teacher has to open it once" in page.text
    assert not bench.rows(users)


def test_an_activity_for_no_unit_yet_asks_its_teacher_and_refuses_students(bench, platform, connected, browsers):
    assert browsers().open(platform, "s-1", "other").status_code == 409
    page = connected.open(platform, "t-1", "other")
    assert path_of(page).startswith("/lti/setup/")
    assert 'name="course"' not in page.text  # that is settled
    connected.submit(page, unit="L0.0")
    assert path_of(browsers().open(platform, "s-1", "other")) == "/units/L0.0"


def test_the_choice_comes_back_as_it_was_made_after_a_mistake(platform, browsers):
    teacher = browsers()
    page = teacher.open(platform, "t-1", "attention")
    again = teacher.submit(page, course="code", code="nobody's", unit="L0.0")
    assert again.status_code == 422
    for kept in ('id="course-code" checked', 'value="nobody&#39;s"', 'value="L0.0" id="unit-1" checked'):
        assert kept in again.text
    assert 'id="course-new" checked' not in again.text


def test_an_activity_whose_unit_is_gone_says_so_and_its_teacher_chooses_another(bench, platform, connected, browsers):
    with database.writing(bench.engine) as connection:
        connection.execute(lti_links.update().values(unit="L9.9"))
    page = browsers().open(platform, "s-1", "attention")
    assert page.status_code == 410 and "not offered here any more" in page.text
    asked = connected.open(platform, "t-1", "attention")
    assert path_of(asked).startswith("/lti/setup/") and "It stood for L9.9" in asked.text
    connected.submit(asked, unit="L0.0")
    assert path_of(browsers().open(platform, "s-1", "attention")) == "/units/L0.0"


def test_an_assistant_sees_the_class_and_changes_nothing(bench, platform, connected, browsers):
    platform.add(Person("a-1", "Instructor", "Ann Assistant"))
    platform.change = {
        messages.CLAIM + "roles": [
            "http://purl.imsglobal.org/vocab/lis/v2/membership/Instructor#TeachingAssistant",
            MEMBERSHIP + "Instructor",
        ]
    }
    browsers().open(platform, "a-1", "attention")
    assert {row.role for row in bench.rows(members)} == {"teacher", "grader"}


@pytest.mark.parametrize("role", ["Mentor", "ContentDeveloper"])
def test_whoever_has_no_part_in_a_course_is_told_so(bench, platform, connected, browsers, role):
    platform.add(Person("m-1", role))
    page = browsers().open(platform, "m-1", "attention")
    assert page.status_code == 403
    assert "Your role in this course" in page.text


def test_a_student_who_is_made_a_teacher_there_is_one_here_and_back(bench, platform, connected, browsers):
    ada = platform.people["s-1"]
    for role, ours in (("Learner", "student"), ("Instructor", "teacher"), ("Learner", "student")):
        ada.role = role
        browsers().open(platform, "s-1", "attention")
        assert sorted(row.role for row in bench.rows(members)) == sorted(["teacher", ours])


def test_what_a_teacher_said_of_a_member_stands_against_the_platform(bench, platform, connected, browsers):
    browsers().open(platform, "s-1", "attention")
    with database.writing(bench.engine) as connection:
        mine = members.c.role == "student"
        connection.execute(members.update().where(mine).values(role="grader", source="page"))
    browsers().open(platform, "s-1", "attention")
    assert {row.role for row in bench.rows(members)} == {"teacher", "grader"}


# -- whom the course knows already -----------------------------------------------------------------------------------


def listed(bench, login, role="student", source="csv", admin=False):
    """Somebody on the course's own list."""
    with database.writing(bench.engine) as connection:
        user = people.add(connection, login=login, name="Listed", now=bench.clock(), admin=admin)
        connection.execute(
            members.insert().values(
                course=course_of(bench).id,
                user=user.id,
                role=role,
                section="A",
                source=source,
                created_at=bench.clock(),
            )
        )
    return user


@pytest.mark.both_databases
def test_a_student_on_the_list_of_the_course_is_that_student(bench, platform, connected, browsers):
    ada = listed(bench, "Ada@Example.edu")
    browsers().open(platform, "s-1", "attention")
    assert {row.user for row in bench.rows(lti_people)} > {ada.id}
    assert len(bench.rows(users)) == 2


@pytest.mark.parametrize(("role", "admin"), [("teacher", False), ("grader", False), ("student", True)])
def test_no_account_of_staff_opens_by_what_a_platform_says(bench, platform, connected, browsers, role, admin):
    victim = listed(bench, "ada@example.edu", role, admin=admin)
    browsers().open(platform, "s-1", "attention")
    assert victim.id not in {row.user for row in bench.rows(lti_people)}
    assert victim.id not in {row.user for row in bench.rows(sessions)}


def test_no_account_of_another_course_opens_by_what_a_platform_says(bench, platform, connected, browsers):
    with database.writing(bench.engine) as connection:
        victim = people.add(connection, login="ada@example.edu", name="", now=bench.clock())
    browsers().open(platform, "s-1", "attention")
    assert victim.id not in {row.user for row in bench.rows(lti_people)}


def test_a_name_under_which_somebody_submitted_is_not_given_to_a_newcomer(bench, platform, connected, browsers):
    bench.submitted("ada@example.edu")
    browsers().open(platform, "s-1", "attention")
    [ada] = [row for row in bench.rows(users) if row.name == "Ada Student"]
    assert ada.student.startswith("lti-")


def test_a_platform_opens_no_administrators_account(bench, platform, connected, browsers):
    browsers().open(platform, "s-1", "attention")
    with database.writing(bench.engine) as connection:
        connection.execute(users.update().where(users.c.name == "Ada Student").values(admin=True))
    held = len(bench.rows(sessions))
    page = browsers().open(platform, "s-1", "attention")
    assert (page.status_code, len(bench.rows(sessions))) == (403, held)
    assert "Sign in with your password" in page.text


def test_two_people_with_one_address_stay_two(bench, platform, connected, browsers):
    listed(bench, "ada@example.edu")
    platform.add(Person("s-2", "Learner", "Eve", "ada@example.edu"))
    for person in ("s-1", "s-2"):
        browsers().open(platform, person, "attention")
    assert len({row.user for row in bench.rows(lti_people)}) == 3


def test_an_account_that_was_closed_stays_closed(bench, platform, connected, browsers):
    browsers().open(platform, "s-1", "attention")
    with database.writing(bench.engine) as connection:
        connection.execute(tokens.update().where(tokens.c.student == "ada@example.edu").values(revoked_at=1.0))
    assert browsers().open(platform, "s-1", "attention").status_code == 403


# -- connecting a course that is there -------------------------------------------------------------------------------


def test_a_code_connects_the_course_it_was_made_for_and_only_once(bench, platform, browsers):
    teacher = browsers()
    page = teacher.open(platform, "t-1", "attention")
    with database.writing(bench.engine) as connection:
        code = invitations.invite(connection, "somebody", "default", bench.clock())
    wrong = teacher.submit(page, course="code", code="guess", unit="L0.0")
    assert wrong.status_code == 422
    teacher.submit(page, course="code", code=code, unit="L0.0")
    assert {row.course for row in bench.rows(members)} == {"default"}
    platform.context = "course-2"
    again = teacher.submit(teacher.open(platform, "t-1", "attention"), course="code", code=code, unit="L0.0")
    assert again.status_code == 422


def test_a_teacher_connects_no_course_that_is_not_theirs(bench, platform, browsers):
    with database.writing(bench.engine) as connection:
        offerings.put(connection, Offering("victim", "Victim", "UTC", bench.clock()), By(None, bench.clock()))
    teacher = browsers()
    page = teacher.open(platform, "t-1", "attention")
    assert teacher.submit(page, course="victim", unit="L0.0").status_code == 422
    assert not bench.rows(members)


def test_a_choice_is_the_persons_who_was_asked(platform, connected, browsers):
    asked = connected.open(platform, "t-1", "other")
    platform.add(Person("t-2", "Instructor", "Tim"))
    other = browsers()
    other.open(platform, "t-2", "attention")
    assert other.get(str(asked.url)).status_code == 404


# -- lies ------------------------------------------------------------------------------------------------------------


def forged(platform, fields, *, headers=None, key=None, algorithm="RS256", **claims):
    """The message with other claims (None: without), signed with the platform's key unless another is given."""
    body = jwt.decode(fields["id_token"], options={"verify_signature": False})
    body = {name: value for name, value in (body | claims).items() if value is not None}
    kid = {"kid": jwt.get_unverified_header(fields["id_token"])["kid"], **(headers or {})}
    token = jwt.encode(body, key or platform.private_pem, algorithm=algorithm, headers=kid)
    return {**fields, "id_token": token}


@pytest.mark.both_databases
def test_a_message_that_is_sent_again_is_refused(running, platform, connected, browsers):
    browser = browsers()
    _, fields = message_of(platform, browser)
    assert launched(browser, running, fields).status_code == 200
    assert launched(browser, running, fields).status_code == 401


def test_a_message_is_refused_in_another_browser_than_asked_for_it(running, platform, connected, browsers):
    victim, attacker = browsers(), browsers()
    _, fields = message_of(platform, attacker)
    assert launched(victim, running, fields).status_code == 401
    message_of(platform, victim)  # with a login of its own
    assert launched(victim, running, fields).status_code == 401


LIES = {
    "expired": lambda now: {"exp": now - 3600, "iat": now - 7200},
    "without an end": lambda now: {"exp": None},
    "of the future": lambda now: {"iat": now + 3600, "exp": now + 7200},
    "good for years but old": lambda now: {"iat": now - 86_400, "exp": now + 1e9},
    "not yet": lambda now: {"nbf": now + 3600},
    "times that are text": lambda now: {"exp": "soon"},
    "for another tool": lambda now: {"aud": "client-2"},
    "for several, we are not the one": lambda now: {"aud": ["client-1", "client-2"], "azp": "client-2"},
    "for several, nobody in particular": lambda now: {"aud": ["client-1", "client-2"], "azp": None},
    "of another issuer": lambda now: {"iss": "https://elsewhere.example"},
    "another nonce": lambda now: {"nonce": "x" * 43},
    "no nonce": lambda now: {"nonce": None},
    "nobody": lambda now: {"sub": None},
    "a person that is a number": lambda now: {"sub": 7},
    "a person with a NUL": lambda now: {"sub": "a\0b"},
    "a person too long": lambda now: {"sub": "a" * 300},
    "another version": lambda now: {messages.CLAIM + "version": "1.1"},
    "another kind of message": lambda now: {messages.CLAIM + "message_type": "LtiSubmissionReviewRequest"},
    "no link": lambda now: {messages.CLAIM + "resource_link": {}},
    "a link that is a list": lambda now: {messages.CLAIM + "resource_link": ["x"]},
    "no roles": lambda now: {messages.CLAIM + "roles": None},
}


def test_a_message_that_says_something_else_is_refused(bench, running, platform, connected, browsers):
    browser = browsers()
    known = len(bench.rows(users))
    for lie, changes in LIES.items():
        _, fields = message_of(platform, browser)
        answer = launched(browser, running, forged(platform, fields, **changes(time.time())))
        assert answer.status_code == 401, lie
    assert len(bench.rows(users)) == known


def test_roles_that_make_no_sense_give_no_role(running, platform, connected, browsers):
    for roles in ([], [7, None], ["#Instructor"], ["http://evil.example/vocab/lis/v2/membership#Instructor"]):
        browser = browsers()
        _, fields = message_of(platform, browser)
        answer = launched(browser, running, forged(platform, fields, **{messages.CLAIM + "roles": roles}))
        assert answer.status_code == 403


def test_a_signature_of_another_key_is_refused(running, platform, connected, browsers):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    for headers in ({}, {"kid": "unknown"}, {"kid": ""}):
        browser = browsers()
        _, fields = message_of(platform, browser)
        assert launched(browser, running, forged(platform, fields, key=other, headers=headers)).status_code == 401


def test_an_unsigned_message_and_one_signed_with_the_public_key_are_refused(running, platform, connected, browsers):
    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    browser = browsers()
    _, fields = message_of(platform, browser)
    kid = jwt.get_unverified_header(fields["id_token"])["kid"]
    body = fields["id_token"].split(".")[1]
    head = part(json.dumps({"alg": "none", "kid": kid}).encode())
    assert launched(browser, running, {**fields, "id_token": f"{head}.{body}."}).status_code == 401
    _, fields = message_of(platform, browser)
    head = part(json.dumps({"alg": "HS256", "kid": kid}).encode())
    body = fields["id_token"].split(".")[1]
    mac = hmac.digest(platform.public_pem.encode(), f"{head}.{body}".encode(), hashlib.sha256)
    assert launched(browser, running, {**fields, "id_token": f"{head}.{body}.{part(mac)}"}).status_code == 401


def test_what_is_no_message_is_refused(running, platform, connected, browsers):
    browser = browsers()
    for token in ("", "a", "a.b", "a.b.c", "....", "e30.e30.e30", "eyJhbGciOiAiUlMyNTYifQ.W10.x", "x" * 70_000):
        _, fields = message_of(platform, browser)
        assert launched(browser, running, {**fields, "id_token": token}).status_code == 401, token[:40]


def test_a_launch_without_a_login_is_refused(running, browsers):
    for fields in ({}, {"state": "x"}, {"state": "x", "id_token": "a.b.c"}, {"error": "login_required"}):
        assert launched(browsers(), running, fields).status_code == 401


def test_a_platform_cannot_answer_for_another(bench, running, platform, connected, browsers):
    with loopback(running.url) as second:
        second.add(Person("s-1", "Learner"))
        second.activity("attention", unit="L0.0")
        with database.writing(bench.engine) as connection:
            by = By(None, bench.clock())
            registered = platforms.register(connection, Registered(id="", **second.said()), by)
            platforms.allow(connection, registered.id, second.deployment, by)
        browser = browsers()
        _, fields = message_of(platform, browser)
        lie = forged(platform, fields, key=second.private_pem)
        assert launched(browser, running, lie).status_code == 401
        # The same id at another platform is another person, and its course another course.
        assert browsers().open(second, "s-1", "attention").status_code == 409


def test_a_deployment_nobody_let_in_knocks_and_waits(bench, platform, connected, browsers):
    platform.deployment = "another"
    page = browsers().open(platform, "s-1", "attention")
    assert page.status_code == 403
    assert "another" in page.text
    [waiting] = [row for row in bench.rows(lti_deployments) if row.allowed_at is None]
    assert waiting.deployment == "another"


def test_a_message_with_a_wrong_signature_does_not_even_knock(bench, running, platform, connected, browsers):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    browser = browsers()
    _, fields = message_of(platform, browser)
    launched(browser, running, forged(platform, fields, key=other, **{messages.CLAIM + "deployment_id": "planted"}))
    assert "planted" not in {row.deployment for row in bench.rows(lti_deployments)}


def test_a_platform_that_is_retired_lets_nobody_in(bench, platform, connected, browsers):
    with database.writing(bench.engine) as connection:
        platforms.retire(connection, platform.registered.id, By(None, bench.clock()))
    assert connected.get(platform.login_url("s-1", "attention")).status_code == 404
    assert not bench.rows(sessions)  # who was in is out


def test_a_platform_that_signs_with_a_new_key_is_believed_once_the_old_one_is_not_found(
    bench, platform, connected, browsers
):
    browsers().open(platform, "s-1", "attention")
    bench.clock.now += messages.KEY_SET_PAUSE_SECONDS + 1
    platform.new_key()
    assert browsers().open(platform, "s-1", "attention").status_code == 200


def test_keys_that_are_out_of_reach_are_said_to_be(bench, running, platform, browsers):
    browser = browsers()
    _, fields = message_of(platform, browser)
    with database.writing(bench.engine) as connection:
        said = platform.said() | {"key_set_url": f"{platform.url}/nowhere"}
        platforms.change(connection, Registered(id=platform.registered.id, **said), By(None, bench.clock()))
    answer = launched(browser, running, fields)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")


def test_keys_that_were_seen_do_while_the_platform_does_not_show_them(bench, platform, connected, browsers):
    with database.writing(bench.engine) as connection:
        seen_at = bench.clock() - messages.KEY_SET_SECONDS - 1
        elsewhere = f"{platform.url}/nowhere"
        connection.execute(lti_platforms.update().values(key_set_url=elsewhere, key_set_at=seen_at))
    assert browsers().open(platform, "s-1", "attention").status_code == 200
    platform.new_key()
    assert browsers().open(platform, "s-1", "attention").status_code == 503


# -- logins, cookies, frames -----------------------------------------------------------------------------------------


def test_a_login_says_what_the_platform_needs_and_keeps_digests_only(bench, running, platform, browsers):
    browser = browsers()
    answer = browser.client.get(platform.login_url("s-1", "attention"))
    answer = browser.client.get(answer.next_request.url)
    asked = {name: value for name, [value] in parse_qs(urlsplit(answer.headers["Location"]).query).items()}
    assert asked["redirect_uri"] == f"{running.url}/lti/launch"
    assert (asked["response_type"], asked["response_mode"]) == ("id_token", "form_post")
    assert (asked["scope"], asked["prompt"], asked["client_id"]) == ("openid", "none", "client-1")
    assert (asked["login_hint"], asked["lti_message_hint"]) == ("s-1", "attention")
    [row] = bench.rows(lti_logins)
    assert not {asked["state"], asked["nonce"]} & {row.state, row.nonce, row.browser}


def test_a_login_may_be_begun_by_a_form(platform, connected, browsers):
    url = urlsplit(platform.login_url("s-1", "attention"))
    fields = {name: value for name, [value] in parse_qs(url.query).items()}
    browser = browsers()
    page = browser.submit(browser.post(f"{url.scheme}://{url.netloc}{url.path}", fields))
    assert path_of(page) == "/units/L0.0"


def test_a_login_is_good_for_a_while_only(bench, running, platform, connected, browsers):
    browser = browsers()
    _, fields = message_of(platform, browser)
    bench.clock.now += 700
    assert launched(browser, running, fields).status_code == 401
    message_of(platform, browser)
    assert len(bench.rows(lti_logins)) == 1  # the old one is gone


def test_a_login_of_nobody_we_know_is_refused_in_words(running, browsers):
    for query in ("", "?iss=x", "?login_hint=x", "?iss=https://nobody.example&login_hint=x", "?iss=%00&login_hint=%00"):
        answer = browsers().get(f"{running.url}/lti/login{query}", headers={"Accept": "text/html"})
        assert answer.status_code in (400, 404), query


def test_a_browser_without_cookies_is_asked_to_go_on_in_a_new_window(platform, running, browsers):
    page = browsers(cookies=False).get(platform.login_url("s-1", "attention"))
    assert page.status_code == 200
    assert 'target="_blank"' in page.text
    assert platform.url not in str(page.url)  # the platform was not asked: it may answer only once


def test_behind_tls_the_cookies_work_inside_frames_and_are_ours_alone(bench, platform):
    headers = {"X-Forwarded-Proto": "https", "Host": "grader.example"}
    [query] = [urlsplit(platform.login_url("s-1", "attention")).query]
    answer = bench.client.request("GET", f"/lti/login?{query}", headers=headers)
    [cookie] = answer.headers.get_list("Set-Cookie")
    assert cookie.startswith("__Host-ag_lti=")
    assert {"Secure", "HttpOnly", "SameSite=None", "Partitioned", "Path=/"} <= set(cookie.split("; "))


def test_under_a_path_of_a_proxy_the_addresses_are_those_of_that_path(bench, platform):
    headers = {"X-Forwarded-Proto": "https", "Host": "campus.example", "X-Forwarded-Prefix": "/grader"}
    query = urlsplit(platform.login_url("s-1", "attention")).query
    answer = bench.client.request("GET", f"/lti/login?{query}", headers=headers)
    assert answer.headers["Location"].startswith("/grader/lti/login?")
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    answer = bench.client.request("GET", f"/lti/login?{query}", headers={**headers, "Cookie": cookie})
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert asked["redirect_uri"] == ["https://campus.example/grader/lti/launch"]


def test_only_registered_platforms_may_show_us_in_a_frame(bench, platform, running, browsers):
    browser = browsers()
    for headers, ancestors in (
        ({"Sec-Fetch-Dest": "iframe"}, f"frame-ancestors {platform.url}"),
        ({"Sec-Fetch-Dest": "document"}, "frame-ancestors 'none'"),
        ({}, "frame-ancestors 'none'"),
    ):
        for path in ("/units/L0.0", "/lti/login?kept=1", "/nothing"):
            answer = browser.get(f"{running.url}{path}", headers=headers)
            assert ancestors in answer.headers["Content-Security-Policy"], path
    framed = browser.get(f"{running.url}/sign-in", headers={"Sec-Fetch-Dest": "iframe"})
    assert "frame-ancestors 'none'" in framed.headers["Content-Security-Policy"]


def test_nobody_frames_us_while_no_platform_says_so(bench):
    answer = bench.client.request("GET", "/units/L0.0", headers={"Sec-Fetch-Dest": "iframe"})
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


# -- picking units ---------------------------------------------------------------------------------------------------


def picking(platform, browser):
    platform.deep_linking = True
    try:
        return browser.open(platform, "t-1", "attention")
    finally:
        platform.deep_linking = False


def test_a_unit_that_is_picked_comes_to_the_platform_signed_and_is_known_at_its_first_launch(
    bench, platform, connected, browsers
):
    page = connected.submit(picking(platform, connected), unit="L0.0")
    policy = page.headers["Content-Security-Policy"]
    assert f"form-action {platform.url};" in policy
    connected.submit(page)
    [picked] = platform.picked
    assert (picked["type"], picked["custom"]) == ("ltiResourceLink", {"unit": "L0.0"})
    assert picked["lineItem"]["scoreMaximum"] == 100
    platform.activities["new"] = platform.activity("new")
    platform.activities["new"].custom = picked["custom"]
    assert path_of(browsers().open(platform, "s-1", "new")) == "/units/L0.0"


def test_a_student_picks_nothing(platform, connected, browsers):
    platform.deep_linking = True
    assert browsers().open(platform, "s-1", "attention").status_code == 403


def test_an_answer_goes_to_no_address_that_could_not_be_the_platforms(bench, running, platform, connected):
    platform.deep_linking = True
    _, fields = message_of(platform, connected, "t-1")
    settings = {
        "deep_link_return_url": "javascript:alert(1)",
        "accept_types": ["ltiResourceLink"],
        "accept_presentation_document_targets": ["iframe"],
    }
    answer = launched(connected, running, forged(platform, fields, **{messages.DEEP_LINKING: settings}))
    assert answer.status_code == 404


def test_a_link_of_before_keeps_its_unit_whatever_a_later_launch_says(bench, platform, connected, browsers):
    platform.activities["attention"].custom = {"unit": "L9.9"}
    browsers().open(platform, "s-1", "attention")
    assert {row.unit for row in bench.rows(lti_links)} == {"L0.0"}

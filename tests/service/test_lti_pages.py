"""What administrators and teachers do about learning platforms, on pages and as JSON."""

import re
import time

import pytest

from service import database
from service.audit import By
from service.lti import invitations, placements, platforms, registering
from service.lti.platforms import Platform as Registered
from service.tables import audit, deliveries, lti_contexts, lti_links, lti_people, lti_platforms, members, users
from tests.service.live import live
from tests.service.lti_platform import Browser, Person, loopback

SAID = {
    "name": "Campus",
    "issuer": "https://lms.example",
    "client_id": "c1",
    "auth_login_url": "https://lms.example/auth",
    "auth_token_url": "https://lms.example/token",
    "key_set_url": "https://lms.example/keys",
    "frame_origin": "https://lms.example",
}


# -- administrators --------------------------------------------------------------------------------------------------


def test_a_platform_is_registered_on_a_page_changed_and_retired(bench):
    root = bench.browser("root", admin=True)
    answer = root.post("/platforms", **SAID, deployment="d1")
    assert answer.status_code == 303
    here = answer.headers["Location"]
    assert "d1" in root.get(here).text
    assert root.post(here, **SAID | {"name": "Campus North"}, retired="1").status_code == 303
    [row] = bench.rows(lti_platforms)
    assert (row.name, row.retired_at) == ("Campus North", bench.clock())
    root.post(here, **SAID)
    assert bench.rows(lti_platforms)[0].retired_at is None


def test_what_cannot_be_is_said_beside_what_was_typed(bench):
    root = bench.browser("root", admin=True)
    for changes, said in (
        ({"auth_login_url": "http://lms.example/"}, "https address"),
        ({"frame_origin": "https://lms.example/path"}, "without a path"),
        ({"name": ""}, "name:"),
    ):
        answer = root.post("/platforms", **SAID | changes)
        assert answer.status_code == 422
        assert said in answer.text
        assert 'value="https://lms.example/token"' in answer.text
    assert not bench.rows(lti_platforms)


def test_no_two_platforms_have_one_issuer_and_client_id(bench):
    root = bench.browser("root", admin=True)
    here = root.post("/platforms", **SAID).headers["Location"]
    other = root.post("/platforms", **SAID | {"client_id": "c2"}).headers["Location"]
    assert root.post("/platforms", **SAID).status_code == 409
    assert root.post(other, **SAID).status_code == 409
    assert root.post(here, **SAID).status_code == 303


def test_a_deployment_that_knocked_is_let_in_and_out_again(bench):
    root = bench.browser("root", admin=True)
    here = root.post("/platforms", **SAID).headers["Location"]
    platform_id = here.rsplit("/", 1)[1]
    with database.writing(bench.engine) as connection:
        platforms.knocked(connection, platform_id, "<b>d2</b>", bench.clock())
    assert "&lt;b&gt;d2&lt;/b&gt;" in root.get(here).text
    for allowed, let_in in (("1", {"<b>d2</b>"}), ("0", set())):
        root.post(f"{here}/deployments", deployment="<b>d2</b>", allowed=allowed)
        with database.reading(bench.engine) as connection:
            assert platforms.let_in(connection, platform_id) == let_in


def test_knocking_does_not_fill_the_database(bench):
    with database.writing(bench.engine) as connection:
        found = platforms.register(connection, Registered(id="", **SAID), By(None, bench.clock()))
        assert found is not None
        for number in range(platforms.MOST_WAITING + 10):
            platforms.knocked(connection, found.id, f"d{number}", bench.clock())
        assert len(platforms.deployments(connection, found.id)) == platforms.MOST_WAITING


@pytest.mark.both_databases
def test_the_same_is_done_as_json_and_stands_in_the_audit_log(bench):
    headers = bench.auth("admin")

    def ask(method, path, **body):
        return bench.client.request(method, path, headers=headers, json=body or None)

    made = ask("POST", "/v1/lti/platforms", **SAID).json()
    here = f"/v1/lti/platforms/{made['id']}"
    assert ask("POST", "/v1/lti/platforms", **SAID).json()["code"] == "lti_platform_known"
    assert ask("PUT", here, **SAID, retired=True).json()["retired"] is True
    allowed = ask("POST", f"{here}/deployments", deployment="a/b:c").json()["deployments"]
    assert [(each["deployment"], each["allowed"]) for each in allowed] == [("a/b:c", True)]
    assert ask("GET", "/v1/lti/platforms").json()["platforms"][0]["id"] == made["id"]
    assert ask("PUT", here, **SAID | {"key_set_url": "http://lms.example/"}).json()["code"] == "lti_platform_invalid"
    actions = {row.action for row in bench.rows(audit)}
    assert actions >= {"lti_platform.register", "lti_platform.update", "lti_platform.retire", "lti_deployment.allow"}


@pytest.mark.both_databases
def test_keys_are_replaced_on_the_page(bench):
    root = bench.browser("root", admin=True)
    before = {key["kid"] for key in bench.client.request("GET", "/lti/jwks").json()["keys"]}
    root.post("/lti/keys", at_once="0")
    both = {key["kid"] for key in bench.client.request("GET", "/lti/jwks").json()["keys"]}
    assert before < both
    root.post("/lti/keys", at_once="1")
    [last] = bench.client.request("GET", "/lti/jwks").json()["keys"]
    assert last["kid"] not in both


# -- a platform that introduces itself -------------------------------------------------------------------------------


@pytest.fixture
def running(bench):
    bench.clock.now = time.time()  # the platform has the world's
    with live(bench.app, bench.settings) as live_service:
        yield live_service


@pytest.fixture
def platform(running):
    with loopback(running.url) as platform:
        yield platform


@pytest.fixture
def anybody():
    browser = Browser()
    yield browser
    browser.close()


def invitation(bench, running):
    page = bench.browser("root", admin=True).post("/lti/invitations").text
    code = re.search(r"invitation=([\w-]+)", page)
    assert code is not None
    return f"{running.url}/lti/register?invitation={code[1]}"


def test_a_platform_that_was_invited_registers_itself_once(bench, running, platform, anybody):
    url = invitation(bench, running)
    asked = f"{url}&openid_configuration={platform.url}/configuration&registration_token=let-me-in"
    answer = anybody.get(asked)
    assert answer.status_code == 200, answer.text
    [row] = bench.rows(lti_platforms)
    assert (row.issuer, row.client_id, row.frame_origin) == (platform.url, "client-1", platform.url)
    assert platform.registered["jwks_uri"] == f"{running.url}/lti/jwks"
    assert platform.registered["initiate_login_uri"] == f"{running.url}/lti/login"
    assert set(platform.registered["scope"].split()) == set(registering.SCOPES)
    with database.reading(bench.engine) as connection:
        assert platforms.let_in(connection, row.id) == {"deployment-1"}
    assert anybody.get(asked).status_code == 403
    assert "client-1" in answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://elsewhere.example"},
        {"token_endpoint": "http://intranet.example/"},
        {"registration_endpoint": "file:///etc/passwd"},
        {"jwks_uri": None},
    ],
)
def test_a_platform_that_introduces_itself_wrongly_is_not_registered(bench, running, platform, anybody, change):
    platform.change = change
    url = invitation(bench, running)
    answer = anybody.get(f"{url}&openid_configuration={platform.url}/configuration&registration_token=let-me-in")
    assert answer.status_code == 502
    assert not bench.rows(lti_platforms)


def test_nobody_makes_us_ask_an_address_without_an_invitation(bench, running, platform, anybody):
    asked = f"openid_configuration={platform.url}/configuration&registration_token=let-me-in"
    with database.writing(bench.engine) as connection:
        for_a_course = invitations.invite(connection, "somebody", "default", bench.clock())
    for code in ("", "guess", for_a_course):
        answer = anybody.get(f"{running.url}/lti/register?invitation={code}&{asked}")
        assert answer.status_code == 403
    assert not platform.registered


def test_an_invitation_asks_no_address_that_is_not_safe(bench, running, anybody):
    for url in ("http://intranet.example/", "file:///etc/passwd", "https://[", ""):
        answer = anybody.get(f"{invitation(bench, running)}&openid_configuration={url}")
        assert answer.status_code == 502


# -- teachers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def connected(bench, platform, anybody):
    """The default course stands for the platform's, with one activity."""
    platform.add(Person("t-1", "Instructor", "Tess"), Person("s-1", name="Ada", email="ada@example.edu"))
    platform.add(Person("s-2", name="Bob", email="bob@example.edu"))
    platform.activity("attention", unit="L0.0")
    by = By(None, bench.clock())
    with database.writing(bench.engine) as connection:
        registered = platforms.register(connection, Registered(id="", **platform.said()), by)
        platforms.allow(connection, registered.id, platform.deployment, by)
        code = invitations.invite(connection, "somebody", "default", bench.clock())
    anybody.submit(anybody.open(platform, "t-1", "attention"), course="code", code=code, unit="L0.0")
    [context] = bench.rows(lti_contexts)
    return f"/courses/default/platforms/{context.id}"


def roles_of(bench):
    names = {row.id: row.name for row in bench.rows(users)}
    return {names[row.user]: row.role for row in bench.rows(members)}


@pytest.mark.both_databases
def test_the_members_of_the_platforms_course_are_read_on_the_page(bench, platform, connected):
    teacher = bench.browser("tim", default="teacher")
    answer = teacher.post(f"{connected}/members")
    assert "3 people" in answer.text
    assert roles_of(bench) == {"Tess": "teacher", "Ada": "student", "Bob": "student", "Tim": "teacher"}
    assert {row.recipient for row in bench.rows(deliveries)} == {"s-1", "s-2"}
    assert {row.address for row in bench.rows(deliveries)} == {platform.line_item_url("attention")}


@pytest.mark.both_databases
def test_who_left_there_leaves_here_and_who_was_added_here_stays(bench, platform, connected):
    teacher = bench.browser("tim", default="teacher")
    bench.person("cleo", default="student")
    teacher.post(f"{connected}/members")
    platform.people["s-1"].status = "Inactive"
    del platform.people["s-2"]
    assert "2 left" in teacher.post(f"{connected}/members").text
    assert roles_of(bench) == {"Tess": "teacher", "Cleo": "student", "Tim": "teacher"}


def test_an_empty_list_puts_nobody_out(bench, platform, connected):
    teacher = bench.browser("tim", default="teacher")
    teacher.post(f"{connected}/members")
    platform.people.clear()
    teacher.post(f"{connected}/members")
    assert len(bench.rows(members)) == 4


def test_reading_the_list_twice_changes_nothing(bench, platform, connected):
    teacher = bench.browser("tim", default="teacher")
    teacher.post(f"{connected}/members")
    before = len(bench.rows(audit))
    assert "0 were added or changed" in teacher.post(f"{connected}/members").text
    assert len(bench.rows(audit)) == before


def test_a_student_of_the_class_list_is_the_platforms_student(bench, platform, connected):
    ada = bench.person("ada@example.edu", default="student")
    bench.browser("tim", default="teacher").post(f"{connected}/members")
    assert {row.user for row in bench.rows(lti_people) if row.subject == "s-1"} == {ada.id}


def test_a_platform_that_is_away_changes_nothing_and_is_said_to_be(bench, platform, connected):
    platform.stop()
    answer = bench.browser("tim", default="teacher").post(f"{connected}/members")
    assert answer.status_code == 502
    assert "nothing was changed" in answer.text


def test_an_activity_without_a_grade_column_is_given_one_on_the_page(bench, platform, anybody, connected):
    teacher = bench.browser("tim", default="teacher")
    teacher.post(f"{connected}/members")
    platform.without_column = True
    platform.activity("other", unit="L0.0")
    anybody.open(platform, "t-1", "other")
    page = teacher.get("/courses/default/platforms").text
    [path] = re.findall(r'action="(/courses/default/platforms/\w+/links/\w+/column)"', page)
    assert "made a grade column" in teacher.post(path).text
    [column] = platform.columns
    assert (column["resourceLinkId"], column["resourceId"], column["scoreMaximum"]) == ("other", "L0.0", 100)
    told = {(row.address, row.recipient) for row in bench.rows(deliveries)}
    assert told >= {(platform.line_item_url("other"), "s-1"), (platform.line_item_url("other"), "s-2")}
    teacher.post(path)
    assert len(platform.columns) == 1


def test_a_column_that_a_platform_does_not_make_is_said_to_be_missing(bench, platform, anybody, connected):
    platform.without_column = True
    platform.activity("other", unit="L0.0")
    anybody.open(platform, "t-1", "other")
    teacher = bench.browser("tim", default="teacher")
    [path] = re.findall(r'action="([^"]*/column)"', teacher.get("/courses/default/platforms").text)
    platform.stop()
    answer = teacher.post(path)
    assert (answer.status_code, "was not made" in answer.text) == (502, True)


def test_a_teacher_of_another_course_touches_nothing_of_this_one(bench, connected):
    other = bench.browser("eve", elsewhere="teacher")
    theirs = connected.replace("/default/", "/elsewhere/")
    for path in (f"{connected}/members", f"{theirs}/members", f"{connected}/disconnect", f"{theirs}/disconnect"):
        assert other.post(path).status_code == 404
    assert other.get("/courses/default/platforms").status_code == 404
    assert bench.rows(lti_contexts)


@pytest.mark.both_databases
def test_a_course_is_disconnected_and_its_members_stay(bench, connected):
    teacher = bench.browser("tim", default="teacher")
    teacher.post(f"{connected}/members")
    assert bench.rows(deliveries)
    assert teacher.post(f"{connected}/disconnect").status_code == 303
    assert not bench.rows(lti_contexts)
    assert not bench.rows(lti_links)
    assert not bench.rows(deliveries)
    assert "Tess" in roles_of(bench)


def test_a_teacher_gets_a_code_and_sees_what_is_connected(bench, connected):
    teacher = bench.browser("tim", default="teacher")
    page = teacher.post("/courses/default/platforms/codes").text
    code = re.search(r'class="secret">([\w-]+)<', page)
    assert code is not None
    assert "Machine learning" in page
    with database.writing(bench.engine) as connection:
        found = invitations.use(connection, code[1], bench.clock(), registers=False)
        assert found is not None and found.course == "default"
        assert placements.contexts_of(connection, "default")[0].title == "Machine learning"

"""Every route with every role, with another student's ids, and with odd names: a new route must be entered here."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI

from service import accounts, database, outbox, tables
from service.accounts import Role
from service.audit import By
from service.people import mint
from service.tables import metadata
from service.worker import FakeGrading
from tests.service import samples

WHO = ["nobody", "ada", "bob", "lms", "teacher", "admin", "revoked", "expired"]
VALID = WHO[1:6]

EXTENSION = {"due_at": "2027-01-01T00:00:00Z", "reason": "ill"}


@dataclass(frozen=True)
class Entry:
    """Who may do what. `refused`: what a valid token is answered that may not; `public`: without a token as well."""

    may: list[str]
    refused: int = 403
    staff_refused: int | None = None  # teachers and administrators, if they are answered otherwise
    public: bool = False
    good: set[int] = field(default_factory=lambda: {200})
    send: dict[str, Any] = field(default_factory=dict)
    queued: bool = False  # of a submission that is not graded yet
    first: tuple[str, str, dict[str, Any]] | None = None  # what an admin does before each try
    people: tuple[str, ...] = ()  # of those who are signed in
    page: bool = False  # for people who are signed in: every token is sent to the sign-in page

    @property
    def checks_tokens(self) -> bool:
        return not self.public


def public(**more: Any) -> Entry:
    return Entry(WHO, public=True, **more)


def owned(**more: Any) -> Entry:
    """Ada's: for another student it is as if it were not there."""
    return Entry(["ada", "lms", "teacher", "admin"], refused=404, **more)


def staff(*more_roles: str, **more: Any) -> Entry:
    return Entry([*more_roles, "teacher", "admin"], **more)


def admin(**more: Any) -> Entry:
    return Entry(["admin"], **more)


def page(*people: str, **more: Any) -> Entry:
    """Of PEOPLE those who may see it, or send its form."""
    return Entry([], page=True, people=people, **more)


PEOPLE = ("stranger", "student", "grader", "teacher", "elsewhere", "admin")
"""Who is signed in: without any course, with a part in the course of the path, a teacher of another course."""
MEMBERS = ("student", "grader", "teacher", "admin")
STAFF = ("grader", "teacher", "admin")
TEACHING = ("teacher", "admin")


HINT = {"mutant": "m01", "number": "1"}
LTI = {"ticket": 32 * "0", "platform": 16 * "0", "context": 16 * "0", "link": 16 * "0"}
PLAIN = {"unit": "L0.0", "course": "default", "student": "ada", **HINT, **LTI}
PLATFORM = {
    "name": "A platform",
    "issuer": "https://lms.example",
    "client_id": "1",
    "auth_login_url": "https://lms.example/auth",
    "auth_token_url": "https://lms.example/token",
    "key_set_url": "https://lms.example/keys",
}
UNIT = "/v1/courses/{course}/units/{unit}"
COURSE = "/v1/courses/{course}"
MEMBER = COURSE + "/members/{login}"
PLACE = "/courses/{course}/units/{unit}"
ONE = UNIT + "/extensions/{student}"
BY_HAND = UNIT + "/overrides/{student}"
OVERRIDE = {"score": 0.5, "reason": "an oral exam"}
CLASS = "/courses/{course}/class"
REGRADE = "/v1/regrades/{regrade_id}"
SUBMISSION = "/v1/submissions/{submission_id}"
DELIVERIES = "/v1/courses/{course}/deliveries"
HINTS = SUBMISSION + "/hints"

TABLE = {
    ("GET", "/"): public(),
    ("GET", "/units/{unit}"): public(),
    ("GET", "/static"): public(),
    ("GET", "/sign-in"): public(),
    ("POST", "/sign-in"): public(good={403}),  # the CSRF token is missing
    ("GET", "/set-password"): public(good={404}),  # there is no such link
    ("POST", "/set-password"): public(good={403}),
    ("POST", "/sign-out"): page(*PEOPLE, good={303}),
    ("GET", "/me"): page(*PEOPLE),
    ("POST", "/me/password"): page(*PEOPLE, good={403}),  # without the one before
    ("POST", "/me/sessions/end"): page(*PEOPLE, good={303}),
    ("POST", "/theme"): page(*PEOPLE, good={303}),
    ("GET", "/courses"): page(*PEOPLE),
    ("GET", "/courses/{course}"): page(*MEMBERS),
    ("POST", "/courses"): page("admin", good={303}, send={"data": {"course": "new", "title": "New"}}),
    ("GET", "/courses/{course}/settings"): page(*TEACHING),
    ("POST", "/courses/{course}/settings"): page(*TEACHING, good={303}, send={"data": {"title": "Another"}}),
    ("GET", PLACE): page(*MEMBERS),
    ("GET", PLACE + "/settings"): page(*TEACHING),
    ("POST", PLACE + "/settings"): page(*TEACHING, good={303}, send={"data": {"attempts": "3"}}),
    ("POST", PLACE + "/extensions"): page(
        *TEACHING, good={303, 422}, send={"data": {"student": "student", "extra_attempts": "1"}}
    ),
    ("GET", "/courses/{course}/people"): page(*STAFF),
    ("POST", "/courses/{course}/people"): page(
        *TEACHING, good={303}, send={"data": {"do": "add", "login": "new@example.org", "role": "student"}}
    ),
    ("GET", "/courses/{course}/people/import"): page(*TEACHING),
    ("POST", "/courses/{course}/people/import"): page(*TEACHING, send={"data": {"csv": "login,name\neve,Eve"}}),
    ("GET", "/courses/{course}/tokens"): page(*TEACHING),
    ("POST", "/courses/{course}/tokens"): page(*TEACHING, send={"data": {"role": "lms"}}),
    ("GET", "/courses/{course}/audit"): page(*TEACHING),
    ("GET", "/me/tokens"): page(*PEOPLE),
    ("POST", "/me/tokens"): page(*PEOPLE, send={"data": {"label": "a script"}}),
    ("GET", "/tokens"): page("admin"),
    ("POST", "/tokens"): page("admin", send={"data": {"role": "lms"}}),
    ("GET", "/users"): page("admin"),
    ("POST", "/users"): page("admin", send={"data": {"do": "add", "login": "new@example.org"}}),
    ("GET", "/audit"): page("admin"),
    ("GET", "/lti/jwks"): public(),
    ("GET", "/lti/login"): public(good={400}),  # nobody said who they are
    ("POST", "/lti/login"): public(good={303}),  # to see whether the browser keeps a cookie
    ("POST", "/lti/launch"): public(good={401}),  # nothing was sent
    ("GET", "/lti/setup/{ticket}"): page(*PEOPLE, good={404}),  # nobody was asked
    ("POST", "/lti/setup/{ticket}"): page(*PEOPLE, good={404}),
    ("GET", "/courses/{course}/deliveries"): page(*STAFF),
    ("POST", "/courses/{course}/deliveries"): page("teacher", "admin", good={303}),
    ("GET", CLASS): page(*STAFF),
    ("GET", CLASS + "/{unit}"): page(*STAFF),
    ("GET", CLASS + "/{unit}/tests"): page(*STAFF),
    ("GET", CLASS + "/{unit}/mutants"): page(*STAFF),
    ("GET", CLASS + "/{unit}/misconceptions"): page(*STAFF),
    ("GET", CLASS + "/{unit}/students"): page(*STAFF),
    ("GET", CLASS + "/{unit}/students/{student}"): page(*STAFF),  # and ada, who is none of these
    ("POST", CLASS + "/{unit}/students/{student}"): page(
        "teacher", "admin", good={303}, send={"data": {"percent": "50", "reason": "an oral exam"}}
    ),
    ("GET", "/submissions/{submission_id}"): page(*STAFF),
    ("GET", "/submissions/{submission_id}/mutants"): page(*STAFF),
    ("POST", "/submissions/{submission_id}/cancel"): page("teacher", "admin", good={303}, queued=True),
    ("POST", "/submissions/{submission_id}/hints"): page(
        "teacher", "admin", good={303}, send={"data": {"mutant": "m01", "number": "2"}}
    ),
    ("POST", "/submissions/{submission_id}/runs"): page(
        "teacher", "admin", good={303, 409}, send={"data": {"reason": "a new test"}}
    ),
    ("GET", "/openapi.json"): public(),
    ("GET", "/livez"): public(),
    ("GET", "/readyz"): public(good={503}),  # no worker runs here
    ("GET", "/metrics"): admin(),
    ("GET", "/lti/register"): public(good={403}),  # nobody was invited
    ("GET", "/platforms"): page("admin"),
    ("POST", "/platforms"): page("admin", good={422}),  # nothing was typed
    ("GET", "/platforms/{platform}"): page("admin", good={404}),
    ("POST", "/platforms/{platform}"): page("admin", good={422, 404}),
    ("POST", "/platforms/{platform}/deployments"): page("admin", good={404}),
    ("POST", "/lti/invitations"): page("admin"),
    ("POST", "/lti/keys"): page("admin", good={303}),
    ("GET", "/courses/{course}/platforms"): page("teacher", "admin"),
    ("POST", "/courses/{course}/platforms/codes"): page("teacher", "admin"),
    ("POST", "/courses/{course}/platforms/{context}/members"): page("teacher", "admin", good={404}),
    ("POST", "/courses/{course}/platforms/{context}/links/{link}/column"): page("teacher", "admin", good={404}),
    ("POST", "/courses/{course}/platforms/{context}/disconnect"): page("teacher", "admin", good={404}),
    ("GET", "/v1/lti/platforms"): admin(),
    ("POST", "/v1/lti/platforms"): admin(good={201}, send={"json": PLATFORM}),
    ("GET", "/v1/lti/platforms/{platform}"): admin(good={404}),
    ("PUT", "/v1/lti/platforms/{platform}"): admin(good={404}, send={"json": PLATFORM}),
    ("POST", "/v1/lti/platforms/{platform}/deployments"): admin(good={404}, send={"json": {"deployment": "1"}}),
    ("GET", "/v1/lti/keys"): admin(),
    ("POST", "/v1/lti/keys"): admin(good={201}, send={"json": {}}),
    ("POST", "/v1/lti/invitations"): admin(good={201}),
    ("GET", "/v1/courses/{course}/lti"): staff(),
    ("POST", "/v1/courses/{course}/lti/codes"): staff(good={201}),
    ("POST", "/v1/courses/{course}/lti/contexts/{context}/members"): staff(good={404}),
    ("POST", "/v1/courses/{course}/lti/contexts/{context}/links/{link}/column"): staff(good={404}),
    ("DELETE", "/v1/courses/{course}/lti/contexts/{context}"): staff(good={404}),
    ("GET", "/v1/units"): public(),
    ("GET", "/v1/units/{unit}"): Entry(["nobody", *VALID]),
    ("GET", "/v1/units/{unit}/course-tests"): public(),
    ("POST", "/v1/units/{unit}/submissions"): Entry(VALID, good={202}, send=samples.form()),
    ("GET", "/v1/units/{unit}/submissions"): staff(),
    ("GET", "/v1/units/{unit}/stats"): staff(),
    ("GET", "/v1/units/{unit}/grades"): staff("lms"),
    ("GET", "/v1/grades"): Entry(["ada", "lms", "teacher", "admin"], send={"params": {"student": "ada"}}),
    ("GET", SUBMISSION): owned(),
    ("GET", SUBMISSION + "/report"): owned(),
    ("GET", SUBMISSION + "/events"): owned(),
    ("GET", SUBMISSION + "/runs"): owned(),
    ("GET", SUBMISSION + "/runs/{run_id}/report"): owned(),
    ("POST", SUBMISSION + "/runs"): staff(good={202, 409}, send={"json": {"reason": "a new test"}}),
    ("GET", SUBMISSION + "/diff"): owned(),
    ("DELETE", SUBMISSION): owned(queued=True),
    ("GET", HINTS): owned(),
    ("POST", HINTS): owned(send={"json": {"mutant": "m01", "number": 2}}),
    ("PUT", HINTS + "/{mutant}/{number}/rating"): Entry(
        ["ada", "lms"], refused=404, staff_refused=403, send={"json": {"helpful": True}}
    ),
    ("GET", "/v1/units/{unit}/hints"): staff(),
    ("GET", "/v1/courses"): staff(),
    ("GET", "/v1/courses/{course}"): staff(),
    ("PUT", "/v1/courses/{course}"): staff(send={"json": {"title": "A course"}}),
    ("GET", UNIT): staff(),
    ("PUT", UNIT): staff(send={"json": {"attempts": 5}}),
    ("GET", UNIT + "/overview"): staff(),
    ("GET", UNIT + "/tests"): staff(),
    ("GET", UNIT + "/mutants"): staff(),
    ("GET", UNIT + "/misconceptions"): staff(),
    ("GET", UNIT + "/students"): staff(),
    ("GET", UNIT + "/extensions"): staff(),
    ("GET", ONE): staff(first=("PUT", ONE, {"json": EXTENSION})),
    ("PUT", ONE): staff(send={"json": EXTENSION}),
    ("DELETE", ONE): staff(good={204}, first=("PUT", ONE, {"json": EXTENSION})),
    ("GET", UNIT + "/overrides"): staff(),
    ("GET", BY_HAND): staff(first=("PUT", BY_HAND, {"json": OVERRIDE})),
    ("PUT", BY_HAND): staff(send={"json": OVERRIDE}),
    ("DELETE", BY_HAND): staff(good={204}, first=("PUT", BY_HAND, {"json": OVERRIDE})),
    ("GET", UNIT + "/quiz"): staff(),
    ("GET", "/v1/units/{unit}/quiz"): Entry(["nobody", *VALID]),
    ("POST", "/v1/units/{unit}/quiz"): Entry(["ada", "bob"], send={"json": {"answers": {"why": "because"}}}),
    ("GET", "/v1/me"): Entry(VALID),
    ("GET", COURSE + "/members"): staff(),
    ("PUT", MEMBER): staff(send={"json": {"role": "student"}}),
    ("DELETE", MEMBER): staff(good={204}, first=("PUT", MEMBER, {"json": {}})),
    ("POST", COURSE + "/invitations"): staff(send={"json": {"login": "ada"}}, first=("PUT", MEMBER, {"json": {}})),
    ("POST", COURSE + "/roster"): staff(send={"json": {"csv": "login,name\nbob,Bob", "apply": True}}),
    ("GET", COURSE + "/tokens"): staff(),
    ("POST", COURSE + "/tokens"): staff(good={201}, send={"json": {"role": "lms"}}),
    ("DELETE", COURSE + "/tokens/{token_id}"): staff(good={204}),
    ("GET", DELIVERIES): staff("lms"),
    ("POST", DELIVERIES + "/resend"): staff(send={"json": {}}),
    ("POST", DELIVERIES + "/{delivery}/resend"): staff(),
    ("GET", "/v1/callback-secret"): Entry(["lms"]),
    ("POST", "/v1/callback-secret"): Entry(["lms"]),
    ("GET", "/courses/{course}/regrades"): page(*STAFF),
    ("POST", "/courses/{course}/regrades"): page("teacher", "admin", good={422}),  # the form is empty
    ("GET", "/courses/{course}/regrades/{regrade_id}"): page(*STAFF),
    ("POST", "/courses/{course}/regrades/{regrade_id}"): page("teacher", "admin", good={422}),
    ("GET", "/courses/{course}/units/{unit}/by-hand"): page(*STAFF),
    ("POST", "/courses/{course}/units/{unit}/by-hand"): page("teacher", "admin", good={422}),
    ("POST", "/v1/course/reload"): admin(good={409}),  # there are no files
    ("POST", "/v1/course/versions"): staff(good={415}),
    ("GET", "/v1/course/versions"): staff(),
    ("GET", "/v1/course/versions/{version}"): staff(good={404}),
    ("DELETE", "/v1/course/versions/{version}"): staff(good={404}),
    ("POST", "/v1/course/versions/{version}/publish"): admin(good={404}),
    ("GET", "/v1/course/files"): staff(good={409}),
    ("GET", "/course-files"): page("teacher", "elsewhere", "admin"),
    ("POST", "/course-files"): page("admin", good={409}),
    ("GET", "/course-files/{version}"): page("teacher", "elsewhere", "admin", good={404}),
    ("POST", "/course-files/{version}"): page("admin", good={404}),
    ("POST", "/course-files/{version}/delete"): page("teacher", "elsewhere", "admin", good={404}),
    ("POST", "/v1/regrades"): staff(good={202}, send={"json": {"unit": "L0.0", "reason": "a new test"}}),
    ("GET", "/v1/regrades"): staff(),
    ("GET", REGRADE): staff(),
    ("GET", REGRADE + "/moves"): staff(),
    ("GET", REGRADE + "/students"): staff(),
    ("POST", REGRADE + "/apply"): staff(send={"json": {}}),
    ("POST", REGRADE + "/drop"): staff(send={"json": {}}),
    ("POST", REGRADE + "/rollback"): staff(send={"json": {}}),
    ("GET", "/v1/units/{unit}/versions"): staff(),
    ("GET", "/v1/students/{student}"): admin(),
    ("DELETE", "/v1/students/{student}"): admin(),
    ("GET", "/v1/audit"): staff(),
}


def served(routes: list[Any]) -> set[tuple[str, str]]:
    """Every method and path that the application answers to."""
    found = set()
    for route in routes:
        if inner := getattr(route, "original_router", None):
            found |= served(inner.routes)
        elif hasattr(route, "methods"):
            found |= {(method, route.path.replace(":path", "")) for method in route.methods - {"HEAD"}}
        else:
            found.add(("GET", route.path))  # the mounted files
    return found


def test_the_table_holds_exactly_the_routes_that_are_served(bench):
    app: FastAPI = bench.app
    assert served(app.routes) == set(TABLE)


class Scene:
    """A graded submission of ada's, and one that waits."""

    def __init__(self, bench):
        self.bench = bench
        self.graded = bench.submitted("ada")
        [self.run] = bench.queue.submitted
        bench.graded(bench.worker(FakeGrading(samples.surviving("m01"))))
        self.queued = bench.submitted("ada")
        told = {"platform": "p", "line_item": "https://lms.example/1", "recipient": "7", "now": bench.clock()}
        with database.writing(bench.engine) as connection:
            outbox.connect(connection, course="default", unit="L0.0", student="ada", **told)
        [self.delivery] = [row.id for row in bench.rows(tables.deliveries)]
        self.tokens = {}
        with database.writing(bench.engine) as connection:
            made = mint.for_course(connection, "default", Role.LMS, By(None, bench.clock()))
        self.token_id = made.account.id
        self.batch = ""

    @property
    def names(self):
        mine = {
            "run_id": self.run,
            "delivery": self.delivery,
            "token_id": self.token_id,
            "login": "ada",
            "version": "0",
        }
        return {**mine, "regrade_id": self.batch, **PLAIN}

    def path(self, template, entry):
        if template == "/static":
            return "/static/style.css"
        submission = self.queued if entry.queued else self.graded
        self.regrade(template)
        return template.format(submission_id=submission, **self.names)

    def regrade(self, template):
        """The id of a batch of regrades, made once it is asked for."""
        if "{regrade_id}" in template and not self.batch:
            send = {"json": {"unit": "L0.0", "reason": "a new test"}}
            self.batch = self.ask("admin", "POST", "/v1/regrades", send).json()["id"]
        return self.batch

    def ask(self, who, method, path, send):
        return self.bench.client.request(method, path, headers=self.headers(who), **send)

    def headers(self, who):
        if who not in ("revoked", "expired"):
            return self.bench.auth(who)
        if who not in self.tokens:
            now, secret = self.bench.clock(), accounts.new_secret()
            with database.writing(self.bench.engine) as connection:
                expires = now - 1 if who == "expired" else None
                account = accounts.create(connection, secret=secret, role=Role.ADMIN, now=now - 10, expires_at=expires)
                if who == "revoked":
                    accounts.revoke(connection, account.id, now)
            self.tokens[who] = secret
        return {"Authorization": f"Bearer {self.tokens[who]}"}


@pytest.mark.parametrize(("method", "template"), sorted(TABLE))
def test_a_route_opens_to_exactly_its_roles(bench, method, template):
    entry = TABLE[method, template]
    scene = Scene(bench)
    if "/events" in template:  # ended, or the stream would not end here
        bench.graded()
    path = scene.path(template, entry)
    for who in sorted(WHO, key=lambda who: who in entry.may):  # first those who may not: they must change nothing
        if entry.first and who in entry.may:
            before_method, before_path, before_send = entry.first
            assert scene.ask("admin", before_method, scene.path(before_path, entry), before_send).status_code == 200
        answer = scene.ask(who, method, path, entry.send)
        if entry.page:
            assert answer.status_code == 303, (who, answer.text)
            assert answer.headers["Location"].startswith("/sign-in")
        elif who in entry.may:
            assert answer.status_code in entry.good, (who, answer.text)
        elif who in ("nobody", "revoked", "expired"):
            assert answer.status_code == 401, (who, answer.text)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert answer.json()["code"] == ("token_missing" if who == "nobody" else "token_invalid")
        else:
            refused = entry.staff_refused if who in ("teacher", "admin") else None
            assert answer.status_code == (refused or entry.refused), (who, answer.text)


API = sorted(key for key, entry in TABLE.items() if key[1].startswith("/v1/") and not entry.public)


ITSELF = ("/v1/callback-secret",)
"""What is the token's own, whatever it is good for."""


def held(bench):
    """Everything that is stored, but for who was seen when."""
    tables = [table for table in metadata.sorted_tables if table.name not in ("ag_sessions", "ag_guesses")]
    return {table.name: [tuple(row) for row in bench.rows(table)] for table in tables}


def limited(bench, role, course):
    """Headers of a token that is good for one course only."""
    with database.writing(bench.engine) as connection:
        student = "ada" if role == "student" else None
        by = By(None, bench.clock())
        return {
            "Authorization": f"Bearer {mint.for_course(connection, course, Role(role), by, student=student).secret}"
        }


@pytest.mark.parametrize(("method", "template"), [key for key in API if key[1] not in ITSELF])
def test_who_is_in_another_course_only_sees_nothing_and_changes_nothing(bench, method, template):
    entry = TABLE[method, template]
    scene = Scene(bench)
    if entry.first:
        scene.ask("admin", entry.first[0], scene.path(entry.first[1], entry), entry.first[2])
    asks = {role: (bench.client.request, limited(bench, role, "other")) for role in ("grader", "teacher", "lms")}
    asks["ada"] = (bench.client.request, limited(bench, "student", "other"))  # the same student, there
    for who, role in (("ada at a browser", "student"), ("a teacher at a browser", "teacher")):
        browser = bench.browser(who.partition(" ")[0], other=role)
        asks[who] = (browser.send, {"X-CSRF-Token": browser.csrf})
    scene.regrade(template)
    before = held(bench) if method != "GET" else None
    for who, (ask, headers) in asks.items():
        for query in ("", "?course=default"):
            answer = ask(method, scene.path(template, entry) + query, headers=headers, **entry.send)
            assert answer.status_code < 500, (who, answer.text)
            assert before is None or held(bench) == before, who
            if method != "GET" or (query and "unit" not in template):
                assert answer.status_code in (403, 404, 422) or template in EVERYBODYS, (who, answer.text)
            secrets = [scene.graded, scene.queued, scene.token_id]
            if not who.startswith("ada") and template != "/v1/audit":  # that she is in the other course is no secret
                secrets.append("ada")
            said = set(re.findall(r"\w+", answer.text))  # a name may well be a part of some random id
            assert not said & set(secrets) or answer.status_code == 404, (who, answer.text)


EVERYBODYS = ("/v1/me", "/v1/courses", "/v1/audit", "/v1/units/{unit}", "/v1/course/versions", "/v1/course/files")
"""What is answered about the caller's own courses, is of all courses, or is no secret."""


@pytest.mark.full
@pytest.mark.parametrize(("method", "template"), API)
def test_a_token_for_the_course_opens_what_its_role_may(bench, method, template):
    entry = TABLE[method, template]
    scene = Scene(bench)
    if "/events" in template:
        bench.graded()
    for role, may in (("teacher", "teacher" in entry.may), ("grader", "teacher" in entry.may and method == "GET")):
        if entry.first and may:
            scene.ask("admin", entry.first[0], scene.path(entry.first[1], entry), entry.first[2])
        headers = limited(bench, role, "default")
        scene.regrade(template)
        before = held(bench)
        answer = bench.client.request(method, scene.path(template, entry), headers=headers, **entry.send)
        if may and not (role == "grader" and template in ("/v1/audit", COURSE + "/tokens")):
            assert answer.status_code in entry.good, (role, answer.text)
        else:
            assert answer.status_code in (403, 404), (role, answer.text)
            assert held(bench) == before


@pytest.mark.parametrize(("method", "template"), sorted(key for key, entry in TABLE.items() if entry.page))
def test_a_page_opens_to_exactly_those_people_in_the_course(bench, method, template):
    entry = TABLE[method, template]
    scene = Scene(bench)
    path = scene.path(template, entry)
    for who in sorted(PEOPLE, key=lambda who: who in entry.people):
        roles = {"elsewhere": {"other": "teacher"}}.get(who, {"default": who} if who in MEMBERS[:-1] else {})
        browser = bench.browser(who, admin=who == "admin", **roles)
        send = {**entry.send, "data": {"csrf": browser.csrf, **entry.send.get("data", {})}} if method == "POST" else {}
        if method == "POST":
            bare = browser.send(method, path, data=entry.send.get("data", {}))
            assert bare.status_code in (403, 404), (who, bare.text)  # without the CSRF token
        answer = browser.send(method, path, **send)
        if who in entry.people:
            assert answer.status_code in entry.good, (who, answer.text)
        else:
            assert answer.status_code in (403, 404), (who, answer.text)


@pytest.mark.parametrize("template", sorted({path for _, path in TABLE if "{submission_id}" in path}))
def test_another_students_submission_looks_exactly_like_one_that_never_was(bench, template):
    scene = Scene(bench)
    for method in ("GET", "POST", "PUT", "DELETE"):
        if (entry := TABLE.get((method, template))) is None or entry.refused != 404:
            continue
        answers = []
        for submission in (scene.graded, "0" * 32):
            path = template.format(submission_id=submission, run_id=scene.run, **HINT)
            answer = scene.ask("bob", method, path, entry.send).json()
            del answer["request_id"]
            answers.append(answer)
        assert answers[0] == answers[1]


ODD = [
    "%00",
    "%ED%A0%80",
    "%FF%FE",
    "%0A",
    "%F0%9F%92%A5",
    "..%2F..%2Fetc%2Fpasswd",
    "%25s",
    "a" * 3000,
    "'%20OR%201=1--",
    "-1",
]


@pytest.mark.both_databases
def test_no_name_in_a_path_or_a_query_is_too_odd(bench):
    scene = Scene(bench)
    document = bench.app.openapi()
    parameters = {
        (method.upper(), path): [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    headers = bench.auth("admin")
    for method, template in sorted(TABLE):
        entry = TABLE[method, template]
        names = [part[1:-1] for part in template.split("/") if part.startswith("{")]
        scene.regrade(template)
        plain = {"submission_id": scene.graded, **scene.names, "student": "x"}
        for odd in ODD:
            paths = [template.format(**{**plain, name: odd}) for name in names]
            paths += [f"{template.format(**plain)}?{name}={odd}" for name in parameters.get((method, template), [])]
            for path in paths:
                answer = bench.client.request(method, path, headers=headers, **entry.send)
                assert answer.status_code < 500 or template == "/readyz", (method, path, answer.text)


def test_every_path_says_which_methods_it_answers_to(bench):
    scene = Scene(bench)
    for template in {path for _, path in TABLE if path != "/static"}:
        methods = {method for method, path in TABLE if path == template}
        expected = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        path = scene.path(template, next(iter(TABLE.values())))
        for method in ("PATCH", "TRACE", "BREW", *({"GET", "POST", "PUT", "DELETE"} - methods)):
            answer = bench.client.request(method, path)
            assert answer.status_code == 405, (method, path)
            assert set(answer.headers["Allow"].split(", ")) == expected
        options = bench.client.request("OPTIONS", path)
        assert (options.status_code, set(options.headers["Allow"].split(", "))) == (204, expected)
        assert "Access-Control-Allow-Origin" not in options.headers


@pytest.mark.parametrize(("method", "template"), sorted(key for key in TABLE if key[0] == "GET"))
def test_head_is_answered_as_get_is(bench, method, template):
    scene = Scene(bench)
    bench.graded()
    entry = TABLE[method, template]
    if entry.first:
        scene.ask("admin", entry.first[0], scene.path(entry.first[1], entry), entry.first[2])
    path = scene.path(template, entry)
    ask = (
        bench.browser("boss", admin=True).send if entry.page else lambda *asked, **how: scene.ask("admin", *asked, how)
    )
    get, head = (ask(each, path, **entry.send) for each in ("GET", "HEAD"))
    assert head.status_code == get.status_code
    assert head.headers.get("Content-Type") == get.headers.get("Content-Type")


def test_the_token_for_metrics_opens_nothing_else(make_bench):
    bench = make_bench(metrics_token="scrape-me")
    headers = {"Authorization": "Bearer scrape-me"}
    assert bench.client.request("GET", "/metrics", headers=headers).status_code == 200
    for path in ("/v1/audit", "/v1/courses", "/v1/units/L0.0/submissions"):
        assert bench.client.request("GET", path, headers=headers).status_code == 401
    wrong = {"Authorization": "Bearer scrape-m\u00e9".encode()}
    assert bench.client.request("GET", "/metrics", headers=wrong).status_code == 401

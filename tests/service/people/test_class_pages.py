import re

import pytest

from service import accounts, database
from service.people import members, users
from service.tables import audit, extensions, tokens
from service.tables import members as member_rows

THIRTY = "Email;Name;Student ID;Section\r\n" + "".join(
    f"s{n:02}@example.org;Student Nr. {n};m{n:02};{'AB'[n % 2]}\r\n" for n in range(30)
)
PEOPLE = "/courses/nlp/people"


@pytest.fixture
def tess(bench):
    return bench.browser("tess", nlp="teacher")


def hidden(page, name):
    return re.search(rf'name="{name}" value="([^"]*)"', page)[1]


def test_thirty_students_come_from_a_file_after_a_look_at_what_it_changes(bench, tess):
    file = {"file": ("class.csv", THIRTY.encode("utf-16"), "text/csv")}
    shown = tess.send("POST", PEOPLE + "/import", data={"csrf": tess.csrf}, files=file)
    assert "30 new, 0 join, 0 change, 0 stay" in shown.text
    assert len(bench.rows(member_rows)) == 1  # nothing is done yet
    answer = tess.post(PEOPLE + "/import", do="apply", csv=THIRTY, digest=hidden(shown.text, "digest"))
    assert answer.status_code == 303
    page = tess.get(PEOPLE + "?role=student&section=B").text
    assert page.count('aria-label="Remove') == 15
    again = tess.post(PEOPLE + "/import", csv=THIRTY)
    assert "There is nothing to do" in again.text


def test_a_bad_line_is_named_and_nothing_is_changed_or_lost(bench, tess):
    bad = THIRTY + "not an email;X;m99;A\r\ns01@example.org;Twice;m98;A\r\n"
    shown = tess.post(PEOPLE + "/import", do="apply", csv=bad, digest="")
    assert shown.status_code == 422
    assert "Line 32:" in shown.text and "Line 33:" in shown.text
    assert "not an email;X;m99;A" in shown.text  # to be corrected
    assert len(bench.rows(member_rows)) == 1


def test_a_list_is_not_applied_to_people_who_changed_since_it_was_shown(bench, tess):
    shown = tess.post(PEOPLE + "/import", csv=THIRTY)
    bench.person("m03", nlp="grader")
    answer = tess.post(PEOPLE + "/import", do="apply", csv=THIRTY, digest=hidden(shown.text, "digest"))
    assert answer.status_code == 409
    assert len(bench.rows(member_rows)) == 2


def test_links_are_made_for_all_who_have_no_password_and_each_lets_its_person_in(bench, tess):
    tess.post(
        PEOPLE + "/import",
        do="apply",
        csv=THIRTY,
        digest=hidden(tess.post(PEOPLE + "/import", csv=THIRTY).text, "digest"),
    )
    page = tess.post(PEOPLE, do="links").text
    links = re.findall(r"http://grader.example(/set-password\?code=[\w-]+)", page)
    assert len(set(links)) == 31  # with the teacher's own
    browser = bench.browser()
    form = browser.get(links[0]).text
    sent = {"csrf": hidden(form, "csrf"), "code": hidden(form, "code")}
    password = "three words in a row"
    assert (
        browser.send("POST", "/set-password", data={**sent, "password": password, "again": password}).status_code == 303
    )
    assert browser.get("/courses").status_code == 200
    bench.person("late@example.org", nlp="student")
    page = tess.post(PEOPLE, do="links").text
    assert len(re.findall(r"/set-password\?code=", page)) == 1  # those handed out before go on working
    assert bench.browser().get(links[1]).status_code == 200
    assert not any(link.partition("=")[2] in str(bench.rows(audit)) for link in links)


def test_a_teacher_adds_changes_and_removes_people(bench, tess):
    added = tess.post(PEOPLE, do="add", login="Ada@Example.org", name="Ada", student="a1", role="student", section="A")
    assert added.status_code == 303
    assert tess.post(PEOPLE, do="change", login="ada@example.org", role="grader", section="B").status_code == 303
    with database.reading(bench.engine) as connection:
        user = users.find_by_login(connection, "ada@example.org")
        member = members.find(connection, "nlp", user.id)
    assert (member.role.value, member.section, member.user.student) == ("grader", "B", "a1")
    assert tess.post(PEOPLE, do="remove", login="ada@example.org").status_code == 303
    assert tess.post(PEOPLE, do="remove", login="ada@example.org").status_code == 404
    said = [row.action for row in bench.rows(audit) if row.student == "a1"]
    assert said == ["member.add", "member.change", "member.remove"]


def test_the_last_teacher_stays(bench, tess):
    assert tess.post(PEOPLE, do="remove", login="tess").status_code == 409
    assert tess.post(PEOPLE, do="change", login="tess", role="student", section="").status_code == 409
    bench.person("tom", nlp="teacher")
    assert tess.post(PEOPLE, do="remove", login="tess").status_code == 303
    assert tess.get(PEOPLE).status_code == 404


@pytest.mark.parametrize(
    ("roles", "admin", "may"),
    [
        ({"nlp": "student"}, False, True),
        ({"nlp": "grader"}, False, True),
        ({"nlp": "student", "other": "student"}, False, False),
        ({"nlp": "student", "other": "teacher"}, False, False),
        ({"nlp": "teacher"}, False, False),
        ({"nlp": "student"}, True, False),
    ],
    ids=str,
)
def test_a_teacher_makes_no_link_to_become_somebody_who_can_do_more(bench, tess, roles, admin, may):
    user = bench.person("ada", admin=admin, **roles)
    with database.writing(bench.engine) as connection:
        users.set_password(connection, user.id, "a hash")
    answer = tess.post(PEOPLE, do="link", login="ada")
    assert (answer.status_code, "/set-password?code=" in answer.text) == ((200, True) if may else (403, False))
    boss = bench.browser("boss", admin=True)
    assert "/set-password?code=" in boss.post(PEOPLE, do="link", login="ada").text


def test_a_unit_is_set_up_and_one_deadline_extended_on_a_page(bench, tess):
    bench.person("ada", nlp="student")
    here = "/courses/nlp/units/L0.0"
    fields = {"due_at": "2027-02-01T23:59", "attempts": "3", "cooldown_minutes": "1,5", "penalty_percent": "10"}
    assert tess.post(here + "/settings", **fields).status_code == 303
    asked = tess.get("/v1/courses/nlp/units/L0.0").json()
    assert (asked["due_at"], asked["attempts"], asked["cooldown_seconds"]) == ("2027-02-01T23:59:00Z", 3, 90.0)
    assert asked["late_policy"]["penalty"] == 0.1
    assert tess.post(here + "/extensions", student="ada", due_at="2027-02-03T12:00", reason="ill").status_code == 303
    assert bench.rows(extensions)[0].student == "ada"
    page = bench.browser("ada").get(here).text
    assert "Wed 2027-02-03 12:00" in page and "3 of 3 left" in page
    assert tess.post(here + "/extensions", student="nobody", extra_attempts="1").status_code == 422
    assert tess.post(here + "/extensions", student="ada", withdraw="1").status_code == 303
    assert not bench.rows(extensions)


def test_what_a_page_shows_of_a_unit_can_be_sent_back_and_changes_nothing(bench, tess):
    body = {
        "opens_at": "2027-01-01T08:00:30Z",
        "due_at": "2027-02-01T23:59:59Z",
        "attempts": 7,
        "hints": 0,
        "hint_cooldown_seconds": None,
        "late_policy": {"penalty": 0.125, "cap": 0.5, "grace_seconds": 90, "zero_after_seconds": 5400, "per": "hour"},
        "feedback": {"normal": "names", "after_passing": "hints", "attempts": 2},
        "counts": "latest",
    }
    path = "/v1/courses/nlp/units/L0.0"
    before = tess.send("PUT", path, headers={"X-CSRF-Token": tess.csrf}, json=body).json()
    page = (
        tess.get("/courses/nlp/units/L0.0/settings").text.partition("</form>")[2].partition("</fieldset>\n<button>")[0]
    )
    page = page.partition("<form")[2]
    fields = dict(re.findall(r'<input id="\w+" name="(\w+)"[^>]*? value="([^"]*)"', page))
    for name, options in re.findall(r'<select id="\w+" name="(\w+)"[^>]*>(.*?)</select>', page, re.S):
        fields[name] = re.search(r'value="([^"]*)" selected', options)[1]
    assert len(fields) > 15
    assert tess.post("/courses/nlp/units/L0.0/settings", **fields).status_code == 303
    assert tess.get(path).json() == before


@pytest.mark.parametrize(
    "fields",
    [{"attempts": "many"}, {"attempts": "-1"}, {"penalty_percent": "101"}, {"due_at": "tomorrow"}, {"counts": "x"}],
)
def test_a_field_that_makes_no_sense_is_refused_and_what_was_typed_stays(bench, tess, fields):
    answer = tess.post("/courses/nlp/units/L0.0/settings", **{"hints": "17", **fields})
    assert answer.status_code == 422
    assert 'value="17"' in answer.text
    assert 'role="alert"' in answer.text


def test_a_course_is_made_changed_and_archived(bench):
    boss = bench.browser("boss", admin=True)
    answer = boss.post("/courses", course="nlp-26", title="Language", timezone="Europe/Berlin", teach="1")
    assert answer.headers["Location"] == "/courses/nlp-26"
    assert boss.post("/courses", course="nlp-26", title="Again").status_code == 409
    assert boss.post("/courses", course="no id", title="X").status_code == 422
    assert boss.post("/courses", course="x", title="X", timezone="Mars").status_code == 422
    assert "teacher" in boss.get("/courses").text
    assert boss.post("/courses/nlp-26/settings", title="Lang", timezone="UTC", archived="1").status_code == 303
    assert boss.get("/v1/courses/nlp-26").json()["archived"] is True


def test_a_token_of_the_course_is_shown_once_and_revoked(bench, tess):
    page = tess.post("/courses/nlp/tokens", role="lms", label="moodle <b>", days="30").text
    secret = re.search(r'id="token">(ag_[\w-]+)<', page)[1]
    assert "moodle &lt;b&gt;" in page
    page = tess.get("/courses/nlp/tokens").text
    assert secret not in page
    auth = {"Authorization": f"Bearer {secret}"}
    assert bench.client.request("GET", "/v1/me", headers=auth).json()["courses"] == [{"course": "nlp", "role": "lms"}]
    [token] = re.findall(r'name="revoke" value="(\w+)"', page)
    tess.post("/courses/nlp/tokens", revoke=token)
    assert bench.client.request("GET", "/v1/me", headers=auth).status_code == 401


def test_a_teacher_can_neither_make_tokens_beyond_the_course_nor_revoke_others(bench, tess):
    bench.token("lms")
    [other] = [row.id for row in bench.rows(tokens) if row.role == "lms"]
    assert tess.post("/courses/nlp/tokens", role="admin").status_code == 422
    assert tess.post("/courses/nlp/tokens", role="person").status_code == 422
    assert tess.post("/courses/nlp/tokens", role="student").status_code == 422
    assert tess.post("/courses/nlp/tokens", revoke=other).status_code == 404
    assert tess.post("/me/tokens", revoke=other).status_code == 404


def test_a_students_own_token_does_what_the_student_can_and_no_longer_than_that(bench):
    ada = bench.browser("ada", default="student")
    page = ada.post("/me/tokens", label="laptop").text
    secret = re.search(r'id="token">(ag_[\w-]+)<', page)[1]
    headers = {"Authorization": f"Bearer {secret}"}
    from tests.service import samples

    def post():
        return bench.client.request("POST", "/v1/units/L0.0/submissions", headers=headers, **samples.form())

    assert post().status_code == 202
    assert bench.client.request("GET", "/v1/courses", headers=headers).status_code == 403
    with database.writing(bench.engine) as connection:
        user = users.find_by_login(connection, "ada")
        connection.execute(member_rows.delete().where(member_rows.c.user == user.id))
    assert (post().status_code, post().json()["code"]) == (403, "not_enrolled")
    with database.writing(bench.engine) as connection:
        users.close(connection, user, bench.clock())
    assert post().status_code == 401


def test_an_administrator_lets_people_in_and_out(bench):
    boss = bench.browser("boss", admin=True)
    page = boss.post("/users", do="add", login="new@example.org", name="New", admin="1").text
    assert "/set-password?code=" in page
    new = bench.browser("new@example.org")
    assert new.get("/users").status_code == 200
    assert boss.post("/users", do="no-admin", login="new@example.org").status_code == 303
    assert new.get("/users").status_code == 403
    assert boss.post("/users", do="close", login="new@example.org").status_code == 303
    assert new.get("/me").status_code == 303
    assert boss.post("/users", do="open", login="new@example.org").status_code == 303
    assert boss.post("/users", do="close", login="boss").status_code == 409
    assert boss.post("/users", do="no-admin", login="boss").status_code == 409


def test_the_audit_log_is_shown_by_filters_and_pages(bench, tess):
    for number in range(120):
        tess.post(PEOPLE, do="add", login=f"s{number}@example.org", role="student")
    page = tess.get("/courses/nlp/audit?action=member.add&since=2027-01-01").text
    assert "s119@example.org" in page and "s0@example.org" not in page and "course.create" not in page
    older = re.search(r'href="/courses/nlp/audit\?([^"]*)">Older', page)[1].replace("&amp;", "&")
    assert "s0@example.org" in tess.get(f"/courses/nlp/audit?{older}").text
    assert "Nothing of that kind" in tess.get("/courses/nlp/audit?until=2026-01-01").text
    bench.person("eve", other="student")
    assert "other" not in tess.get("/courses/nlp/audit").text.partition("<table")[2]
    assert accounts.Role.TEACHER.value in page


def test_a_student_sees_what_they_sent_and_a_hostile_name_is_text(bench):
    bench.browser("ada", default="student")
    bench.submitted("ada")
    bench.graded()
    ada = bench.browser("ada", default="student")
    page = ada.get("/courses/default/units/L0.0").text
    assert len(re.findall(r'href="/submissions/\w+"', page)) == 1
    assert "done" in page and "<script>" not in page
    hostile = '"><script>alert(1)</script>'
    boss = bench.browser("boss", admin=True)
    boss.post("/courses", course="x", title=hostile)
    boss.post("/users", do="add", login="x@example.org", name=hostile, student=hostile)
    for path in ("/courses", "/courses/x", "/courses/x/settings", "/users", "/audit", "/courses/x/people"):
        text = boss.get(path).text
        assert "<script>alert" not in text, path


def test_nobody_is_taken_over_by_being_put_into_a_course(bench, tess):
    for login, password in (("prof", "a hash"), ("new", "")):
        user = bench.person(login)
        if password:
            with database.writing(bench.engine) as connection:
                users.set_password(connection, user.id, password)
    bench.clock.now += 60
    for login, status in (("prof", 403), ("new", 200)):
        assert tess.post(PEOPLE, do="add", login=login, role="student").status_code == 303
        assert tess.post(PEOPLE, do="link", login=login).status_code == status

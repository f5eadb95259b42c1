import re

import pytest

from service import accounts, database
from service.accounts import Role
from service.people import invitations, mint, sign_in, users
from service.tables import audit, guesses, sessions

PASSWORD = "horse staple battery"


@pytest.fixture
def ada(bench):
    """Somebody with a password."""
    user = bench.person("ada@example.org", default="student")
    with database.writing(bench.engine) as connection:
        users.set_password(connection, user.id, bench.service.passwords.hash(PASSWORD))
    return user


def form_of(browser, path):
    """The hidden fields of the page's first form in the main part."""
    page = browser.get(path)
    main = page.text.partition("<main")[2]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', main.partition("</form>")[0]))


def signed_in(bench, login, password, next=""):
    browser = bench.browser()
    fields = form_of(browser, f"/sign-in?next={next}")
    return browser, browser.send("POST", "/sign-in", data={**fields, "login": login, "password": password})


def test_a_page_for_people_leads_to_the_sign_in_page_and_from_there_back(bench, ada):
    answer = bench.browser().get("/me?a=b")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/sign-in?next=%2Fme%3Fa%3Db")
    browser, answer = signed_in(bench, " ADA@Example.org", PASSWORD, next="%2Fme%3Fa%3Db")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/me?a=b")
    assert "ada@example.org" in browser.get("/me?a=b").text


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/%0d%0aSet-Cookie:x",
        "javascript:alert(1)",
        "me",
        "",
    ],
)
def test_it_leads_nowhere_else(bench, ada, wanted):
    browser = bench.browser()
    fields = form_of(browser, "/sign-in") | {"next": wanted, "login": ada.login, "password": PASSWORD}
    location = browser.send("POST", "/sign-in", data=fields).headers["Location"]
    assert location == ("/%0d%0aSet-Cookie:x" if "%0d" in wanted else "/courses")  # as it is: browsers do not decode it


def test_a_wrong_password_and_an_unknown_login_are_answered_alike(bench, ada):
    _, wrong = signed_in(bench, ada.login, "wrong password")
    _, unknown = signed_in(bench, "eve@example.org", PASSWORD)
    assert wrong.status_code == unknown.status_code == 403
    hidden = re.compile(r'value="[^"]*"')
    assert hidden.sub("", wrong.text) == hidden.sub("", unknown.text)
    assert not bench.rows(sessions)
    assert [row.action for row in bench.rows(audit)].count("session.refuse") == 2


def test_somebody_without_a_password_or_with_a_closed_account_cannot_sign_in(bench, ada):
    bench.person("bob@example.org")
    for password in ("", "nobody's", PASSWORD):
        assert signed_in(bench, "bob@example.org", password)[1].status_code == 403
    with database.writing(bench.engine) as connection:
        users.close(connection, ada, bench.clock())
    assert signed_in(bench, ada.login, PASSWORD)[1].status_code == 403


def test_too_many_tries_at_a_login_have_to_wait_even_with_the_right_password(bench, ada):
    for _ in range(sign_in.PER_LOGIN):
        assert signed_in(bench, ada.login, "wrong password")[1].status_code == 403
    _, answer = signed_in(bench, ada.login, PASSWORD)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= sign_in.WINDOW_SECONDS + 1
    assert signed_in(bench, "nobody@example.org", "x")[1].status_code == 403  # others may
    bench.clock.now += sign_in.WINDOW_SECONDS + 1
    assert signed_in(bench, ada.login, PASSWORD)[1].status_code == 303
    assert not bench.rows(guesses)


def test_tries_from_one_address_are_counted_over_all_logins(bench, ada, monkeypatch):
    monkeypatch.setattr(sign_in, "PER_ADDRESS", 3)
    for number in range(3):
        assert signed_in(bench, f"user{number}@example.org", "x")[1].status_code == 403
    assert signed_in(bench, ada.login, PASSWORD)[1].status_code == 429


def test_signing_in_renews_the_session_and_leaves_none_behind(bench, ada):
    browser = bench.browser("mallory")
    known = browser.cookies["ag_session"]
    fields = {"next": "", "login": ada.login, "password": PASSWORD}
    browser.cookies["ag_visitor"] = "v"
    from service.people.sessions import csrf_of

    answer = browser.send("POST", "/sign-in", data={**fields, "csrf": csrf_of("v")})
    assert answer.status_code == 303
    assert browser.cookies["ag_session"] != known
    assert len(bench.rows(sessions)) == 1
    assert browser.cookies["ag_session"] not in str(bench.rows(sessions))


def test_the_cookie_is_kept_from_scripts_and_behind_tls_from_everybody_else(bench, ada):
    for scheme in ("http", "https"):
        client = bench.client
        page = client.request("GET", f"{scheme}://grader.example/sign-in")
        visitor = page.headers["Set-Cookie"].partition(";")[0]
        csrf = re.search(r'name="csrf" value="(\w+)"', page.text)[1]
        answer = client.request(
            "POST",
            f"{scheme}://grader.example/sign-in",
            data={"csrf": csrf, "login": ada.login, "password": PASSWORD},
            headers={"Cookie": visitor},
        )
        [cookie] = [each for each in answer.headers.get_list("Set-Cookie") if "session" in each]
        assert "; HttpOnly" in cookie and "; SameSite=Lax" in cookie and "; Path=/" in cookie
        assert "Domain" not in cookie
        assert cookie.startswith("__Host-ag_session=") == ("; Secure" in cookie) == (scheme == "https")


@pytest.mark.parametrize(
    "path", ["/sign-in", "/set-password", "/sign-out", "/theme", "/me/sessions/end", "/me/password"]
)
@pytest.mark.parametrize("csrf", [None, "", "0" * 32])
def test_a_form_without_the_csrf_token_changes_nothing(bench, ada, path, csrf):
    browser = bench.browser("ada@example.org")
    browser.get("/sign-in")
    before = bench.rows(sessions)
    sent = {"login": ada.login, "password": PASSWORD, "session": "x"} | ({"csrf": csrf} if csrf is not None else {})
    answer = browser.send("POST", path, data=sent)
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf_missing")
    assert bench.rows(sessions) == before


def test_a_session_ends_at_sign_out_when_idle_and_after_its_life(bench):
    browser = bench.browser("ada")
    assert browser.get("/me").status_code == 200
    answer = browser.post("/sign-out")
    assert answer.headers["Location"] == "/sign-in?out=1"
    assert not browser.cookies and not bench.rows(sessions)
    browser = bench.browser("ada")
    bench.clock.now += 24 * 3600 + 1
    assert browser.get("/me").status_code == 303
    browser = bench.browser("ada")
    for _ in range(14):
        assert browser.get("/me").status_code == 200
        bench.clock.now += 86_400 - 1
    bench.clock.now += 14
    assert browser.get("/me").status_code == 303


def test_sessions_are_listed_and_ended_but_only_ones_own(bench):
    mine, other, eves = bench.browser("ada"), bench.browser("ada"), bench.browser("eve")
    [digest] = [each for each in re.findall(r'name="session" value="(\w+)"', mine.get("/me").text)]
    assert eves.post("/me/sessions/end", session=digest).status_code == 303
    assert other.get("/me").status_code == 200
    mine.post("/me/sessions/end", session=digest)
    assert other.get("/me").status_code == 303
    third = bench.browser("ada")
    mine.post("/me/sessions/end")
    assert (third.get("/me").status_code, mine.get("/me").status_code) == (303, 200)
    assert eves.get("/me").status_code == 200


def link_for(bench, user):
    with database.writing(bench.engine) as connection:
        return invitations.invite(connection, user.id, bench.clock())


def set_password(bench, code, password=PASSWORD, again=None):
    browser = bench.browser()
    fields = form_of(browser, f"/set-password?code={code}")
    sent = {**fields, "password": password, "again": again or password}
    return browser, browser.send("POST", "/set-password", data=sent)


def test_a_link_sets_a_password_once_and_ends_other_sessions(bench, ada):
    before = bench.browser("ada@example.org")
    code = link_for(bench, ada)
    browser, answer = set_password(bench, code, "another long one")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/courses")
    assert browser.get("/me").status_code == 200
    assert before.get("/me").status_code == 303
    assert signed_in(bench, ada.login, PASSWORD)[1].status_code == 403
    assert signed_in(bench, ada.login, "another long one")[1].status_code == 303
    assert bench.browser().get(f"/set-password?code={code}").status_code == 404


def token_of(bench, browser):
    """A token that this person makes."""
    page = browser.post("/me/tokens", label="a script").text
    return {"Authorization": f"Bearer {re.search(r'ag_[A-Za-z0-9_-]{43}', page)[0]}"}


def test_who_comes_back_by_a_link_revokes_the_tokens_they_had_made(bench, ada):
    token = token_of(bench, bench.browser(ada.login))
    assert bench.client.request("GET", "/v1/me", headers=token).status_code == 200
    browser, _ = set_password(bench, link_for(bench, ada), "another long one")
    assert bench.client.request("GET", "/v1/me", headers=token).status_code == 401
    assert browser.get("/me").status_code == 200  # the account itself stays
    assert {"password.set", "token.revoke"} <= {row.action for row in bench.rows(audit)}


@pytest.mark.parametrize(("asked", "status"), [({}, 200), ({"tokens": "1"}, 401)])
def test_changing_a_password_revokes_tokens_if_that_is_asked_for(bench, ada, asked, status):
    browser, _ = signed_in(bench, ada.login, PASSWORD)
    token = token_of(bench, browser)
    new = "something new altogether"
    assert browser.post("/me/password", current=PASSWORD, password=new, again=new, **asked).status_code == 303
    assert bench.client.request("GET", "/v1/me", headers=token).status_code == status


def test_nobody_holds_more_than_so_many_tokens(bench, ada, monkeypatch):
    monkeypatch.setattr(mint, "MOST_OF_A_PERSON", 2)
    browser = bench.browser(ada.login)
    first, _ = (token_of(bench, browser) for _ in range(2))
    refused = browser.post("/me/tokens", label="one more")
    assert refused.status_code == 409 and "ag_" not in refused.text.partition("<main")[2]
    me = bench.client.request("GET", "/v1/me", headers=first).json()
    assert browser.post("/me/tokens", revoke=me["id"]).status_code == 303
    assert token_of(bench, browser)


def test_an_old_replaced_or_made_up_link_does_not_work(bench, ada):
    first = link_for(bench, ada)
    second = link_for(bench, ada)
    for code in (first, "made-up", ""):
        assert bench.browser().get(f"/set-password?code={code}").status_code == 404
    bench.clock.now += invitations.LIFE_SECONDS + 1
    assert bench.browser().get(f"/set-password?code={second}").status_code == 404


@pytest.mark.parametrize("password", ["short", "ada@example.org", "aaaaaaaaaaaaaaaa", "x" * 201])
def test_a_weak_password_is_refused_and_the_link_still_works(bench, ada, password):
    code = link_for(bench, ada)
    _, answer = set_password(bench, code, password)
    assert answer.status_code == 422
    _, answer = set_password(bench, code, PASSWORD, again="something else")
    assert answer.status_code == 422
    assert set_password(bench, code)[1].status_code == 303


def test_ones_own_password_is_changed_with_the_one_before(bench, ada):
    browser, _ = signed_in(bench, ada.login, PASSWORD)
    new = "something new altogether"
    assert browser.post("/me/password", current="wrong", password=new, again=new).status_code == 403
    assert browser.post("/me/password", current=PASSWORD, password=new, again=new).status_code == 303
    assert signed_in(bench, ada.login, new)[1].status_code == 303


def test_a_cookie_opens_the_api_for_our_own_pages_only(bench):
    browser = bench.browser("tess", default="teacher")
    path = "/v1/courses/default"
    assert browser.get(path).status_code == 200
    assert browser.get(path, **{"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert browser.get(path, **{"Sec-Fetch-Site": "cross-site"}).status_code == 401
    answer = browser.send("PUT", path, json={"title": "New"})
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf_missing")
    answer = browser.send("PUT", path, headers={"X-CSRF-Token": browser.csrf}, json={"title": "New"})
    assert answer.status_code == 200


def test_a_bearer_token_counts_before_the_cookie(bench):
    browser = bench.browser("tess", default="teacher")
    assert browser.get("/v1/courses/default", **bench.auth("ada")).status_code == 403
    assert browser.get("/v1/courses/default", Authorization="Bearer nonsense").status_code == 401


def test_a_person_whose_account_is_closed_or_gone_is_signed_out(bench):
    browser = bench.browser("tess", default="teacher")
    with database.writing(bench.engine) as connection:
        user = users.find_by_login(connection, "tess")
        accounts.revoke(connection, user.account, bench.clock())
    assert browser.get("/me").status_code == 303
    assert browser.get("/v1/courses").status_code == 401


def test_the_colours_are_kept_in_a_cookie(bench):
    browser = bench.browser("ada")
    assert "data-theme" not in browser.get("/me").text
    answer = browser.post("/theme", theme="dark", next="/me?x=1")
    assert answer.headers["Location"] == "/me?x=1"
    assert '<html lang="en" data-theme="dark">' in browser.get("/me").text
    browser.post("/theme", theme="")
    assert "data-theme" not in browser.get("/me").text
    browser.cookies["ag_theme"] = '"><script>'
    assert "<script" not in browser.get("/me").text


def test_a_hostile_name_is_shown_as_text(bench):
    with database.writing(bench.engine) as connection:
        user = users.add(connection, login="x@y", name="<b>&\"'", now=bench.clock())
    from service.people.sessions import begin

    browser = bench.browser()
    with database.writing(bench.engine) as connection:
        browser.cookies["ag_session"] = begin(connection, user.id, bench.clock(), agent="<script>")
    page = browser.get("/me").text
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page and "<script>" not in page


def test_a_persons_roles_are_those_they_have_now(bench):
    user = bench.person("ada", default="student", other="teacher")
    with database.reading(bench.engine) as connection:
        account = accounts.find(connection, user.account, bench.clock())
    assert account.role is Role.PERSON
    assert account.within("default").student == "ada"
    assert account.within("other").sees_class and account.within("other").student is None
    assert account.within("third") is None
    assert not (account.sees_class or account.reads_all or account.names_students or account.changes_class)


def test_sign_ins_that_all_threads_would_wait_for_are_put_off(bench, ada):
    passwords = bench.service.passwords
    for _ in range(10):
        passwords._places.acquire()
    _, answer = signed_in(bench, ada.login, PASSWORD)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    for _ in range(10):
        passwords._places.release()
    assert signed_in(bench, ada.login, PASSWORD)[1].status_code == 303


@pytest.mark.both_databases
@pytest.mark.parametrize("odd", ["a\0b", "\ud800", "a" * 300, "ﬃ" * 254, "'; --", "\u202e"])
def test_no_login_is_too_odd_to_be_refused(bench, odd):
    fields = form_of(browser := bench.browser(), "/sign-in")
    sent = {**fields, "login": odd, "password": odd}
    encoded = {name: value.encode("utf-8", "surrogatepass") for name, value in sent.items()}
    assert browser.send("POST", "/sign-in", data=encoded).status_code == 403
    boss = bench.browser("boss", admin=True)
    answer = boss.send(
        "POST", "/users", data={"csrf": boss.csrf, "do": "add", "login": encoded["login"], "student": encoded["login"]}
    )
    assert answer.status_code in (200, 422)


@pytest.mark.both_databases
def test_nothing_names_a_person_who_was_erased(bench):
    from service import students
    from service.offerings import By
    from service.people import mint

    boss = bench.browser("boss", admin=True)
    boss.post(
        "/courses/default/people",
        do="add",
        login="lovelace@example.org",
        name="Augusta King",
        student="k-4711",
        role="student",
        section="S",
    )
    with database.writing(bench.engine) as connection:
        user = users.find_by_login(connection, "lovelace@example.org")
        account = accounts.find(connection, user.account, bench.clock())
        mint.for_person(
            connection, account, user.student, By(account, bench.clock()), label="Augusta's", expires_at=None
        )
    link_for(bench, user)
    browser = bench.browser("lovelace@example.org")
    browser.get("/me")
    students.erase(bench.engine, bench.queue, "k-4711", who=None, wait_seconds=0, clock=bench.clock)
    assert browser.get("/me").status_code == 303
    from service.tables import metadata

    held = str([bench.rows(table) for table in metadata.sorted_tables])
    assert not any(name in held for name in ("lovelace", "Augusta", "k-4711"))

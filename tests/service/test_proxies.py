"""What a client sees through a proxy that ends TLS and serves us under a path.

The server is real, the headers are those that nginx sends with the configuration in docs/operations.md.
"""

import re

import httpx
import pytest

from service.app import create_app
from tests.service import samples
from tests.service.live import live
from tests.service.test_pages import Seen

OUTSIDE = "https://host.example/grader"
BY_PROXY = {
    "Host": "host.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Prefix": "/grader",
}


class Proxy:
    """Sends what a client asks for under OUTSIDE to the service, with or without the path before it."""

    def __init__(self, url, cuts, headers):
        self._url, self._cuts, self._headers = url, cuts, headers

    def ask(self, method, path, headers=None, **more):
        assert path.startswith("/grader/"), path
        inside = path.removeprefix("/grader") if self._cuts else path
        return httpx.request(method, self._url + inside, headers={**self._headers, **(headers or {})}, **more)


@pytest.fixture(params=["header", "setting, cut off", "setting, left on"])
def proxied(request, make_bench):
    """A bench and a proxy, in the three ways in which the path can be told."""
    by_header = request.param == "header"
    bench = make_bench(root_path="" if by_header else "/grader")
    headers = {name: value for name, value in BY_PROXY.items() if by_header or name != "X-Forwarded-Prefix"}
    with live(bench.app, bench.settings) as running:
        yield bench, Proxy(running.url, request.param != "setting, left on", headers)


def test_every_link_of_the_pages_leads_back_through_the_proxy(proxied):
    _, proxy = proxied
    tried = set()
    waiting = ["/grader/"]
    while waiting:
        path = waiting.pop()
        tried.add(path)
        answer = proxy.ask("GET", path)
        if answer.status_code == 303:  # to the sign-in page, which is outside too
            assert answer.headers["Location"].startswith("/grader/sign-in"), path
            continue
        assert answer.status_code == 200 or path == "/grader/readyz", path
        if answer.headers["Content-Type"].startswith("text/html"):
            waiting += set(Seen(answer.text).links) - tried - set(waiting)
    assert {"/grader/static/style.css", "/grader/units/L0.0", "/grader/openapi.json"} <= tried


def test_the_line_to_paste_names_the_address_outside(proxied):
    bench, proxy = proxied
    for path in ("/grader/", "/grader/units/L0.0"):
        assert f"'{OUTSIDE}/v1/units/L0.0/submissions?wait=60'" in Seen(proxy.ask("GET", path).text).text
    form = {"files": [("twice", ("twice.py", samples.SOURCE))]}
    answer = proxy.ask("POST", "/grader/v1/units/L0.0/submissions", bench.auth("ada"), **form)
    assert f"'{OUTSIDE}/v1/units/L0.0/submissions?wait=60'" in answer.json()["curl"]


def test_every_link_of_the_api_works_as_it_is_given(proxied):
    bench, proxy = proxied
    auth = bench.auth("admin")
    answer = proxy.ask("POST", "/grader/v1/units/L0.0/submissions", auth, **samples.form(student="ada"))
    links = answer.json()["links"]
    assert answer.status_code == 202 and answer.headers["Location"] == links["self"]
    bench.graded()
    paths = set(links.values()) | set(proxy.ask("GET", "/grader/v1/units/L0.0").json()["links"].values())
    assert {proxy.ask("GET", path, auth).status_code for path in paths} == {200}
    proxy.ask("POST", "/grader/v1/units/L0.0/submissions", auth, **samples.form(student="bob"))
    page = proxy.ask("GET", "/grader/v1/units/L0.0/submissions?limit=1", auth).json()
    following = proxy.ask("GET", page["next"], auth).json()
    assert len({row["links"]["self"] for row in (*page["submissions"], *following["submissions"])}) == 2


def test_problems_and_the_description_name_the_path_outside(proxied):
    _, proxy = proxied
    answer = proxy.ask("GET", "/grader/v1/nothing")
    assert answer.json()["type"] == "/grader/problems/not_found"
    assert "/grader/v1/nothing" in answer.json()["detail"]
    page = proxy.ask("GET", "/grader/nothing", {"Accept": "text/html"})
    assert page.headers["Content-Type"].startswith("text/html")
    assert set(Seen(page.text).links) == {"/grader/", "/grader/static/style.css", "/grader/static/icon.svg"}
    assert proxy.ask("GET", "/grader/openapi.json").json()["servers"][0]["url"] == "/grader"
    wrong = proxy.ask("PUT", "/grader/v1/units/L0.0/submissions")
    assert wrong.headers["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_no_answer_names_a_path_that_is_not_outside(proxied):
    bench, proxy = proxied
    submission = bench.submitted("ada")
    bench.graded()
    auth = bench.auth("admin")
    here = f"/v1/submissions/{submission}"
    again = proxy.ask("POST", f"/grader{here}/runs", auth, json={"reason": "again"})
    assert again.headers["Location"].startswith(f"/grader{here}/runs/")
    for path in ("/v1/units", "/v1/units/L0.0", "/v1/units/L0.0/submissions", here, f"{here}/runs", f"{here}/events"):
        answer = proxy.ask("GET", f"/grader{path}", auth)
        assert answer.status_code == 200
        assert '"/grader/' in answer.text, path
        assert not re.search(r'"/(?!grader/)[a-z]', answer.text), path


def test_headers_of_others_than_the_proxies_are_not_believed(make_bench, caplog):
    caplog.set_level("DEBUG", "service.app")
    bench = make_bench(forwarded_allow_ips="192.0.2.1,198.51.100.0/24")
    page = bench.client.request("GET", "/", headers=BY_PROXY)
    assert "http://host.example/v1/units" in page.text and "/grader" not in page.text
    assert caplog.records[-1].fields["client"] == "127.0.0.1"


def test_who_is_behind_the_proxy_stands_in_the_log(bench, caplog):
    caplog.set_level("DEBUG", "service.app")
    bench.client.request("GET", "/livez", headers=BY_PROXY)
    assert caplog.records[-1].fields["client"] == "203.0.113.9"


@pytest.mark.parametrize(
    "sent",
    ["//evil.example", "/\\evil.example", "/a/../b", "https://evil.example", "/a b", "/a\u00e9", "/" + "a" * 300],
)
def test_a_prefix_that_could_lead_elsewhere_is_not_believed(bench, sent):
    answer = bench.client.request("GET", "/v1/units", headers={"X-Forwarded-Prefix": sent.encode()})
    assert answer.json()["units"][0]["links"]["self"] == "/v1/units/L0.0"


def test_requests_at_the_same_time_do_not_share_a_prefix(bench):
    app = create_app(bench.service)
    with live(app, bench.settings) as running:
        for prefix in ("/a", "/b", ""):
            answer = httpx.get(f"{running.url}/v1/units", headers={"X-Forwarded-Prefix": prefix})
            assert answer.json()["units"][0]["links"]["self"] == f"{prefix}/v1/units/L0.0"


# -- where the settings say by what address people reach us ----------------------------------------------------------

EVIL = {
    "Host": "evil.example",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "http",
    "Forwarded": "host=evil",
}


@pytest.fixture
def public(make_bench):
    return make_bench(public_url="https://grader.example/grader", forwarded_allow_ips="*")


def test_links_name_the_public_address_whatever_a_request_says(public):
    admin = {**public.auth("admin"), **EVIL, "X-Forwarded-Prefix": "/evil"}
    public.person("ada", default="student")
    path = "/v1/courses/default/invitations"
    invited = public.client.request("POST", path, headers=admin, json={"login": "ada"})
    assert invited.json()["link"].startswith("https://grader.example/grader/set-password?code=")
    platform = public.client.request("POST", "/v1/lti/invitations", headers=admin)
    assert platform.json()["url"].startswith("https://grader.example/grader/lti/register?invitation=")
    page = public.client.request("GET", "/units/L0.0", headers=EVIL).text
    assert "https://grader.example/grader/v1/units/" in page and "evil" not in page


def test_the_path_of_the_public_address_stands_before_every_link(public):
    problem = public.client.request("GET", "/grader/v1/nowhere", headers=EVIL)
    assert problem.json()["type"] == "/grader/problems/not_found"


def test_cookies_are_those_of_the_public_address(public):
    answer = public.client.request("GET", "/sign-in", headers=EVIL)
    assert "__Host-" in answer.headers["Set-Cookie"] and "secure" in answer.headers["Set-Cookie"].lower()


def test_a_probe_that_asks_by_another_name_is_answered(public):
    assert public.client.request("GET", "/livez", headers={"Host": "127.0.0.1:8000"}).status_code == 200

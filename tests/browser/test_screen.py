"""The screen sees each kind of fault: otherwise that it complains of none would mean nothing."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser

from service.app import SECURITY_HEADERS
from tests.browser.screen import Look, screen

pytestmark = pytest.mark.browser

WHOLE = '<!doctype html><html lang="en"><head><title>T</title></head><body><main><h1>T</h1>{}</main></body></html>'
FAULTS = {
    "nothing": ("<p>Fine. <a href='/'>A link</a></p>", ""),
    "low contrast": ("<style>p {color: #bbb}</style><p>Pale.</p>", "axe color-contrast"),
    "low contrast in a late row of a heat map": (
        "<style>.pale {color: #bbb}</style><table class='heat'><tr><th>Row</th></tr>"
        + "<tr><td>Fine.</td></tr>" * 7
        + "<tr><td class='pale'>Pale.</td></tr></table>",
        "axe color-contrast",
    ),
    "picture without words": ("<img src='/x.png'>", "axe image-alt"),
    "field without a name": ("<input>", "axe label"),
    "script that the policy blocks": ("<script>1</script>", "console: "),
    "picture from elsewhere": ("<img alt='' src='http://elsewhere.example/x.png'>", "console: "),
    "too wide": ("<div style='width: 3000px'>Wide.</div>", "wider than its window"),
    "error in a script": ("<script>setTimeout(() => nothing.there)</script>", "script error: "),
    "dialog": ("<script>alert(1)</script>", "dialog: 1"),
    "request elsewhere": ("<script>fetch('http://elsewhere.example/').catch(() => 0)</script>", "asks elsewhere: "),
}
WITH_POLICY = {"nothing", "script that the policy blocks", "picture from elsewhere"}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Serves a page for each fault, under its name."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path[1:].replace("%20", " ")
            self.send_response(200 if name in FAULTS else 204)
            self.send_header("Content-Type", "text/html")
            if name in WITH_POLICY:
                for header, value in SECURITY_HEADERS.items():
                    self.send_header(header, value)
            self.end_headers()
            self.wfile.write(WHOLE.format(FAULTS[name][0]).encode() if name in FAULTS else b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_seen(fault: str, site: str, chromium: Browser) -> None:
    with screen(chromium, site, Look()) as shown:
        shown.open(f"/{fault}")
        wanted = FAULTS[fault][1]
        for milliseconds in (100, 1_000, 5_000) if wanted else (100,):  # a complaint may take its time
            shown.page.wait_for_timeout(milliseconds)
            found = shown.faults()
            if any(wanted in one for one in found):
                break
    assert any(wanted in one for one in found) if wanted else not found, found


def test_a_focus_that_cannot_be_seen_is_noticed(site: str, chromium: Browser) -> None:
    with screen(chromium, site) as shown:
        shown.open("/nothing")
        assert shown.reached_by_tab() == ["A link"]
        shown.page.evaluate("document.querySelector('a').style.outline = 'none'")
        with pytest.raises(AssertionError, match="A link"):
            shown.reached_by_tab()

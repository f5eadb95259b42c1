"""A page is opened in Chromium; what a careful reader would find wrong with it comes out.

A `Screen` is a browser window of one width and theme. It notes what the page says on the console, every request that
goes elsewhere than to the service, and every script that runs where text was meant.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, Route, StorageState

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE_MILLISECONDS = 30_000
AXE = Axe()
VIEWER = "mutation-test-report-app"  # Stryker's, whose insides are not ours; pages say the same in tables of ours
EXAMINED = {
    "exclude": [
        [VIEWER],
        ["table.heat tr[data-alike]"],  # whose cells are all like some above them; thousands of cells take minutes
    ]
}
OPTIONS = {
    "resultTypes": ["violations"],
    "rules": {"landmark-no-duplicate-main": {"enabled": False}},  # the viewer brings a second; see `faults`
}


@dataclass(frozen=True)
class Look:
    """How a page is looked at."""

    theme: Literal["light", "dark"] = "light"
    width: int = 1280
    height: int = 900

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}"


LOOKS = (Look("light", 1280), Look("dark", 1280), Look("light", 390), Look("dark", 390))


@dataclass
class Screen:
    """A window with one page in it; `complaints` is what was noted since it opened."""

    base_url: str
    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str, status: int = 200) -> None:
        """Go to a path of the service, and wait until the page has loaded."""
        answer = self.page.goto(self.base_url + path, wait_until="load")
        assert answer is not None and answer.status == status, f"{path}: {answer.status if answer else 'no answer'}"
        if status >= 400:
            said = f"the server responded with a status of {status}"
            self.complaints = [one for one in self.complaints if said not in one]

    def faults(self, look: Look | None = None) -> list[str]:
        """What is wrong with the page, in this theme and width if one is given: what it complained of until now, what
        axe finds, and that it is wider than its window."""
        if look is not None:
            self.page.emulate_media(color_scheme=look.theme)
            self.page.set_viewport_size({"width": look.width, "height": look.height})
        found = list(self.complaints)
        self.page.evaluate(MARK_ALIKE)
        found += [_violation(one) for one in AXE.run(self.page, EXAMINED, OPTIONS).response["violations"]]
        if (mains := self.page.evaluate("document.querySelectorAll('main').length")) != 1:
            found.append(f"{mains} main landmarks")
        found += [f"wider than its window: {one}" for one in self.page.evaluate(STICKING_OUT)]
        return found

    def reached_by_tab(self, most: int = 400) -> list[str]:
        """Press Tab until the focus comes round: what it stood on, as words; fails if the focus is not to be seen."""
        self.page.evaluate("document.activeElement?.blur()")
        seen: list[str] = []
        for _ in range(most):
            self.page.keyboard.press("Tab")
            here = self.page.evaluate(FOCUSED)
            if here is None:
                break
            assert here["visible"], f"the focus cannot be seen on {here['name']!r}"
            seen.append(here["name"])
        return seen


MARK_ALIKE = """() => {
    const shape = (cell) => {
        const { color, backgroundColor } = getComputedStyle(cell);
        return [cell.tagName, cell.className, ...cell.getAttributeNames().sort(), color, backgroundColor].join(' ');
    };
    for (const table of document.querySelectorAll('table.heat')) {
        const known = new Set();
        for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
            const shapes = [...row.cells].map(shape);
            row.toggleAttribute('data-alike', shapes.every((each) => known.has(each)));
            shapes.forEach((each) => known.add(each));
        }
    }
}"""
STICKING_OUT = """() => {
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return [];
    const scrolls = (node) => node && (getComputedStyle(node).overflowX !== 'visible' || scrolls(node.parentElement));
    const out = [...document.body.querySelectorAll('*')].filter(
        (node) => node.getBoundingClientRect().right > root.clientWidth + 0.5 && !scrolls(node.parentElement)
    );
    const said = out.map((node) => `${node.outerHTML.slice(0, 160)}`);
    return [`by ${root.scrollWidth - root.clientWidth} px`, ...said.slice(0, 5)];
}"""
FOCUSED = """() => {
    const at = document.activeElement;
    if (!at || at === document.body) return null;
    const style = getComputedStyle(at);
    const outlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    const name = (at.getAttribute('aria-label') || at.innerText || at.getAttribute('name') || at.tagName);
    const visible = outlined || at.shadowRoot !== null || style.boxShadow !== 'none';
    return { name: name.trim().slice(0, 80), visible };
}"""


def _violation(violation: dict[str, object]) -> str:
    nodes = violation["nodes"]
    assert isinstance(nodes, list)
    shown = "; ".join(f"{' '.join(map(str, node['target']))}: {node['html'][:160]}" for node in nodes[:4])
    return f"axe {violation['id']} ({violation['help']}), {len(nodes)} times: {shown}"


@contextmanager
def screen(
    browser: Browser, base_url: str, look: Look = LOOKS[0], state: StorageState | None = None, also: str = ""
) -> Iterator[Screen]:
    """A fresh window; `state` holds the cookies it begins with, `also` is another site that it may visit."""
    context = browser.new_context(
        viewport={"width": look.width, "height": look.height},
        color_scheme=look.theme,
        storage_state=state,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    shown = Screen(base_url, context.new_page())
    _note(context, shown, also)
    try:
        yield shown
    finally:
        context.close()


def _note(context: BrowserContext, shown: Screen, also: str) -> None:
    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            shown.complaints.append(f"console: {message.text}")

    def on_error(error: Error) -> None:
        shown.complaints.append(f"script error: {error}")

    def on_route(route: Route, request: Request) -> None:
        if request.url.startswith((shown.base_url + "/", "data:", "blob:", *([also + "/"] if also else ()))):
            route.continue_()
        else:
            shown.complaints.append(f"asks elsewhere: {request.url}")
            route.abort()

    shown.page.on("console", on_console)
    shown.page.on("pageerror", on_error)
    shown.page.on("dialog", lambda dialog: (shown.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    context.route("**/*", on_route)

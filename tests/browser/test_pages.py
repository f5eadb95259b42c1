"""Every page, in both themes, wide and narrow, is one that a careful reader finds nothing wrong with."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Browser

from tests.browser.screen import LOOKS, Look, screen
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser

UNIT = "L5.3"

PAGES: Mapping[str, Callable[[Stage], str]] = {
    "/": lambda stage: "/",
    "/units/{unit}": lambda stage: f"/units/{UNIT}",
}
"""By route: where on the stage a page of it is to be seen."""


def test_every_page_is_looked_at(stage: Stage) -> None:
    assert set(pages(stage.app.routes)) == set(PAGES)


def pages(routes: Iterable[Any]) -> Iterator[str]:
    """The paths of what is meant for people: what the API's description leaves out."""
    for route in routes:
        if inner := getattr(route, "original_router", None):
            yield from pages(inner.routes)
        elif isinstance(route, APIRoute) and "GET" in route.methods and not route.include_in_schema:
            yield route.path


@pytest.mark.parametrize("look", LOOKS, ids=str)
@pytest.mark.parametrize("route", PAGES)
def test_page_has_no_fault(route: str, look: Look, stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, look) as shown:
        shown.open(PAGES[route](stage))
        assert not shown.faults(), "\n".join(shown.faults())


@pytest.mark.parametrize("route", PAGES)
def test_page_can_be_used_by_keyboard(route: str, stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url) as shown:
        shown.open(PAGES[route](stage))
        links = shown.page.locator("a[href]:visible, button:visible, input:visible, select:visible, summary:visible")
        assert len(shown.reached_by_tab()) >= links.count()

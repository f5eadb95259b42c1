"""Every page, in both themes, wide and narrow, is one that a careful reader finds nothing wrong with."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Browser

from tests.browser.screen import LOOKS
from tests.browser.stage import Stage
from tests.browser.visits import EACH_VISIT, NO_PAGES, PAGES, Visit, visited

pytestmark = pytest.mark.browser


def test_every_page_is_looked_at(stage: Stage) -> None:
    assert set(pages(stage.app.routes)) - NO_PAGES == set(PAGES)


def pages(routes: Iterable[Any]) -> Iterator[str]:
    """The paths of what is meant for people: what the API's description leaves out."""
    for route in routes:
        if inner := getattr(route, "original_router", None):
            yield from pages(inner.routes)
        elif isinstance(route, APIRoute) and "GET" in route.methods and not route.include_in_schema:
            yield route.path


@EACH_VISIT
def test_page_has_no_fault(route: str, visit: Visit, stage: Stage, chromium: Browser) -> None:
    looks = LOOKS if visit is PAGES[route][0] else (LOOKS[0], LOOKS[-1])  # others see it much the same
    with visited(visit, stage, chromium) as shown:
        faults = {str(look): found for look in looks if (found := shown.faults(look))}
    assert not faults, "\n".join(f"{look}: {fault}" for look, found in faults.items() for fault in found)


@EACH_VISIT
def test_page_can_be_used_by_keyboard(route: str, visit: Visit, stage: Stage, chromium: Browser) -> None:
    with visited(visit, stage, chromium) as shown:
        reached = shown.reached_by_tab()
        assert len(reached) >= shown.page.evaluate(USABLE)


USABLE = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary')].filter(
    (node) => node.type !== 'hidden' && node.checkVisibility() && !node.disabled
        && node.type !== 'radio' // Tab goes to one of a group, arrows to the others
).length"""

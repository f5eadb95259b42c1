"""Whatever a student, a teacher or a platform wrote is read on every page as it was written, and does nothing."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser

from tests.browser.evening import COURSE, TEACHER
from tests.browser.hostile import MARKUP, NAME
from tests.browser.stage import Stage
from tests.browser.visits import CLASS, EACH_VISIT, MISTAKEN, Visit, submission, visited
from tests.browser.works import UNIT

pytestmark = pytest.mark.browser

INJECTED = "document.querySelectorAll('img[src=x], [onerror], main script:not([src]):not([type])').length"


@EACH_VISIT
def test_names_and_messages_are_shown_as_text(
    route: str, visit: Visit, hostile_stage: Stage, chromium: Browser
) -> None:
    with visited(visit, hostile_stage, chromium) as shown:
        assert shown.complaints == []
        assert shown.page.evaluate(INJECTED) == 0


@pytest.mark.parametrize(
    ("path", "who", "text"),
    [
        (f"{CLASS}/{UNIT}/students", TEACHER, NAME),
        (f"/courses/{COURSE}/people", TEACHER, NAME),
        ("/courses", TEACHER, NAME),
        (submission(MISTAKEN), TEACHER, MARKUP),
    ],
)
def test_markup_is_read_as_it_was_written(
    path: str | Callable[[Stage], str], who: str, text: str, hostile_stage: Stage, chromium: Browser
) -> None:
    with visited(Visit(path, who), hostile_stage, chromium) as shown:
        assert text.strip() in shown.page.locator("main").inner_text()

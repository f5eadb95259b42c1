"""What the script of pages about a class does: the keyboard in heat maps, filters, links into files, what is live."""

import time

import pytest
from playwright.sync_api import Browser, Request, Route, expect

from tests.browser.evening import GOOD, SCALE, TEACHER, who_sent
from tests.browser.screen import PATIENCE_MILLISECONDS, screen
from tests.browser.stage import Stage
from tests.browser.visits import CLASS
from tests.browser.works import UNIT, Work

pytestmark = pytest.mark.browser

MISTAKEN, PASSED = Work(*SCALE), Work(GOOD, GOOD)


def test_arrows_walk_through_a_heat_map_and_enter_opens_the_row(stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(TEACHER)) as shown:
        shown.open(f"{CLASS}/{UNIT}/mutants")
        page = shown.page
        cell = page.locator("table.heat td[tabindex='0']")
        expect(cell).to_have_count(1)
        cell.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        says = page.locator(".heat-says")
        second = page.locator("table.heat tbody tr").nth(1)
        mutant = page.locator("table.heat thead th").nth(2).inner_text()
        expect(says).to_contain_text(second.locator("th").inner_text())
        expect(says).to_contain_text(mutant)
        page.keyboard.press("Home")
        page.keyboard.press("ArrowLeft")  # no way out of the table
        expect(cell).to_have_count(1)
        assert cell.evaluate("cell => cell.cellIndex") == 1
        page.keyboard.press("Enter")
        page.wait_for_url("**/submissions/*")
        assert shown.complaints == []


def test_slash_leads_to_the_filter_which_hides_the_other_rows(stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(TEACHER)) as shown:
        shown.open(f"{CLASS}/{UNIT}/tests")
        page = shown.page
        rows = page.locator("table[data-filter] tbody tr")
        name = rows.first.locator("th .mono").inner_text()
        page.keyboard.press("/")
        page.keyboard.type(name)
        expect(page.locator("table[data-filter] tbody tr:visible")).to_have_count(1)
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.type") == "search"


def test_a_link_to_a_line_of_a_file_opens_the_file(stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(TEACHER)) as shown:
        shown.open(f"/submissions/{stage.sent[who_sent(MISTAKEN)]}")
        page = shown.page
        link = page.locator("#main th a[href^='#file-']").first
        link.click()
        line = page.locator(link.get_attribute("href") or "")
        expect(line).to_be_visible()


def test_a_view_takes_over_what_has_moved_and_keeps_what_is_open(stage: Stage, chromium: Browser) -> None:
    """The second time the script looks, something has moved: here, by a word that is another."""
    with screen(chromium, stage.url, state=stage.signed_in(TEACHER)) as shown:
        page, marks = shown.page, list[str | None]()

        def moved(route: Route, request: Request) -> None:
            marks.append(request.header_value("if-none-match"))
            if len(marks) < 3:  # the page itself, and the first look
                route.continue_()
                return
            fresh = route.fetch(headers={**request.headers, "if-none-match": "another"})
            route.fulfill(response=fresh, body=fresh.text().replace("have begun", "have begun by now"))

        page.route(f"**{CLASS}/{UNIT}", moved)
        page.clock.install()
        shown.open(f"{CLASS}/{UNIT}")
        page.locator("#live details").first.locator("summary").click()
        page.locator("#live .tiles").evaluate("each => each.dataset.seen = 'before'")
        with page.expect_response(f"**{CLASS}/{UNIT}"):
            page.clock.run_for(6_000)
        expect(page.locator("[data-seen]")).to_have_count(1)  # nothing moved, and the page is the same one
        give_up_at = time.monotonic() + PATIENCE_MILLISECONDS / 1000
        while len(marks) < 3:  # it looks again some time after it has read the first answer
            assert time.monotonic() < give_up_at
            page.clock.run_for(1_000)
        expect(page.locator("#live .tiles")).to_contain_text("have begun by now")
        expect(page.locator("[data-seen]")).to_have_count(0)
        assert page.locator("#live details").first.evaluate("each => each.open")
        assert marks[0] is None and marks[1] == marks[2] is not None
        assert shown.complaints == []


def test_a_view_waits_while_somebody_types(stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(TEACHER)) as shown:
        page = shown.page
        page.route(
            f"**{CLASS}/{UNIT}/tests",
            lambda route, request: route.continue_(headers={**request.headers, "if-none-match": "another"}),
        )
        page.clock.install()
        shown.open(f"{CLASS}/{UNIT}/tests")
        page.keyboard.press("/")
        page.keyboard.type("test")
        with page.expect_response(f"**{CLASS}/{UNIT}/tests"):
            page.clock.run_for(6_000)
        assert page.evaluate("document.activeElement.value") == "test"

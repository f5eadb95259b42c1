"""A student's submission in a browser: sent from the unit's page, watched, read, compared and printed."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from grader.unit import Course
from tests.browser import works
from tests.browser.evening import COURSE, GOOD, SCALE, stories, who_sent
from tests.browser.replay import replaying
from tests.browser.screen import screen
from tests.browser.stage import Stage, staged
from tests.browser.works import UNIT, Work
from tests.samples.loading import first_screens

pytestmark = pytest.mark.browser

MISTAKEN, PASSED = Work(*SCALE), Work(GOOD, GOOD)
PATIENCE_SECONDS = 60.0


class Held:
    """Gradings wait here until they are let go."""

    def __init__(self) -> None:
        self.free = threading.Event()

    def __call__(self, report: object) -> object:
        self.free.wait(PATIENCE_SECONDS)
        return report


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.free.set()


@pytest.fixture
def quiet_stage(tmp_path: Path, real_course: Course, held: Held) -> Iterator[Stage]:
    """A course with one student, whose gradings are held."""
    grading = replaying(real_course.units[UNIT], [MISTAKEN], change=held)  # type: ignore[arg-type]
    with staged(tmp_path, real_course, grading) as running:
        running.course_begins(COURSE, "Deep learning from scratch")
        running.person("ada", "Ada", course=COURSE)
        try:
            yield running
        finally:
            held.free.set()


def file(name: str, data: bytes) -> FilePayload:
    return {"name": name, "mimeType": "text/x-python", "buffer": data}


def send(page: Page) -> None:
    """Choose the files on the unit's page, and send them."""
    files = [
        {"name": upload.name, "mimeType": "text/x-python", "buffer": upload.data} for upload in works.tests_of(MISTAKEN)
    ]
    page.locator("#submit [name=mha]").set_input_files(
        {"name": "mha.py", "mimeType": "text/x-python", "buffer": works.mha_of(MISTAKEN)}
    )
    page.locator("#submit [name=tests]").set_input_files(files)  # type: ignore[arg-type]
    page.locator("#submit button").click()
    page.wait_for_url("**/submissions/*")


def test_a_student_sends_watches_and_reads_with_scripts_and_without(
    quiet_stage: Stage, held: Held, chromium: Browser
) -> None:
    state = quiet_stage.signed_in("ada")
    plain = chromium.new_context(java_script_enabled=False, storage_state=state)
    with screen(chromium, quiet_stage.url, state=state) as shown:
        shown.open(f"/courses/{COURSE}/units/{UNIT}")
        send(shown.page)
        expect(shown.page.locator("progress")).to_have_attribute("max", "3")
        expect(shown.page.locator("[data-says]")).to_contain_text("of 3")
        without = plain.new_page()
        without.goto(shown.page.url)
        expect(without.get_by_role("link", name="Look again")).to_be_visible()
        held.free.set()
        expect(shown.page.locator(".next").first).to_contain_text("Next")
        expect(shown.page.locator("progress")).to_have_count(0)
        without.get_by_role("link", name="Look again").click()
        expect(without.locator(".next").first).to_contain_text("Next")
        assert shown.complaints == []
    plain.close()


def test_the_first_screen_holds_the_verdict_the_next_step_and_what_is_right_already(
    stage: Stage, chromium: Browser
) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(who_sent(MISTAKEN))) as shown:
        shown.open(f"/submissions/{stage.sent[who_sent(MISTAKEN)]}")
        for what in (".big .badge", ".next", ".already"):
            box = shown.page.locator(what).first.bounding_box()
            assert box is not None and box["y"] + box["height"] <= 900, what


def test_arrays_that_differ_are_pictures_with_names_and_numbers(stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(who_sent(MISTAKEN))) as shown:
        shown.open(f"/submissions/{stage.sent[who_sent(MISTAKEN)]}")
        figure = shown.page.locator("figure.arrays").first
        for name in ("expected", "got", "difference"):
            picture = figure.get_by_role("img", name=re.compile(f"^{name}"))
            expect(picture).to_be_visible()
            description = picture.locator("desc").text_content()
            assert description and "numbers stand below" in description
        expect(figure.locator("figcaption")).to_contain_text("head")
        assert figure.locator("td.off b").count() == 2
        shades = figure.locator("svg.map rect[fill-opacity]").evaluate_all(
            "rects => rects.map((rect) => getComputedStyle(rect).fill)"
        )
        assert "none" not in shades and "rgb(0, 0, 0)" not in shades  # the page's colours, in place


def test_a_student_compares_two_attempts_and_prints_what_is_there(stage: Stage, chromium: Browser) -> None:
    student = who_sent(MISTAKEN)
    with screen(chromium, stage.url, state=stage.signed_in(student)) as shown:
        shown.open(f"/submissions/{stage.sent[student]}")
        compared = shown.page.locator("#history ~ div a", has_text="compare")
        expect(shown.page.locator("#changes")).to_be_visible()
        assert compared.count() >= 1
        compared.last.click()
        shown.page.wait_for_url("**since=*")
        expect(shown.page.locator("#changes")).to_be_in_viewport()
        shown.page.emulate_media(media="print")
        for hidden in (".bar", ".foot", ".links", "form"):
            assert not any(each.is_visible() for each in shown.page.locator(hidden).all())
        expect(shown.page.locator("#missed")).to_be_visible()
        assert len(shown.page.pdf()) > 10_000


def test_nobody_elses_submission_is_reached(stage: Stage, chromium: Browser) -> None:
    with screen(chromium, stage.url, state=stage.signed_in(who_sent(MISTAKEN))) as shown:
        other = stage.sent[who_sent(PASSED)]
        shown.open(f"/submissions/{other}", 404)
        shown.open(f"/submissions/{stage.sent[who_sent(MISTAKEN)]}?since={other}")
        assert other not in shown.page.content().replace(f"since={other}", "")


def test_the_page_names_before_all_details_what_the_first_screen_of_the_text_does(
    stage: Stage, chromium: Browser
) -> None:
    last = {story[-1] for story in stories() if story}
    missed = [work for work in sorted(last, key=lambda work: work.name) if work.code in first_screens()]
    assert len(missed) >= 3
    for work in missed:
        with screen(chromium, stage.url, state=stage.signed_in(who_sent(work))) as shown:
            shown.open(f"/submissions/{stage.sent[who_sent(work)]}")
            first = " ".join(shown.page.locator(".standing, .next, .already, .reasons").all_inner_texts()).lower()
            assert [text for text in first_screens()[work.code] if text.lower() not in first] == [], work

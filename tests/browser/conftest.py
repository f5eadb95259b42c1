"""What the browser's tests build on: one Chromium, and a service with a class that has worked for an evening."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from grader.unit import Course
from grader.units import DEFAULT_COURSE, load_course
from tests.browser import evening
from tests.browser.hostile import NAME, spoiled
from tests.browser.replay import replaying
from tests.browser.screen import CHROMIUM, FLAGS, PATIENCE_MILLISECONDS
from tests.browser.stage import Stage, staged
from tests.browser.works import UNIT


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def real_course() -> Course:
    return load_course(DEFAULT_COURSE)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory, real_course: Course) -> Iterator[Stage]:
    """A class after its evening; tests look at it and change nothing."""
    grading = replaying(real_course.units[UNIT], evening.all_works())
    with staged(tmp_path_factory.mktemp("stage"), real_course, grading) as running:
        evening.enrol(running)
        evening.play(running)
        evening.try_again(running)
        yield running


@pytest.fixture(scope="session")
def hostile_stage(tmp_path_factory: pytest.TempPathFactory, real_course: Course) -> Iterator[Stage]:
    """The same class, in which every name and every text that somebody wrote is markup."""
    grading = replaying(real_course.units[UNIT], evening.all_works(), change=spoiled)
    with staged(tmp_path_factory.mktemp("hostile"), real_course, grading) as running:
        evening.enrol(running, NAME)
        evening.play(running)
        evening.try_again(running)
        yield running

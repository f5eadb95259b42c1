"""A teacher's evening, through the browser alone: from a list of names to grades in the learning platform."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from grader.unit import Course
from grader.units import DEFAULT_COURSE
from service.outbox.process import channels
from service.outbox.sender import Sender
from tests.browser import evening
from tests.browser.evening import ADMIN, COURSE, EVENING_SECONDS, ROSTER, TEACHER, roster
from tests.browser.replay import replaying
from tests.browser.screen import Screen, screen
from tests.browser.stage import Stage, staged
from tests.browser.works import UNIT
from tests.service.lti_platform import Browser as PlatformBrowser
from tests.service.lti_platform import Person, Platform, loopback

pytestmark = pytest.mark.browser

PASSWORD = "several words in a row"
TOO_HARD = "m31"  # the mutant that nobody's tests catch
ACTIVITY = "a1"


@pytest.fixture
def platform() -> Iterator[Platform]:
    with loopback() as running:
        yield running


@pytest.fixture
def empty_stage(tmp_path: Path, real_course: Course) -> Iterator[Stage]:
    """A service on which nobody has done anything. The evening lies behind now: platforms look at real clocks."""
    for name in (DEFAULT_COURSE.name, "tinyllm"):
        shutil.copytree(DEFAULT_COURSE.parent / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    grading = replaying(real_course.units[UNIT], evening.all_works())
    with staged(tmp_path, real_course, grading, time.time() - EVENING_SECONDS - 600) as running:
        yield running


def test_a_teachers_evening(empty_stage: Stage, platform: Platform, chromium: Browser) -> None:
    stage = empty_stage
    stage.clock.now = time.time()
    platform.tool = stage.url
    stage.person(ADMIN, "Ken Thompson", admin=True)
    with screen(chromium, stage.url) as admin:
        set_password(admin, stage.invitation(ADMIN))
        invitation = make_course(admin.page)
        register(admin, platform)
        with screen(chromium, stage.url, also=platform.url) as teacher:
            set_password(teacher, invitation)
            import_roster(teacher)
            connect(teacher, platform)
            for person in roster():
                launch(platform, person.student)
            evening.play(stage)
            stage.clock.now = time.time()
            assert misunderstood(teacher) == ["the scale is 1/sqrt(d_model).", "a [B, Tq, Tk] mask gets no head axis"]
            extend(teacher, roster()[2].student)
            before = told(stage, platform)
            drop_mutant(teacher, stage.settings.course / "mutants" / UNIT)
            publish(admin)
            regrade(teacher, stage)
            after = told(stage, platform)
            assert teacher.complaints == admin.complaints == []
    passed = [student for student, score in before.items() if score > 0.9]
    assert len(before) == 28 and len(passed) == 12
    assert all(after[student] > before[student] for student in passed)


def press(page: Page, name: str) -> None:
    """Press the button and wait for the page that it leads to."""
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).click()


# -- what an administrator does --------------------------------------------------------------------------------------


def set_password(shown: Screen, link: str) -> None:
    shown.page.goto(link if link.startswith("http") else shown.base_url + link)
    shown.page.get_by_label("New password").fill(PASSWORD)
    shown.page.get_by_label("The same again").fill(PASSWORD)
    press(shown.page, "Set the password")
    shown.page.wait_for_url("**/courses")


def make_course(page: Page) -> str:
    """A course with a teacher; the link with which the teacher sets a password."""
    page.get_by_label("Title").fill("Deep learning from scratch")
    page.get_by_label("Id", exact=True).fill(COURSE)
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("I teach it").uncheck()
    press(page, "Make the course")
    page.goto(page.url.partition("/courses")[0] + f"/courses/{COURSE}/people")
    page.get_by_label("Login or email").fill(TEACHER)
    page.get_by_label("Name", exact=True).fill("Grace Hopper")
    page.locator("#add-role").select_option("teacher")
    press(page, "Add")
    press(page, "Make a link for Grace Hopper to set a password")
    return page.locator("main .secret").first.inner_text()


def register(shown: Screen, platform: Platform) -> None:
    shown.open("/platforms")
    for name, value in platform.said().items():
        shown.page.locator(f"main [name={name}]").fill(value)
    press(shown.page, "Register")
    shown.open("/platforms")
    shown.page.get_by_role("link", name="Loopback").click()
    shown.page.get_by_label("Another deployment id").fill(platform.deployment)
    press(shown.page, "Let in")


def publish(shown: Screen) -> None:
    """What the teacher has sent."""
    shown.open("/course-files")
    shown.page.get_by_role("table").first.get_by_role("link").first.click()
    press(shown.page, "Publish this version")
    assert TOO_HARD in shown.page.get_by_role("status").first.inner_text()


# -- what a teacher does ---------------------------------------------------------------------------------------------


def import_roster(shown: Screen) -> None:
    shown.open(f"/courses/{COURSE}/people/import")
    shown.page.get_by_label("A CSV file").set_input_files(ROSTER)
    press(shown.page, "Show what it changes")
    press(shown.page, "Apply these 30 changes")
    shown.open(f"/courses/{COURSE}/people")
    assert roster()[-1].name in shown.page.locator("main").inner_text()


def connect(shown: Screen, platform: Platform) -> None:
    """Open a new activity in the platform, and say which course and unit it stands for."""
    platform.add(Person(TEACHER, "Instructor", "Grace Hopper", "grace@uni.example"))
    platform.add(*(Person(each.student, "Learner", each.name, each.email) for each in roster()))
    platform.activity(ACTIVITY)
    shown.open(f"/courses/{COURSE}/platforms")
    press(shown.page, "Make a code")
    code = shown.page.locator("main .secret").inner_text()
    shown.page.goto(platform.login_url(TEACHER, ACTIVITY))
    shown.page.wait_for_url("**/lti/setup/*")
    shown.page.locator("#course-code").check()
    shown.page.get_by_label("Code", exact=True).fill(code)
    shown.page.get_by_label(f"{UNIT}: ").check()
    press(shown.page, "Use this activity so")
    shown.page.wait_for_url(f"**/courses/{COURSE}/**")


def misunderstood(shown: Screen) -> list[str]:
    """What most of the class believes, the first two."""
    shown.open(f"/courses/{COURSE}/class/{UNIT}/misconceptions")
    heads = shown.page.locator(".finding h3, .finding h2").all_inner_texts()
    return [head.partition(": ")[2].partition(", so")[0] for head in heads[:2]]


def extend(shown: Screen, student: str) -> None:
    shown.open(f"/courses/{COURSE}/units/{UNIT}/settings")
    form = shown.page.locator("form[action$='/extensions']", has=shown.page.get_by_role("button", name="Extend"))
    form.locator("[name=student]").fill(student)
    form.locator("[name=due_at]").fill("2030-01-01T12:00")
    form.locator("[name=reason]").fill("ill")
    press(shown.page, "Extend")
    assert student in shown.page.locator("main").inner_text()


def drop_mutant(shown: Screen, folder: Path) -> None:
    """Send the unit's list of mutants and their hints without it."""
    lines = (folder / "manifest.tsv").read_text("utf-8").splitlines(keepends=True)
    manifest = "".join(line for line in lines if not line.startswith(TOO_HARD))
    first, _, rest = (folder / "hints.toml").read_text("utf-8").partition(f"[mutants.{TOO_HARD}]")
    hints = first + "[mutants." + rest.partition("[mutants.")[2]
    files = {"manifest.tsv": manifest, "hints.toml": hints}
    shown.open(f"/courses/{COURSE}")
    shown.page.get_by_role("link", name="Course files").click()
    shown.page.get_by_label("What it is for").fill("Nobody catches one mutant")
    shown.page.get_by_label("An archive, or single files").set_input_files(
        [{"name": name, "mimeType": "text/plain", "buffer": text.encode()} for name, text in files.items()]
    )
    shown.page.get_by_label("Folder of single files").fill(f"course/mutants/{UNIT}")
    shown.page.get_by_label("Files or folders to be removed").fill(f"course/mutants/{UNIT}/{TOO_HARD}.patch")
    press(shown.page, "Check it")
    assert TOO_HARD in shown.page.locator("main").inner_text()


def regrade(shown: Screen, stage: Stage) -> None:
    shown.open(f"/courses/{COURSE}/regrades")
    shown.page.locator("#unit").select_option(UNIT)
    shown.page.locator("#reason").fill("Nobody caught one mutant: it is gone.")
    press(shown.page, "Try it")
    shown.page.wait_for_url("**/regrades/*")
    stage.settled()
    shown.page.reload()
    assert TOO_HARD in (shown.page.locator("main").text_content() or "")
    press(shown.page, "Apply all 61")
    stage.settled()


# -- the learning platform -------------------------------------------------------------------------------------------


def launch(platform: Platform, student: str) -> None:
    browser = PlatformBrowser()
    answer = browser.open(platform, student, ACTIVITY)
    assert answer.status_code == 200, answer.text
    browser.close()


def told(stage: Stage, platform: Platform) -> dict[str, float]:
    """Every student's score in the platform, as a share, once all is told."""
    stop = threading.Event()
    Sender(stage.engine, channels(stage.settings, stage.engine), name="sender", stop=stop).send_all()
    scores = platform.activities[ACTIVITY].scores
    return {
        student: score["scoreGiven"] / score["scoreMaximum"]
        for student, score in scores.items()
        if score.get("gradingProgress") == "FullyGraded"
    }

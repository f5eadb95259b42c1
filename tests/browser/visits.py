"""A route for people goes in; where on the stage a page of it is to be seen, and by whom, comes out."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser

from tests.browser.evening import ADMIN, COURSE, GOOD, GRADER, SCALE, TEACHER, who_sent
from tests.browser.screen import Screen, screen
from tests.browser.stage import Stage
from tests.browser.works import UNIT, Work


@dataclass(frozen=True)
class Visit:
    """Where on the stage a page is to be seen, and by whom; '' by somebody who is not signed in."""

    path: str | Callable[[Stage], str]
    who: str = ""
    status: int = 200

    def on(self, stage: Stage) -> str:
        return self.path if isinstance(self.path, str) else self.path(stage)


CLASS = f"/courses/{COURSE}/class"
PASSED, MISTAKEN = Work(GOOD, GOOD), Work(*SCALE)
LOOPS, RAISES = Work("endless_loop_in_attend", "suite_fixtures"), Work("raises_in_init", "suite_without_tests")


def submission(work: Work, more: str = "") -> Callable[[Stage], str]:
    return lambda stage: f"/submissions/{stage.sent[who_sent(work)]}{more}"


PAGES: Mapping[str, tuple[Visit, ...]] = {
    "/": (Visit("/"), Visit("/", TEACHER)),
    "/units/{unit}": (Visit(f"/units/{UNIT}"), Visit(f"/units/{UNIT}?course={COURSE}", TEACHER)),
    "/sign-in": (Visit("/sign-in"),),
    "/set-password": (Visit(lambda stage: stage.invitation(GRADER)), Visit("/set-password?code=x", status=404)),
    "/me": (Visit("/me", TEACHER),),
    "/courses": (Visit("/courses", TEACHER), Visit("/courses", ADMIN), Visit("/courses", "ada01")),
    "/courses/{course}/class": (Visit(CLASS, TEACHER), Visit(CLASS, GRADER)),
    "/courses/{course}/class/{unit}": (Visit(f"{CLASS}/{UNIT}", TEACHER), Visit(f"{CLASS}/{UNIT}", GRADER)),
    "/courses/{course}/class/{unit}/tests": (Visit(f"{CLASS}/{UNIT}/tests", TEACHER),),
    "/courses/{course}/class/{unit}/mutants": (Visit(f"{CLASS}/{UNIT}/mutants", TEACHER),),
    "/courses/{course}/class/{unit}/misconceptions": (Visit(f"{CLASS}/{UNIT}/misconceptions", TEACHER),),
    "/courses/{course}/class/{unit}/students": (Visit(f"{CLASS}/{UNIT}/students", TEACHER),),
    "/courses/{course}/class/{unit}/students/{student:path}": (
        Visit(f"{CLASS}/{UNIT}/students/{who_sent(MISTAKEN)}", TEACHER),
        Visit(f"{CLASS}/{UNIT}/students/{who_sent(MISTAKEN)}", who_sent(MISTAKEN)),
    ),
    "/submissions/{submission_id}": (
        Visit(submission(MISTAKEN), TEACHER),
        Visit(submission(MISTAKEN), who_sent(MISTAKEN)),
        Visit(submission(PASSED), TEACHER),
        Visit(submission(LOOPS), TEACHER),
        Visit(submission(RAISES), TEACHER),
    ),
    "/submissions/{submission_id}/mutants": (
        Visit(submission(MISTAKEN, "/mutants"), TEACHER),
        Visit(submission(MISTAKEN, "/mutants"), who_sent(MISTAKEN)),
    ),
    "/courses/{course}/deliveries": (Visit(f"/courses/{COURSE}/deliveries", TEACHER),),
    "/courses/{course}/people": (
        Visit(f"/courses/{COURSE}/people", TEACHER),
        Visit(f"/courses/{COURSE}/people", GRADER),
    ),
    "/courses/{course}/people/import": (Visit(f"/courses/{COURSE}/people/import", TEACHER),),
    "/courses/{course}/platforms": (Visit(f"/courses/{COURSE}/platforms", TEACHER),),
    "/courses/{course}/regrades": (Visit(f"/courses/{COURSE}/regrades", TEACHER),),
    "/courses/{course}/regrades/{regrade_id}": (
        Visit(lambda stage: f"/courses/{COURSE}/regrades/{stage.trial}?moved=false", TEACHER),
    ),
    "/courses/{course}/units/{unit}/by-hand": (Visit(f"/courses/{COURSE}/units/{UNIT}/by-hand", TEACHER),),
    "/courses/{course}/settings": (Visit(f"/courses/{COURSE}/settings", TEACHER),),
    "/courses/{course}/tokens": (Visit(f"/courses/{COURSE}/tokens", TEACHER),),
    "/courses/{course}/audit": (Visit(f"/courses/{COURSE}/audit", TEACHER),),
    "/courses/{course}/units/{unit}": (
        Visit(f"/courses/{COURSE}/units/{UNIT}", TEACHER),
        Visit(f"/courses/{COURSE}/units/{UNIT}", who_sent(MISTAKEN)),
    ),
    "/courses/{course}/units/{unit}/settings": (Visit(f"/courses/{COURSE}/units/{UNIT}/settings", TEACHER),),
    "/me/tokens": (Visit("/me/tokens", TEACHER), Visit("/me/tokens", who_sent(MISTAKEN))),
    "/tokens": (Visit("/tokens", ADMIN),),
    "/users": (Visit("/users", ADMIN),),
    "/course-files": (Visit("/course-files", ADMIN),),
    "/course-files/{version}": (Visit(lambda stage: f"/course-files/{stage.version()}", ADMIN),),
    "/audit": (Visit("/audit", ADMIN),),
    "/platforms": (Visit("/platforms", ADMIN),),
    "/platforms/{platform}": (Visit(lambda stage: f"/platforms/{stage.platform().id}", ADMIN),),
    "/lti/login": (Visit("/lti/login", status=400),),
    "/lti/register": (Visit("/lti/register?invitation=x", status=403),),
    "/lti/setup/{ticket}": (Visit(lambda stage: f"/lti/setup/{stage.waiting_launch(TEACHER)}", TEACHER),),
    "/courses/{course}": (Visit(f"/courses/{COURSE}", TEACHER), Visit(f"/courses/{COURSE}", "ada01")),
}
NO_PAGES = {"/lti/jwks"}  # for programs, and not of our API
VISITS = [(route, visit) for route, visits in PAGES.items() for visit in visits]
EACH_VISIT = pytest.mark.parametrize(
    ("route", "visit"), VISITS, ids=[f"{route} as {visit.who or 'nobody'}" for route, visit in VISITS]
)


@contextmanager
def visited(visit: Visit, stage: Stage, chromium: Browser) -> Iterator[Screen]:
    with screen(chromium, stage.url, state=stage.signed_in(visit.who) if visit.who else None) as shown:
        shown.open(visit.on(stage), visit.status)
        yield shown

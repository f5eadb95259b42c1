"""Launches over HTTP: a platform that is not ours, a browser, and us, each on a socket of its own."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from service import database
from service.lti import platforms
from service.lti.platforms import Platform as Registered
from service.offerings import By
from service.tables import audit, courses, lti_deployments, lti_links, lti_people, members, users
from tests.service.live import live
from tests.service.lti_platform import Browser, Person, form, loopback, path_of


@pytest.fixture
def running(bench):
    with live(bench.app, bench.settings) as live_service:
        yield live_service


@pytest.fixture
def platform(bench, running):
    with loopback(running.url) as platform:
        bench.clock.now = __import__("time").time()
        platform.add(Person("t-1", "Instructor", "Tess Teacher", "tess@example.edu"))
        platform.add(Person("s-1", "Learner", "Ada Student", "ada@example.edu"))
        platform.activity("l53", unit="L0.0")
        with database.writing(bench.engine) as connection:
            by = By(None, bench.clock())
            registered = platforms.register(connection, Registered(id="", **platform.said()), by)
            assert registered is not None
            platforms.allow(connection, registered.id, platform.deployment, by)
        platform.id = registered.id
        yield platform


@pytest.fixture
def browsers():
    made = []

    def new(**options):
        made.append(Browser(**options))
        return made[-1]

    yield new
    for browser in made:
        browser.close()


@pytest.fixture
def connected(platform, browsers):
    """The platform's course stands for one of ours: a teacher was there first."""
    teacher = browsers()
    page = teacher.open(platform, "t-1", "l53")
    assert path_of(page).startswith("/lti/setup/"), page.text
    teacher.submit(page, course="new", unit="L0.0")
    return teacher


def test_a_teachers_first_launch_connects_the_course_and_makes_a_teacher_of_it(bench, platform, connected):
    [course] = [row for row in bench.rows(courses) if row.id != "default"]
    assert course.title == "Machine learning"
    [member] = bench.rows(members)
    assert (member.course, member.role, member.source) == (course.id, "teacher", "lti")


def test_a_student_comes_in_as_a_member_and_sees_the_unit(bench, platform, connected, browsers):
    page = browsers().open(platform, "s-1", "l53")
    assert page.status_code == 200, page.text
    assert path_of(page) == "/units/L0.0"
    [ada] = [row for row in bench.rows(users) if row.name == "Ada Student"]
    assert ada.student == "ada@example.edu"
    assert {row.role for row in bench.rows(members)} == {"teacher", "student"}
    assert bench.rows(lti_links)[0].line_item_url == platform.line_item_url("l53")

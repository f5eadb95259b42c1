import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from grader.report import Verdict
from service.worker import FakeGrading
from tests.service import samples

CLASS = "/courses/default/class"
UNIT = f"{CLASS}/L0.0"
VIEWS = ["", "/tests", "/mutants", "/misconceptions", "/students"]
EVIL = "<script>alert(1)</script>\"'&"
VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """A page's text, tags, ids and links; what is opened has to be closed."""

    def __init__(self, answer):
        super().__init__()
        self.tags, self.links, self.ids, self.words, self.open, self.attributes = [], [], [], [], [], []
        self.feed(answer.text)
        assert self.open == []
        self.text = re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.attributes += found
        self.links += [found[name] for name in ("href", "src", "action") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page(browser, path, status=200):
    answer = browser.get(path, Accept="text/html")
    assert answer.status_code == status, answer.text
    return Page(answer)


def misses(unit, submission, about, progress, **more):
    """Answers for FakeGrading: the tests miss a mutant."""
    return samples.report(about, unit.id, digest=submission.digest, verdict=Verdict.FAIL, score=0.5, survived=("m01",))


@pytest.fixture
def teacher(bench):
    return bench.browser("tina", default="teacher")


@pytest.fixture
def graded(bench):
    """Ada passes, bob's tests miss a mutant; the ids of their submissions."""
    found = {}
    for student, grading in (("ada", samples.passes), ("bob", misses)):
        found[student] = bench.submitted(student)
        bench.graded(bench.worker(FakeGrading(grading)))
    return found


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_class_nobody_has_begun_says_so(teacher, view):
    seen = page(teacher, UNIT + view)
    assert "L0.0: Doubling <numbers>" in seen.text
    assert len(set(seen.ids)) == len(seen.ids)


@pytest.mark.both_databases
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_of_a_class_shows_only_links_that_lead_somewhere(bench, teacher, graded, view):
    seen = page(teacher, UNIT + view)
    assert len(set(seen.ids)) == len(seen.ids)
    for link in seen.links:
        if link.startswith("#"):
            assert link[1:] in seen.ids, link
        elif link.startswith((CLASS, "/submissions", "/v1", "/static", "?")):
            link = f"{UNIT}{view}{link}" if link.startswith("?") else link
            assert teacher.get(link.partition("#")[0]).status_code == 200, link


def test_the_overview_counts_who_has_passed(teacher, graded):
    seen = page(teacher, UNIT)
    assert "1 of 2 have passed" in seen.text and "2 submissions" in seen.text


def test_the_class_lists_its_units(teacher, graded):
    seen = page(teacher, CLASS)
    assert f"{UNIT}" in seen.links and "1 of 2" in seen.text


def test_the_mutants_that_most_miss_come_first_and_the_matrix_names_the_students(teacher, graded):
    seen = page(teacher, UNIT + "/mutants")
    assert seen.text.index("m01", seen.text.index("those first")) < seen.text.index(
        "s01", seen.text.index("those first")
    )
    assert f"/submissions/{graded['bob']}" in seen.links
    assert "1 student" in seen.text


def test_students_are_found_by_what_their_latest_submission_shows(teacher, graded):
    for query, names in (
        ("survived=m01", {"bob"}),
        ("state=passed", {"ada"}),
        ("verdict=fail", {"bob"}),
        ("", {"ada", "bob"}),
    ):
        links = page(teacher, f"{UNIT}/students?{query}").links
        found = {name for name in ("ada", "bob") if f"{UNIT}/students/{name}" in links}
        assert found == names, query


def test_a_filter_that_cannot_be_read_is_refused_in_words(teacher):
    assert "'verdict'" in page(teacher, f"{UNIT}/students?verdict=splendid", 422).text


def test_a_student_sees_their_own_page_and_no_other_and_no_class(bench, graded):
    ada = bench.browser("ada", default="student")
    own = page(ada, f"{UNIT}/students/ada")
    assert f"/submissions/{graded['ada']}" in own.links
    assert page(ada, f"{UNIT}/students/bob", 404).text == page(ada, f"{UNIT}/students/nobody", 404).text
    for view in VIEWS:
        page(ada, UNIT + view, 403)
    page(ada, CLASS, 403)


def test_another_students_submission_is_one_that_never_was(bench, graded):
    ada = bench.browser("ada", default="student")
    for path in ("", "/mutants"):
        page(ada, f"/submissions/{graded['ada']}{path}")
        other = page(ada, f"/submissions/{graded['bob']}{path}", 404)
        assert "no such submission" in other.text


def test_a_teacher_of_another_course_sees_nothing_of_this_one(bench, graded):
    other = bench.browser("otto", other="teacher")
    for view in VIEWS:
        page(other, UNIT + view, 404)
    page(other, f"/submissions/{graded['ada']}", 404)
    page(other, f"{UNIT}/students/ada", 404)


def test_a_grader_sees_the_class(bench, graded):
    grader = bench.browser("greta", default="grader")
    for view in VIEWS:
        page(grader, UNIT + view)
    assert samples.HIDDEN in page(grader, f"/submissions/{graded['bob']}").text


def test_who_is_not_signed_in_is_led_to_the_sign_in_page(bench, graded):
    for path in (CLASS, UNIT, f"/submissions/{graded['ada']}"):
        answer = bench.browser().get(path)
        assert answer.status_code == 303 and answer.headers["Location"].startswith("/sign-in?next=")


def test_a_submissions_page_tells_staff_everything_and_its_student_their_part(bench, teacher, graded):
    path = f"/submissions/{graded['bob']}"
    staff, student = page(teacher, path), page(bench.browser("bob", default="student"), path)
    for seen in (staff, student):
        for text in (
            "test_doubles",
            "test_a.py::test_twice",
            "m01",
            "survived",
            "def test_twice():",
            "python/tinyllm/demo/twice.py",
        ):
            assert text in seen.text, text
    assert samples.HIDDEN in staff.text and samples.HIDDEN not in student.text
    preview = page(teacher, f"{path}?as=student&moment=past_limit")
    assert samples.HIDDEN not in preview.text and "past the limit of attempts" in preview.text
    assert f"/v1{path}/report?format=text&as=student&moment=past_limit" in preview.links
    for link in preview.links:
        if link.startswith((path, f"/v1{path}")):
            assert teacher.get(link).status_code == 200, link


def test_a_student_cannot_choose_the_moment_or_the_reader(bench, graded):
    bob = bench.browser("bob", default="student")
    path = f"/submissions/{graded['bob']}"
    assert samples.HIDDEN not in page(bob, f"{path}?moment=after_passing").text


def test_a_submission_that_waits_tells_its_place_and_where_events_come_from(bench, teacher):
    waiting = bench.submitted("ada")
    answer = teacher.get(f"/submissions/{waiting}")
    assert "Number 1 of those that wait." in Page(answer).text
    assert f'data-events="/v1/submissions/{waiting}/events"' in answer.text


def test_a_submission_that_ended_is_not_followed(teacher, graded):
    assert 'data-events=""' in teacher.get(f"/submissions/{graded['ada']}").text


@pytest.mark.both_databases
def test_the_mark_of_a_page_stays_while_nothing_moves_and_changes_with_what_does(bench, teacher, graded):
    def mark():
        return teacher.get(UNIT).headers["ETag"]

    seen = [mark()]
    assert teacher.get(UNIT, **{"If-None-Match": seen[0]}).status_code == 304
    assert teacher.get(UNIT, **{"If-None-Match": f"W/{seen[0]}"}).status_code == 304
    assert mark() == seen[0]
    new = bench.submitted("ada")
    seen.append(mark())
    bench.graded()
    seen.append(mark())
    answer = bench.client.request(
        "POST", f"/v1/submissions/{new}/runs", headers=bench.auth("teacher"), json={"reason": "a new test"}
    )
    assert answer.status_code == 202, answer.text
    seen.append(mark())
    assert len(set(seen)) == 4


def test_the_mark_is_of_one_page_and_one_reader(bench, teacher, graded):
    other = bench.browser("greta", default="grader")
    marks = {
        browser.get(path).headers["ETag"]
        for browser in (teacher, other)
        for path in (UNIT, f"{UNIT}?section=A", f"{UNIT}/tests")
    }
    assert len(marks) == 6


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_names_are_text_on_every_view(bench, teacher, view):
    bench.submitted("lms", student=EVIL)
    bench.graded(bench.worker(FakeGrading(misses)))
    seen = page(teacher, UNIT + view)
    assert seen.tags.count("script") == 1 and not any(name.startswith("on") for name in seen.attributes)
    assert (EVIL in seen.text) == (view in ("/mutants", "/students"))


def test_a_students_page_is_reached_whatever_the_name(bench, teacher):
    name = "a/b c?d#e%2F"
    bench.submitted("lms", student=name)
    bench.graded()
    [link] = {link for link in page(teacher, UNIT + "/students").links if "/students/" in link}
    assert link == f"{UNIT}/students/{quote(name, safe='')}"
    assert name in page(teacher, link).text


def test_strykers_view_allows_what_it_needs_and_no_foreign_script(teacher, graded):
    answer = teacher.get(f"/submissions/{graded['ada']}/mutants")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["style-src-attr"] == "'unsafe-inline'"
    assert f"/v1/submissions/{graded['ada']}/report?format=stryker" in Page(answer).links
    for path in (UNIT, f"/submissions/{graded['ada']}"):
        assert "unsafe-inline" not in teacher.get(path).headers["Content-Security-Policy"]


@pytest.mark.parametrize("view", VIEWS)
def test_no_page_holds_inline_script_or_style(teacher, graded, view):
    seen = page(teacher, UNIT + view)
    assert "style" not in seen.tags and "style" not in seen.attributes


def test_a_student_unlocks_a_hint_on_the_page_and_is_led_back_to_it(bench, graded):
    bob = bench.browser("bob", default="student")
    path = f"/submissions/{graded['bob']}"
    before = page(bob, path)
    assert f"{path}/hints" in before.links and samples.HINTS["m01"][1] not in before.text
    answer = bob.post(f"{path}/hints", mutant="m01", number="2")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{path}#mutant-m01")
    assert samples.HINTS["m01"][1] in page(bob, path).text


def test_a_form_without_the_csrf_token_changes_nothing(bench, graded):
    bob = bench.browser("bob", default="student")
    path = f"/submissions/{graded['bob']}"
    assert bob.send("POST", f"{path}/hints", data={"mutant": "m01"}).status_code == 403
    assert samples.HINTS["m01"][1] not in page(bob, path).text


def test_a_field_that_cannot_be_read_is_refused_in_words(bench, graded):
    answer = bench.browser("bob", default="student").post(f"/submissions/{graded['bob']}/hints", mutant="../")
    assert answer.status_code == 422 and "'mutant'" in answer.json()["detail"]


def test_a_student_cancels_what_waits(bench):
    ada = bench.browser("ada", default="student")
    path = f"/submissions/{bench.submitted('ada')}"
    assert f"{path}/cancel" in page(ada, path).links
    assert ada.post(f"{path}/cancel").status_code == 303
    assert "It was cancelled" in page(ada, path).text


def test_a_teacher_grades_again_and_says_why(bench, teacher, graded):
    path = f"/submissions/{graded['bob']}"
    assert teacher.post(f"{path}/runs", reason="").status_code == 422
    assert teacher.post(f"{path}/runs", reason="a <new> test").status_code == 303
    bench.graded()
    assert "a <new> test" in page(teacher, path).text


@pytest.mark.parametrize(("what", "fields"), [("hints", {"mutant": "m01"}), ("cancel", {}), ("runs", {"reason": "x"})])
def test_a_grader_and_strangers_do_nothing(bench, graded, what, fields):
    path = f"/submissions/{graded['bob']}"
    grader = bench.browser("greta", default="grader")
    assert grader.post(f"{path}/{what}", **fields).status_code == 403
    assert f"{path}/{what}" not in page(grader, path).links
    for stranger in (bench.browser("ada", default="student"), bench.browser("otto", other="teacher")):
        assert stranger.post(f"{path}/{what}", **fields).status_code == 404


def test_students_do_not_grade_again(bench, graded):
    path = f"/submissions/{graded['bob']}/runs"
    assert bench.browser("bob", default="student").post(path, reason="please").status_code == 403


def test_a_grade_set_by_hand_is_marked_on_every_page_of_the_student(bench, teacher, graded):
    path = f"{UNIT}/students/bob"
    assert teacher.post(path, percent="150", reason="x").status_code == 422
    assert teacher.post(path, percent="75", reason="").status_code == 422
    assert teacher.post(path, percent="75", reason="an <oral> exam").headers["Location"] == path
    bob = bench.browser("bob", default="student")
    for browser in (teacher, bob):
        for shown in (path, f"/submissions/{graded['bob']}"):
            seen = page(browser, shown).text
            assert "set by hand" in seen and "an <oral> exam" in seen and "75 %" in seen
    assert "set by hand" in page(teacher, f"{UNIT}/students").text
    assert teacher.post(path, do="withdraw").status_code == 303
    assert "set by hand" not in page(bob, path).text
    for other in (bob, bench.browser("greta", default="grader")):
        assert other.post(path, percent="100", reason="please").status_code == 403


@pytest.mark.both_databases
def test_the_list_of_units_says_what_the_overview_of_each_says(bench, teacher, graded):
    bench.person("carol", default="student")
    bench.submitted("dave")
    overview, units = page(teacher, UNIT).text, page(teacher, CLASS).text
    assert "1 of 4 have passed, 2 are under way, 1 have not begun." in overview
    assert "1 of 4 31" in units  # begun, and waiting


def test_from_a_submission_staff_reach_the_pages_of_its_course(bench, teacher, graded):
    path = f"/submissions/{graded['bob']}"
    assert CLASS in page(teacher, path).links
    assert CLASS not in page(bench.browser("bob", default="student"), path).links

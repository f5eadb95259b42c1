import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader import wording
from grader.unit import Listed
from tests.service import samples


class Seen(HTMLParser):
    """A page's text and tags."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.links, self.words = [], [], []
        self.feed(page)
        self.text = re.sub(r"\s+", " ", "".join(self.words))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]

    def handle_data(self, data):
        self.words.append(data)


def seen(bench, path):
    answer = bench.client.request("GET", path)
    assert answer.status_code == 200
    return Seen(answer.text)


def test_the_start_page_says_what_this_is_and_shows_the_line_to_paste(bench):
    page = seen(bench, "/")
    assert "whether your tests would catch" in page.text
    assert (
        'curl -sS -H "Authorization: Bearer $TOKEN" -F twice=@twice.py -F tests=@tests.zip '
        "'http://grader.example/v1/units/L0.0/submissions?wait=60'"
    ) in page.text
    assert "ol login http://grader.example" in page.text and "ol submit L0.0" in page.text
    assert "/units/L0.0" in page.links


def test_units_that_are_not_offered_yet_are_listed_under_one_heading(make_bench):
    later = tuple(Listed(f"L9.{number}", "Later", wording.NOT_OFFERED) for number in range(3))
    course = replace(samples.course(), listed=(*later, Listed("L8.0", "Elsewhere", "It is written in Rust.")))
    page = seen(make_bench(course), "/")
    assert page.text.count("Not offered yet") == 1 and wording.NOT_OFFERED not in page.text
    assert "L9.2: Later" in page.text and "L8.0: Elsewhere It is written in Rust." in page.text


def test_a_units_page_lists_what_to_build_the_tests_the_freedoms_and_the_errata(bench):
    page = seen(bench, "/units/L0.0")
    unit = samples.unit()
    expected = [
        *unit.build,
        unit.title,
        "def twice(x): ...",
        *(text for test in unit.course_tests for text in (test.name, test.why, test.kind, test.chapter)),
        *(freedom.says for freedom in unit.freedoms),
        *(text for erratum in unit.errata for text in (erratum.printed, erratum.correct, erratum.note)),
    ]
    for text in expected:
        assert text in page.text, text


@pytest.mark.parametrize("path", ["/", "/units/L0.0"])
def test_pages_hold_no_script_no_style_and_only_links_of_their_own_that_work(bench, path):
    page = seen(bench, path)
    assert not {"script", "style", "b", "numbers"} & set(page.tags)
    for link in page.links:
        assert link.startswith("/")
        if link != "/readyz":
            assert bench.client.request("GET", link).status_code == (303 if link == "/courses" else 200), link


def test_an_unknown_units_page_is_a_404_page(bench):
    answer = bench.client.request("GET", "/units/L9.9", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "L0.0" in answer.text


def test_a_course_without_units_still_has_a_start_page(make_bench):
    from grader.unit import Course, UnitProblem

    problem = UnitProblem("L1", "course/modules/L1.toml", 3, "<title> is missing")
    bench = make_bench(Course({}, (problem,), ""))
    page = seen(bench, "/")
    assert "course/modules/L1.toml:3" in page.text and "<title> is missing" in page.text
    assert bench.get("/readyz").status_code == 503

import pytest

from grader.report import Verdict
from service.classroom.answers import State
from service.classroom.students import Sort
from service.dashboard.asked import Asked, page_of
from service.dashboard.at import At
from service.problems import Problem


def test_empty_fields_of_a_form_ask_for_the_whole_class():
    asked = Asked.of({"section": "", "verdict": "", "since": "", "state": "", "search": " "})
    wanted = asked.selection("c", "u", "UTC")
    assert wanted.is_whole and (wanted.section, wanted.search) == (None, None)
    assert asked.narrowed().state is None and asked.sort() is Sort.STUDENT
    assert asked.kept == ""


def test_times_are_read_on_the_clocks_of_the_course():
    asked = Asked.of({"since": "2026-07-01T12:00"})
    berlin, utc = (asked.selection("c", "u", zone).since for zone in ("Europe/Berlin", "UTC"))
    assert utc - berlin == 2 * 3600


def test_a_time_that_comes_twice_or_never_is_read_as_the_earlier_one():
    for text in ("2026-10-25T02:30", "2026-03-29T02:30"):
        assert Asked.of({"since": text}).selection("c", "u", "Europe/Berlin").since is not None


def test_what_stands_in_the_fields_is_read():
    asked = Asked.of({"verdict": "fail", "state": "passed", "risk": "true", "failing": "test_a", "sort": "-score"})
    assert asked.selection("c", "u", "UTC").verdict is Verdict.FAIL
    narrowed = asked.narrowed()
    assert (narrowed.state, narrowed.at_risk, narrowed.failing) == (State.PASSED, True, "test_a")
    assert asked.sort() is Sort.BEST


@pytest.mark.parametrize(
    ("name", "text"), [("verdict", "good"), ("since", "noon"), ("search", "a\0b"), ("failing", "x" * 3000)]
)
def test_what_cannot_be_read_is_said_and_not_left_out(name, text):
    with pytest.raises(Problem) as refused:
        asked = Asked.of({name: text})
        asked.selection("c", "u", "UTC")
    assert refused.value.status == 422 and name in refused.value.message


def test_the_filters_follow_to_other_views_but_not_the_page():
    asked = Asked.of({"section": "A & B", "after": "k", "failing": "test_a"})
    assert asked.kept == "?section=A+%26+B"
    assert asked.other(after="m") == "?section=A+%26+B&failing=test_a&after=m"
    assert asked.other(after="", failing="") == "?section=A+%26+B"


def test_pages_follow_one_another_without_gaps():
    rows, seen, query = [f"s{n:02}" for n in range(10)], [], ""
    while query is not None:
        after = dict(part.split("=") for part in query.lstrip("?").split("&") if part)
        found, query = page_of(rows, Asked.of(after), lambda row: (0.0, row), "student", 4)
        seen += found
    assert seen == rows


def test_a_page_of_another_order_is_refused():
    with pytest.raises(Problem) as refused:
        page_of(["a"], Asked.of({"after": "nonsense"}), lambda row: (0.0, row), "student", 4)
    assert refused.value.status == 422


def test_names_become_one_part_of_a_path_whatever_stands_in_them():
    at = At("c", "L0.0")
    assert at.student("a/b?c#d e") == "/courses/c/class/L0.0/students/a%2Fb%3Fc%23d%20e"

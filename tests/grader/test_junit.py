"""JUnit XML by the schema that Jenkins publishes for it, written down here as a table."""

import re
from xml.etree import ElementTree as ET

from grader import junit
from grader.report import MutantStatus, Outcome, Report, Verdict
from grader.unit import Unit
from grader.views import for_role
from tests.grader.form_reports import ROLES, as_seen, failed, failing, hostile, passing, rejected, void
from tests.grader.simulated import SECRET

NUMBER = r"\d+(\.\d+)?"
COUNT = r"\d+"
TEXT = r"[\s\S]*"
# element -> its attributes (name, pattern), those it must have, the elements it may hold
ELEMENTS: dict[str, tuple[dict[str, str], set[str], set[str]]] = {
    "testsuites": (
        {"name": TEXT, "time": NUMBER, "tests": COUNT, "failures": COUNT, "errors": COUNT, "disabled": COUNT},
        set(),
        {"testsuite"},
    ),
    "testsuite": (
        {
            **{"name": TEXT, "tests": COUNT, "failures": COUNT, "errors": COUNT, "skipped": COUNT, "time": NUMBER},
            **{"timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "hostname": TEXT, "id": TEXT, "package": TEXT},
        },
        {"name", "tests"},
        {"properties", "testcase", "system-out", "system-err", "testsuite"},
    ),
    "testcase": (
        {"name": r"[\s\S]+", "classname": r"[\s\S]+", "time": NUMBER, "group": TEXT},
        {"name"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "skipped": ({"type": TEXT, "message": TEXT}, set(), set()),
    "error": ({"type": TEXT, "message": TEXT}, set(), set()),
    "failure": ({"type": TEXT, "message": TEXT}, set(), set()),
}


def check(element: ET.Element) -> None:
    attributes, required, children = ELEMENTS[element.tag]
    assert required <= set(element.attrib) <= set(attributes), element.tag
    for name, value in element.attrib.items():
        assert re.fullmatch(attributes[name], value), (element.tag, name, value)
    for child in element:
        assert child.tag in children
        check(child)
    if element.tag == "testcase":
        assert len(element) <= 1


def read(report: Report) -> ET.Element:
    text = junit.render(report)
    root = ET.fromstring(text.encode("utf-8"))  # as a file: the declaration's encoding is the file's
    check(root)
    assert root.tag == "testsuites"
    for suite in root:
        assert int(suite.attrib["tests"]) == len(suite)
        for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[attribute]) == len(suite.findall(f"testcase/{kind}"))
    for attribute in ("tests", "failures", "errors"):
        assert int(root.attrib[attribute]) == sum(int(suite.attrib[attribute]) for suite in root)
    return root


def cases(root: ET.Element, suite: str) -> dict[str, str]:
    """What became of each case: "passed", or the element that says why not."""
    found = root.findall(f"testsuite[@name='{suite}']/testcase")
    return {case.attrib["name"]: case[0].tag if len(case) else "passed" for case in found}


def test_every_report_for_every_role_is_valid_and_counts_right(unit: Unit) -> None:
    for report in as_seen(unit):
        read(report)


def test_texts_from_outside_leave_it_well_formed_and_printable(unit: Unit) -> None:
    for report in as_seen(unit):
        root = read(hostile(report))
        for element in root.iter():
            for text in (element.text or "", *element.attrib.values()):
                assert all(char.isprintable() or char == "\n" for char in text)


def test_verdicts_are_cases_that_pass_fail_or_err(unit: Unit) -> None:
    for report, told in ((passing(unit), "passed"), (failing(unit), "failure"), (rejected(), "failure")):
        assert cases(read(report), "submission") == {"verdict": told}
    assert cases(read(failed()), "submission") == {"verdict": "error"}
    assert [suite.attrib["name"] for suite in read(failed())] == ["submission"]


def test_nothing_fails_in_a_report_that_passes_and_something_in_any_other(unit: Unit) -> None:
    for report in as_seen(unit):
        root = read(report)
        fails = int(root.attrib["failures"]) + int(root.attrib["errors"])
        assert (fails == 0) == (report.verdict is Verdict.PASS)


def test_mutants_pass_where_they_are_caught(unit: Unit) -> None:
    words = {
        MutantStatus.KILLED: "passed",
        MutantStatus.TIMEOUT: "passed",
        MutantStatus.SURVIVED: "failure",
        MutantStatus.VOID: "error",
        MutantStatus.INVALID: "skipped",
    }
    report = failing(unit)
    assert report.mutation is not None
    told = cases(read(report), "mutants")
    assert told == {mutant.id: words[mutant.status] for mutant in report.mutation.mutants}
    assert set(told.values()) == set(words.values())


def test_what_was_caught_in_vain_does_not_pass(unit: Unit) -> None:
    root = read(void(unit))
    assert cases(root, "mutants")["m1"] == "failure"
    assert cases(root, "own tests")["test_mine.py::test_d"] == "failure"


def test_course_tests_say_what_their_outcome_is(unit: Unit) -> None:
    words = dict.fromkeys(Outcome, "skipped") | {
        Outcome.PASSED: "passed",
        Outcome.FAILED: "failure",
        Outcome.ERROR: "error",
        Outcome.TIMEOUT: "error",
    }
    report = failing(unit)
    assert report.course_tests is not None
    for outcome in Outcome:
        tests = tuple(test.model_copy(update={"outcome": outcome}) for test in report.course_tests.tests)
        part = report.course_tests.model_copy(update={"tests": tests})
        told = cases(read(report.model_copy(update={"course_tests": part})), "course tests")
        assert set(told.values()) == {words[outcome]}


def test_nothing_said_beside_other_code_reaches_a_student(unit: Unit) -> None:
    for role in ROLES:
        text = junit.render(for_role(void(unit), role))
        assert (SECRET in text, "hint m4" in text) == (False, True)

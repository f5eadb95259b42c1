"""The reference is shown beside a submission once it has passed, and to staff."""

import pytest

from grader.diffs import MOST_LINES, to_reference
from grader.report import Verdict
from service.worker import FakeGrading
from tests.service import samples


def graded(bench, verdict):
    submission = bench.submitted("ada")

    def grade(unit, sent, about, progress):
        return samples.report(about, verdict=verdict)

    bench.graded(bench.worker(FakeGrading(grade)))
    return submission


def diff(bench, submission, who="ada"):
    return bench.get(f"/v1/submissions/{submission}/diff", who)


def test_it_is_shown_to_who_has_passed(make_bench):
    from dataclasses import replace

    unit = samples.unit()
    reference = replace(unit.files[0], reference=b"def twice(x):\n    return x + x\n")
    bench = make_bench(samples.course(replace(unit, files=(reference,))))
    answer = diff(bench, graded(bench, Verdict.PASS))
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    assert answer.text.splitlines()[-2:] == ["-    return 2 * x", "+    return x + x"]


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.GRADER_ERROR])
def test_it_is_not_shown_before(bench, verdict):
    submission = graded(bench, verdict)
    answer = diff(bench, submission)
    assert (answer.status_code, answer.json()["code"]) == (409, "not_passed")
    assert diff(bench, submission, "teacher").status_code == 200


def test_it_waits_for_a_report_and_is_nobody_elses(bench):
    submission = bench.submitted("ada")
    assert diff(bench, submission).status_code == 409
    assert diff(bench, submission, "bob").status_code == 404


def test_a_course_that_tells_less_does_not_show_it(bench):
    submission = graded(bench, Verdict.PASS)
    body = {"feedback": {"after_passing": "counts"}}
    put = bench.client.request("PUT", "/v1/courses/default/units/L0.0", headers=bench.auth("teacher"), json=body)
    assert put.status_code == 200, put.text
    answer = diff(bench, submission)
    assert (answer.status_code, answer.json()["code"]) == (403, "feedback_withheld")


def test_of_a_very_long_file_only_the_beginning_is_compared():
    unit = samples.unit()
    file = unit.files[0]
    lines = to_reference(unit, {file.path: file.reference + b"\n" * 100_000}).splitlines()
    assert len(lines) < 3 * MOST_LINES
    assert lines[-1].startswith("\\ ") and str(100_000 + file.reference.count(b"\n") - MOST_LINES) in lines[-1]

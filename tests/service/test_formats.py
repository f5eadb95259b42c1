"""A report in every form over HTTP: who gets what of it, and what a form that is not known is answered with."""

import dataclasses
import json
from xml.etree import ElementTree as ET

import pytest

from grader.formats import MEDIA_TYPES, Format
from sandbox.errors import EngineFailed
from service.worker import FakeGrading
from tests.service import samples

ROLES = ("admin", "teacher", "lms", "ada")


def fetched(bench, who, form, submission=None):
    if submission is None:
        submission = bench.submitted("ada")
        bench.graded()
    answer = bench.get(f"/v1/submissions/{submission}/report?format={form}", who)
    assert answer.status_code == 200
    return answer


@pytest.mark.parametrize("form", list(Format))
def test_every_role_gets_every_form_with_its_media_type(bench, form):
    submission = bench.submitted("ada")
    bench.graded()
    for who in ROLES:
        answer = fetched(bench, who, form, submission)
        assert answer.headers["content-type"].partition(";")[0] == MEDIA_TYPES[form]
        assert answer.headers.get("attempts-left") == bench.get(answer.url.path, who).headers.get("attempts-left")
        assert samples.HIDDEN not in answer.text or who in ("admin", "teacher")
        match MEDIA_TYPES[form]:
            case "application/json":
                json.loads(answer.content)
            case "application/xml":
                ET.fromstring(answer.content)


def test_the_references_source_is_for_teachers_the_tests_for_them_and_their_author(bench):
    submission = bench.submitted("ada")
    bench.graded()
    reference, tests = samples.SOURCE.decode(), samples.TESTS.decode()
    for who, sees in (
        ("admin", (True, True)),
        ("teacher", (True, True)),
        ("ada", (False, True)),
        ("lms", (False, False)),
    ):
        document = fetched(bench, who, "stryker", submission).json()
        sources = [file["source"] for file in document["files"].values()]
        written = [file.get("source") for file in document["testFiles"].values()]
        assert (reference in sources, tests in written) == sees


def test_another_students_report_is_not_there_in_any_form(bench):
    submission = bench.submitted("ada")
    bench.graded()
    for form in Format:
        assert bench.get(f"/v1/submissions/{submission}/report?format={form}", "bob").status_code == 404


@pytest.mark.parametrize("query", ["format=xml", "format=", "format=gradescope&points=0", "points=nan", "points=1e9"])
def test_a_form_that_is_not_known_is_told_with_those_that_are(bench, query):
    submission = bench.submitted("ada")
    bench.graded()
    answer = bench.get(f"/v1/submissions/{submission}/report?{query}", "ada")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    if query.startswith("format=") and "points" not in query:
        assert all(f"'{form}'" in answer.json()["detail"] for form in Format)


def test_points_scale_the_score_for_gradescope(bench):
    submission = bench.submitted("ada")
    bench.graded()
    for points in (1, 40):
        answer = bench.get(f"/v1/submissions/{submission}/report?format=gradescope&points={points}", "ada")
        assert answer.json()["score"] == points


def test_each_run_of_a_submission_has_its_report_in_every_form(bench):
    submission = bench.submitted("ada")
    [run] = bench.queue.submitted
    bench.graded()
    for form in Format:
        answer = bench.get(f"/v1/submissions/{submission}/runs/{run}/report?format={form}", "teacher")
        assert answer.text == fetched(bench, "teacher", form, submission).text


def test_a_failure_of_ours_can_be_had_in_every_form(bench):
    bench.settings = dataclasses.replace(bench.settings, max_attempts=1)

    def fails(unit, submission, about, progress):
        raise EngineFailed("a container was lost")

    submission = bench.submitted("ada")
    bench.graded(bench.worker(FakeGrading(fails)))
    for form in Format:
        assert "our side" in fetched(bench, "ada", form, submission).text


def test_a_post_that_waits_is_answered_in_the_form_asked_for(bench):
    with bench.grading_what_comes():
        answer = bench.post("ada", query="?wait=60&format=junit")
    assert answer.status_code == 200
    assert ET.fromstring(answer.content).tag == "testsuites"

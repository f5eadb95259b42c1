"""Over HTTP the reference stands in for other units, unless the sender wants them built first."""

from dataclasses import replace

import pytest

from grader.unit import Course, Dep, UnitFile
from service.worker import FakeGrading
from tests.service import samples

BASE = "python/tinyllm/demo/base.py"
WHAT = {"twice": ("twice.py", samples.SOURCE), "tests": ("test_a.py", samples.TESTS)}


@pytest.fixture
def bench(make_bench):
    first = replace(samples.unit("L0.1"), files=(UnitFile(BASE, "tinyllm.demo.base", b""),))
    dep = Dep("L0.1", "Counting", first.files)
    unit = replace(samples.unit(), deps=(dep, Dep("L9.9", "Not offered")))
    return make_bench(Course({unit.id: unit, first.id: first}, (), "0" * 64))


def send(bench, who="ada", unit="L0.0", files=WHAT, **fields):
    return bench.client.request(
        "POST", f"/v1/units/{unit}/submissions", headers=bench.auth(who), files=list(files.items()), data=fields
    )


def test_by_default_nothing_has_to_be_built_first(bench):
    assert send(bench).status_code == 202
    assert send(bench, ref_deps="all").status_code == 202


def test_without_the_reference_the_answer_names_the_unit_to_build_and_nothing_is_stored(bench):
    answer = send(bench, ref_deps="none")
    assert (answer.status_code, answer.json()["code"]) == (422, "needs_dep")
    assert "L0.1, Counting" in answer.json()["detail"]
    assert send(bench, ref_deps="L0.1").status_code == 202
    assert len(bench.queue.submitted) == 1


def test_a_file_of_it_that_is_sent_along_is_stored_with_the_submission(bench):
    files = {**WHAT, "base": ("base.py", b"VALUE = 1\n")}
    answer = send(bench, ref_deps="none", files=files)
    assert answer.status_code == 202, answer.text
    seen = []

    def grade(unit, submission, about, progress):
        seen.append(submission)
        return samples.report(about)

    bench.graded(bench.worker(FakeGrading(grade)))
    assert seen[0].files == {samples.PATH: samples.SOURCE, BASE: b"VALUE = 1\n"}


def test_what_a_student_has_passed_need_not_be_sent_again(bench):
    files = {"base": ("base.py", b"VALUE = 1\n"), "tests": WHAT["tests"]}
    assert send(bench, unit="L0.1", files=files).status_code == 202
    assert send(bench, ref_deps="none").status_code == 422
    bench.graded()
    assert send(bench, ref_deps="none").status_code == 202
    assert send(bench, who="bob", ref_deps="none").status_code == 422


@pytest.mark.parametrize("text", ["L0.1,", ","])
def test_a_list_with_a_hole_is_refused(bench, text):
    answer = send(bench, ref_deps=text)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")
    assert "all, none" in answer.json()["detail"]

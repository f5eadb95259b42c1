"""A course tree that knows nothing of this repository is served and graded for real: units, fixtures, helpers, patches
and deps are read from its folder alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.units import load_course
from service.grading import SandboxGrading
from service.settings import Settings
from tests.grader import foreign_tree
from tests.grader.foreign_tree import ACT, ACT_SUITE, LOSS, LOSS_SUITE, right
from tests.service.test_serve import Served

WEAK = "from tinyllm.nn.act import softmax\n\n\ndef test_shape():\n    assert softmax([1.0, 2.0]).shape == (2,)\n"
FAULTY = right(ACT).replace("sum(axis=axis", "sum(axis=0")
OPTIONS = {
    "pytest.ini": "[pytest]\naddopts = -p randomly --randomly-seed=3\n",
    "conftest.py": foreign_tree.CONFTEST,
}


def posted(act: str, suite: str) -> list[tuple[str, tuple[str, str]]]:
    """The parts of a form for F1."""
    tests = {"test_act.py": suite, **OPTIONS}
    return [("act", ("act.py", act)), *(("tests", (name, text)) for name, text in tests.items())]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign_tree.write(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="module")
def grading(tree: Path) -> Iterator[SandboxGrading]:
    settings = Settings(data=tree.parent / "data", course=tree, sandbox="process")
    opened = SandboxGrading(settings, load_course(tree))
    yield opened
    opened.close()


@pytest.fixture
def bench(make_bench, tree):
    return make_bench(load_course(tree))


def send(bench, unit, files, **fields):
    path = f"/v1/units/{unit}/submissions"
    return bench.client.request("POST", path, headers=bench.auth("ada"), files=files, data=fields)


def report_of(bench, grading, answer):
    assert answer.status_code == 202, answer.text
    bench.graded(bench.worker(grading))
    return bench.get(f"/v1/submissions/{answer.json()['id']}/report", "teacher").json()


def test_its_units_are_offered_and_the_others_listed_with_the_reason(bench):
    told = bench.get("/v1/units", "ada").json()
    assert [unit["id"] for unit in told["units"]] == ["F1", "F2"]
    assert "Rust" in str(told) and "not offered" in str(told)
    told = bench.get("/v1/units/F1", "ada").json()
    assert "SOLUTION" not in str(told) and "worked out on paper" in str(told)
    assert bench.get("/v1/units/F2", "ada").json()["deps"] == [
        {"id": "F1", "title": "Softmax", "offered": True, "fields": ["act"]},
        {"id": "M9.9", "title": "", "offered": False, "fields": []},
    ]
    for path, says in (
        ("/", "Cross entropy"),
        ("/units/F1", "worked out on paper"),
        ("/units/F2", "F1, Softmax: send"),
    ):
        page = bench.get(path, "nobody")
        assert page.status_code == 200
        assert says in page.text


def test_honest_faulty_and_weak_submissions_get_what_they_deserve(bench, grading):
    honest = report_of(bench, grading, send(bench, "F1", posted(right(ACT), ACT_SUITE)))
    assert (honest["verdict"], honest["score"], honest["oracle"]["status"]) == ("pass", 1.0, "agree")
    assert {test["id"]: test["outcome"] for test in honest["course_tests"]["tests"]} == dict.fromkeys(
        ("test_by_hand", "test_large_scores", "test_rows_add_up", "test_golden", "test_cases"), "passed"
    )

    faulty = report_of(bench, grading, send(bench, "F1", posted(FAULTY, ACT_SUITE)))
    outcomes = {test["id"]: test["outcome"] for test in faulty["course_tests"]["tests"]}
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == {
        "test_by_hand",
        "test_rows_add_up",
        "test_golden",
    }
    assert (faulty["verdict"], faulty["mutation"]["score"], faulty["oracle"]["status"]) == ("fail", 1.0, "disagree")

    weak = report_of(bench, grading, send(bench, "F1", posted(right(ACT), WEAK)))
    assert (weak["verdict"], weak["mutation"]["killed"]) == ("fail", 0)
    assert {each["category"]: each["total"] for each in weak["mutation"]["categories"]} == {"semantic": 2, "auto": 1}
    hints = {mutant["id"]: mutant["hint"] for mutant in weak["mutation"]["mutants"]}
    assert hints["s02"].startswith("Try large scores.")


def test_the_second_unit_of_a_chain_runs_with_the_first(bench, grading):
    files = [("loss", ("loss.py", right(LOSS))), ("tests", ("test_loss.py", LOSS_SUITE))]
    refused = send(bench, "F2", files, ref_deps="none")
    assert (refused.status_code, refused.json()["code"]) == (422, "needs_dep")
    assert "F1, Softmax" in refused.json()["detail"]
    assert report_of(bench, grading, send(bench, "F2", files))["verdict"] == "pass"
    wrong_dep = [*files, ("act", ("act.py", right(ACT).replace("x - logsumexp", "x + logsumexp")))]
    report = report_of(bench, grading, send(bench, "F2", wrong_dep, ref_deps="none"))
    assert (report["verdict"], report["course_tests"]["passed"], report["mutation"]["score"]) == ("fail", 1, 1.0)
    assert report["deps"][0]["used"] == "submitted"


@pytest.mark.full
@pytest.mark.docker
def test_it_is_served_with_containers(tmp_path: Path, tree: Path) -> None:
    served = Served(tmp_path, "--dev-token", "token", course=tree, sandbox="docker")
    try:
        served.said(r"Serving at http://")
        served.client.headers["Authorization"] = "Bearer token"
        for act, suite, verdict in ((right(ACT), ACT_SUITE, "pass"), (FAULTY, ACT_SUITE, "fail")):
            answer = served.client.post("/v1/units/F1/submissions?wait=60", files=posted(act, suite))
            assert answer.status_code == 200, answer.text
            assert answer.json()["verdict"] == verdict
    finally:
        served.close()

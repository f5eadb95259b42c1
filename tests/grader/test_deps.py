"""What a student built of other units is used where it is sent; what must be built first is named."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import deps, plan
from grader.errors import Rejected
from grader.grade import grade
from grader.intake import take_in
from grader.report import Outcome, Report, Verdict
from grader.submission import Submission, Upload
from grader.unit import Course, Unit
from grader.units import load_course
from sandbox.process import ProcessSandbox
from tests.grader.simulated import ABOUT, codes
from tests.grader.small_course import FILES, MODULE, REFERENCE, SUITE, write_course

BASE = FILES["tinyllm/demo/base.py"]
BASE_PATCH = """\
--- a/python/tinyllm/demo/base.py
+++ b/python/tinyllm/demo/base.py
@@ -3,4 +3,4 @@

 class Base:
     def __call__(self, x):
-        return self.forward(x)
+        return self.forward(-x)
"""
THROUGH = REFERENCE.replace("demo.base import Base", "demo.middle import Middle as Base")
# A second unit, on which the first one builds, and a module between the two.
BASE_UNIT = {
    "course/modules/Z0.toml": MODULE.replace("Z1", "Z0")
    .replace("Doubling", "Being called")
    .replace("demo/double", "demo/base")
    .replace('deps = [{ id = "Z0" }]', 'deps = [{ id = "Y9", title = "Nothing yet" }]')
    .replace('files = ["Z0/data.json"]', "files = []")
    .replace("test_twice", "test_calls"),
    "course/contracts/py/tinyllm/demo/base.pyi": "class Base:\n    def __call__(self, x): ...\n",
    "course/tests/Z0/test_base.py": "# WHY: w\n# KIND: unit\n# CATCHES: s01\n# CHAPTER: 1\n"
    "def test_calls():\n    pass\n",
    "course/mutants/Z0/manifest.tsv": "mid\tunit\ttier\toperator\tline\trequired\tpublic\tprivate\n"
    "s01\tZ0\tsemantic\tsign\t6\ttrue\tCall it.\tnegates\n",
    "course/mutants/Z0/s01.patch": BASE_PATCH,
    "tinyllm/demo/middle.py": "from .base import Base\n\n\nclass Middle(Base):\n    pass\n",
    "course/contracts/py/tinyllm/demo/middle.pyi": "class Middle: ...\n",
    "tinyllm/demo/double.py": (
        THROUGH := REFERENCE.replace("demo.base import Base", "demo.middle import Middle as Base")
    ),
    "course/wheats/Z1/w01_other.py": THROUGH.replace("x * self.factor", "self.factor * x"),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    found = load_course(write_course(tmp_path_factory.mktemp("course"), dict(BASE_UNIT)))
    assert not found.problems, found.problems
    return found


@pytest.fixture(scope="module")
def unit(course: Course) -> Unit:
    return course.units["Z1"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    yield ProcessSandbox(jobs=2)


def sent(unit: Unit, base: str | None = None) -> Submission:
    files = {"double": Upload("double.py", unit.files[0].reference)}
    if base is not None:
        files["base"] = Upload("my_base.py", base.encode())
    return take_in(unit, files, [Upload("test_a.py", SUITE.encode())])


def graded(unit: Unit, sandbox: ProcessSandbox, submission: Submission) -> Report:
    return grade(unit, submission, sandbox=sandbox, seed=3, about=ABOUT)


def test_a_unit_knows_what_it_builds_on_nearest_first_and_what_is_not_offered(unit: Unit) -> None:
    assert [(dep.id, dep.title, dep.offered) for dep in unit.deps] == [
        ("Z0", "Being called", True),
        ("Y9", "Nothing yet", False),
    ]
    assert list(unit.dep_stems) == ["base"]


def test_without_a_file_of_theirs_the_reference_is_used_and_the_report_says_so(
    unit: Unit, sandbox: ProcessSandbox
) -> None:
    report = graded(unit, sandbox, sent(unit))
    assert report.verdict is Verdict.PASS
    assert [(dep.id, dep.used) for dep in report.deps] == [("Z0", "reference"), ("Y9", "reference")]


def test_what_a_student_built_is_what_their_unit_runs_with(unit: Unit, sandbox: ProcessSandbox) -> None:
    right = graded(unit, sandbox, sent(unit, BASE))
    assert right.verdict is Verdict.PASS
    assert right.deps[0].used == "submitted"


def test_a_fault_in_it_fails_course_tests_and_leaves_the_test_grade_alone(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, sent(unit, BASE.replace("self.forward(x)", "self.forward(-x)")))
    assert report.course_tests is not None and report.mutation is not None
    outcomes = {test.id: test.outcome for test in report.course_tests.tests}
    assert outcomes == {"test_twice": Outcome.FAILED, "test_zero": Outcome.PASSED}
    assert report.mutation.score == 1.0
    assert "course_tests" in " ".join(codes(report)) and report.verdict is Verdict.FAIL


def test_it_is_held_to_its_contract(unit: Unit, sandbox: ProcessSandbox) -> None:
    report = graded(unit, sandbox, sent(unit, "class Other:\n    pass\n"))
    assert report.contract is not None
    assert [problem.file for problem in report.contract.problems] == ["python/tinyllm/demo/base.py"]


def test_every_module_that_hangs_on_it_is_imported_after_the_fork(unit: Unit) -> None:
    assert plan.unsettled(unit, sent(unit)) == frozenset()
    submission = sent(unit, BASE)
    hanging = plan.unsettled(unit, submission)
    assert hanging == {"tinyllm.demo.base", "tinyllm.demo.middle"}
    assert hanging.isdisjoint(module.name for module in plan.preload(unit, hanging))
    visible = {module.name: module.source_visible for module in plan.own_modules(unit, submission)}
    assert visible == {"tinyllm.demo.base": True, "tinyllm.demo.middle": False, "tinyllm.demo.double": True}


@pytest.mark.parametrize(
    ("text", "passed", "missing"),
    [
        ("all", (), []),
        ("none", (), ["Z0"]),
        ("none", ("Z0",), []),
        ("Z0", (), []),
        ("Y9, Z0", (), []),
        ("Y9", (), ["Z0"]),
    ],
)
def test_a_unit_that_is_neither_sent_nor_passed_comes_from_the_reference_only_where_that_is_asked_for(
    unit: Unit, text: str, passed: tuple[str, ...], missing: list[str]
) -> None:
    allowed = deps.ref_deps(text)
    assert [dep.id for dep in deps.missing(unit, sent(unit), allowed, passed)] == missing
    assert deps.missing(unit, sent(unit, BASE), allowed, passed) == ()


def test_the_refusal_names_the_unit_to_build_first_and_the_way_around(unit: Unit) -> None:
    with pytest.raises(Rejected) as refused:
        deps.check(unit, sent(unit), deps.ref_deps("none"))
    assert refused.value.code == "needs_dep"
    assert all(text in refused.value.message for text in ("needs Z0, Being called", "-F base=@base.py", "ref_deps=all"))


def test_a_list_with_a_hole_is_no_list() -> None:
    for text in ("", "L5.1,", ",", " "):
        with pytest.raises(ValueError, match=r"^[\s,A-Z0-9.]*$"):
            deps.ref_deps(text)


def test_units_that_name_each_other_are_no_endless_chain(tmp_path: Path) -> None:
    circle = BASE_UNIT["course/modules/Z0.toml"].replace("Y9", "Z1")
    course = load_course(write_course(tmp_path, {**BASE_UNIT, "course/modules/Z0.toml": circle}))
    assert {unit.id: [dep.id for dep in unit.deps] for unit in course.units.values()} == {"Z0": ["Z1"], "Z1": ["Z0"]}

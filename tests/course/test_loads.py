"""The grader takes the course tree as it stands, and finds nothing wrong with what the course calls right."""

from grader import wording
from grader.contract import check
from grader.submission import Submission
from grader.units import load_course
from sandbox.records import File
from tests.course import variants

COURSE = load_course(variants.COURSE)


def test_the_course_loads_without_problems() -> None:
    assert COURSE.problems == ()
    unit = COURSE.units["L5.3"]
    assert len(unit.course_tests) == 14
    assert {mutant.id for mutant in unit.mutants} == {row["mid"] for row in variants.manifest()}
    assert {freedom.id for freedom in unit.freedoms} >= {"rounding", "private-names"}


def test_what_the_chapters_name_and_the_course_does_not_offer_is_listed_so() -> None:
    named = "L0.1 L0.2 L0.4 L5.4 L5.5 L6.1 L6.2 L7.5 M04.1 M06.3 2.2 2.4 2.5"
    reasons = {each.id: each.reason for each in COURSE.listed}
    assert {reasons.get(unit) for unit in named.split()} == {wording.NOT_OFFERED}


def test_the_reference_and_every_wheat_keep_the_contract() -> None:
    unit = COURSE.units["L5.3"]
    correct = [{file.path: file.reference for file in unit.files}, *(wheat.files for wheat in unit.wheats)]
    assert [check(unit, Submission(unit.id, files, ())) for files in correct] == [()] * len(correct)


def test_the_staff_suite_imports_only_what_has_a_contract() -> None:
    unit = COURSE.units["L5.3"]
    suite = tuple(File(path.name, path.read_bytes()) for path in sorted(variants.STAFF_SUITE.glob("*.py")))
    assert len(suite) == 4
    assert check(unit, Submission(unit.id, {file.path: file.reference for file in unit.files}, suite)) == ()


def test_the_loader_builds_the_same_mutants_as_the_patches_here() -> None:
    unit, sources = COURSE.units["L5.3"], variants.sources()
    for mutant in unit.mutants:
        assert mutant.files[unit.files[0].path].decode() == sources[mutant.id], mutant.id

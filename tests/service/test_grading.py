"""The worker's grading: sandbox and oracles are opened before the first submission, and closed with the worker."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.errors import OracleError, OracleMissing
from grader.report import Verdict
from grader.seen import About
from grader.stop import Stop
from grader.submission import Submission
from grader.unit import Course
from grader.units import load_course
from sandbox.records import File
from service.grading import SandboxGrading
from service.settings import Settings, from_environment
from tests.grader.small_course import write_course
from tests.grader.small_oracle import LIVE

TESTS = b"from tinyllm.demo.double import Double\n\n\ndef test_doubles():\n    assert Double()(3) == 6\n"


def course_with(tmp_path: Path, oracle: str) -> Course:
    return load_course(write_course(tmp_path / "tree", {"course/oracle/Z1/live.py": oracle}))


def settings_in(tmp_path: Path) -> Settings:
    return from_environment(data=tmp_path / "data", course=tmp_path / "tree/course", sandbox="process", jobs=2)


def test_a_submission_is_graded_with_its_unit_s_oracle_until_grading_is_closed(tmp_path: Path) -> None:
    course = course_with(tmp_path, LIVE)
    unit = course.units["Z1"]
    submission = Submission("Z1", {file.path: file.reference for file in unit.files}, (File("test_it.py", TESTS),))
    about = About(id="one", course="default", student=None, received_at=datetime(2026, 1, 1, tzinfo=UTC))
    grading = SandboxGrading(settings_in(tmp_path), course)
    grading.open()
    report = grading.grade(unit, submission, about=about, progress=lambda progress: None, stop=Stop())
    again = grading.grade(unit, submission, about=about, progress=lambda progress: None, stop=Stop())
    anew = grading.grade(unit, submission, about=about, progress=lambda progress: None, stop=Stop(), anew=True)
    grading.close()
    assert report.verdict is Verdict.PASS
    assert [each.mutation.remembered for each in (report, again, anew) if each.mutation] == [False, True, False]
    assert len({each.integrity.seed for each in (report, again, anew) if each.integrity}) == 3
    assert report.oracle is not None and report.oracle.status == "agree"
    with pytest.raises((OracleError, RuntimeError)):
        grading.grade(unit, submission, about=about, progress=lambda progress: None, stop=Stop())


def test_grading_does_not_open_while_an_oracle_cannot_start(tmp_path: Path) -> None:
    lacking = LIVE.replace("def expected(case):\n", "def expected(case):\n    import nothing_like_it\n")
    grading = SandboxGrading(settings_in(tmp_path), course_with(tmp_path, lacking))
    with pytest.raises(OracleMissing, match="nothing_like_it"):
        grading.open()
    grading.close()

"""A suite's name goes in, "staff" or a sample; its tests, or its report with the reference as own code, come out."""

from pathlib import Path

from grader import local
from grader.grade import grade
from grader.intake import take_in
from grader.oracle import Oracle
from grader.report import Report
from grader.submission import Upload
from grader.unit import Unit
from sandbox.records import Sandbox
from tests.grader.simulated import ABOUT
from tests.samples.loading import load

COURSE = Path(__file__).resolve().parent.parent / "course"


def suite_of(name: str, unit: Unit) -> list[Upload]:
    if name != "staff":
        return list(load(name).tests)
    return local.read_paths([COURSE / "ref/learner-tests" / unit.id / unit.tests_path])


def graded(name: str, unit: Unit, sandbox: Sandbox, oracle: Oracle, seed: int) -> Report:
    files = {file.stem: Upload(f"{file.stem}.py", file.reference) for file in unit.files}
    submission = take_in(unit, files, suite_of(name, unit))
    return grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=seed, about=ABOUT)

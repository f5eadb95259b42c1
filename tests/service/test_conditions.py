"""A grade is repeated only where nothing it depends on has changed."""

from dataclasses import replace

import pytest

from grader.plan import Policy
from sandbox.records import Environment, Limits
from service import conditions
from service.conditions import digest
from service.grading import SandboxGrading
from service.settings import Settings
from tests.service import samples

HERE = Environment("docker", "sha256:1", "3.11.2", "2.4.0", "9.2.0", "6.150.0")
USUAL = {"environments": [HERE], "course_digest": "c", "graded_by": "g"}


@pytest.mark.parametrize(
    "change",
    [
        {"course_digest": "d"},
        {"graded_by": "h"},
        {"runtime": "runsc"},
        {"policy": Policy(resumes=11)},
        {"policy": Policy(correct_runs_at_least=9)},
        {"limits": Limits(memory_bytes=2**30)},
        {"limits": Limits(cpu_seconds=19.0)},
        {"environments": [HERE, replace(HERE, libraries={"torch": "2.13.0"})]},
        {"environments": [replace(HERE, libraries={"torch": "2.13.0"})]},
        *(
            {"environments": [replace(HERE, **{name: value})]}
            for name, value in {
                "kind": "process",
                "image_id": "sha256:2",
                "python": "3.12.0",
                "numpy": "2.5.0",
                "pytest": "9.3.0",
                "hypothesis": "7.0.0",
                "isolated": False,
            }.items()
        ),
    ],
    ids=str,
)
def test_the_digest_differs_with_everything_a_grade_depends_on(change):
    assert digest(**USUAL) == digest(**USUAL)
    assert digest(**{**USUAL, **change}) != digest(**USUAL)


def test_no_part_of_the_environment_is_left_out():
    names = {field for field in Environment.__dataclass_fields__}
    assert names == {"kind", "image_id", "python", "numpy", "pytest", "hypothesis", "libraries", "isolated"}


def test_a_changed_source_of_the_grader_is_another_grader(tmp_path, monkeypatch):
    import sandbox

    now = conditions.this_grader()
    assert now == conditions.this_grader()
    (tmp_path / "records.py").write_text("changed = True\n")
    monkeypatch.setattr(sandbox, "__path__", [str(tmp_path)])
    assert conditions.this_grader() != now


def test_grading_knows_its_conditions_once_it_is_open(tmp_path):
    settings = Settings(data=tmp_path, sandbox="process", jobs=1)
    gradings = [SandboxGrading(settings, replace(samples.course(), digest=digest)) for digest in ("0" * 64, "1" * 64)]
    try:
        assert [grading.conditions for grading in gradings] == ["", ""]
        for grading in gradings:
            grading.open()
        first, second = (grading.conditions for grading in gradings)
        assert len(first) == len(second) == 64
        assert first != second
    finally:
        for grading in gradings:
            grading.close()

"""The ways of running a suite on variants agree about what fails."""

from pathlib import Path
from typing import Any

import pytest

from bench import contenders, growth, work
from grader import plan, reach
from grader.unit import Unit
from grader.units import load_course
from sandbox.process import ProcessSandbox
from sandbox.records import Run, Suite, function_of


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(work.ROOT / "course").units["L5.3"]


@pytest.fixture(scope="module")
def job(unit: Unit) -> work.Work:
    path = unit.files[0].path
    variants = {mutant.id: mutant.files[path] for mutant in unit.mutants[:2]}
    return work.Work({**variants, "reference": unit.files[0].reference}, growth.suite_of(3))


def test_ours_runs_every_variant_and_names_those_that_fail(unit: Unit, job: work.Work) -> None:
    with ProcessSandbox().session(plan.preload(unit)) as session:
        took = contenders.run_ours(session, unit, job)
    assert took.variants == 3 and "reference" not in took.failed and took.seconds_each * 3 == took.wall_seconds


def test_a_variant_that_few_tests_reach_is_spared_the_others(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = unit.files
    message = file.reference.replace(b"n_heads must divide d_model", b"n_heads must fit")
    forward = file.reference.replace(b"return self.attend(x_q, x_kv, mask)[0]", b"return self.attend(x_q, x_kv)[0]")
    job = work.Work({"message": message, "forward": forward}, work.suite_of())
    made: dict[str, Suite] = {}
    run_of = contenders.run_of

    def noted(name: str, *args: Any, **options: Any) -> Run:
        run = run_of(name, *args, **options)
        made[name] = run.suite
        return run

    monkeypatch.setattr(contenders, "run_of", noted)
    with ProcessSandbox().session(plan.preload(unit)) as session:
        entered = reach.of_run(contenders.calibrate(session, unit, job))
        took = contenders.run_ours(session, unit, job)
    assert entered is not None and len(entered.entered) - len(made["message"].skip) == 1
    assert set(made["forward"].first) == {function_of(item) for item in entered.entered}
    assert took.variants == 2 and took.failed == {"forward"} and took.start_seconds > 0


def test_a_timed_contender_tells_what_failed() -> None:
    took = contenders.timed(work.Work({"a": b"", "b": b""}, ()), lambda name: name == "b")
    assert took.failed == {"b"} and took.variants == 2 and took.wall_seconds > 0


def test_a_folder_holds_library_suite_and_the_variant_put_there(tmp_path: Path, job: work.Work) -> None:
    folder = work.lay(tmp_path / "folder", job.suite)
    stale = folder / work.UNIT_PATH
    (stale.parent / "__pycache__").mkdir()
    (stale.parent / "__pycache__/mha.cpython-311.pyc").write_bytes(b"old")
    contenders.put(folder, b"x = 1\n")
    assert (folder / work.UNIT_PATH).read_bytes() == b"x = 1\n" and (folder / "tests/test_many.py").exists()
    assert not list(stale.parent.glob("__pycache__/mha.*"))


@pytest.mark.parametrize("count", [1, 5])
def test_the_suite_that_grows_has_as_many_tests(count: int) -> None:
    [file] = growth.suite_of(count)
    assert file.data.count(b"\ndef test_") == count


def test_a_course_with_fewer_wheats_is_the_same_but_for_them(tmp_path: Path, unit: Unit) -> None:
    fewer = load_course(work.course_with(5, tmp_path)).units["L5.3"]
    assert fewer.wheats == unit.wheats[:5] and len(plan.correct_variants(fewer, plan.STANDARD)) == 8
    assert fewer.mutants == unit.mutants and fewer.course_tests == unit.course_tests
    left = {wheat.id for wheat in fewer.wheats}
    assert [set(each.wheats) for each in fewer.freedoms] == [set(each.wheats) & left for each in unit.freedoms]

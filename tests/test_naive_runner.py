"""The runner says of every variant what a pytest process of its own says: on honest suites, and on 300 mutants."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

from grader import candidates, local, mutation, plan
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from sandbox.records import File, Limits, Module, Run, RunResult, Suite
from tests.samples.loading import load

pytestmark = [pytest.mark.docker, pytest.mark.full]

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Limits(cpu_seconds=20, wall_seconds=120)
HONEST = (
    *("correct_plain", "suite_fixtures", "suite_hypothesis", "suite_parametrised", "suite_unittest"),
    *("suite_monkeypatch", "suite_outputs_only", "suite_gradients_only", "suite_over_strict", "staff"),
)
MANY = 300
JOBS = 2


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(ROOT / "course").units["L5.3"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=JOBS) as opened:
        yield opened


def suite_of(name: str, unit: Unit) -> tuple[File, ...]:
    if name != "staff":
        return tuple(File(upload.name, upload.data) for upload in load(name).tests)
    folder = ROOT / "course/ref/learner-tests" / unit.id / unit.tests_path
    return tuple(File(upload.name, upload.data) for upload in local.read_directory(folder))


def by_processes(unit: Unit, suite: tuple[File, ...], variants: Mapping[str, bytes], root: Path) -> set[str]:
    """The variants on which pytest fails, each in a process in a folder of the library and the suite."""
    [file] = unit.files
    place = Path(*file.module.split(".")).with_suffix(".py")
    folders: SimpleQueue[Path] = SimpleQueue()
    for number in range(JOBS):
        folder = root / str(number)
        shutil.copytree(ROOT / "tinyllm", folder / "tinyllm", ignore=shutil.ignore_patterns("__pycache__"))
        for each in (*plan.suite_files(unit, suite), *(File(f"fixtures/{f.path}", f.data) for f in unit.fixtures)):
            (folder / each.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / each.path).write_bytes(each.data)
        folders.put(folder)

    def fails(name: str) -> bool:
        folder = folders.get()
        (folder / place).write_bytes(variants[name])
        paths = ":".join(str(folder / part) for part in ("", "suite", "lib"))
        environment = {**os.environ, "PYTHONPATH": paths, "TINYLLM_FIXTURES": str(folder / "fixtures")}
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-c", os.devnull, "--rootdir=suite", "suite"]
        command += ["-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode in (0, 1, 2), done.stdout + done.stderr
        folders.put(folder)
        return done.returncode != 0

    with ThreadPoolExecutor(JOBS) as pool:
        return {name for name, failed in zip(variants, pool.map(fails, variants), strict=True) if failed}


def by_runner(unit: Unit, suite: tuple[File, ...], variants: Mapping[str, bytes], sandbox: DockerSandbox) -> set[str]:
    """The same in the sandbox, to the first failure, likely killers first."""
    [file] = unit.files

    def run(name: str, source: bytes, first: tuple[str, ...] = ()) -> Run:
        modules = (Module(file.module, source, f"{file.module}.py"),)
        return plan.suite_run(
            name, unit, suite, modules, LIMITS, first=first, stop_at_first_failure=name != "reference", messages=False
        )

    def fails(result: RunResult) -> bool:
        bad = any(item.outcome in ("failed", "error") for item in result.record.items)
        return not result.complete or bad or bool(result.record.errors)

    prepared: Suite = plan.student_suite(unit, suite)
    with sandbox.session(plan.preload(unit)) as session:
        session.prepare([prepared.code])
        [calibration] = session.run([run("reference", file.reference)])
        seconds = {item.function: item.seconds for item in calibration.record.items}
        first = mutation.likely_killers(seconds)
        results = session.run([run(name, source, first) for name, source in variants.items()])
    return {result.run_id for result in results if fails(result)}


@pytest.mark.parametrize("name", HONEST)
def test_every_mutant_of_the_unit_ends_as_in_a_process_of_its_own(
    name: str, unit: Unit, sandbox: DockerSandbox, tmp_path: Path
) -> None:
    [file] = unit.files
    variants = {mutant.id: mutant.files[file.path] for mutant in unit.mutants}
    variants |= {wheat.id: wheat.files[file.path] for wheat in unit.wheats} | {"correct": file.reference}
    suite = suite_of(name, unit)
    failed = by_runner(unit, suite, variants, sandbox)
    assert failed == by_processes(unit, suite, variants, tmp_path)
    assert failed and ("correct" in failed) == (name == "suite_over_strict")


def test_three_hundred_generated_mutants_end_as_in_processes_of_their_own(
    unit: Unit, sandbox: DockerSandbox, tmp_path: Path
) -> None:
    [file] = unit.files
    taken, _ = candidates.screened(unit, candidates.propose(unit))
    variants = {
        f"c{number:03}": candidates.files_with(unit, candidate)[file.path]
        for number, candidate in enumerate(taken[:MANY])
    }
    suite = suite_of("correct_plain", unit)
    failed = by_runner(unit, suite, variants, sandbox)
    assert len(variants) == MANY and len(failed) > MANY / 2
    assert failed == by_processes(unit, suite, variants, tmp_path)

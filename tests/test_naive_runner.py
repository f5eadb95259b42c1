"""The runner says of every variant what a pytest process of its own says: on honest suites, and on 300 mutants."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import contenders
from bench.work import Work, environment
from grader import candidates
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import DockerSandbox
from sandbox.records import File
from tests.suites import COURSE, suite_of

pytestmark = [pytest.mark.docker, pytest.mark.full]

HONEST = (
    *("correct_plain", "suite_fixtures", "suite_hypothesis", "suite_parametrised", "suite_unittest"),
    *("suite_monkeypatch", "suite_outputs_only", "suite_gradients_only", "suite_over_strict", "staff"),
)
MANY = 300


@pytest.fixture(scope="module")
def unit() -> Unit:
    return load_course(COURSE).units["L5.3"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=contenders.JOBS) as opened:
        yield opened


def ends_alike(unit: Unit, name: str, variants: dict[str, bytes], sandbox: DockerSandbox) -> frozenset[str]:
    """The variants on which the suite fails, by the runner, which are those on which a process of its own fails."""

    def by_itself(folder: Path) -> int:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-c", os.devnull, "--rootdir=tests", "tests"]
        command += ["-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True)
        assert done.returncode in (0, 1, 2), done.stdout + done.stderr
        return done.returncode

    work = Work(variants, tuple(File(upload.name, upload.data) for upload in suite_of(name, unit)))
    with contenders.ours(unit, work, sandbox) as run:
        failed = run().failed
    assert failed == contenders.in_folders(work, by_itself).failed
    return failed


@pytest.mark.parametrize("name", HONEST)
def test_every_mutant_of_the_unit_ends_as_in_a_process_of_its_own(
    name: str, unit: Unit, sandbox: DockerSandbox
) -> None:
    [file] = unit.files
    variants = {mutant.id: mutant.files[file.path] for mutant in unit.mutants}
    variants |= {wheat.id: wheat.files[file.path] for wheat in unit.wheats} | {"correct": file.reference}
    failed = ends_alike(unit, name, variants, sandbox)
    assert failed and ("correct" in failed) == (name == "suite_over_strict")


def test_three_hundred_generated_mutants_end_as_in_processes_of_their_own(unit: Unit, sandbox: DockerSandbox) -> None:
    [file] = unit.files
    taken, _ = candidates.screened(unit, candidates.propose(unit))
    variants = {
        f"c{number:03}": candidates.files_with(unit, candidate)[file.path]
        for number, candidate in enumerate(taken[:MANY])
    }
    failed = ends_alike(unit, "correct_plain", variants, sandbox)
    assert len(variants) == MANY and len(failed) > MANY / 2

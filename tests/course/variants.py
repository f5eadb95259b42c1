"""Names of variants of a unit and a suite come in; which tests of the suite failed on each variant comes out.

A variant is the reference, a wheat or a mutant of mha.py. It is laid over tinyllm by path order: tinyllm is a
namespace package, so a folder that holds only tinyllm/xfmr/mha.py and stands earlier on sys.path wins. Every run is
a forked child of one process that has numpy and pytest imported:

    python variants.py RUNS.json [MODULE]...   reads [{"overlay", "suite", "results"}, ...], writes each results file
"""

import contextlib
import csv
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader import patches

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "course"
UNIT = "python/tinyllm/xfmr/mha.py"
REFERENCE = ROOT / "tinyllm/xfmr/mha.py"
COURSE_TESTS = COURSE / "tests/L5.3"
STAFF_SUITE = COURSE / "ref/learner-tests/L5.3/python/tests/l5-3-mha"
JOBS = 2
CPU_SECONDS = 30  # of one run; a mutant that hangs is killed by the kernel


@dataclass(frozen=True)
class Run:
    """What happened when a suite met a variant: test function names, parameters aggregated."""

    passed: frozenset[str]
    failed: frozenset[str]
    messages: Mapping[str, str]  # of failed tests: what the assertion or exception said


def manifest() -> list[dict[str, str]]:
    """The rows of the unit's mutants."""
    with (COURSE / "mutants/L5.3/manifest.tsv").open(newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def sources() -> dict[str, str]:
    """mha.py of every variant: `reference`, `w01`… and the mutants' ids."""
    wheats = {path.name[:3]: path.read_text() for path in sorted((COURSE / "wheats/L5.3").glob("w*.py"))}
    mutants = {row["mid"]: mutant(row["mid"]) for row in manifest()}
    return {"reference": REFERENCE.read_text(), **wheats, **mutants}


def mutant(mid: str) -> str:
    """mha.py with one planted fault."""
    patch = (COURSE / f"mutants/L5.3/{mid}.patch").read_bytes()
    return patches.apply(patch, {UNIT: REFERENCE.read_bytes()})[UNIT].decode()


def run_suite(
    suite: Path,
    variants: Mapping[str, str],
    tests: Sequence[str] = (),
    *,
    place: str = "tinyllm/xfmr/mha.py",
    preloaded: Sequence[str] = (),
) -> dict[str, Run]:
    """One run of `suite`, a folder or a file, per variant, by name; of `tests` alone, in their order, if given.

    A variant lies at `place` on the path of its run; the modules `preloaded` are imported once, before all runs.
    """
    what = [str(suite / test) for test in tests] or [str(suite)]
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for name, source in variants.items():
            unit = Path(folder, name, place)
            unit.parent.mkdir(parents=True)
            unit.write_text(source)
            runs.append(
                {"overlay": str(Path(folder, name)), "suite": what, "results": str(Path(folder, f"{name}.json"))}
            )
        plan = Path(folder, "runs.json")
        plan.write_text(json.dumps(runs))
        threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = (
            os.environ
            | threads
            | {
                "TINYLLM_FIXTURES": str(COURSE / "fixtures"),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            }
        )
        subprocess.run([sys.executable, __file__, str(plan), *preloaded], env=environment, check=True, cwd=folder)
        return {name: _read(Path(folder, f"{name}.json")) for name in variants}


def _read(results: Path) -> Run:
    outcomes: dict[str, list[str | None]] = json.loads(results.read_text())
    messages = {test: "\n".join(filter(None, said)) for test, said in outcomes.items() if any(said)}
    return Run(frozenset(outcomes) - frozenset(messages), frozenset(messages), messages)


def _warm_up(preloaded: Sequence[str]) -> None:
    """Import once what every child would import: the modules named, numpy's lazy parts, and pytest's by running a test
    that fails."""
    import numpy.random
    import numpy.testing  # noqa: F401
    import pytest

    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        trial = Path(folder, "test_trial.py")
        trial.write_text("def test_passes(): pass\ndef test_fails(): assert False\n")
        with contextlib.redirect_stdout(nowhere):
            pytest.main(["-q", "--assert=plain", "-p", "no:cacheprovider", "-c", os.devnull, str(trial)])
        sys.modules.pop("test_trial", None)
        sys.path[:] = [path for path in sys.path if path != folder]
    for name in preloaded:
        importlib.import_module(name)


def _fork_all(runs: Iterable[Mapping[str, Any]]) -> None:
    running = 0
    for run in runs:
        if running == JOBS:
            os.wait()
            running -= 1
        if os.fork() == 0:
            try:
                _child(run)
            finally:
                os._exit(0)
        running += 1
    for _ in range(running):
        os.wait()


def _child(run: Mapping[str, Any]) -> None:
    """Run pytest here; a child that dies leaves no results file, which the parent cannot miss."""
    import resource

    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    sys.path[:0] = [run["overlay"], str(COURSE / "tests"), str(ROOT)]
    outcomes: dict[str, list[str | None]] = {}

    class Recorder:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call" or not report.passed:
                name = report.nodeid.split("::", 1)[1].partition("[")[0]
                outcomes.setdefault(name, []).append(None if report.passed else _said(report))

        def pytest_collectreport(self, report: Any) -> None:
            if not report.passed:
                outcomes.setdefault("collection", []).append(str(report.longrepr))

    # Plain asserts: rewriting the tests again in every child would cost more than running them.
    options = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", run["overlay"]]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        pytest.main([*options, *run["suite"]], plugins=[Recorder()])
    Path(run["results"]).write_text(json.dumps(outcomes))


def _said(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr) or "failed"


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    _warm_up(sys.argv[2:])
    _fork_all(json.loads(Path(sys.argv[1]).read_text()))

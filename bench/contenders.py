"""Variants and a suite arrive; for each way of running one on the other, how long it took and which variants failed."""

import os
import resource
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import docker  # type: ignore[import-untyped]

from bench.work import BENCH, MODULE, UNIT_PATH, Work, ask_mutmut, environment, lay, run_mutmut
from grader import plan, reach, verdicts
from grader.priorities import Priorities
from grader.unit import Unit
from sandbox.docker_engine import IMAGE, DockerSandbox
from sandbox.records import Limits, Module, Run, RunResult, Session

JOBS = 2
LIMITS = Limits(cpu_seconds=20, wall_seconds=120)


@dataclass(frozen=True)
class Took:
    """One round of a contender: wall and CPU seconds of its processes, variants, those that failed, and the
    seconds before the first of them, which are not counted."""

    wall_seconds: float
    cpu_seconds: float
    variants: int
    failed: frozenset[str]
    start_seconds: float = 0.0

    @property
    def seconds_each(self) -> float:
        return self.wall_seconds / self.variants


@contextmanager
def ours(unit: Unit, work: Work, sandbox: DockerSandbox) -> Iterator[Callable[[], Took]]:
    """A session that is open, as one is when a grading comes to its mutants; variants are compiled, as by a worker."""
    with sandbox.session(plan.preload(unit)) as session:
        session.prepare([plan.student_suite(unit, work.suite).folder])
        yield lambda: run_ours(session, unit, work)


def run_ours(session: Session, unit: Unit, work: Work, *, to_the_end: bool = False) -> Took:
    """As a grading does where what tests reach is known: those tests first that catch most of what came before; of the
    tests those that reach the variant, if they are few. Otherwise all, in their own order."""
    began = time.perf_counter()
    calibration = calibrate(session, unit, work)
    start = time.perf_counter() - began
    entered = None if to_the_end or not reach.can_be_asked(unit, work.suite) else reach.of_run(calibration)
    seconds: dict[str, float] = defaultdict(float)
    for item in calibration.record.items:
        seconds[item.function] += item.seconds
    priorities = Priorities(seconds)
    [file] = unit.files

    def runs() -> Iterator[Run]:
        for name, source in work.variants.items():
            if entered is None:
                yield run_of(name, unit, work, source, to_the_end=to_the_end)
                continue
            changed = reach.changed(unit, {file.path: source})
            spared = entered.spared(changed, plan.STANDARD.few_tests_share) or ()
            if len(spared) < len(calibration.record.items):
                first = priorities.order(entering=entered.entering(changed))
                yield run_of(name, unit, work, source, first=first, skip=spared)

    began = time.perf_counter()
    results = session.run(runs(), lambda result: priorities.saw("", result))
    wall = time.perf_counter() - began
    failed = {result.run_id for result in results if verdicts.fails(result)}
    cpu = sum(result.usage.cpu_seconds for result in results)
    return Took(wall, cpu, len(work.variants), frozenset(failed), start)


def calibrate(session: Session, unit: Unit, work: Work) -> RunResult:
    """The run on the reference that says what each test takes and reaches."""
    marked = reach.marked(tuple((file.path, file.reference) for file in unit.files))
    if marked is None:
        raise ValueError(f"the reference of {unit.id} takes no marks")
    [source] = marked.variant.files.values()
    run = run_of("calibration", unit, work, source, to_the_end=True)
    suite = replace(run.suite, marks=marked.marks.name)
    [result] = session.run([replace(run, task=suite, modules=(*run.modules, marked.marks))])
    return result


def run_of(
    name: str,
    unit: Unit,
    work: Work,
    source: bytes,
    *,
    first: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    to_the_end: bool = False,
) -> Run:
    module, stop = Module(MODULE, source, UNIT_PATH), not to_the_end
    return plan.suite_run(
        name,
        unit,
        work.suite,
        (module,),
        LIMITS,
        first=first,
        skip=skip,
        stop_at_first_failure=stop,
        messages=False,
    )


def process_each(work: Work) -> Took:
    """A pytest process for each variant, two at a time, each with a folder of its own, where only numpy and
    pytest are installed: other plugins would make it slower."""

    def run(folder: Path) -> int:
        command = [str(BENCH / "python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "tests"]
        return subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True).returncode

    return in_folders(work, run)


def container_each(work: Work, image: str = IMAGE) -> Took:
    """A container for each variant, from the sandbox's image, with a pytest process in it."""
    client = docker.from_env()
    return in_folders(work, lambda folder: run_container(client, image, folder))


def in_folders(work: Work, run: Callable[[Path], int]) -> Took:
    """Every variant in turn in a folder with the suite, of which there are as many as jobs; `run` returns a status."""
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)  # a container's user reads it too
        folders: SimpleQueue[Path] = SimpleQueue()
        for number in range(JOBS):
            folders.put(lay(Path(root) / str(number), work.suite))

        def fails(name: str) -> bool:
            folder = folders.get()
            put(folder, work.variants[name])
            status = run(folder)
            folders.put(folder)
            return status != 0

        return timed(work, fails)


def put(folder: Path, source: bytes) -> None:
    """Bytecode of the version before, of the same size and second, would be taken for that of this one."""
    for stale in (folder / UNIT_PATH).parent.glob("__pycache__/mha.*"):
        stale.unlink()
    (folder / UNIT_PATH).write_bytes(source)


def run_container(client: Any, image: str, folder: Path) -> int:
    container = client.containers.create(
        image,
        entrypoint=["python3", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "tests"],
        command=[],
        working_dir="/unit",
        volumes={str(folder): {"bind": "/unit", "mode": "ro"}},
        environment={"PYTHONPATH": "/unit:/unit/tests", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"},
        network_disabled=True,
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": ""},
    )
    try:
        container.start()
        return int(container.wait()["StatusCode"])
    finally:
        container.remove(force=True)


def timed(work: Work, run: Callable[[str], bool]) -> Took:
    before, began = children_cpu_seconds(), time.perf_counter()
    with ThreadPoolExecutor(JOBS) as pool:
        failed = list(pool.map(run, work.variants))
    wall, cpu = time.perf_counter() - began, children_cpu_seconds() - before
    names = frozenset(name for name, fails in zip(work.variants, failed, strict=True) if fails)
    return Took(wall, cpu, len(work.variants), names)


def mutmut(work: Work, folder: Path) -> Took:
    """Its mutants alone: what a run of all takes more than a run of the first, which is its start."""
    names = list(work.variants)
    one = Work({names[0]: b""}, ())
    start = timed(one, lambda name: run_mutmut(folder, [name], JOBS))
    whole = timed(one, lambda name: run_mutmut(folder, names, JOBS))
    results = ask_mutmut(folder, "results")
    failed = frozenset(name for name in names if results[name] != 0)
    wall = max(whole.wall_seconds - start.wall_seconds, 1e-3)
    return Took(wall, whole.cpu_seconds - start.cpu_seconds, len(names) - 1, failed, start.wall_seconds)


def children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

"""Every hostile submission ends as its expected.toml says, and leaves nothing behind that the next one would notice."""

import ast
import contextlib
import json
import os
import pwd
import re
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from grader import conclude, views
from grader.errors import Rejected
from grader.grade import grade
from grader.intake import take_in
from grader.oracle import OracleProcesses
from grader.report import Report, Verdict
from grader.submission import Upload
from grader.text import render
from grader.unit import Unit
from grader.units import load_course
from sandbox.docker_engine import OWNER_LABEL, DockerSandbox, connect, owner_of
from tests.hostile.loading import FOLDER, Hostile, everything
from tests.samples.loading import Expected, load
from tests.test_samples import ABOUT, COURSE, failing, seen, wanted

SEED = 20260101
MUTANTS = 12
ROOT = FOLDER.parent.parent
KINDS = tomllib.loads((FOLDER / "kinds.toml").read_text("utf-8"))["kind"]


@pytest.fixture(scope="module")
def unit() -> Unit:
    """With a dozen of its mutants, all required ones among them: what is hostile to one is so to all."""
    whole = load_course(COURSE).units["L5.3"]
    return replace(whole, mutants=whole.mutants[:MUTANTS])


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this process, and those it starts, put what is temporary: nobody else does."""
    path = tmp_path_factory.mktemp("scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(path))
        patch.setattr(tempfile, "tempdir", None)
        yield path


@pytest.fixture(scope="module")
def sandbox(scratch: Path) -> Iterator[DockerSandbox]:
    with DockerSandbox(jobs=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def oracle(scratch: Path) -> Iterator[OracleProcesses]:
    with OracleProcesses() as opened:
        yield opened


def cases() -> list[Any]:
    return [
        pytest.param(one, marks=[] if one.smoke else [pytest.mark.full], id=one.name) for one in everything().values()
    ]


@pytest.mark.docker
@pytest.mark.parametrize("hostile", cases())
def test_hostile_submission_ends_as_expected_and_leaves_nothing(
    hostile: Hostile, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses, scratch: Path
) -> None:
    before = frozenset(scratch.rglob("*"))
    report = graded(hostile, unit, sandbox, oracle)
    assert_sound(report)
    assert seen_of(report, hostile, unit) == wanted_of(hostile, unit), render(report)
    student = views.for_role(report, "student")
    told = student.to_json() + render(student)
    assert not [text for text in hostile.absent if text in told]
    sandbox.wait_for_endings()
    assert not left_behind()
    assert not left_on_the_host() | (frozenset(scratch.rglob("*")) - before)
    if not hostile.smoke:
        assert_clean_one_passes(with_few_mutants(unit), sandbox, oracle)


@pytest.mark.docker
def test_after_all_of_them_a_clean_submission_is_graded_as_ever(
    unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses
) -> None:
    assert_clean_one_passes(unit, sandbox, oracle)
    sandbox.wait_for_endings()
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    assert_clean_one_passes(unit, sandbox, oracle)
    sandbox.wait_for_endings()
    assert len(os.listdir("/proc/self/fd")) <= descriptors and threading.active_count() <= threads
    assert not left_behind()
    assert not left_on_the_host()


def test_what_a_run_would_leave_on_the_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "by a run").touch()
    queues = "key msqid perms cbytes qnum lspid lrpid uid gid\n0 0 600 0 0 1 1 {} 0\n"
    (tmp_path / "queues").write_text(queues.format(123456))
    (tmp_path / "no queues").write_text(queues.format(0))
    assert left_on_the_host([tmp_path / "by a run"], (), ()) == {tmp_path / "by a run"}
    assert left_on_the_host([tmp_path / "not there"], (tmp_path,), ()) == set()  # all of it is ours
    assert left_on_the_host([], (tmp_path,), (), users=frozenset({123456})) == set(tmp_path.iterdir())
    assert left_on_the_host([], (), (tmp_path / "queues", tmp_path / "no queues")) == {tmp_path / "queues"}


@pytest.mark.parametrize("hostile", everything().values(), ids=list(everything()))
def test_expectation_is_complete_and_names_what_exists(hostile: Hostile, unit: Unit) -> None:
    expected = spread(hostile.expected, unit)
    tests = {test.name for test in unit.course_tests}
    assert hostile.attack and hostile.about
    assert expected.verdict in {verdict.value for verdict in Verdict} and expected.reasons
    assert (failing(expected, unit) | set(expected.course_causes)) - set(ANY) <= tests
    if expected.verdict == "pass":
        assert expected.intake  # nothing came of it: then the student is told what was dropped


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"].replace(" ", "-"))
def test_every_kind_of_attack_is_tried_somewhere(kind: dict[str, Any]) -> None:
    assert set(kind) <= {"name", "samples", "tests", "without", "but"}
    assert kind.get("samples") or kind.get("tests") or kind.get("without")
    for name in kind.get("samples", ()):
        assert samples_named(name), name
    for name in kind.get("tests", ()):
        path, _, test = name.partition("::")
        files = sorted((ROOT / path).rglob("test_*.py")) or [ROOT / path]
        assert any(f"def {test}(" in file.read_text("utf-8") for file in files), name
    if "without" in kind:
        importing = [path for path in sorted((ROOT / "service").rglob("*.py")) if imports(path) & set(kind["without"])]
        assert [str(path.relative_to(ROOT)) for path in importing] == kind.get("but", [])


def test_every_folder_of_samples_is_of_a_known_kind() -> None:
    listed = {name.partition("/")[0] for kind in KINDS for name in kind.get("samples", ())}
    assert listed == {name.partition("/")[0] for name in everything()}
    assert len({kind["name"] for kind in KINDS}) == len(KINDS) >= 54


def test_there_are_many_and_one_of_each_kind_is_tried_with_every_change() -> None:
    smoke = {one.name.partition("/")[0] for one in everything().values() if one.smoke}
    assert smoke == {name.partition("/")[0] for name in everything()}
    assert len(everything()) >= 80


# --- what the tests share -------------------------------------------------------------------------------------------


def graded(hostile: Hostile, unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses) -> Report:
    try:
        submission = take_in(unit, {"mha": Upload("mha.py", hostile.mha)}, hostile.tests)
    except Rejected as refusal:
        return conclude.rejected(unit.id, ABOUT, refusal.code, f"{refusal.path}: {refusal.message}")
    return grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=SEED, about=ABOUT)


ANY = ("any",)


def wanted_of(hostile: Hostile, unit: Unit) -> dict[str, object]:
    expected = spread(hostile.expected, unit)
    return wanted(expected, unit) | {name: "some" for name in loose(expected)}


def seen_of(report: Report, hostile: Hostile, unit: Unit) -> dict[str, object]:
    expected = spread(hostile.expected, unit)
    found = seen(report, expected, unit)
    return found | {name: "some" if found.get(name) else "none" for name in loose(expected)}


def loose(expected: Expected) -> list[str]:
    """What only has to be there, whichever it is."""
    compared = {
        "course tests that fail": expected.fails,
        "rejects": expected.rejects,
        "course causes": tuple(expected.course_causes),
    }
    return [name for name, value in compared.items() if value == ANY]


def spread(expected: Expected, unit: Unit) -> Expected:
    """With "failing" in the causes of course tests said for each that must fail but has no other, or none ("")."""
    causes = dict(expected.course_causes)
    if "failing" in causes:
        code = causes.pop("failing")
        causes = dict.fromkeys(failing(expected, unit), code) | causes
    return replace(expected, course_causes={test: code for test, code in causes.items() if code})


def assert_sound(report: Report) -> None:
    """What holds for every report, whatever was sent."""
    text = report.to_json()
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in the report"))
    assert Report.model_validate_json(text) == report
    assert report.next_step and all(reason.code and reason.message for reason in report.reasons)
    assert all(line.isprintable() for line in render(report).splitlines())
    assert report.verdict is not Verdict.GRADER_ERROR


def assert_clean_one_passes(unit: Unit, sandbox: DockerSandbox, oracle: OracleProcesses) -> None:
    clean = load("correct_plain")
    submission = take_in(unit, {"mha": Upload("mha.py", clean.mha)}, clean.tests)
    report = grade(unit, submission, sandbox=sandbox, oracle=oracle, seed=SEED, about=ABOUT)
    assert report.verdict is Verdict.PASS, render(report)


def with_few_mutants(unit: Unit) -> Unit:
    """What would be in a clean submission's way is so with any of its runs."""
    return replace(unit, mutants=unit.mutants[:3], required_mutants=())


def samples_named(name: str) -> list[str]:
    """The samples of a name, or of a folder for "folder/*"."""
    folder, _, variation = name.partition("/")
    return [one for one in everything() if one == name or (variation == "*" and one.partition("/")[0] == folder)]


def imports(path: Path) -> set[str]:
    """The modules a file imports, each with the packages it lies in."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {".".join(parts[: end + 1]) for parts in (name.split(".") for name in names) for end in range(len(parts))}


MARKS = [Path(place, "left") for place in ("/", "/etc", "/usr", "/opt", "/tmp", "/dev/shm")]
MARKS += [Path("/tmp/pwned"), Path("/etc/cron.d/x.py"), Path("/etc/x.py")]  # as the samples name them
SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/dev/mqueue"), Path("/run/lock"))
SYSTEM_V = (Path("/proc/sysvipc/shm"), Path("/proc/sysvipc/sem"), Path("/proc/sysvipc/msg"))


def left_on_the_host(
    marks: Sequence[Path] = MARKS,
    shared: Sequence[Path] = SHARED,
    system_v: Sequence[Path] = SYSTEM_V,
    users: frozenset[int] | None = None,
) -> set[Path]:
    """What samples mean to leave, and entries of places open to all, and tables of keys, with the user of a run.

    A run's user is one that this machine has no name for. Others work in these places at the same time.
    """
    known = frozenset(user.pw_uid for user in pwd.getpwall()) | {os.getuid()} if users is None else users
    found = {path for path in marks if os.path.lexists(path)}
    for folder in shared:
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if path.lstat().st_uid not in known:
                        found.add(path)
    for table in system_v:
        with contextlib.suppress(FileNotFoundError):
            titles, *rows = [line.split() for line in table.read_text("ascii").splitlines()]
            if any(int(row[titles.index("uid")]) not in known for row in rows):
                found.add(table)
    return found


def left_behind() -> list[str]:
    """Containers of ours that are still there, and processes of containers that are not."""
    client = connect(None)
    try:
        ours = f"{OWNER_LABEL}={owner_of(os.getpid())}"
        containers = [found["Id"] for found in client.api.containers(all=True, filters={"label": ours})]
        strays = stray_processes(client)
        if strays:
            time.sleep(2)  # those of a container that someone else removed just now
            strays &= stray_processes(client)
    finally:
        client.close()
    return containers + sorted(strays)


def stray_processes(client: docker.DockerClient) -> set[str]:
    """Processes in a container's control group that no container of the engine has."""
    before = known_containers(client)
    found = {}
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines():
                if "docker" in line and (group := re.search(r"[0-9a-f]{64}", line)):
                    found[path.parent.name] = group[0]
    known = before | known_containers(client)
    return {f"process {pid} of {container[:12]}" for pid, container in found.items() if container not in known}


def known_containers(client: docker.DockerClient) -> set[str]:
    return {found["Id"] for found in client.api.containers(all=True)}

"""Sandboxes for tests: each behaviour is asked of processes and of containers alike."""

from collections.abc import Callable, Iterator

import pytest

from sandbox.docker_engine import DockerSandbox
from sandbox.process import ProcessSandbox
from sandbox.records import File, Limits, Module, Run, RunResult, Sandbox, Session, Suite

PRELOADED = (
    Module("kit.base", b"VALUE = 1\ndef double(x):\n    return 2 * x\n", "kit/base.py"),
    Module(
        "kit.more",
        b"from kit.base import double\ndef quadruple(x):\n    return double(double(x))\n",
        "kit/more.py",
    ),
)

RunOne = Callable[..., RunResult]


@pytest.fixture(scope="session")
def docker_sandbox() -> Iterator[DockerSandbox]:
    with DockerSandbox() as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    if request.param == "process":
        return ProcessSandbox()
    found: Sandbox = request.getfixturevalue("docker_sandbox")
    return found


@pytest.fixture(scope="module")
def session(sandbox: Sandbox) -> Iterator[Session]:
    with sandbox.session(PRELOADED) as session:
        yield session


def make_run(source: str = "", id: str = "run", files: dict[str, str] | None = None, **options: object) -> Run:
    """A run of one test file `test_it.py`, of further files of the suite, with options of Suite, Run and Limits."""
    laid = {"test_it.py": source} if source else {}
    laid |= files or {}
    of_limits = {name: options.pop(name) for name in tuple(options) if name in Limits.__dataclass_fields__}
    modules = options.pop("modules", ())
    suite = Suite(tuple(File(f"suite/{path}", text.encode()) for path, text in laid.items()), **options)  # type: ignore[arg-type]
    return Run(id, suite, modules, Limits(**of_limits))  # type: ignore[arg-type]


@pytest.fixture
def run_of() -> Callable[..., Run]:
    return make_run


@pytest.fixture
def outcome_of(session: Session) -> RunOne:
    def run_one(source: str = "", **options: object) -> RunResult:
        return session.run([make_run(source, **options)])[0]  # type: ignore[arg-type]

    return run_one

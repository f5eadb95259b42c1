"""The kind of sandbox that a command names arrives; an open one leaves, and is closed with the context."""

from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.docker_engine import DockerSandbox
from sandbox.process import ProcessSandbox
from sandbox.records import Sandbox


@contextmanager
def opened(kind: str, jobs: int, runtime: str | None = None) -> Iterator[Sandbox]:
    """`kind` is "docker" or "process", `jobs` the runs at a time. Raises SandboxError if it cannot be opened."""
    if kind == "docker":
        with DockerSandbox(jobs=jobs, oci_runtime=runtime or None) as sandbox:
            yield sandbox
    else:
        yield ProcessSandbox(jobs=jobs)

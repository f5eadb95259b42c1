"""Packs what a run needs for its child: a `Run` comes in, the bytes that only that child reads leave."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from sandbox.records import File, Module, Run
from sandbox.wire import encode


def package_of(run: Run) -> bytes:
    """Raises ValueError for a path that leaves the run's directory, or appears twice."""
    suite = run.suite
    for file in suite.files:
        check_path(file.path)
    if len({PurePosixPath(file.path) for file in suite.files}) != len(suite.files):
        raise ValueError("two files of one path")
    header = {
        "files": [[file.path, len(file.data)] for file in suite.files],
        "modules": descriptions(run.modules),
        "suite": {
            "root": suite.root,
            "only": list(suite.only),
            "skip": list(suite.skip),
            "path_dirs": list(suite.path_dirs),
            "environment": [list(pair) for pair in suite.environment],
            "stop_at_first_failure": suite.stop_at_first_failure,
            "messages": suite.messages,
        },
    }
    return encode(header, joined(suite.files) + sources(run.modules))


def package_of_modules(modules: Sequence[Module]) -> bytes:
    return encode({"modules": descriptions(modules)}, sources(modules))


def descriptions(modules: Sequence[Module]) -> list[list[object]]:
    return [[module.name, module.filename, module.source_visible, len(module.source)] for module in modules]


def sources(modules: Sequence[Module]) -> bytes:
    return b"".join(module.source for module in modules)


def joined(files: Sequence[File]) -> bytes:
    return b"".join(file.data for file in files)


def check_path(path: str) -> None:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
        raise ValueError(f"not a path inside the run's directory: {path!r}")

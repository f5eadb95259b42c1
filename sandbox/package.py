"""Packs what a run needs for its child: a `Run` comes in, the bytes that only that child reads leave."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from sandbox.records import Drive, File, Module, Run, Suite
from sandbox.wire import encode


def package_of(run: Run) -> bytes:
    """Raises ValueError for a path that leaves the run's directory, or appears twice."""
    if isinstance(run.task, Drive):
        return package_of_drive(run.task, run.modules)
    return package_of_suite(run.task, run.modules)


def package_of_drive(drive: Drive, modules: Sequence[Module]) -> bytes:
    header = {
        "modules": descriptions(modules),
        "drive": {"unit": drive.unit, "driver": len(drive.driver), "cases": [len(case) for case in drive.cases]},
    }
    return encode(header, sources(modules) + drive.driver + b"".join(drive.cases))


def package_of_suite(suite: Suite, modules: Sequence[Module]) -> bytes:
    for file in suite.files:
        check_path(file.path)
    if len({PurePosixPath(file.path) for file in suite.files}) != len(suite.files):
        raise ValueError("two files of one path")
    header = {
        "files": [[file.path, len(file.data)] for file in suite.files],
        "modules": descriptions(modules),
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
    return encode(header, joined(suite.files) + sources(modules))


def package_of_modules(modules: Sequence[Module]) -> bytes:
    return encode({"modules": descriptions(modules)}, sources(modules))


def descriptions(modules: Sequence[Module]) -> list[list[object]]:
    return [[module.name, module.filename, module.source_visible, len(module.source)] for module in modules]


def sources(modules: Sequence[Module]) -> bytes:
    return b"".join(module.source for module in modules)


def joined(files: Sequence[File]) -> bytes:
    return b"".join(file.data for file in files)


def check_path(path: str) -> None:
    """Raises ValueError unless the path stays inside the run's directory."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
        raise ValueError(f"not a path inside the run's directory: {path!r}")

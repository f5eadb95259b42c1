"""Packs what a run needs for its child: a `Run` comes in, the bytes that only that child reads leave."""

import marshal
import platform
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from sandbox.inside import modules as modules_inside
from sandbox.inside.modules import Source, compiled
from sandbox.kept import made_once
from sandbox.records import Drive, File, Module, Run, Suite, SuiteFolder
from sandbox.wire import encode

COMPILER = Path(modules_inside.__file__).read_bytes()


def package_of(run: Run, python: str = "", files_are_there: bool = False) -> bytes:
    """`python` is the version that will run it: modules go as code where ours makes what that one reads. The files of
    a suite that was made ready need not go with each run.

    Raises ValueError for a path that leaves the run's directory, or appears twice.
    """
    modules = Modules(run.modules, python)
    if isinstance(run.task, Drive):
        return package_of_drive(run.task, modules)
    return package_of_suite(run.task, modules, files_are_there)


def package_of_drive(drive: Drive, modules: "Modules") -> bytes:
    header = {
        "modules": modules.descriptions,
        "drive": {"unit": drive.unit, "driver": len(drive.driver), "cases": [len(case) for case in drive.cases]},
    }
    return encode(header, modules.data + drive.driver + b"".join(drive.cases))


def package_of_suite(suite: Suite, modules: "Modules", files_are_there: bool) -> bytes:
    files = () if files_are_there else suite.files
    header = {
        "files": described(files),
        "modules": modules.descriptions,
        "suite": {
            "root": suite.root,
            "only": list(suite.only),
            "first": list(suite.first),
            "skip": list(suite.skip),
            "marks": suite.marks,
            "path_dirs": list(suite.path_dirs),
            "environment": [list(pair) for pair in suite.environment],
            "stop_at_first_failure": suite.stop_at_first_failure,
            "messages": suite.messages,
        },
    }
    return encode(header, joined(files) + modules.data)


def package_of_modules(modules: Sequence[Module], python: str = "") -> bytes:
    packed = Modules(modules, python)
    return encode({"modules": packed.descriptions}, packed.data)


def package_of_other_version(run: Run, python: str) -> bytes:
    """Empty if the run has none, or if it would not be code alone: its tests could ask for it, and read the source."""
    is_code = reads_our_code(python) and all(map(code_of, run.other_version))
    return package_of_modules(run.other_version, python) if run.other_version and is_code else b""


def package_of_suites(suites: Sequence[SuiteFolder]) -> bytes:
    """For the template. Raises ValueError for a path that leaves the run's directory, or appears twice in a suite."""
    header = {"suites": [{"path_dirs": list(each.path_dirs), "files": described(each.files)} for each in suites]}
    return encode(header, b"".join(joined(suite.files) for suite in suites))


def described(files: Sequence[File]) -> list[list[object]]:
    """Files as a header names them, which their bytes follow in this order."""
    check_paths(tuple(file.path for file in files))
    return [[file.path, len(file.data)] for file in files]


class Modules:
    """Modules as they travel: descriptions for a header, and the bytes they describe."""

    def __init__(self, modules: Sequence[Module], python: str) -> None:
        as_code = reads_our_code(python)
        parts = [(module, code_of(module) if as_code else b"") for module in modules]
        self.descriptions = [
            [module.name, module.filename, module.source_visible, bool(code), len(code or module.source)]
            for module, code in parts
        ]
        self.data = b"".join(code or module.source for module, code in parts)


def reads_our_code(python: str) -> bool:
    """Whether that version of Python reads this one's bytecode: released ones do within a minor version."""
    return python.split(".")[:2] == platform.python_version().split(".")[:2]


@lru_cache(maxsize=4096)  # variants are the same for every submission
def code_of(module: Module) -> bytes:
    """The module's code, marshalled; empty for one that shall be compiled where it runs: visible, or not Python."""
    if module.source_visible:
        return b""
    parts = (sys.version.encode(), COMPILER, module.filename.encode(), module.source)
    return made_once("code", parts, lambda: _code_of(module))


def _code_of(module: Module) -> bytes:
    try:
        return marshal.dumps(compiled(Source(module.name, module.filename, False, module.source)))
    except Exception:
        return b""


def joined(files: Sequence[File]) -> bytes:
    return b"".join(file.data for file in files)


@lru_cache(maxsize=64)  # every run of a suite has the same files
def check_paths(paths: tuple[str, ...]) -> None:
    """Raises ValueError unless each path stays inside the run's directory, and appears once."""
    for path in paths:
        check_path(path)
    if len({PurePosixPath(path) for path in paths}) != len(paths):
        raise ValueError("two files of one path")


def check_path(path: str) -> None:
    """Raises ValueError unless the path stays inside the run's directory."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
        raise ValueError(f"not a path inside the run's directory: {path!r}")

"""An inert suite arrives with its code; a session that has collected it leaves, for runs to be forked from.

The suite's files are imported here but for the imports that must wait, and its tests are collected. A run lays its
files, installs its version of the unit, executes the imports that waited in the modules they belong to, and runs what
was collected. If such an import fails, the run forgets all this and collects afresh, so that it ends as any would.
"""

import os
import resource
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox.inside.child import lay
from sandbox.inside.codes import Codes, Compiled, placed
from sandbox.inside.guard import guarded
from sandbox.inside.pytest_session import PreparedSession

COLLECT_BYTES = 256 << 20


@dataclass(frozen=True)
class SuiteSource:
    """A suite's files, by path, and the folders that imports are looked up in."""

    files: Mapping[str, bytes]
    path_dirs: Sequence[str]

    @property
    def code(self) -> dict[str, bytes]:
        """Its Python files."""
        return {path: data for path, data in self.files.items() if path.endswith(".py")}


def collect(session: PreparedSession, codes: Codes, suite: SuiteSource, compiled: Compiled) -> bool:
    """Collect a suite that was compiled as inert; False if that finds no test, or an error: runs find it too then."""
    directory = session.directory
    late = {place: code for (place, _), code in placed(compiled.late or {}, compiled.digests, directory).items()}
    made: set[str] = set()
    for path, data in suite.code.items():
        lay(directory, path, data, made)
    os.chdir(directory)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes() + COLLECT_BYTES, limits[1]))
        with codes.early(compiled, directory), guarded(directory):
            return session.collect([f"{directory}/{folder}" for folder in suite.path_dirs], late)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        os.chdir("/")
        shutil.rmtree(directory)


def address_space_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

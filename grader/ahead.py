"""A course tree and a folder arrive; the renderings of all its variants and their code lie in the folder when it ends.

A worker starts this beside itself, with what the machine has to spare, so that no submission waits for a rendering:
`python -m grader.ahead COURSE FOLDER`. A second time it finds that everything is there.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader import plan, reach
from grader.renderings import SALTS
from grader.unit import Unit
from grader.units import load_course
from sandbox.kept import kept_in
from sandbox.package import code_of

NICENESS = 19


def make_ahead(unit: Unit) -> None:
    """Render every variant of the unit with every salt and compile it, and find what it changes; its companions too."""
    for module in plan.preload(unit):
        code_of(module)
    for salt in SALTS:  # the first salts of all variants are as useful as all salts of the first
        for variant in (plan.reference(unit), *plan.correct_variants(unit, plan.STANDARD), *plan.mutants(unit)):
            for module in plan.variant_modules(unit, variant, salt):
                code_of(module)
    for variant in plan.mutants(unit):
        reach.changed(unit, variant.files)


@contextmanager
def made_beside(course: Path, folder: Path) -> Iterator[None]:
    """Have it made by a process of its own, which is ended if it is still at it."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-s", "-m", "grader.ahead", str(course.resolve()), str(folder.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def main(course: str, folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker, which ends this
    os.nice(NICENESS)
    parent = os.getppid()
    with kept_in(Path(folder)):
        for unit in load_course(Path(course)).units.values():
            if os.getppid() == parent:
                make_ahead(unit)


if __name__ == "__main__":
    main(*sys.argv[1:])

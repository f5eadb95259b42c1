"""The unit's reference and a suite arrive; folders to run it in, and mutmut's mutants of the reference, leave."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random

from grader import local
from grader.units import DEFAULT_COURSE
from sandbox.records import File

ROOT = Path(__file__).resolve().parent.parent
UNIT_PATH = "tinyllm/xfmr/mha.py"
MODULE = "tinyllm.xfmr.mha"
SUITE = ROOT / "tests/samples/correct_plain/tests"
BENCH = ROOT / "build/bench/bin"
CONFIGURATION = f"""\
[tool.mutmut]
source_paths = ["tinyllm"]
only_mutate = ["{UNIT_PATH}"]
tests_dir = ["tests"]
use_git_change_detection = false
use_setproctitle = false
pytest_add_cli_args = ["-p", "no:cacheprovider", "-q"]
"""


@dataclass(frozen=True)
class Work:
    """Variants by name, and the suite that runs on each."""

    variants: dict[str, bytes]
    suite: tuple[File, ...]


def course_with(wheats: int, folder: Path) -> Path:
    """The course in a folder of its own, beside the library it is about, where the unit has so many wheats."""
    course = folder / "course"
    shutil.copytree(DEFAULT_COURSE, course)
    shutil.copytree(ROOT / "tinyllm", folder / "tinyllm")
    freedoms = course / "wheats/L5.3/freedoms.md"
    text = freedoms.read_text("utf-8")
    for wheat in sorted(freedoms.parent.glob("*.py"))[wheats:]:
        wheat.unlink()
        name = wheat.stem.partition("_")[0]
        text = re.sub(rf"^(wheats:.*?),? {name}\b", r"\1", text, flags=re.MULTILINE)
    freedoms.write_text(text, "utf-8")
    return course


def suite_of(folder: Path = SUITE) -> tuple[File, ...]:
    return tuple(File(upload.name, upload.data) for upload in local.read_directory(folder))


def lay(folder: Path, suite: tuple[File, ...]) -> Path:
    """The library and the suite in a folder, as a student has them."""
    shutil.copytree(ROOT / "tinyllm", folder / "tinyllm", ignore=shutil.ignore_patterns("__pycache__"))
    for file in suite:
        path = folder / "tests" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    (folder / "pyproject.toml").write_text(CONFIGURATION)
    return folder


def environment(folder: Path) -> dict[str, str]:
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": f"{folder}:{folder / 'tests'}", "PYTHONHASHSEED": "0"}


def run_mutmut(folder: Path, names: list[str], jobs: int) -> bool:
    """From the beginning: whatever it made before is removed. Returns whether it came to its end."""
    shutil.rmtree(folder / "mutants", ignore_errors=True)
    done = subprocess.run(
        [BENCH / "mutmut", "run", "--max-children", str(jobs), *names],
        cwd=folder,
        env={**environment(folder), "PYTHONPATH": "tests"},
        capture_output=True,
    )
    if not (folder / f"mutants/{UNIT_PATH}.meta").exists():
        raise RuntimeError(f"mutmut failed: {done.stdout[-2000:]!r} {done.stderr[-2000:]!r}")
    return done.returncode == 0


def ask_mutmut(folder: Path, what: str, *names: str) -> dict[str, object]:
    """`what` is "sources" or "results", see mutmut_work.py."""
    script = Path(__file__).with_name("mutmut_work.py")
    command = [str(BENCH / "python"), str(script), what, UNIT_PATH, *names]
    answer: dict[str, object] = json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)
    return answer


def mutmut_mutants(folder: Path, most: int) -> dict[str, bytes]:
    """Up to `most` of mutmut's mutants of the reference, taken evenly over the file."""
    run_mutmut(folder, [f"{MODULE}.no_such_mutant"], 1)  # it makes them before it finds that there is none to run
    names = sorted(ask_mutmut(folder, "results"))
    step = max(1.0, len(names) / most)
    chosen = [names[int(i * step)] for i in range(min(most, len(names)))]
    Random(most).shuffle(chosen)  # as in a grading: of neighbours one says much of the next
    return {name: str(source).encode() for name, source in ask_mutmut(folder, "sources", *chosen).items()}

"""A unit and its course tree go in; which of its fixtures the oracle's scripts do not make again comes out, in
sentences.

fixtures/L5.3/mha_torch.npz is made by oracle/L5.3/mha_torch.py: it is run with the path of the file as its argument, in
a copy of the tree from which the file was taken away. A script of another name may make several.
"""

import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.unit import Unit

SECONDS = 600.0
ORACLE = "live.py"  # makes cases, not fixtures
RTOL = {8: 1e-12, 4: 1e-5}  # by bytes of a number: another machine's libraries sum in another order


def problems(unit: Unit, root: Path) -> list[str]:
    """What is wrong with each fixture; scripts are run as they stand in the tree."""
    if not unit.fixtures:
        return []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "course")
        skipped = shutil.ignore_patterns("__pycache__", "renderings")
        shutil.copytree(root, tree, ignore=skipped, ignore_dangling_symlinks=True)
        for fixture in unit.fixtures:
            (tree / "fixtures" / fixture.path).unlink(missing_ok=True)
        failed = dict(_run_scripts(unit, root, tree))
        return [text for each in unit.fixtures if (text := _problem(each.path, each.data, tree, failed))]


def _run_scripts(unit: Unit, root: Path, tree: Path) -> Iterator[tuple[str, str]]:
    """What went wrong with each script that failed, by its path."""
    paths = [PurePosixPath(each.path) for each in unit.fixtures]
    for folder in sorted({str(path.parent) for path in paths}):
        wanted = {path.stem: path for path in paths if str(path.parent) == folder}
        scripts = [script for script in sorted((tree / "oracle" / folder).glob("*.py")) if script.name != ORACLE]
        if wanted.keys() <= {script.stem for script in scripts}:
            scripts = [script for script in scripts if script.stem in wanted]
        for script in scripts:
            words = [str(tree / "fixtures" / wanted[script.stem])] if script.stem in wanted else []
            if text := _run(script, words, root, tree):
                yield f"oracle/{folder}/{script.name}", text


def _run(script: Path, words: list[str], root: Path, tree: Path) -> str:
    """How a script failed, or ""."""
    library = os.pathsep.join(map(str, (tree / "ref" / "python", root.resolve().parent)))
    variables = {**os.environ, "PYTHONPATH": library, "TINYLLM_FIXTURES": str(tree / "fixtures")}
    command = [sys.executable, str(script), *words]
    try:
        done = subprocess.run(
            command, cwd=tree.parent, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"does not end within {SECONDS:g} s"
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"ends with status {done.returncode}{f': {said}' if said else ''}" if done.returncode else ""


def _problem(path: str, kept: bytes, tree: Path, failed: Mapping[str, str]) -> str:
    folder = f"oracle/{PurePosixPath(path).parent}"
    own = f"{folder}/{PurePosixPath(path).stem}.py"
    made = tree / "fixtures" / path
    if made.is_file():
        told = difference(path, kept, made.read_bytes())
        return f"fixtures/{path}: made again it differs: {told}." if told else ""
    for script in (own, *failed):
        if script in failed:
            return f"fixtures/{path}: {script} {failed[script]}."
    if (tree / own).is_file():
        return f"fixtures/{path}: {own} does not write the file that it is given."
    return f"fixtures/{path}: no script in {folder} makes it."


def difference(path: str, kept: bytes, made: bytes) -> str:
    """Where two versions of a fixture differ, or "": by value if it holds arrays or JSON, to the byte otherwise."""
    if kept == made:
        return ""
    try:
        match PurePosixPath(path).suffix:
            case ".npz" | ".npy":
                return _arrays_differ(_arrays(kept), _arrays(made))
            case ".json":
                return _json_differs(json.loads(kept), json.loads(made), "the value")
    except ValueError as error:
        return f"it cannot be read: {error}"
    return "its bytes"


def _arrays(data: bytes) -> dict[str, NDArray[Any]]:
    found = np.load(io.BytesIO(data), allow_pickle=False)
    if isinstance(found, np.ndarray):
        return {"array": found}
    with found:
        return {name: found[name] for name in found.files}


def _arrays_differ(kept: Mapping[str, NDArray[Any]], made: Mapping[str, NDArray[Any]]) -> str:
    if names := sorted(kept.keys() ^ made.keys()):
        return f"{names[0]} is only in the {'file that is kept' if names[0] in kept else 'new one'}"
    for name, array in kept.items():
        other = made[name]
        if (array.shape, array.dtype) != (other.shape, other.dtype):
            return f"{name} is {other.dtype}{list(other.shape)}, not {array.dtype}{list(array.shape)}"
        if not _alike(array, other):
            return f"values of {name}"
    return ""


def _alike(array: NDArray[Any], other: NDArray[Any]) -> bool:
    if array.dtype.kind not in "fc":
        return np.array_equal(array, other)
    rtol = RTOL.get(array.real.itemsize, 1e-2)
    return np.allclose(other, array, rtol=rtol, atol=rtol / 10, equal_nan=True)


def _json_differs(kept: Any, made: Any, where: str) -> str:
    if isinstance(kept, float) and isinstance(made, float | int):
        return "" if math.isclose(kept, made, rel_tol=RTOL[8], abs_tol=RTOL[8]) else where
    if type(kept) is not type(made):
        return where
    if isinstance(kept, dict):
        if names := sorted(kept.keys() ^ made.keys()):
            return f"{where}.{names[0]}"
        pairs = [(kept[name], made[name], f"{where}.{name}") for name in kept]
    elif isinstance(kept, list):
        if len(kept) != len(made):
            return f"the length of {where}"
        pairs = [(old, new, f"{where}[{number}]") for number, (old, new) in enumerate(zip(kept, made, strict=True))]
    else:
        return "" if kept == made else where
    return next((told for old, new, inside in pairs if (told := _json_differs(old, new, inside))), "")

"""What the grader relies on: files can be laid over the library one by one, and numpy is all it needs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tinyllm").rglob("*.py"))


def test_no_directory_has_an_init_file():
    assert FILES
    assert not [path for path in FILES if path.name == "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_numpy_tinyllm_and_the_standard_library_only(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
    assert imported <= {"numpy", "tinyllm"} | set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_opens_with_a_sentence(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring and docstring.splitlines()[0].endswith(".")


def test_a_file_earlier_on_the_path_replaces_ours_and_finds_the_rest(tmp_path):
    mine = tmp_path / "tinyllm" / "xfmr" / "mha.py"
    mine.parent.mkdir(parents=True)
    mine.write_text("from tinyllm.nn.layers import Linear\nfrom tinyllm.xfmr.sdpa import sdpa_forward\nMINE = True\n")
    program = "from tinyllm.xfmr.mha import MINE; import tinyllm.nn.layers as layers; print(layers.__file__)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == str(ROOT / "tinyllm" / "nn" / "layers.py"), done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_module_can_be_the_first_imported(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import {name}"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr

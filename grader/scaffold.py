"""A unit's id, title and file go in; the files of a small whole unit come out, by path in a course tree, to be changed.

It multiplies a number: enough that every part is there once, loads, and passes `autograder course check`.
"""

import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import PurePosixPath

REFERENCE = '''\
"""Multiplication by a factor, to be replaced by what the unit is about."""


def {name}(x: float, factor: float = 2.0) -> float:
    """The product of a number and a factor."""
    return x * factor
'''

CONTRACT = "def {name}(x: float, factor: float = 2.0) -> float: ...\n"

MODULE = """\
id = "{unit}"
title = {title}
contract = "course/contracts/py/{inside}.pyi"
units = ["{path}"]
# What it builds on: deps = [{{ id = "L0.1", title = "Tensor" }}]
# Names a student may not use: forbidden = ["torch"]
# Libraries that are there: runtime = "torch"

# Shown on the unit's page.
build = [
    "{name}: the product of a number and a factor.",
]

[tests]
dir = "course/tests/{unit}"
smoke = ["test_doubles_by_default"]
timeout_s = 5
determinism_runs = 2

[learner_tests]
path = "python/tests/{slug}"
threshold = 0.80
required_mutants = ["s01"]
time_budget_s = 5
"""

COURSE_TESTS = """\
from {module} import {name}


# WHY: the contract's default is a factor of two
# KIND: unit
# CATCHES: s01
# CHAPTER: 1
def test_doubles_by_default():
    assert {name}(3.0) == 6.0


# WHY: a factor that is given counts
# KIND: property
# CATCHES: s01, m01
# CHAPTER: 1
def test_multiplies_by_the_factor():
    for factor in (0.5, 3.0, -1.0):
        assert {name}(4.0, factor) == 4.0 * factor
"""

STAFF_TESTS = """\
from {module} import {name}


def test_numbers_worked_out_by_hand():
    assert {name}(3.0) == 6.0
    assert {name}(4.0, 0.5) == 2.0
"""

# The identifier, what is wrong, and the line as the mutant has it.
MUTANTS = (
    ("s01", "semantic", "wrong_operator", "true", "Try numbers whose sum and product differ.", "adds", "x + factor"),
    ("m01", "auto", "ignored_argument", "false", "Give a factor other than two.", "always doubles", "x * 2.0"),
)
COLUMNS = ("mid", "unit", "tier", "operator", "line", "required", "public", "private", "category")

FREEDOMS = """\
# Freedoms of {unit}

## order

wheats: w01
says: The order of the two factors is open.
"""


def scaffold(unit: str, title: str, path: str) -> dict[str, str]:
    """The unit's files by path relative to the tree. `path` is the student's file ("python/tinyllm/demo/scale.py")."""
    inside = path.removeprefix("python/").removesuffix(".py")
    words = {
        "unit": unit,
        "title": _toml(title),
        "inside": inside,
        "path": path,
        "module": inside.replace("/", "."),
        "name": PurePosixPath(inside).name,
        "slug": slug(unit, title),
    }
    texts = {
        f"modules/{unit}.toml": MODULE,
        f"contracts/py/{inside}.pyi": CONTRACT,
        f"ref/{path}": REFERENCE,
        f"tests/{unit}/test_{words['name']}.py": COURSE_TESTS,
        f"wheats/{unit}/w01_other_order.py": REFERENCE.replace("x * factor", "factor * x"),
        f"wheats/{unit}/freedoms.md": FREEDOMS,
        f"ref/learner-tests/{unit}/python/tests/{words['slug']}/test_{words['name']}.py": STAFF_TESTS,
    }
    return {file: text.format(**words) for file, text in texts.items()} | dict(
        _mutants(unit, path, REFERENCE.format(**words))
    )


def file_of(unit: str) -> str:
    """ "python/tinyllm/unit_l5_3.py" for "L5.3"."""
    return f"python/tinyllm/unit_{re.sub('[^a-z0-9]+', '_', unit.lower())}.py"


def slug(unit: str, title: str) -> str:
    """ "l5-3-attention-heads" for "L5.3" and "Attention: heads"."""
    return "-".join(re.findall(r"[a-z0-9]+", f"{unit} {title}".lower()))


def _mutants(unit: str, path: str, reference: str) -> Iterator[tuple[str, str]]:
    lines = ["\t".join(COLUMNS)]
    number = reference.splitlines().index("    return x * factor") + 1
    for mid, tier, operator, required, public, private, changed in MUTANTS:
        lines.append("\t".join((mid, unit, tier, operator, str(number), required, public, private, "value")))
        yield f"mutants/{unit}/{mid}.patch", patch(path, reference, reference.replace("x * factor", changed))
    yield f"mutants/{unit}/manifest.tsv", "\n".join(lines) + "\n"


def patch(path: str, before: str, after: str) -> str:
    """The unified diff that makes `after` of `before`, as a mutant's patch is written."""
    lines = unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(lines)


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

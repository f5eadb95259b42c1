"""A course tree of one unit of two files, the second of which imports the first, for tests to load, bend and grade."""

from pathlib import Path

SCALE_PATH, SHIFT_PATH = "python/tinyllm/pair/scale.py", "python/tinyllm/pair/shift.py"

MODULE = f"""\
id = "P1"
title = "Scale and shift"
contract = ["course/contracts/py/tinyllm/pair/scale.pyi", "course/contracts/py/tinyllm/pair/shift.pyi"]
units = ["{SCALE_PATH}", "{SHIFT_PATH}"]

[tests]
dir = "course/tests/P1"
timeout_s = 5

[learner_tests]
path = "python/tests/p1-pair"
threshold = 1.0
required_mutants = ["s01", "s02"]
time_budget_s = 5
"""

SCALE = """\
def scale(x, factor):
    scaled = x * factor
    return scaled
"""

SHIFT = """\
from tinyllm.pair.scale import scale


def shift(x, factor, offset):
    moved = scale(x, factor) + offset
    return moved
"""

COURSE_TEST = """\
from tinyllm.pair.scale import scale
from tinyllm.pair.shift import shift


# WHY: five times three
# KIND: unit
# CATCHES: s01
# CHAPTER: 1
def test_scale():
    assert scale(5, 3) == 15


# WHY: and two more
# KIND: unit
# CATCHES: s01 s02
# CHAPTER: 2
def test_shift():
    assert shift(5, 3, 2) == 17
"""

STAFF = """\
from tinyllm.pair.scale import scale
from tinyllm.pair.shift import shift


def test_by_hand():
    assert scale(2, 7) == 14


def test_both():
    assert shift(2, 7, 1) == 15
"""

FILES = {
    "course/modules/P1.toml": MODULE,
    "course/contracts/py/tinyllm/pair/scale.pyi": "def scale(x: float, factor: float) -> float: ...\n",
    "course/contracts/py/tinyllm/pair/shift.pyi": "def shift(x: float, factor: float, offset: float) -> float: ...\n",
    "course/tests/P1/test_pair.py": COURSE_TEST,
    "course/mutants/P1/manifest.tsv": "mid\tunit\ttier\toperator\tline\trequired\tpublic\tprivate\n"
    "s01\tP1\tsemantic\tsum_for_product\t2\ttrue\tTest scale.\tadds the factor\n"
    "s02\tP1\tsemantic\tdrop_offset\t5\ttrue\tTest shift.\tforgets the offset\n",
    "course/mutants/P1/s01.patch": f"--- a/{SCALE_PATH}\n+++ b/{SCALE_PATH}\n@@ -1,3 +1,3 @@\n def scale(x, factor):\n"
    "-    scaled = x * factor\n+    scaled = x + factor\n     return scaled\n",
    "course/mutants/P1/s02.patch": f"--- a/{SHIFT_PATH}\n+++ b/{SHIFT_PATH}\n@@ -4,3 +4,3 @@\n"
    " def shift(x, factor, offset):\n-    moved = scale(x, factor) + offset\n+    moved = scale(x, factor)\n"
    "     return moved\n",
    "course/wheats/P1/w01/shift.py": SHIFT.replace("scale(x, factor) + offset", "offset + scale(x, factor)"),
    "course/wheats/P1/w02/scale.py": SCALE.replace("x * factor", "factor * x"),
    "course/wheats/P1/w02/pair/shift.py": SHIFT.replace("moved", "result"),
    "course/oracle/P1/live.py": '''\
"""Random sums and products."""

import importlib

import numpy as np


def cases(seed):
    draw = np.random.default_rng(seed)
    for number in range(4):
        yield {"id": str(number), "says": "some numbers", "params": {}, "arrays": {"given": draw.standard_normal(3)}}


def expected(case):
    x, factor, offset = case["arrays"]["given"]
    said = {"rtol": 1e-12, "atol": 1e-12, "scaled": False, "optional": False, "values": []}
    return {
        "scaled": {"array": np.array(x * factor), "says": "the product"} | said,
        "shifted": {"array": np.array(x * factor + offset), "says": "the sum"} | said,
    }


def drive(unit, case):
    x, factor, offset = case["arrays"]["given"]
    shift = importlib.import_module("tinyllm.pair.shift").shift
    return {"scaled": np.array(unit.scale(x, factor)), "shifted": np.array(shift(x, factor, offset))}
''',
    "course/ref/learner-tests/P1/python/tests/p1-pair/test_pair.py": STAFF,
    "tinyllm/pair/scale.py": SCALE,
    "tinyllm/pair/shift.py": SHIFT,
}


def write_pair(root: Path) -> Path:
    """Write the tree below `root`; returns the tree's folder."""
    for path, text in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "course"

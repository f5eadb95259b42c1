"""A course tree of one small unit, complete and valid, for tests to load, bend and break."""

from pathlib import Path

from grader.unit import Unit
from grader.units import load_course

MODULE = """\
id = "Z1"
title = "Doubling"
contract = "course/contracts/py/tinyllm/demo/double.pyi"
units = ["python/tinyllm/demo/double.py"]
deps = [{ id = "Z0" }]
forbidden = ["torch", "DoubleLayer"]
build = ["Double"]
surprise = "ignored"

[tests]
dir = "course/tests/Z1"
smoke = ["test_twice"]
timeout_s = 5
determinism_runs = 2

[fixtures]
files = ["Z1/data.json"]

[learner_tests]
rung = "R1"
path = "python/tests/z1-double"
threshold = 0.8
required_mutants = ["s01"]
time_budget_s = 5

[[errata]]
printed = "2.1"
correct = "2.0"
note = "a slip"
"""

REFERENCE = """\
from tinyllm.demo.base import Base


class Double(Base):
    def __init__(self, factor=2, *, offset=0):
        super().__init__()
        self.factor = factor
        self.offset = offset

    def forward(self, x, times=1):
        for _ in range(times):
            x = x * self.factor + self.offset
        return x


def halve(x):
    return x / 2
"""

STUB = """\
from tinyllm.demo.base import Base

class Double(Base):
    factor: float
    def __init__(self, factor: float = 2, *, offset: float = 0) -> None: ...
    def forward(self, x: float, times: int = 1) -> float: ...

def halve(x: float) -> float: ...
"""

COURSE_TEST = """\
import pytest
from tinyllm.demo.double import Double


# WHY: twice is what
# doubling means
# KIND: unit
# CATCHES: s01
# CHAPTER: section 1
@pytest.mark.parametrize("x", [1, 2])
def test_twice(x):
    assert Double()(x) == 2 * x


# WHY: one more
# KIND: property
# CATCHES:
# CHAPTER: section 2
def test_zero():
    assert Double()(0) == 0
"""

PATCH = """\
--- a/python/tinyllm/demo/double.py
+++ b/python/tinyllm/demo/double.py
@@ -9,7 +9,7 @@

     def forward(self, x, times=1):
         for _ in range(times):
-            x = x * self.factor + self.offset
+            x = x * x + self.offset
         return x


"""

SUITE = "from tinyllm.demo.double import Double\n\n\ndef test_doubles():\n    assert Double()(3) == 6\n"

FILES = {
    "course/modules/Z1.toml": MODULE,
    "course/contracts/py/tinyllm/demo/double.pyi": STUB,
    "course/contracts/py/tinyllm/demo/base.pyi": "class Base:\n    def forward(self, *args, **kwargs): ...\n",
    "course/contracts/py/tinyllm/demo/user.pyi": "def use() -> None: ...\n",
    "course/tests/Z1/test_double.py": COURSE_TEST,
    "course/tests/Z1/__pycache__/test_double.cpython-311.pyc": "",
    "course/tests/_lib/close.py": "TOLERANCE = 1e-6\n",
    "course/fixtures/Z1/data.json": "{}",
    "course/oracle/Z1/data.py": "import pathlib\nimport sys\n\npathlib.Path(sys.argv[1]).write_text('{}')\n",
    "course/ref/learner-tests/Z1/python/tests/z1-double/test_double.py": SUITE,
    "course/mutants/Z1/manifest.tsv": "mid\tunit\ttier\toperator\tline\trequired\tpublic\tprivate\tnew\n"
    "# a comment\n\ns01\tZ1\tsemantic\tscale\t12\ttrue\tTest other numbers.\tsquares\tx\n"
    "s09\tZ2\tsemantic\tscale\t1\tmaybe\tof another unit\t\n",
    "course/mutants/Z1/s01.patch": PATCH,
    "course/wheats/Z1/w01_other.py": REFERENCE.replace("x * self.factor", "self.factor * x"),
    "course/wheats/Z1/freedoms.md": "# Left open\n\n## order\nwheats: w01\nsays: The order of factors\nis free.\n"
    "signs: ==all, _[a-z]*\n",
    "tinyllm/demo/double.py": REFERENCE,
    "tinyllm/demo/base.py": "from tinyllm.demo import deep\n\n\nclass Base:\n    def __call__(self, x):\n"
    "        return self.forward(x)\n",
    "tinyllm/demo/deep.py": "import json\n",
    "tinyllm/demo/user.py": "def use():\n    from .double import Double\n",
}


def write_course(root: Path, changes: dict[str, str | bytes | None] | None = None) -> Path:
    """Write the tree below `root` with some files replaced, or left out (None); returns the tree's folder."""
    for path, content in {**FILES, **(changes or {})}.items():
        if content is not None:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root / "course"


def small_unit(root: Path) -> Unit:
    return load_course(write_course(root)).units["Z1"]

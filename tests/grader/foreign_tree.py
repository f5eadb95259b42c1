"""A whole course tree that shares nothing with this repository's: its own little library, tests, helpers, fixtures,
scripts and patches, written as awkwardly as the format allows.

Two units in a chain (F1 softmax, F2 cross entropy, which builds on F1), one in Rust, one in a language nobody lists,
one not offered yet. References carry SOLUTION marks, and patches are made against them without these.
"""

import io
import json
from difflib import unified_diff
from pathlib import Path

import numpy as np

BOM = "\ufeff"

ACT = '''\
"""Softmax and its logarithm."""

import numpy as np

from tinyllm.num import logsumexp


def softmax(x, axis=-1):
    """Weights like exp(x) that add up to one along `axis`."""
    # SOLUTION-BEGIN softmax: subtract the maximum first
    x = np.asarray(x, dtype=np.float64)
    shifted = x - x.max(axis=axis, keepdims=True)
    weights = np.exp(shifted)
    return weights / weights.sum(axis=axis, keepdims=True)
    # SOLUTION-END


def log_softmax(x, axis=-1):
    # SOLUTION-BEGIN log_softmax
    x = np.asarray(x, dtype=np.float64)
    return x - logsumexp(x, axis)
    # SOLUTION-END
'''

LOSS = '''\
"""Cross entropy of logits and the indices of the right classes."""

import numpy as np

from .act import log_softmax


class CrossEntropy:
    def __init__(self, reduction="mean"):
        # SOLUTION-BEGIN init
        if reduction not in ("mean", "sum"):
            raise ValueError(f"reduction is mean or sum, not {reduction!r}")
        # SOLUTION-END
        self.reduction = reduction

    def forward(self, logits, targets):
        # SOLUTION-BEGIN forward
        rows = log_softmax(logits)
        picked = rows[np.arange(len(targets)), targets]
        return -picked.sum() if self.reduction == "sum" else -picked.mean()
        # SOLUTION-END
'''

STABLE = '''\
"""Sums of exponentials."""

import numpy as np


def logsumexp(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    return top + np.log(np.exp(x - top).sum(axis=axis, keepdims=True))
'''

ACT_TESTS = """\
import json
import os
from pathlib import Path

import numpy as np
import pytest
from _lib.loading import golden
from hypothesis import given
from hypothesis import strategies as st
from tinyllm.nn.act import log_softmax, softmax

pytestmark = [pytest.mark.random_order(disabled=True), pytest.mark.randomly(seed=3)]


# WHY: two scores that differ by log 3 weigh one and three quarters
# KIND: unit
# CATCHES: s01
# CHAPTER: 1.1
@pytest.mark.parametrize(("scores", "wanted"), [((0.0, np.log(3.0)), (0.25, 0.75)), ((1.0, 1.0), (0.5, 0.5))])
def test_by_hand(scores, wanted):
    assert np.allclose(softmax(np.array([scores, (0.0, 0.0)]))[0], wanted)


# WHY: exp of a large score
# is not a number
# KIND: boundary
# CATCHES: s02
# CHAPTER: 1.2
def test_large_scores(rng):
    assert np.allclose(softmax(1000.0 + rng.standard_normal(3) * 0), 1 / 3)


# WHY: rows are weights
# KIND: property
# CATCHES: s01
# CHAPTER: 1.1
@pytest.mark.randomly
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=4))
def test_rows_add_up(row):
    assert np.allclose(softmax(np.array([row, row[::-1]])).sum(axis=-1), 1.0)


# WHY: numbers of another program
# KIND: golden
# CATCHES: s01, m01
# CHAPTER: 1.3
def test_golden():
    arrays = golden("F1/act_golden.npz")
    assert np.allclose(softmax(arrays["x"]), arrays["weights"])
    assert np.allclose(log_softmax(arrays["x"], 0), arrays["logs"])


# WHY: cases that were worked out on paper
# KIND: golden
# CATCHES: m01
# CHAPTER: 1.3
def test_cases():
    cases = json.loads((Path(os.environ["TINYLLM_FIXTURES"]) / "F1" / "act_cases.json").read_text())
    for case in cases:
        assert np.allclose(log_softmax(np.array(case["x"]), 0), case["logs"])
"""

LOSS_TESTS = """\
import numpy as np
import pytest
from tinyllm.nn.loss import CrossEntropy


# WHY: equal scores are a guess among all classes
# KIND: unit
# CATCHES: s01, m01
# CHAPTER: 2.1
@pytest.mark.parametrize("classes", [2, 5])
def test_of_a_guess(classes):
    assert CrossEntropy().forward(np.zeros((3, classes)), np.zeros(3, dtype=int)) == pytest.approx(np.log(classes))


# WHY: a sum is not divided
# KIND: unit
# CATCHES: s01
# CHAPTER: 2.2
def test_sum():
    assert CrossEntropy("sum").forward(np.zeros((3, 2)), np.zeros(3, dtype=int)) == pytest.approx(3 * np.log(2))


# WHY: a slip of the pen should not go by
# KIND: boundary
# CATCHES: -
# CHAPTER: 2.2
def test_unknown_reduction():
    with pytest.raises(ValueError, match="reduction"):
        CrossEntropy("none")
"""

CONFTEST = """\
import random

import numpy as np
import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "randomly: another order")


def pytest_collection_modifyitems(items):
    random.shuffle(items)


@pytest.fixture
def rng(request):
    return np.random.default_rng(request.config.getoption("randomly_seed", default=0))
"""

ACT_SUITE = """\
import numpy as np
import pytest
from tinyllm.nn.act import log_softmax, softmax
from tinyllm.num import logsumexp

pytestmark = pytest.mark.random_order(disabled=True)


@pytest.mark.parametrize("top", [1.0, 1000.0])
def test_rows(top):
    found = softmax(np.array([[0.0, 0.0], [top, top + np.log(3.0)]]))
    assert np.allclose(found, [[0.5, 0.5], [0.25, 0.75]])


def test_logarithm_in_terms_of_the_library():
    x = np.array([[0.0, 1.0, 5.0]])
    assert np.allclose(log_softmax(x), x - logsumexp(x))


def test_logarithm_along_an_axis():
    assert np.allclose(log_softmax(np.array([[0.0, 1.0], [0.0, 1.0]]), 0), np.log(0.5))
"""

LOSS_SUITE = """\
import numpy as np
import pytest
from tinyllm.nn.loss import CrossEntropy


@pytest.mark.parametrize(("reduction", "times"), [("mean", 1), ("sum", 3)])
def test_of_a_guess(reduction, times):
    found = CrossEntropy(reduction).forward(np.zeros((3, 2)), np.zeros(3, dtype=int))
    assert found == pytest.approx(times * np.log(2))
"""

GOLDEN_SCRIPT = '''\
"""Without numpy's vector forms: one number after the other."""

import math
import sys

import numpy as np


def logarithm(values):
    return math.log(math.fsum(math.exp(value) for value in values))


x = [[0.0, 1.0, -2.0], [3.0, 0.5, 0.25]]
weights = [[math.exp(value - logarithm(row)) for value in row] for row in x]
logs = [[value - logarithm(column) for value, column in zip(row, zip(*x))] for row in x]
np.savez(sys.argv[1], x=np.array(x), weights=np.array(weights), logs=np.array(logs))
'''

CASES_SCRIPT = """\
import json
import math
import os
from pathlib import Path

cases = [{"x": [[0, 0], [0, 1]], "logs": [[-math.log(2), -math.log1p(math.e)], [-math.log(2), 1 - math.log1p(math.e)]]}]
Path(os.environ["TINYLLM_FIXTURES"], "F1", "act_cases.json").write_text(json.dumps(cases))
"""

LIVE = """\
import math

import numpy as np


def cases(seed):
    draw = np.random.default_rng(seed)
    for number in range(4):
        x = draw.standard_normal((2, 3 + number))
        yield {"id": str(number), "says": f"of {3 + number} scores", "params": {}, "arrays": {"x": x}}


def expected(case):
    rows = [[math.exp(value) for value in row] for row in case["arrays"]["x"]]
    array = np.array([[value / math.fsum(row) for value in row] for row in rows])
    said = {"rtol": 1e-9, "atol": 1e-12, "scaled": False, "says": "the weights", "optional": False, "values": []}
    return {"weights": {"array": array, **said}}


def drive(unit, case):
    return {"weights": np.asarray(unit.softmax(case["arrays"]["x"]))}
"""

ACT_MODULE = """\
id = "F1"
title = "Softmax"
language = "python"
contract = "course/contracts/py/tinyllm/nn/act.pyi"
units = ["python/tinyllm/nn/act.py"]
deps = []

[tests]
dir = "course/tests/F1"
smoke = ["test_by_hand"]
timeout_s = 5
determinism_runs = 2
plugins = ["-p", "randomly"]

[fixtures]
files = ["course/fixtures/F1/act_golden.npz", "F1/act_cases.json"]

[learner_tests]
rung = 3
path = "python/tests/f1-softmax"
threshold = 0.80
required_mutants = ["s01", "s02"]
time_budget_s = 5

[lecture]
slides = 12
"""

LOSS_MODULE = """\
id = "F2"
title = "Cross entropy"
contract = "course/contracts/py/tinyllm/nn/loss.pyi"
units = ["python/tinyllm/nn/loss.py"]
deps = ["F1", "M9.9"]
[tests]
dir = "course/tests/F2"
timeout_s = 5.0
[learner_tests]
rung = "R2"
path = "python/tests/f2-loss"
threshold = 0.5
required_mutants = []
time_budget_s = 5
"""

ACT_MANIFEST = """\
\t
  # the pitfalls of the chapter
mid \tunit\ttier\toperator\tauthor\tline\trequired\tpublic\tprivate\t\t
s01\t F1 \tsemantic\tsoftmax_axis\tme\t 13\tTRUE\tGive more than one row. \tnormalises over the columns\t\t\t

s02\tF1\tsemantic\tdrop_stabiliser\tme\t11\tyes\tTry large scores.\tdoes not subtract the maximum
#s03\tF1\tsemantic\tnothing
m01\tF1\tauto\taxis\tme\t18\tfalse\tAsk for the logarithm along another axis."""

LOSS_MANIFEST = """\
mid\tunit\ttier\toperator\tline\trequired\tpublic\tprivate
s01\tF2\tsemantic\tsign\t17\t1\tWork one loss out by hand.\tof the wrong sign
m01\tF2\tauto\treduction\t17\t0\tTell a mean from a sum.\talways a sum
"""

ACT_FAULTS = {
    "s01": ("sum(axis=axis", "sum(axis=0"),
    "s02": ("shifted = x - x.max(axis=axis, keepdims=True)", "shifted = x"),
    "m01": ("logsumexp(x, axis)", "logsumexp(x)"),
}
LOSS_FAULTS = {
    "s01": ('return -picked.sum() if self.reduction == "sum" else -picked.mean()', "return picked.sum()"),
    "m01": ("else -picked.mean()", "else -picked.sum()"),
}


def unmarked(source: str) -> str:
    """The source without the lines that only mark a solution."""
    return "".join(line for line in source.splitlines(True) if not line.strip().startswith("# SOLUTION-"))


def right(source: str) -> str:
    """What a student of another mind has written: correct, and not the reference."""
    return unmarked(source).replace("shifted", "lowered").replace("rows", "logarithms")


def patch(path: str, source: str, old: str, new: str) -> str:
    before = unmarked(source)
    assert before.count(old) == 1, old
    lines = unified_diff(before.splitlines(True), before.replace(old, new).splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(lines)


def fixture_files() -> dict[str, bytes]:
    """What the scripts make, made another way."""
    x = np.array([[0.0, 1.0, -2.0], [3.0, 0.5, 0.25]])
    weights = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    stream = io.BytesIO()
    np.savez_compressed(stream, x=x, weights=weights, logs=x - np.log(np.exp(x).sum(axis=0)))
    two, three = float(np.log(2.0)), float(np.log(1.0 + np.e))
    cases = [{"logs": [[-two, -three], [-two, 1 - three]], "x": [[0, 0], [0, 1]]}]
    return {"F1/act_golden.npz": stream.getvalue(), "F1/act_cases.json": json.dumps(cases, indent=1).encode()}


def files() -> dict[str, str | bytes]:
    """Everything by path relative to the tree."""
    act, loss = "python/tinyllm/nn/act.py", "python/tinyllm/nn/loss.py"
    patches = {f"mutants/F1/{mid}.patch": patch(act, ACT, *fault) for mid, fault in ACT_FAULTS.items()}
    patches |= {f"mutants/F2/{mid}.patch": patch(loss, LOSS, *fault) for mid, fault in LOSS_FAULTS.items()}
    patches["mutants/F1/s02.patch"] = crlf("From somebody\n\ndiff --git a/x b/x\n" + patches["mutants/F1/s02.patch"])
    patches["mutants/F2/s01.patch"] = BOM + crlf(patches["mutants/F2/s01.patch"])
    return {
        "modules/F1.toml": BOM + crlf(ACT_MODULE),
        "modules/F2.toml": LOSS_MODULE,
        "modules/F3.toml": 'id = "F3"\ntitle = "Fast"\nunits = ["rust/src/fast.rs"]\n[tests]\nrunner = "cargo"\n',
        "modules/F4.toml": 'id = "F4"\ntitle = "Proved"\nunits = ["lean/Softmax.lean"]\n',
        "modules/F5.toml": 'id = "F5"\ntitle = "Later"\noffered = false\n',
        "contracts/py/tinyllm/__init__.pyi": "",
        "contracts/py/tinyllm/nn/act.pyi": BOM
        + crlf("import numpy as np\n\ndef softmax(x: np.ndarray, axis: int = -1) -> np.ndarray: ...\n")
        + crlf("def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray: ...\n"),
        "contracts/py/tinyllm/nn/loss.pyi": "class CrossEntropy:\n"
        "    def __init__(self, reduction: str = ...) -> None: ...\n    def forward(self, logits, targets): ...\n",
        "contracts/py/tinyllm/num/__init__.pyi": "from .stable import logsumexp as logsumexp\n",
        "ref/python/tinyllm/__init__.py": '"""Another library."""\n\n__version__ = "0.1"\n',
        "ref/python/tinyllm/nn/__init__.py": "from .act import softmax\n",
        "ref/python/tinyllm/nn/act.py": crlf(ACT),
        "ref/python/tinyllm/nn/loss.py": LOSS,
        "ref/python/tinyllm/num/__init__.py": "from .stable import logsumexp\n",
        "ref/python/tinyllm/num/stable.py": STABLE,
        "ref/learner-tests/F1/python/tests/f1-softmax/test_act.py": ACT_SUITE,
        "ref/learner-tests/F2/test_loss.py": LOSS_SUITE,
        "tests/_lib/__init__.py": "",
        "tests/_lib/places.py": 'import os\nfrom pathlib import Path\n\nROOT = Path(os.environ["TINYLLM_FIXTURES"])\n',
        "tests/_lib/loading.py": "import numpy as np\n\nfrom .places import ROOT\n\n\n"
        "def golden(name):\n    return np.load(ROOT / name)\n",
        "tests/F1/test_act.py": crlf(ACT_TESTS),
        "tests/F1/conftest.py": CONFTEST,
        "tests/F1/pytest.ini": "[pytest]\naddopts = -p randomly --randomly-seed=7 --strict-markers\n",
        "tests/F2/__init__.py": "",
        "tests/F2/test_loss.py": LOSS_TESTS,
        "mutants/F1/manifest.tsv": BOM + crlf(ACT_MANIFEST),
        "mutants/F2/manifest.tsv": LOSS_MANIFEST,
        **patches,
        "wheats/F1/w01_by_logarithm.py": crlf(unmarked(ACT)).replace(
            "return weights / weights.sum(axis=axis, keepdims=True)",
            "return np.exp(shifted - logsumexp(shifted, axis))",
        ),
        "wheats/F1/freedoms.md": crlf(
            "# Open\n\n## rounding\n\nwheats: w01\nsays: The last bits are open.\nsigns: array_equal\n"
        ),
        "wheats/F2/w01/loss.py": unmarked(LOSS).replace("-picked.mean()", "-picked.sum() / len(targets)"),
        "oracle/F1/act_golden.py": GOLDEN_SCRIPT,
        "oracle/F1/act_cases.py": CASES_SCRIPT,
        "oracle/F1/live.py": LIVE,
        **{f"fixtures/{path}": data for path, data in fixture_files().items()},
    }


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def write(root: Path) -> Path:
    """Write the tree to ROOT/material and return it."""
    tree = root / "material"
    for path, content in files().items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tree

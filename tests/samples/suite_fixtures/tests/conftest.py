import sys
from pathlib import Path

import numpy as np
import pytest

# so that `import support.oracle` also works when pytest starts somewhere else
sys.path.insert(0, str(Path(__file__).parent))

from tinyllm.autograd.tensor import Tensor  # noqa: E402
from tinyllm.xfmr.mha import MultiHeadAttention  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "layout: tests of where features go")


@pytest.fixture(scope="session")
def cases():
    rng = np.random.default_rng(99)
    return {"x_q": rng.normal(size=(2, 3, 8)), "x_kv": rng.normal(size=(2, 5, 8)), "packed": rng.normal(size=(24, 8))}


@pytest.fixture(params=[1, 2, 4], ids="H={}".format)
def mha(request, cases):
    module = MultiHeadAttention(8, request.param)
    for i, (_, p) in enumerate(module.named_parameters()):
        p.data = np.random.default_rng(i).normal(size=p.shape)
    yield module
    assert list(module.state_dict())[0] == "q_proj.weight"


@pytest.fixture
def as_tensor():
    return lambda a: Tensor(a, dtype=np.float64)


@pytest.fixture(autouse=True)
def no_warnings_from_numpy():
    with np.errstate(invalid="raise", divide="raise"):
        yield

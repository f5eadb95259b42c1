"""An oracle of the small unit Z1, with numpy alone."""

LIVE = '''\
"""The double of random numbers."""

import numpy as np

CALLS = 6
SECRET_RULE = "twice, or offset more"


def cases(seed):
    draw = np.random.default_rng(seed)
    for number in range(CALLS):
        factor = int(draw.integers(2, 9))
        says = f"with factor {factor} and {number} rows"
        x = draw.standard_normal((number, 2))
        yield {"id": str(number), "says": says, "params": {"factor": factor}, "arrays": {"x": x}}


def _right(factor, x):
    return factor * x


def expected(case):
    array = _right(case["params"]["factor"], case["arrays"]["x"])
    return {
        "y": {
            "array": array, "rtol": 1e-12, "atol": 1e-12, "scaled": False, "says": "the result",
            "optional": False, "values": [],
        }
    }


def drive(unit, case):
    return {"y": _called(unit, case["params"]["factor"], case["arrays"]["x"])}


def _called(unit, factor, x):
    return np.asarray(unit.Double(factor)(x))
'''

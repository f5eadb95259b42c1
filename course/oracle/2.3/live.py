"""A seed comes in; fresh random cases of unit 2.3 leave, and what a correct mha.py and a student's give for each.

    cases(seed)        trusted process    what to try: sizes, inputs, weights, random cotangents
    expected(case)     trusted process    what a correct unit returns for it, head by head in float64
    drive(unit, case)  in the sandbox     what this unit returns for it, beside a student's code

A case is {id, kind, says, params, arrays}: `params` is JSON, `arrays` maps names to arrays, `says` describes the case
in a student's words. It holds no expected value, nor anything made from one. `drive` returns arrays by name: the output
of two equal calls, the five gradients of sum(out * cotangent), and the arguments as they are afterwards. `expected` has
for each of these names {array, rtol, atol, scaled, says, optional, values}, as grader/comparator.py reads them.
"""

import math
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Params = dict[str, Any]
Case = dict[str, Any]
Expected = dict[str, dict[str, Any]]

INPUT = "in_features"
WEIGHTS = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")
ARGUMENTS = (INPUT, *WEIGHTS)
OUTCOMES = (
    "no error",
    "ValueError",
    "TypeError",
    "IndexError",
    "KeyError",
    "AttributeError",
    "NameError",
    "ZeroDivisionError",
    "RuntimeError",
    "AssertionError",
    "another exception",
)

# float64 is the unit's criterion to the letter. Float32 is the public test's, its absolute part for gradients growing
# with the largest entry: they add up many terms (docs/decisions/0081).
EXACT = {"rtol": 0.0, "atol": 0.0, "scaled": False}
VALUE = {
    "float64": {"rtol": 1e-6, "atol": 1e-8, "scaled": False},
    "float32": {"rtol": 1e-4, "atol": 1e-5, "scaled": False},
}
GRADIENT = VALUE | {"float32": {"rtol": 1e-4, "atol": 1e-5, "scaled": True}}


def cases(seed: int) -> list[Case]:
    """The cases of a seed: always the same kinds in the same order, with other sizes and numbers."""
    draw = np.random.default_rng(seed)
    return [{"id": f"{number:02}"} | case for number, case in enumerate(_attend_cases(draw), 1)]


def expected(case: Case) -> Expected:
    """What a correct unit returns for a case, and how close is close enough."""
    params, arrays = case["params"], case["arrays"]
    dtype = arrays[INPUT].dtype.name
    out, gradients = _head_by_head(params["num_heads"], arrays)
    code = np.array(OUTCOMES.index("no error"), dtype=np.int64)
    result = {"outcome": _expect(code, "what the call ends with", EXACT, OUTCOMES)}
    for name, says in (("out", "the output"), ("again", "the output of a second equal call")):
        result[name] = _expect(out.astype(dtype), says, VALUE[dtype])
    for name, gradient in zip(ARGUMENTS, gradients, strict=True):
        result[f"grad.{name}"] = _expect(gradient.astype(dtype), f"the gradient of {name}", GRADIENT[dtype])
    for name in ARGUMENTS:
        result[f"after.{name}"] = _expect(arrays[name], f"{name} after the call", EXACT)
    return result


def drive(unit: ModuleType, case: Case) -> Arrays:
    """What this unit returns for a case, as arrays; never changes the case's arrays.

    An exception becomes the outcome, and what else was returned is lost; SystemExit and KeyboardInterrupt pass through.
    A gradient that does not arrive is missing.
    """
    outcome = 0
    returned: Arrays = {}
    try:
        returned = _called(unit, case["params"], case["arrays"])
    except Exception as error:
        outcome = _outcome(error)
    return {"outcome": np.array(outcome, dtype=np.int64)} | returned


# --- cases ---------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """What is fixed about a case; everything else is drawn."""

    dtype: str
    leading: int = 1  # axes before T
    sizes: str = ""  # one position, longest, d = 1, H = d, or free


ROWS = (
    *(Row("float64") for _ in range(8)),
    Row("float64", sizes="one position"),
    Row("float64", sizes="longest"),
    Row("float64", sizes="d = 1"),
    Row("float64", sizes="H = d"),
    Row("float64", leading=0),
    Row("float64", leading=2),
    Row("float64", leading=3),
    Row("float32"),
    Row("float32", leading=2),
    Row("float32", sizes="longest"),
)
LAYOUTS = ("contiguous", "swapped", "strided", "offset")


def _attend_cases(draw: np.random.Generator) -> Iterator[Case]:
    """A case for each row. What is drawn in turns occurs in every seed: no number of heads is left to chance."""
    heads, layouts = _in_turns(draw, range(1, 9), len(ROWS)), _in_turns(draw, LAYOUTS, len(ROWS))
    turned = _in_turns(draw, (False, True), len(ROWS))
    for row, H, layout, weights in zip(ROWS, heads, layouts, turned, strict=True):
        d = {"d = 1": 1, "H = d": H}.get(row.sizes) or _between(draw, 1 if H > 4 else 2, max(2, min(6, 24 // H)))
        T = {"one position": 1, "longest": 17}.get(row.sizes) or _between(draw, 2, 9)
        leading = [_between(draw, 1, 4 if row.leading < 2 else 2) for _ in range(row.leading)]
        yield _case(draw, row.dtype, [*leading, T, H * d], H, layout, weights)


def _case(draw: np.random.Generator, dtype: str, shape: list[int], H: int, layout: str, turned: bool) -> Case:
    D = shape[-1]
    limit = (3 / D) ** 0.5  # keeps outputs and scores of about unit size
    arrays = {INPUT: draw.uniform(-1.7, 1.7, shape).astype(dtype)}
    arrays |= {name: draw.uniform(-limit, limit, (D, D)).astype(dtype) for name in WEIGHTS}
    arrays["cotangent"] = draw.uniform(-1, 1, shape).astype(dtype)
    notes = [
        *([] if layout == "contiguous" else [f"{layout} in memory"]),
        *(["weights stored by columns"] if turned else []),
    ]
    says = f"with {H} {'head' if H == 1 else 'heads'}, in_features {shape}, {dtype}"
    return {
        "kind": "attend",
        "says": says + (f" ({', '.join(notes)})" if notes else ""),
        "params": {"num_heads": H, "layout": layout, "turned": turned},
        "arrays": arrays,
    }


def _between(draw: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(draw.integers(low, high + 1))


def _in_turns(draw: np.random.Generator, options: Sequence[Any], n: int) -> list[Any]:
    """n options, each as often as the others, in random order."""
    return [options[i] for _ in range(0, n, len(options)) for i in draw.permutation(len(options))][:n]


# --- what a correct unit returns, in the trusted process -------------------------------------------------------------


def _expect(array: Array, says: str, tolerance: dict[str, Any], values: Sequence[str] = ()) -> dict[str, Any]:
    return {"array": array, "says": says, "optional": False, "values": list(values)} | tolerance


def _head_by_head(num_heads: int, arrays: Arrays) -> tuple[Array, list[Array]]:
    """The output and the gradients of ARGUMENTS, in float64: each head with its rows and columns of the weights."""
    import torch

    x, wq, wk, wv, wo = leaves = [
        torch.tensor(arrays[name].astype(np.float64), requires_grad=True) for name in ARGUMENTS
    ]
    T, D = x.shape[-2:]
    d = D // num_heads
    future = torch.full((T, T), -math.inf, dtype=torch.float64).triu(1)
    out = torch.zeros_like(x)
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)
        q, k, v = (torch.nn.functional.linear(x, weight[own]) for weight in (wq, wk, wv))  # [..., T, d]
        weights = torch.softmax(torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(d) + future, dim=-1)
        out = out + torch.nn.functional.linear(weights @ v, wo[:, own])
    cotangent = torch.tensor(arrays["cotangent"].astype(np.float64))
    gradients = torch.autograd.grad((out * cotangent).sum(), leaves)
    return out.detach().numpy(), [gradient.numpy() for gradient in gradients]


# --- what this unit returns, in the sandbox ---------------------------------------------------------------------------


def _called(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    import torch

    given = {INPUT: _laid(arrays[INPUT], params["layout"])}
    given |= {name: _laid(arrays[name], "swapped" if params["turned"] else "contiguous") for name in WEIGHTS}
    leaves = {name: torch.from_numpy(array).requires_grad_() for name, array in given.items()}
    d_model = arrays[INPUT].shape[-1]

    def attend() -> Any:
        weights = [leaves[name] for name in WEIGHTS]
        return unit.run_multihead_self_attention(d_model, params["num_heads"], *weights, leaves[INPUT])

    out = attend()
    cotangent = torch.from_numpy(arrays["cotangent"].copy())
    found = torch.autograd.grad((out * cotangent).sum(), list(leaves.values()), allow_unused=True)
    returned = {"out": _array(out), "again": _array(attend())}
    for name, gradient in zip(ARGUMENTS, found, strict=True):
        if gradient is not None:
            returned[f"grad.{name}"] = _array(gradient)
    for name in ARGUMENTS:
        returned[f"after.{name}"] = _array(leaves[name])
    return returned


def _laid(array: Array, layout: str) -> Array:
    """The same numbers in another order of memory; a copy in any case."""
    if layout == "swapped":
        return np.swapaxes(np.swapaxes(array, -1, -2).copy(), -1, -2)
    if layout == "strided":
        return np.stack([array, array + 1], axis=-1)[..., 0]
    if layout == "offset":
        return np.concatenate([array, array + 1], axis=-1)[..., : array.shape[-1]]
    return array.copy()


def _array(tensor: Any) -> Array:
    """A tensor's numbers, laid in order. TypeError for what is no tensor."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a Tensor was expected, not {type(tensor).__name__}")
    return np.ascontiguousarray(tensor.detach().numpy()).reshape(tuple(tensor.shape))


def _outcome(error: Exception) -> int:
    """The place in OUTCOMES of an exception: its own class, else the nearest of its bases."""
    names = [base.__name__ for base in type(error).__mro__]
    return next((OUTCOMES.index(name) for name in names if name in OUTCOMES), len(OUTCOMES) - 1)

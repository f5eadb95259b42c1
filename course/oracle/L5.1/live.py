"""A seed comes in; fresh random cases of unit L5.1 leave, and what a correct sdpa.py and a student's give for each.

    cases(seed)        trusted process    what to try: sizes, inputs, masks, scales, rates, random cotangents
    expected(case)     trusted process    what a correct unit returns for it, computed by torch in float64
    drive(unit, case)  in the sandbox     what this unit returns for it, beside a student's code

A case is {id, kind, says, params, arrays}: `params` is JSON, `arrays` maps names to arrays, `says` describes the case
in a student's words. It holds no expected value, nor anything made from one: the weights that sdpa_backward is given
are random ones. `drive` returns arrays by name; `expected` has for each of these names {array, rtol, atol, scaled,
says, optional, values}, as grader/comparator.py reads them. Every result has an `outcome`, the place in OUTCOMES of
what the call ended with.

Expected values come from torch's scaled_dot_product_attention; where queries may attend nothing or weights are dropped
by the contract's draws, from the formula itself. Random numbers come from a PCG32 of its own. torch is imported by
`expected` alone and tinyllm by `drive` alone: neither is there on the other side.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Params = dict[str, Any]
Case = dict[str, Any]
Expected = dict[str, dict[str, Any]]

INPUTS = ("q", "k", "v")
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

# The course's tolerances; of float32 gradients, which add up many terms, the absolute part grows with the largest
# entry (docs/decisions/0081).
EXACT = {"rtol": 0.0, "atol": 0.0, "scaled": False}
VALUE = {
    "float32": {"rtol": 1e-5, "atol": 1e-6, "scaled": False},
    "float64": {"rtol": 1e-10, "atol": 1e-12, "scaled": False},
}
GRADIENT = VALUE | {"float32": {"rtol": 1e-5, "atol": 5e-6, "scaled": True}}


def cases(seed: int) -> list[Case]:
    """The cases of a seed: always the same kinds in the same order, with other sizes and numbers."""
    draw = np.random.default_rng(seed)
    made = [*_attention_cases(draw), *_backward_cases(draw), *_refused_cases(draw)]
    return [{"id": f"{number:02}"} | case for number, case in enumerate(made, 1)]


def expected(case: Case) -> Expected:
    """What a correct unit returns for a case, and how close is close enough."""
    return EXPECTED[case["kind"]](case["params"], case["arrays"])


def drive(unit: ModuleType, case: Case) -> Arrays:
    """What this unit returns for a case, as arrays; never changes the case's arrays.

    An exception becomes the outcome, and what else was returned is lost; SystemExit and KeyboardInterrupt pass through.
    """
    outcome = 0
    returned: Arrays = {}
    try:
        returned = DRIVERS[case["kind"]](unit, case["params"], case["arrays"])
    except Exception as error:
        outcome = _outcome(error)
    return {"outcome": np.array(outcome, dtype=np.int64)} | returned


# --- cases ---------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """What is fixed about a case of attention; everything else is drawn."""

    kind: str  # forward or attend
    mask: str  # a word of MASKS
    dtype: str
    leading: int = 1  # axes before T
    scale: str = "default"  # default, given, or numpy: given as a number of numpy's
    rate: str = "none"  # none, zero: a rate of 0 beside an rng, some, or one
    large: bool = False  # scores in the hundreds


MASKS = {
    "none": "no mask",
    "pair": "a [Tq, Tk] mask",
    "causal": "a causal [Tq, Tk] mask",
    "keys": "a [Tk] mask",
    "full": "a mask of the weights' shape",
    "padding": "a mask that is the same for all queries of a sequence",
    "empty": "a mask that leaves some queries without any key",
}
ROWS = (
    Row("forward", "none", "float64", 0),
    Row("forward", "none", "float32", scale="numpy"),
    Row("forward", "none", "float32", large=True),
    Row("forward", "causal", "float64", scale="given"),
    Row("forward", "keys", "float32", 2),
    Row("forward", "full", "float64", 3),
    Row("forward", "padding", "float64", 2, large=True),
    Row("forward", "empty", "float32"),
    Row("forward", "empty", "float64", 2),
    Row("attend", "none", "float64"),
    Row("attend", "none", "float32", 2, scale="given"),
    Row("attend", "none", "float64", 0, rate="zero"),
    Row("attend", "pair", "float64", scale="numpy"),
    Row("attend", "pair", "float32", 0, scale="numpy", rate="some"),
    Row("attend", "causal", "float32", rate="zero"),
    Row("attend", "keys", "float64", 3),
    Row("attend", "padding", "float64", 2, rate="some"),
    Row("attend", "full", "float32", 2, rate="some"),
    Row("attend", "full", "float64", scale="given", rate="some"),
    Row("attend", "empty", "float64", 2),
    Row("attend", "empty", "float32", rate="some"),
    Row("attend", "none", "float64", rate="one"),
)
LAYOUTS = ("contiguous", "transposed", "strided", "reversed")
NEEDS = ("qkv", "q", "k", "v", "kv")  # which inputs ask for a gradient


def _attention_cases(draw: np.random.Generator) -> Iterator[Case]:
    """A case for each row. What is drawn in turns occurs in every seed."""
    layouts, needs = _in_turns(draw, LAYOUTS, len(ROWS)), _in_turns(draw, NEEDS, len(ROWS))
    for row, layout, needed in zip(ROWS, layouts, needs, strict=True):
        yield _attention_case(draw, row, layout, needed)


def _attention_case(draw: np.random.Generator, row: Row, layout: str, needed: str) -> Case:
    leading = tuple(_between(draw, 2, 3) for _ in range(row.leading))
    Tq, Tk, d, dv = _sizes(draw)
    if row.mask == "causal":
        Tk = Tq
    arrays = _inputs(draw, leading, Tq, Tk, d, dv, row.dtype)
    if row.large:
        arrays["q"] = arrays["q"] * np.asarray(500, row.dtype)
        arrays["k"] = np.round(arrays["k"])  # so that scores differ by much, or are equal: float32 rounds the rest
        arrays["q"] = np.round(arrays["q"])
    mask = _mask(draw, row.mask, leading, Tq, Tk)
    if mask is not None:
        arrays["mask"] = mask
    scale = None if row.scale == "default" else round(float(draw.uniform(0.1, 0.9)), 3)
    rate = {"none": None, "zero": 0.0, "one": 1.0}.get(row.rate, round(float(draw.uniform(0.15, 0.7)), 2))
    params: Params = {"scale": scale, "numpy": row.scale == "numpy", "layout": layout}
    if row.kind == "attend":
        arrays["cotangent"] = draw.uniform(-1, 1, (*leading, Tq, dv)).astype(row.dtype)
        params |= {"rate": rate, "seed": _between(draw, 0, 2**31), "needs": needed}
    says = ", ".join(
        [
            f"{NAMES[row.kind]} with q {[*leading, Tq, d]}, k {[*leading, Tk, d]}, v {[*leading, Tk, dv]}",
            MASKS[row.mask],
            row.dtype,
            *(["scores in the hundreds"] if row.large else []),
            *([] if scale is None else [f"scale = {'np.float64(' if params['numpy'] else '('}{scale})"]),
            *([] if rate is None or row.kind == "forward" else [f"dropout_p = {rate}, rng = PCG32({params['seed']})"]),
            *([f"gradients for {' and '.join(needed)}"] if row.kind == "attend" else []),
        ]
    )
    return _case(row.kind, says + _of_layout(layout), params, arrays)


NAMES = {"forward": "sdpa_forward", "attend": "scaled_dot_product_attention", "backward": "sdpa_backward"}


def _case(kind: str, says: str, params: Params, arrays: Arrays) -> Case:
    return {"kind": kind, "says": says, "params": params, "arrays": arrays}


def _between(draw: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(draw.integers(low, high + 1))


def _in_turns(draw: np.random.Generator, options: Sequence[Any], n: int) -> list[Any]:
    """n options, each as often as the others, in random order."""
    return [options[i] for _ in range(0, n, len(options)) for i in draw.permutation(len(options))][:n]


def _sizes(draw: np.random.Generator) -> tuple[int, int, int, int]:
    """Tq, Tk, d and dv, all different, as no fault can then hide behind an equality."""
    Tq, Tk, d, dv = (int(n) for n in draw.permutation(np.arange(2, 9))[:4])
    return Tq, Tk, d, dv


def _inputs(
    draw: np.random.Generator, leading: tuple[int, ...], Tq: int, Tk: int, d: int, dv: int, dtype: str
) -> Arrays:
    """Uniform numbers, which keep scores small: float32 rounds finely there (docs/decisions/0081)."""
    shapes = {"q": (Tq, d), "k": (Tk, d), "v": (Tk, dv)}
    return {name: draw.uniform(-1.7, 1.7, (*leading, *shape)).astype(dtype) for name, shape in shapes.items()}


def _mask(draw: np.random.Generator, form: str, leading: tuple[int, ...], Tq: int, Tk: int) -> Array | None:
    """A random mask; only the one called empty has queries without a key, at least one and not all."""
    if form == "none":
        return None
    shape = {"pair": (Tq, Tk), "causal": (Tq, Tk), "keys": (Tk,)}.get(form, (*leading, Tq, Tk))
    if form == "causal":
        return np.tril(np.ones(shape, dtype=bool))
    if form == "padding":
        shape = (leading[0], *(1 for _ in leading), Tk)
    mask = np.asarray(draw.random(shape) < 0.6)
    rows = mask.reshape(-1, Tk)
    kept = draw.integers(Tk, size=len(rows))
    rows[np.arange(len(rows)), kept] = True
    rows[np.arange(len(rows)), kept - 1] = False  # something is always hidden
    if form == "empty":
        rows[draw.permutation(len(rows))[: _between(draw, 1, len(rows) // 2)]] = False
    return mask


def _backward_cases(draw: np.random.Generator) -> Iterator[Case]:
    layouts = _in_turns(draw, LAYOUTS, 8)
    for i, (dtype, leading, scale, dropped) in enumerate(
        (
            ("float64", (), None, False),
            ("float64", (2,), 0.7, False),
            ("float32", (2,), None, False),
            ("float64", (2, 3), None, True),
            ("float32", (3,), 0.4, True),
            ("float64", (2,), 0.3, True),
        )
    ):
        Tq, Tk, d, dv = _sizes(draw)
        if i == 1:
            Tk = Tq
        arrays = _inputs(draw, leading, Tq, Tk, d, dv, dtype)
        p = np.asarray(draw.dirichlet(np.ones(Tk), (*leading, Tq)))
        p[..., 0, :] = 0  # a query that may attend to nothing
        arrays["p"] = p.astype(dtype)
        arrays["cotangent"] = draw.uniform(-1, 1, (*leading, Tq, dv)).astype(dtype)
        if dropped:
            rate = float(draw.uniform(0.2, 0.6))
            arrays["mult"] = ((draw.random(p.shape) >= rate) / (1 - rate)).astype(dtype)
        says = (
            f"sdpa_backward with q {[*leading, Tq, d]}, k {[*leading, Tk, d]}, v {[*leading, Tk, dv]}, random weights "
            f"p, {dtype}{'' if scale is None else f', scale = {scale}'}{', a dropout_mult' if dropped else ''}"
        )
        yield _case("backward", says + _of_layout(layouts[i]), {"scale": scale, "layout": layouts[i]}, arrays)


def _refused_cases(draw: np.random.Generator) -> Iterator[Case]:
    """Calls that have to raise ValueError."""
    B, Tq, d, dv = _between(draw, 2, 3), _between(draw, 2, 5), _between(draw, 2, 5), _between(draw, 2, 5)
    Tk = Tq + _between(draw, 1, 3)
    right = {"q": (B, Tq, d), "k": (B, Tk, d), "v": (B, Tk, dv)}
    wrong_shapes: tuple[dict[str, tuple[int, ...]], ...] = (
        {"q": (d,), "k": (Tk, d), "v": (Tk, dv)},
        {"q": (Tq, d), "k": (d,), "v": (Tk, dv)},
        {"q": (Tq, d), "k": (Tk, d), "v": (Tk,)},
        {"q": (B, Tq, d + 1)},
        {"v": (B, Tk + 1, dv)},
        {"q": (1, Tq, d)},
        {"k": (1, Tk, d)},
        {"v": (B + 1, Tk, dv)},
        {"v": (Tk, dv)},
    )
    for changed in wrong_shapes:
        yield from _refused(draw, right | changed)
    for shape, dtype in (
        ((Tq, Tk), "float32"),
        ((B, Tq, Tk), "int64"),
        ((Tk, Tq), "bool"),
        ((B + 1, Tq, Tk), "bool"),
        ((4, B, Tq, Tk), "bool"),
    ):
        yield from _refused(draw, right, mask=(shape, dtype))
    for scale in ("0", "-0.5", "inf", "nan"):
        yield from _refused(draw, right, scale=scale)
    over = round(float(draw.uniform(1.01, 3)), 2)
    for rate, rng in ((-0.1, True), (over, True), (0.5, False), (1.0, False)):
        yield from _refused(draw, right, rate=rate, rng=rng)


def _refused(
    draw: np.random.Generator,
    shapes: dict[str, tuple[int, ...]],
    mask: tuple[tuple[int, ...], str] | None = None,
    scale: str | None = None,
    rate: float | None = None,
    rng: bool = True,
) -> Iterator[Case]:
    arrays = {name: draw.standard_normal(shape) for name, shape in shapes.items()}
    said = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
    if mask is not None:
        arrays["mask"] = np.asarray(draw.random(mask[0]) < 0.7).astype(mask[1])
        said += f", a {list(mask[0])} mask of {mask[1]}"
    said += "" if scale is None else f", scale = {scale}"
    said += "" if rate is None else f", dropout_p = {rate}{'' if rng else ' and no rng'}"
    for call in ("forward", "attend") if rate is None else ("attend",):
        yield _case(
            "refused", f"{NAMES[call]} with {said}", {"call": call, "scale": scale, "rate": rate, "rng": rng}, arrays
        )


def _of_layout(layout: str) -> str:
    return "" if layout == "contiguous" else f" ({layout}, not contiguous)"


# --- what a correct unit returns, in the trusted process -------------------------------------------------------------


def _expect(array: Array, says: str, tolerance: dict[str, Any], values: Sequence[str] = ()) -> dict[str, Any]:
    return {"array": array, "says": says, "optional": False, "values": list(values)} | tolerance


def _ends_with(outcome: str) -> Expected:
    code = np.array(OUTCOMES.index(outcome), dtype=np.int64)
    return {"outcome": _expect(code, "what the call ends with", EXACT, OUTCOMES)}


def _kept(arrays: Arrays) -> Expected:
    """Every argument, as it was."""
    return {f"after.{name}": _expect(array, f"{name} after the call", EXACT) for name, array in arrays.items()}


def _expected_forward(params: Params, arrays: Arrays) -> Expected:
    dtype = arrays["q"].dtype.name
    out, weights = _attention(_leaves(arrays), params, arrays.get("mask"), None)
    return _ends_with("no error") | _kept(arrays) | _values(out, weights, dtype)


def _values(out: Any, weights: Any, dtype: str) -> Expected:
    return {
        "out": _expect(_numpy(out, dtype), "the output", VALUE[dtype]),
        "weights": _expect(_numpy(weights, dtype), "the weights", VALUE[dtype]),
    }


def _expected_attend(params: Params, arrays: Arrays) -> Expected:
    torch = _torch()
    dtype, leaves, rate = arrays["q"].dtype.name, _leaves(arrays), params["rate"]
    shape = (*arrays["q"].shape[:-1], arrays["k"].shape[-2])
    stream = _uniforms(_pcg32(params["seed"], 54))
    factor = None
    if rate:
        drawn = np.array([next(stream) for _ in range(math.prod(shape))]).reshape(shape)
        factor = np.where(drawn >= rate, 1 / (1 - rate) if rate < 1 else 0.0, 0.0)
    out, weights = _attention(leaves, params, arrays.get("mask"), factor)
    cotangent = torch.tensor(arrays["cotangent"], dtype=torch.float64)
    gradients = torch.autograd.grad((out * cotangent).sum(), leaves, allow_unused=True)
    result = _ends_with("no error") | _kept({name: arrays[name] for name in (*INPUTS, "mask") if name in arrays})
    result |= _values(out, weights, dtype)
    result["constant"] = _expect(np.array([True, False]), "which of output and weights need a gradient", EXACT)
    for name, gradient in zip(INPUTS, gradients, strict=True):
        if name in params["needs"]:
            array = np.zeros(arrays[name].shape, dtype) if gradient is None else _numpy(gradient, dtype)
            result[f"grad.{name}"] = _expect(array, f"the gradient of {name}", GRADIENT[dtype])
    if rate is not None:
        result["next"] = _expect(np.array(next(stream)), "what the rng gives after the call", EXACT)
    return result


def _expected_backward(params: Params, arrays: Arrays) -> Expected:
    """Through the whole Jacobian diag(p) - p pᵀ of the softmax."""
    torch = _torch()
    dtype = arrays["q"].dtype.name
    q, k, v, p, dout = (torch.tensor(arrays[name], dtype=torch.float64) for name in (*INPUTS, "p", "cotangent"))
    mult = torch.tensor(arrays["mult"], dtype=torch.float64) if "mult" in arrays else torch.ones_like(p)
    jacobian = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]  # [..., Tq, Tk, Tk]
    dp = torch.einsum("...iv,...jv->...ij", dout, v) * mult
    ds = torch.einsum("...ijk,...ik->...ij", jacobian, dp) * (params["scale"] or q.shape[-1] ** -0.5)
    gradients = {
        "q": torch.einsum("...ij,...jd->...id", ds, k),
        "k": torch.einsum("...ij,...id->...jd", ds, q),
        "v": torch.einsum("...ij,...iv->...jv", p * mult, dout),
    }
    result = _ends_with("no error") | _kept(arrays)
    for name, gradient in gradients.items():
        result[f"grad.{name}"] = _expect(_numpy(gradient, dtype), f"the gradient of {name}", GRADIENT[dtype])
    return result


def _expected_refused(params: Params, arrays: Arrays) -> Expected:
    return _ends_with("ValueError")


def _leaves(arrays: Arrays) -> list[Any]:
    torch = _torch()
    return [torch.tensor(arrays[name], dtype=torch.float64, requires_grad=True) for name in INPUTS]


def _attention(leaves: list[Any], params: Params, mask: Array | None, factor: Array | None) -> tuple[Any, Any]:
    """Output and weights in float64: by torch where it has an answer, with zeros for queries without keys."""
    torch = _torch()
    q, k, v = leaves
    scale = params["scale"] or q.shape[-1] ** -0.5
    scores = torch.einsum("...id,...jd->...ij", q, k) * scale
    allowed = torch.ones(scores.shape, dtype=torch.bool)
    if mask is not None:
        allowed = torch.from_numpy(mask).expand(scores.shape)
    alive = allowed.any(dim=-1, keepdim=True)
    weights = scores.masked_fill(~allowed & alive, -math.inf).softmax(dim=-1).masked_fill(~alive, 0.0)
    if factor is not None or not alive.all():
        used = weights if factor is None else weights * torch.from_numpy(factor)
        return torch.einsum("...ij,...jv->...iv", used, v), weights
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q, k, v, attn_mask=allowed, scale=scale), weights


@cache
def _torch() -> Any:
    import torch

    torch.set_num_threads(1)  # the cases are small, and graders run side by side
    return torch


def _numpy(tensor: Any, dtype: str) -> Array:
    return np.array(tensor.detach().numpy(), dtype=dtype, order="C")


# --- random numbers of the contract, independent of tinyllm ----------------------------------------------------------

MASK_64 = (1 << 64) - 1


def _pcg32(seed: int, seq: int) -> Iterator[int]:
    """PCG-XSH-RR 64/32 (O'Neill, 2014), seeded as pcg32_srandom_r."""
    increment = (seq << 1 | 1) & MASK_64
    state = ((increment + seed) * 6364136223846793005 + increment) & MASK_64
    while True:
        word = ((state >> 18 ^ state) >> 27) & 0xFFFFFFFF
        turn = state >> 59
        state = (state * 6364136223846793005 + increment) & MASK_64
        yield (word >> turn | word << (-turn & 31)) & 0xFFFFFFFF


def _uniforms(words: Iterator[int]) -> Iterator[float]:
    for a, b in zip(words, words, strict=False):
        yield ((a >> 5) * 67108864.0 + (b >> 6)) / 9007199254740992.0


# --- what this unit returns, in the sandbox --------------------------------------------------------------------------


def _outcome(error: Exception) -> int:
    """The place in OUTCOMES of an exception: its own class, else the nearest of its bases."""
    names = [base.__name__ for base in type(error).__mro__]
    return next((OUTCOMES.index(name) for name in names if name in OUTCOMES), len(OUTCOMES) - 1)


def _plain(array: Any) -> Array:
    """A contiguous copy. TypeError for what is no array of numbers."""
    if not isinstance(array, np.ndarray) or array.dtype.name not in ("bool", "float32", "float64"):
        raise TypeError(f"an array was expected, not {type(array).__name__}")
    return np.array(array, order="C")


def _laid_out(array: Array, layout: str) -> Array:
    """The same numbers in another place: a writable copy, contiguous, or a view of something else."""
    if layout == "transposed" and array.ndim > 1:
        return np.array(array.swapaxes(-1, -2), order="C").swapaxes(-1, -2)
    if layout == "strided":
        wide = np.zeros((*array.shape, 2), dtype=array.dtype)
        wide[..., 0] = array
        return wide[..., 0]
    if layout == "reversed":
        return np.array(array[..., ::-1], order="C")[..., ::-1]
    return np.array(array, order="C")


def _drive_forward(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    given = {name: _laid_out(array, params["layout"]) for name, array in arrays.items()}
    out, weights = unit.sdpa_forward(*(given[name] for name in INPUTS), given.get("mask"), _scale(params))
    after = {f"after.{name}": _plain(array) for name, array in given.items()}
    return {"out": _plain(out), "weights": _plain(weights)} | after


def _scale(params: Params) -> Any:
    return np.float64(params["scale"]) if params["numpy"] else params["scale"]


def _drive_attend(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    from tinyllm.autograd.tensor import Tensor
    from tinyllm.num.rng import PCG32

    leaves = {}
    for name in INPUTS:
        leaves[name] = Tensor(arrays[name], requires_grad=name in params["needs"], dtype=arrays[name].dtype)
        leaves[name].data = _laid_out(arrays[name], params["layout"])
    given = {"mask": _laid_out(arrays["mask"], params["layout"])} if "mask" in arrays else {}
    options: Params = dict(given)
    if params["rate"] is not None:
        options |= {"dropout_p": params["rate"], "rng": PCG32(params["seed"])}
    if params["scale"] is not None:
        options["scale"] = _scale(params)
    out, weights = unit.scaled_dot_product_attention(*leaves.values(), **options)
    result = {"out": _plain(out.data), "weights": _plain(weights.data)}
    result["constant"] = np.array([out.requires_grad, weights.requires_grad])
    out.backward(arrays["cotangent"].copy())
    for name, leaf in leaves.items():
        if leaf.grad is not None:
            result[f"grad.{name}"] = _plain(leaf.grad)
        result[f"after.{name}"] = _plain(leaf.data)
    if given:
        result["after.mask"] = _plain(given["mask"])
    if "rng" in options:
        result["next"] = np.array(options["rng"].uniform())
    return result


def _drive_backward(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    given = {name: _laid_out(array, params["layout"]) for name, array in arrays.items()}
    q, k, v, p, dout = (given[name] for name in (*INPUTS, "p", "cotangent"))
    found = unit.sdpa_backward(q, k, v, p, dout, params["scale"], given.get("mult"))
    result = {f"grad.{name}": _plain(gradient) for name, gradient in zip(INPUTS, found, strict=True)}
    return result | {f"after.{name}": _plain(array) for name, array in given.items()}


def _drive_refused(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    from tinyllm.autograd.tensor import Tensor
    from tinyllm.num.rng import PCG32

    given = {name: array.copy() for name, array in arrays.items()}
    options: Params = {"mask": given["mask"]} if "mask" in given else {}
    if params["scale"] is not None:
        options["scale"] = float(params["scale"])
    if params["call"] == "forward":
        unit.sdpa_forward(*(given[name] for name in INPUTS), **options)
        return {}
    if params["rate"] is not None:
        options["dropout_p"] = params["rate"]
    if params["rng"]:
        options["rng"] = PCG32(1)
    tensors = [Tensor(given[name], dtype=given[name].dtype) for name in INPUTS]
    unit.scaled_dot_product_attention(*tensors, **options)
    return {}


EXPECTED: dict[str, Callable[[Params, Arrays], Expected]] = {
    "forward": _expected_forward,
    "attend": _expected_attend,
    "backward": _expected_backward,
    "refused": _expected_refused,
}
DRIVERS: dict[str, Callable[[ModuleType, Params, Arrays], Arrays]] = {
    "forward": _drive_forward,
    "attend": _drive_attend,
    "backward": _drive_backward,
    "refused": _drive_refused,
}

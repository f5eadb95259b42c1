"""A seed comes in; fresh random cases of unit L5.3 leave, and what a correct mha.py and a student's give for each.

    cases(seed)        trusted process    what to try: sizes, inputs, weights, masks, random cotangents
    expected(case)     trusted process    what a correct unit returns for it, computed by torch in float64
    drive(unit, case)  in the sandbox     what this unit returns for it, beside a student's code

A case is {id, kind, says, params, arrays}: `params` is JSON, `arrays` maps names to arrays, `says` describes the case
in a student's words. It holds no expected value, nor anything made from one. `drive` returns arrays by name;
`expected` has for each of these names {array, rtol, atol, scaled, says, optional, values}, as grader/comparator.py
reads them. Every result has an `outcome`, the place in OUTCOMES of what the call ended with.

Expected values come from torch.nn.MultiheadAttention; for queries that may attend nothing, where torch gives NaN, and
in training mode, whose dropout mask the contract fixes, from the formula itself (docs/decisions/0082). Random numbers
come from a PCG32 of its own. torch is imported by `expected` alone and tinyllm by `drive` alone: neither is there on
the other side.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Params = dict[str, Any]
Case = dict[str, Any]
Expected = dict[str, dict[str, Any]]

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
NAMES = tuple(f"{projection}.{part}" for projection in PROJECTIONS for part in ("weight", "bias"))
OUTCOMES = (
    "no error",
    "ValueError",
    "TypeError",
    "IndexError",
    "KeyError",
    "AttributeError",
    "ZeroDivisionError",
    "RuntimeError",
    "AssertionError",
    "another exception",
)
RETURNED = ("bool", "int64", "float16", "float32", "float64")  # the dtypes that `drive` lets out

# The course's tolerances. Gradients add up many terms: honest float32 code leaves a plain 1e-5 / 1e-6 in a third of
# random cases, so there the absolute part grows with the largest entry (docs/decisions/0081).
EXACT = {"rtol": 0.0, "atol": 0.0, "scaled": False}
VALUE = {
    "float32": {"rtol": 1e-5, "atol": 1e-6, "scaled": False},
    "float64": {"rtol": 1e-10, "atol": 1e-12, "scaled": False},
}
GRADIENT = VALUE | {"float32": {"rtol": 1e-5, "atol": 5e-6, "scaled": True}}
# The keys' bias moves all scores of a query alike, so its gradient is zero up to rounding, or None.
ZERO_GRADIENT = {
    "float32": {"rtol": 0.0, "atol": 1e-3, "scaled": False},
    "float64": {"rtol": 0.0, "atol": 1e-10, "scaled": False},
}


def cases(seed: int) -> list[Case]:
    """The cases of a seed: always the same kinds in the same order, with other sizes and numbers."""
    draw = np.random.default_rng(seed)
    made = [
        *_init_cases(draw),
        *_layout_cases(draw),
        *_mask_cases(draw),
        *_packed_cases(draw),
        *_attend_cases(draw),
        *_refused_cases(draw),
    ]
    return [{"id": f"{number:02}"} | case for number, case in enumerate(made, 1)]


def expected(case: Case) -> Expected:
    """What a correct unit returns for a case, and how close is close enough."""
    return EXPECTED[case["kind"]](case["params"], case["arrays"])


def drive(unit: ModuleType, case: Case) -> Arrays:
    """What this unit returns for a case, as arrays of RETURNED; never changes the case's arrays.

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


def _case(kind: str, says: str, params: Params, arrays: Arrays | None = None) -> Case:
    return {"kind": kind, "says": says, "params": params, "arrays": arrays or {}}


def _between(draw: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(draw.integers(low, high + 1))


def _choice(draw: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[_between(draw, 0, len(options) - 1)]


def _width(draw: np.random.Generator, n_heads: int, least: int = 1) -> int:
    """A d_model for so many heads, of at least `least` features a head and not much over 16."""
    return n_heads * _between(draw, least, max(least, min(6, 16 // n_heads)))


def _parameters(draw: np.random.Generator, d: int, bias: bool, dtype: str) -> Arrays:
    """Random values for every parameter; the biases are not zero, so that a lost one shows.

    Outputs and scores are kept small: float32 rounds finely there, and honest code stays far from the tolerances
    (docs/decisions/0081). Normal numbers would now and then make scores of 30, hence uniform ones.
    """
    made = {}
    for name in _names(bias):
        shape, limit = ((d, d), (3 / d) ** 0.5) if name.endswith("weight") else ((d,), 0.8)
        gain = 0.7 if name.startswith(("q_proj", "k_proj")) else 0.5
        made[name] = (draw.uniform(-limit, limit, shape) * gain).astype(dtype)
    return made


def _inputs(draw: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    return draw.uniform(-1.7, 1.7, shape).astype(dtype)


def _names(bias: bool) -> list[str]:
    return [name for name in NAMES if bias or name.endswith("weight")]


def _init_cases(draw: np.random.Generator) -> Iterator[Case]:
    for given, bias in ((True, True), (True, False), (False, True), (False, False)):
        H = _between(draw, 1, 8)
        d = _width(draw, H)
        rate = round(float(draw.uniform(0, 0.9)), 2)
        seed = _between(draw, 0, 2**31) if given else None
        source = f"PCG32({seed})" if given else "None"
        says = f"MultiHeadAttention({d}, {H}, dropout={rate}, bias={bias}, rng={source})"
        yield _case("init", says, {"d_model": d, "n_heads": H, "dropout": rate, "bias": bias, "seed": seed})
    H = _between(draw, 1, 8)
    d = _width(draw, H)
    defaults = {"d_model": d, "n_heads": H, "dropout": 0.0, "bias": True, "seed": None, "defaults": True}
    yield _case("init", f"MultiHeadAttention({d}, {H})", defaults)


LAYOUTS = ("contiguous", "transposed", "strided", "reversed")


def _layout_cases(draw: np.random.Generator) -> Iterator[Case]:
    layouts = [str(layout) for layout in draw.permutation(LAYOUTS)]
    for kind, dtype, layout in zip(
        ("split", "merge", "split", "merge"), ("float32", "float32", "float64", "float64"), layouts, strict=True
    ):
        B, H, T = _between(draw, 1, 4), _between(draw, 2, 8), _between(draw, 2, 17)
        d = _width(draw, H, 2)
        flat, heads = (B, T, d), (B, H, T, d // H)
        given, returned = (flat, heads) if kind == "split" else (heads, flat)
        says = f"{kind}_heads of {list(given)} with {_count(H, 'head')}, {dtype}{_of_layout(layout)}"
        yield _case(
            kind,
            says,
            {"d_model": d, "n_heads": H, "layout": layout},
            {
                "x": draw.standard_normal(given).astype(dtype),
                "cotangent": draw.standard_normal(returned).astype(dtype),
            },
        )


class Form(NamedTuple):
    """One form of mask: its axes, each a size's letter or "1", and how the report calls it."""

    axes: str
    says: str


FORMS = {
    "none": Form("", "no mask"),
    "pair": Form("qk", "a [Tq, Tk] mask"),
    "causal": Form("qk", "a causal [Tq, Tk] mask"),
    "sequence": Form("bqk", "a [B, Tq, Tk] mask"),
    "padding": Form("b11k", "a [B, 1, 1, Tk] mask"),
    "head": Form("bhqk", "a [B, H, Tq, Tk] mask"),
    "heads": Form("1hqk", "a [1, H, Tq, Tk] mask"),
    "one": Form("11qk", "a [1, 1, Tq, Tk] mask"),
    "pair_empty": Form("qk", "a [Tq, Tk] mask that leaves some queries without any key"),
    "sequence_empty": Form("bqk", "a [B, Tq, Tk] mask that leaves some queries without any key"),
    "head_empty": Form("bhqk", "a [B, H, Tq, Tk] mask that leaves some queries without any key"),
}


def _mask(draw: np.random.Generator, form: str, B: int, H: int, Tq: int, Tk: int) -> Array | None:
    """A random mask; only the forms called empty have queries without a key, at least one."""
    if form == "none":
        return None
    sizes = {"b": B, "h": H, "q": Tq, "k": Tk, "1": 1}
    shape = [sizes[axis] for axis in FORMS[form].axes]
    if form == "causal":
        return np.tril(np.ones(shape, dtype=bool))
    mask = np.asarray(draw.random(shape) < 0.6)
    rows = mask.reshape(-1, Tk)  # [number of rows, Tk]
    rows[np.arange(len(rows)), draw.integers(Tk, size=len(rows))] = True
    if form.endswith("_empty"):
        rows[draw.permutation(len(rows))[: _between(draw, 1, max(1, len(rows) // 2))]] = False
    return mask


def _mask_cases(draw: np.random.Generator) -> Iterator[Case]:
    for form in ("none", "pair", "sequence", "padding", "head"):
        H = _between(draw, 1, 8)
        B, Tq, Tk = _between(draw, 2, 4), _between(draw, 1, 17), _between(draw, 2, 17)
        mask = _mask(draw, form, B, H, Tq, Tk)
        said = "None" if mask is None else f"a {list(mask.shape)} mask"
        says = f"head_mask of {said} with B = {B}, {_count(H, 'head')}, Tq = {Tq} and Tk = {Tk}"
        params = {"d_model": _width(draw, H), "n_heads": H, "B": B, "Tq": Tq, "Tk": Tk}
        yield _case("head_mask", says, params, {} if mask is None else {"mask": mask})


def _packed_cases(draw: np.random.Generator) -> Iterator[Case]:
    # module with biases, packed bias given, dtype of the packed arrays, their layout
    for bias, given, dtype, layout in (
        (True, True, "float32", "contiguous"),
        (True, False, "float32", "transposed"),
        (False, False, "float32", "contiguous"),
        (True, True, "float64", "strided"),
    ):
        H = _between(draw, 1, 8)
        d = _width(draw, H, 2)
        arrays = {"weight": draw.standard_normal((3 * d, d)).astype(dtype)}
        if given:
            arrays["bias"] = draw.standard_normal(3 * d).astype(dtype)
        says = (
            f"load_packed_in_proj of a {dtype} weight {[3 * d, d]}{_of_layout(layout)} "
            f"{f'and a bias [{3 * d}]' if given else 'without a bias'}{'' if bias else ', bias=False'}"
        )
        yield _packed(draw, says, d, H, bias, arrays, layout)


def _packed(
    draw: np.random.Generator,
    says: str,
    d: int,
    H: int,
    bias: bool,
    packed: Arrays,
    layout: str = "contiguous",
    refused: bool = False,
) -> Case:
    params = {"d_model": d, "n_heads": H, "bias": bias, "layout": layout, "refused": refused}
    return _case("packed", says, params, _parameters(draw, d, bias, "float32") | packed)


EVAL = (("eval", "attend"),)
EVAL_TWICE = (("eval", "attend"), ("eval", "forward"))
TRAIN = (("train", "attend"), ("train", "attend"))
MIXED = (("eval", "attend"), ("train", "forward"), ("train", "attend"))


class Row(NamedTuple):
    """What is fixed about a case of attend; everything else is drawn."""

    form: str
    dtype: str
    calls: Sequence[tuple[str, str]] = EVAL
    source: str = "cross"  # self, cross, or cross with equal lengths
    sizes: str = ""  # B = H, longest, shortest, or free


ROWS = (
    Row("none", "float32", EVAL_TWICE),
    Row("none", "float64", source="self"),
    Row("none", "float64", source="equal"),
    Row("none", "float32", sizes="longest"),
    Row("none", "float32", sizes="shortest"),
    Row("pair", "float32"),
    Row("pair", "float64", EVAL_TWICE),
    Row("causal", "float32", source="self"),
    Row("causal", "float64", source="self", sizes="longest"),
    Row("sequence", "float32"),
    Row("sequence", "float64", source="self"),
    Row("sequence", "float32", sizes="B = H"),
    Row("sequence", "float64", sizes="B = H"),
    Row("padding", "float32"),
    Row("padding", "float64", source="equal"),
    Row("head", "float32", source="self"),
    Row("head", "float64"),
    Row("heads", "float64"),
    Row("one", "float32"),
    Row("one", "float64", source="self"),
    Row("pair_empty", "float32"),
    Row("sequence_empty", "float64", source="self"),
    Row("head_empty", "float32", source="equal"),
    Row("none", "float64", TRAIN),
    Row("padding", "float32", TRAIN, source="self"),
    Row("head", "float64", MIXED),
    Row("sequence_empty", "float32", MIXED),
)


def _attend_cases(draw: np.random.Generator) -> Iterator[Case]:
    """A case for each row. What is drawn in turns occurs in every seed: no number of heads is left to chance."""
    per_head = [row.form in ("head", "heads", "head_empty") for row in ROWS]
    heads = _in_turns(draw, range(1, 9), len(ROWS))
    several = [i for i, needed in enumerate(per_head) if not needed and heads[i] > 1 and ROWS[i].sizes != "B = H"]
    for i, (row, needed) in enumerate(zip(ROWS, per_head, strict=True)):
        if heads[i] == 1 and (needed or row.sizes == "B = H"):  # a mask per head says nothing about one head
            j = several.pop()
            heads[i], heads[j] = heads[j], heads[i]
    few, more = _in_turns(draw, range(1, 5), len(ROWS)), _in_turns(draw, range(2, 5), len(ROWS))
    layouts, biases = _in_turns(draw, LAYOUTS, len(ROWS)), _in_turns(draw, (True, True, False), len(ROWS))
    for i, row in enumerate(ROWS):
        per_sequence = FORMS[row.form].axes.startswith("b")
        B = (more if per_sequence else few).pop()
        yield _attend_case(draw, row, B, B if row.sizes == "B = H" else heads[i], biases[i], layouts[i])


def _in_turns(draw: np.random.Generator, options: Sequence[Any], n: int) -> list[Any]:
    """n options, each as often as the others, in random order."""
    return [options[i] for _ in range(0, n, len(options)) for i in draw.permutation(len(options))][:n]


def _attend_case(draw: np.random.Generator, row: Row, B: int, H: int, bias: bool, layout: str) -> Case:
    training = row.calls in (TRAIN, MIXED)
    Tq, Tk = _lengths(draw, row, training)
    d = _width(draw, H)
    rate = round(float(draw.uniform(0.15, 0.6)), 2) if training or draw.random() < 0.5 else 0.0
    arrays = {"x_q": _inputs(draw, (B, Tq, d), row.dtype)}
    if row.source != "self":
        arrays["x_kv"] = _inputs(draw, (B, Tk, d), row.dtype)
    mask = _mask(draw, row.form, B, H, Tq, Tk)
    if mask is not None:
        arrays["mask"] = mask
    for i in range(len(row.calls)):
        arrays[f"cotangent.{i}"] = draw.standard_normal((B, Tq, d)).astype(row.dtype)
    params = {
        "d_model": d,
        "n_heads": H,
        "dropout": rate,
        "bias": bias,
        "layout": layout,
        "calls": [list(call) for call in row.calls],
    }
    says = ", ".join(
        [
            f"with {_count(H, 'head')}",
            f"d_model {d}",
            f"batch {B}",
            f"self-attention over {_count(Tq, 'position')}"
            if row.source == "self"
            else f"{_count(Tq, 'query', 'queries')} and {_count(Tk, 'key')}",
            FORMS[row.form].says,
            row.dtype,
            {EVAL: "eval", EVAL_TWICE: "eval", TRAIN: "training", MIXED: "eval, then training"}[tuple(row.calls)],
            *([f"dropout {rate}"] if rate else []),
            *([] if bias else ["bias=False"]),
        ]
    )
    return _case("attend", says + _of_layout(layout), params, arrays | _parameters(draw, d, bias, row.dtype))


def _lengths(draw: np.random.Generator, row: Row, training: bool) -> tuple[int, int]:
    """Tq and Tk. A mask has room to matter, and dropout enough to draw."""
    least = 1 if row.form == "none" and not training else 4
    Tq, Tk = _between(draw, least, 17), _between(draw, least, 17)
    if row.sizes == "longest":
        Tq, Tk = 17, _choice(draw, (16, 17))
    if row.sizes == "shortest":
        Tq, Tk = _choice(draw, ((1, 2), (2, 1), (1, 1), (1, 17), (17, 1)))
    if row.source != "cross":
        Tk = Tq
    elif Tq == Tk and row.sizes != "shortest":
        Tk = Tq - 1 if Tq > least else Tq + 1
    return Tq, Tk


def _refused_cases(draw: np.random.Generator) -> Iterator[Case]:
    """Calls that have to raise ValueError."""
    H, dh = _between(draw, 2, 4), _between(draw, 2, 4)
    d, B = H * dh, _between(draw, 2, 3)
    Tq = _between(draw, 2, 6)
    Tk = Tq + _between(draw, 1, 4)
    yield from _refused_modules(draw, d, H)
    yield from _refused_inputs(draw, d, H, B, Tq, Tk)
    yield from _refused_masks(draw, d, H, B, Tq, Tk)
    yield from _refused_packed(draw, d, H)


def _refused_modules(draw: np.random.Generator, d: int, H: int) -> Iterator[Case]:
    uneven = _choice(draw, [n for n in range(2, d) if d % n])
    for options in (
        {"d_model": 0, "n_heads": 1},
        {"d_model": -d, "n_heads": H},
        {"d_model": d, "n_heads": 0},
        {"d_model": d, "n_heads": -H},
        {"d_model": d, "n_heads": uneven},
        {"d_model": d, "n_heads": 2 * d},
        {"d_model": d, "n_heads": H, "dropout": 1.0},
        {"d_model": d, "n_heads": H, "dropout": round(float(draw.uniform(1.01, 3)), 2)},
        {"d_model": d, "n_heads": H, "dropout": -round(float(draw.uniform(0.01, 2)), 2)},
    ):
        said = ", ".join(f"{name}={value}" for name, value in options.items())
        yield _case("refused", f"MultiHeadAttention({said})", {"call": "build", "module": options})


def _refused_inputs(draw: np.random.Generator, d: int, H: int, B: int, Tq: int, Tk: int) -> Iterator[Case]:
    dh = d // H
    for call, shapes in (
        ("attend", {"x_q": (Tq, d), "x_kv": (B, Tk, d)}),
        ("attend", {"x_q": (B, Tq, d), "x_kv": (Tk, d)}),
        ("attend", {"x_q": (1, B, Tq, d), "x_kv": (1, B, Tk, d)}),
        ("attend", {"x_q": (B, Tq, d + H), "x_kv": (B, Tk, d)}),
        ("attend", {"x_q": (B, Tq, d), "x_kv": (B, Tk, d + H)}),
        ("attend", {"x_q": (B, Tq, d), "x_kv": (1, Tk, d)}),
        ("forward", {"x_q": (1, Tq, d), "x_kv": (B, Tk, d)}),
        ("forward", {"x_q": (B, Tq, d), "x_kv": (B + 1, Tk, d)}),
        ("split_heads", {"x": (Tq, d)}),
        ("split_heads", {"x": (1, B, Tq, d)}),
        ("split_heads", {"x": (B, Tq, d + H)}),
        ("merge_heads", {"x": (B, Tq, d)}),
        ("merge_heads", {"x": (B, H + 1, Tq, dh)}),
        ("merge_heads", {"x": (B, H, Tq, dh + 1)}),
    ):
        said = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        arrays = {name: draw.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
        yield _refused(f"{call}({said})", call, d, H, arrays)


def _refused_masks(draw: np.random.Generator, d: int, H: int, B: int, Tq: int, Tk: int) -> Iterator[Case]:
    for batch, shape, dtype in (
        (B, (Tq, Tk), "float32"),
        (B, (B, Tq, Tk), "int64"),
        (B, (Tk,), "bool"),
        (B, (1, B, H, Tq, Tk), "bool"),
        (B, (Tk, Tq), "bool"),
        (B, (B + 1, Tq, Tk), "bool"),
        (B, (B, H + 1, Tq, Tk), "bool"),
        (1, (B, Tq, Tk), "bool"),
    ):
        mask = np.asarray(draw.random(shape) < 0.7).astype(dtype)
        inputs = {
            "x_q": draw.standard_normal((batch, Tq, d)).astype("float32"),
            "x_kv": draw.standard_normal((batch, Tk, d)).astype("float32"),
        }
        # What head_mask lets through a later step of attend may still refuse, so both are asked.
        for call, others in (("head_mask", {}), ("attend", inputs)):
            says = f"{call} with a {list(shape)} mask of {dtype}, B = {batch}, Tq = {Tq} and Tk = {Tk}"
            yield _refused(says, call, d, H, {"mask": mask, **others}, sizes=[batch, Tq, Tk])


def _refused(says: str, call: str, d: int, H: int, arrays: Arrays, sizes: Sequence[int] = ()) -> Case:
    module = {"d_model": d, "n_heads": H}
    return _case(
        "refused",
        f"{says}, d_model {d}, {_count(H, 'head')}",
        {"call": call, "module": module, "sizes": list(sizes)},
        arrays,
    )


def _refused_packed(draw: np.random.Generator, d: int, H: int) -> Iterator[Case]:
    for bias, weight_shape, bias_shape in (
        (True, (3 * d - 1, d), (3 * d,)),
        (True, (d, 3 * d), None),
        (True, (3 * d, d), (3 * d - 1,)),
        (True, (3 * d, d), (d,)),
        (False, (3 * d, d), (3 * d,)),
    ):
        packed: Arrays = {"weight": draw.standard_normal(weight_shape).astype("float32")}
        if bias_shape:
            packed["bias"] = draw.standard_normal(bias_shape).astype("float32")
        said = " and ".join(f"a {name} {list(array.shape)}" for name, array in packed.items())
        says = f"load_packed_in_proj of {said}, d_model {d}, bias={bias}"
        yield _packed(draw, says, d, H, bias, packed, refused=True)


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _of_layout(layout: str) -> str:
    return "" if layout == "contiguous" else f" ({layout}, not contiguous)"


# --- what a correct unit returns, in the trusted process -------------------------------------------------------------


def _expect(
    array: Array, says: str, tolerance: dict[str, Any], optional: bool = False, values: Sequence[str] = ()
) -> dict[str, Any]:
    return {"array": array, "says": says, "optional": optional, "values": list(values)} | tolerance


def _ends_with(outcome: str) -> Expected:
    code = np.array(OUTCOMES.index(outcome), dtype=np.int64)
    return {"outcome": _expect(code, "what the call ends with", EXACT, values=OUTCOMES)}


def _expected_init(params: Params, arrays: Arrays) -> Expected:
    d, bias = params["d_model"], params["bias"]
    stream = _init_stream(params["seed"])
    places = np.array([NAMES.index(name) for name in _names(bias)], dtype=np.int64)
    sizes = np.array([d, params["n_heads"], d // params["n_heads"]], dtype=np.int64)
    result = _ends_with("no error") | {
        "names": _expect(places, "the keys of state_dict, in order", EXACT, values=(*NAMES, "another name")),
        "sizes": _expect(sizes, "d_model, n_heads and d_head", EXACT),
        "dropout": _expect(np.array(params["dropout"]), "dropout", EXACT),
    }
    for name in _names(bias):
        if name.endswith("weight"):
            values = np.array(_normal(stream, d * d)).reshape(d, d) * d**-0.5
        else:
            values = np.zeros(d)
        result[name] = _expect(values.astype("float32"), f"the initial {name}", VALUE["float32"])
    return result


def _expected_split(params: Params, arrays: Arrays) -> Expected:
    return _expected_layout(_split(arrays["x"], params["n_heads"]), _merge(arrays["cotangent"]), arrays)


def _expected_merge(params: Params, arrays: Arrays) -> Expected:
    return _expected_layout(_merge(arrays["x"]), _split(arrays["cotangent"], params["n_heads"]), arrays)


def _expected_layout(returned: Array, gradient: Array, arrays: Arrays) -> Expected:
    return _ends_with("no error") | {
        "returned": _expect(returned, "the result", EXACT),
        "grad.x": _expect(gradient, "the gradient of x", EXACT),
        "after.x": _expect(arrays["x"], "x after the call", EXACT),
    }


def _split(x: Array, H: int) -> Array:
    """[B, T, d] -> [B, H, T, dh], head by head: head h holds the features from h * dh on."""
    dh = x.shape[2] // H
    return np.stack([x[:, :, h * dh : (h + 1) * dh] for h in range(H)], axis=1)


def _merge(x: Array) -> Array:
    """[B, H, T, dh] -> [B, T, d]."""
    return np.concatenate([x[:, h] for h in range(x.shape[1])], axis=2)


def _expected_mask(params: Params, arrays: Arrays) -> Expected:
    mask = arrays.get("mask")
    result = _ends_with("no error") | {
        "is_none": _expect(np.array(mask is None), "whether the result is None", EXACT),
    }
    if mask is not None:
        full = _full_mask(mask, params["B"], params["n_heads"], params["Tq"], params["Tk"])
        result["mask"] = _expect(full, "the mask, broadcast to [B, H, Tq, Tk]", EXACT)
        result["after.mask"] = _expect(mask, "the given mask after the call", EXACT)
    return result


def _full_mask(mask: Array, B: int, H: int, Tq: int, Tk: int) -> Array:
    """[B, H, Tq, Tk], whatever the form."""
    if mask.ndim == 3:
        mask = mask[:, None]  # [B, Tq, Tk] -> [B, 1, Tq, Tk]
    return np.broadcast_to(mask, (B, H, Tq, Tk)).copy()


def _expected_packed(params: Params, arrays: Arrays) -> Expected:
    d = params["d_model"]
    result = _ends_with("ValueError" if params["refused"] else "no error")
    for name in _names(params["bias"]):
        projection, part = name.split(".")
        values, says = arrays[name], f"{name}, which has to stay as it was"
        if not params["refused"] and projection != "out_proj" and part in arrays:
            first = PROJECTIONS.index(projection) * d
            values, says = arrays[part][first : first + d].astype("float32"), f"{name} after loading"
        result[name] = _expect(values, says, EXACT)
    return result


def _expected_refused(params: Params, arrays: Arrays) -> Expected:
    return _ends_with("ValueError")


def _expected_attend(params: Params, arrays: Arrays) -> Expected:
    torch = _torch()
    given = {name: array for name, array in arrays.items() if name != "mask"}
    leaves = {name: torch.tensor(array, dtype=torch.float64) for name, array in given.items()}
    inputs = [name for name in ("x_q", "x_kv") if name in leaves]
    names = _names(params["bias"])
    for name in (*inputs, *names):
        leaves[name].requires_grad_(True)
    x_q, x_kv = leaves["x_q"], leaves.get("x_kv", leaves["x_q"])
    B, Tq, Tk, H = x_q.shape[0], x_q.shape[1], x_kv.shape[1], params["n_heads"]
    mask = _full_mask(arrays["mask"], B, H, Tq, Tk) if "mask" in arrays else None
    dtype = str(arrays["x_q"].dtype)

    result = _ends_with("no error")
    total, draws = torch.zeros((), dtype=torch.float64), 0
    for i, (mode, method) in enumerate(params["calls"]):
        factor = None
        if mode == "train" and params["dropout"]:
            factor = _dropout_factor(params["dropout"], draws, (B, H, Tq, Tk))
            draws += factor.size
        if factor is None and (mask is None or mask.any(axis=-1).all()):
            out, weights = _by_module(leaves, x_q, x_kv, mask, params)
        else:
            out, weights = _by_formula(leaves, x_q, x_kv, mask, factor, params)
        total = total + (out * leaves[f"cotangent.{i}"]).sum()
        of_call = f" of call {i + 1} ({mode})" if len(params["calls"]) > 1 else ""
        result[f"out.{i}"] = _expect(_numpy(out, dtype), f"the output{of_call}", VALUE[dtype])
        if method == "attend":
            result[f"weights.{i}"] = _expect(_numpy(weights, dtype), f"the weights{of_call}", VALUE[dtype])
    total.backward()
    for name in (*inputs, *names):
        tolerance = (ZERO_GRADIENT if name == "k_proj.bias" else GRADIENT)[dtype]
        array = np.zeros(arrays[name].shape, dtype) if name == "k_proj.bias" else _numpy(leaves[name].grad, dtype)
        result[f"grad.{name}"] = _expect(array, f"the gradient of {name}", tolerance, optional=name == "k_proj.bias")
    for name in (*inputs, *names, *(["mask"] if mask is not None else [])):
        result[f"after.{name}"] = _expect(arrays[name], f"{name} after the call", EXACT)
    return result


def _by_module(leaves: dict[str, Any], x_q: Any, x_kv: Any, mask: Array | None, params: Params) -> tuple[Any, Any]:
    """Output and weights by torch.nn.MultiheadAttention, its packed rows made of the leaves."""
    torch = _torch()
    values = {"out_proj.weight": leaves["out_proj.weight"]}
    for part in ("weight", "bias") if params["bias"] else ("weight",):
        values[f"in_proj_{part}"] = torch.cat([leaves[f"{name}.{part}"] for name in PROJECTIONS[:3]])
        values[f"out_proj.{part}"] = leaves[f"out_proj.{part}"]
    forbidden = None if mask is None else torch.from_numpy(~mask.reshape(-1, *mask.shape[2:]))  # [B * H, Tq, Tk]
    module = _module(params["d_model"], params["n_heads"], params["bias"])
    options = {"attn_mask": forbidden, "need_weights": True, "average_attn_weights": False}
    out, weights = torch.func.functional_call(module, values, (x_q, x_kv, x_kv), options)
    return out, weights


def _by_formula(
    leaves: dict[str, Any], x_q: Any, x_kv: Any, mask: Array | None, factor: Array | None, params: Params
) -> tuple[Any, Any]:
    """The same by softmax(q kᵀ / sqrt(dh)) v, with zeros for queries without keys, and weights dropped by `factor`."""
    torch = _torch()
    H = params["n_heads"]

    def projected(name: str, x: Any) -> Any:
        y = x @ leaves[f"{name}.weight"].T
        return y + leaves[f"{name}.bias"] if params["bias"] else y

    def heads(y: Any) -> Any:  # [B, T, d] -> [B, H, T, dh]
        return torch.stack(y.chunk(H, dim=2), dim=1)

    q, k, v = heads(projected("q_proj", x_q)), heads(projected("k_proj", x_kv)), heads(projected("v_proj", x_kv))
    scores = q @ k.transpose(2, 3) / math.sqrt(params["d_model"] // H)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        allowed = torch.from_numpy(mask)
        alive = allowed.any(dim=-1, keepdim=True)
        scores = scores.masked_fill(~allowed & alive, -math.inf)  # softmax of nothing but -inf would be NaN
        weights = scores.softmax(dim=-1).masked_fill(~alive, 0.0)
    used = weights if factor is None else weights * torch.from_numpy(factor)
    merged = torch.cat((used @ v).unbind(dim=1), dim=2)  # [B, H, Tq, dh] -> [B, Tq, d]
    return projected("out_proj", merged), weights


@cache
def _torch() -> Any:
    import torch

    torch.set_num_threads(1)  # the cases are small, and graders run side by side
    return torch


@cache
def _module(d: int, H: int, bias: bool) -> Any:
    torch = _torch()
    return torch.nn.MultiheadAttention(d, H, bias=bias, batch_first=True, dtype=torch.float64)


def _numpy(tensor: Any, dtype: str) -> Array:
    return np.array(tensor.detach().numpy(), dtype=dtype, order="C")


# --- random numbers of the contract, independent of tinyllm ----------------------------------------------------------

PURPOSES = {"init": 1, "dropout": 2}
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


def _substream(seed: int, purpose: str) -> Iterator[float]:
    k = PURPOSES[purpose]
    z = (seed + k * 0x9E3779B97F4A7C15) & MASK_64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK_64
    return _uniforms(_pcg32(z ^ z >> 31, k))


def _init_stream(seed: int | None) -> Iterator[float]:
    return _substream(0, "init") if seed is None else _uniforms(_pcg32(seed, 54))


def _normal(uniforms: Iterator[float], n: int) -> list[float]:
    """Box-Muller in pairs, cosine first; an odd n drops the last sine."""
    normals: list[float] = []
    while len(normals) < n:
        radius, angle = math.sqrt(-2 * math.log(1 - next(uniforms))), 2 * math.pi * next(uniforms)
        normals += [radius * math.cos(angle), radius * math.sin(angle)]
    return normals[:n]


@cache
def _dropout_stream() -> tuple[list[float], Iterator[float]]:
    return [], _substream(0, "dropout")


def _dropout_factor(rate: float, first: int, shape: tuple[int, ...]) -> Array:
    """What the weights [B, H, Tq, Tk] are multiplied by when the module has drawn `first` numbers before."""
    drawn, stream = _dropout_stream()  # every module draws from the start of one stream: keep what was drawn
    last = first + math.prod(shape)
    drawn.extend(islice(stream, max(0, last - len(drawn))))
    kept = np.array(drawn[first:last]).reshape(shape) >= rate
    return np.asarray(kept / (1 - rate))


# --- what this unit returns, in the sandbox --------------------------------------------------------------------------


def _outcome(error: Exception) -> int:
    kinds = (ValueError, TypeError, IndexError, KeyError, AttributeError, ZeroDivisionError, RuntimeError)
    for code, kind in enumerate((*kinds, AssertionError), 1):
        if isinstance(error, kind):
            return code
    return len(OUTCOMES) - 1


def _plain(value: Any) -> Array:
    """A contiguous copy of an array or a Tensor's array; TypeError for a dtype that may not leave."""
    array = np.array(value.numpy() if hasattr(value, "numpy") else value, order="C")
    if array.dtype not in [np.dtype(name) for name in RETURNED]:
        raise TypeError(f"an array of {array.dtype}")
    return array


def _laid_out(array: Array, layout: str) -> Array:
    """The same numbers in another place: a writable copy, contiguous, or a view of something else."""
    if layout == "transposed" and array.ndim > 1:
        return np.array(array.swapaxes(-1, -2), order="C").swapaxes(-1, -2)
    if layout == "strided":
        wide = np.full((*array.shape, 2), 77, dtype=array.dtype)
        wide[..., 0] = array
        return wide[..., 0]
    if layout == "reversed" and array.ndim:
        return np.array(array[..., ::-1], order="C")[..., ::-1]
    return np.array(array, order="C")


def _tensor(array: Array, layout: str = "contiguous") -> Any:
    from tinyllm.autograd.tensor import Tensor

    tensor = Tensor(array, requires_grad=True, dtype=array.dtype)
    tensor.data = _laid_out(array, layout)
    return tensor


def _module_of(unit: ModuleType, params: Params, arrays: Arrays, layout: str = "contiguous") -> tuple[Any, Any]:
    """A module with the case's weights, and its parameters by name as they were before any call."""
    module = unit.MultiHeadAttention(
        params["d_model"], params["n_heads"], dropout=params.get("dropout", 0.0), bias=params.get("bias", True)
    )
    parameters = dict(module.named_parameters())
    for name in NAMES:
        if name in arrays:
            parameters[name].data = _laid_out(arrays[name], layout)
    return module, parameters


def _drive_init(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    from tinyllm.num.rng import PCG32

    rng = None if params["seed"] is None else PCG32(params["seed"])
    d, H = params["d_model"], params["n_heads"]
    options = {} if "defaults" in params else {"dropout": params["dropout"], "bias": params["bias"], "rng": rng}
    module = unit.MultiHeadAttention(d, H, **options)
    state = module.state_dict()
    places = [NAMES.index(name) if name in NAMES else len(NAMES) for name in state]
    result = {
        "names": np.array(places, dtype=np.int64),
        "sizes": np.array([module.d_model, module.n_heads, module.d_head], dtype=np.int64),
        "dropout": np.array(module.dropout, dtype=np.float64),
    }
    return result | {name: _plain(state[name]) for name in NAMES if name in state}


def _drive_split(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    return _drive_layout(lambda module, x: module.split_heads(x), unit, params, arrays)


def _drive_merge(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    return _drive_layout(lambda module, x: module.merge_heads(x), unit, params, arrays)


def _drive_layout(call: Callable[[Any, Any], Any], unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    module, _ = _module_of(unit, params, {})
    x = _tensor(arrays["x"], params["layout"])
    returned = call(module, x)
    result = {"returned": _plain(returned)}
    returned.backward(arrays["cotangent"].copy())
    return result | {"grad.x": _plain(x.grad), "after.x": _plain(x)}


def _drive_mask(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    module, _ = _module_of(unit, params, {})
    mask = arrays["mask"].copy() if "mask" in arrays else None
    B, Tq, Tk = params["B"], params["Tq"], params["Tk"]
    returned = module.head_mask(mask, B, Tq, Tk)
    result = {"is_none": np.array(returned is None)}
    if returned is not None:
        result["mask"] = _plain(np.broadcast_to(returned, (B, params["n_heads"], Tq, Tk)))
    if mask is not None:
        result["after.mask"] = _plain(mask)
    return result


def _drive_packed(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    module, parameters = _module_of(unit, params, arrays)
    weight = _laid_out(arrays["weight"], params["layout"])
    bias = _laid_out(arrays["bias"], params["layout"]) if "bias" in arrays else None
    outcome = 0
    try:
        if bias is None:
            module.load_packed_in_proj(weight)
        else:
            module.load_packed_in_proj(weight, bias)
    except Exception as error:
        outcome = _outcome(error)
    weight[...] = 0  # a module that kept a view now holds zeros
    if bias is not None:
        bias[...] = 0
    result = {name: _plain(parameter) for name, parameter in parameters.items() if name in NAMES}
    return result | {"outcome": np.array(outcome, dtype=np.int64)}


def _drive_attend(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    layout = params["layout"]
    module, parameters = _module_of(unit, params, arrays, layout)
    inputs = {name: _tensor(arrays[name], layout) for name in ("x_q", "x_kv") if name in arrays}
    mask = _laid_out(arrays["mask"], layout) if "mask" in arrays else None
    x_q, x_kv = inputs["x_q"], inputs.get("x_kv", inputs["x_q"])
    result: Arrays = {}
    for i, (mode, method) in enumerate(params["calls"]):
        module.train() if mode == "train" else module.eval()
        if method == "attend":
            out, weights = module.attend(x_q, x_kv, mask)
            result[f"weights.{i}"] = _plain(weights)
        else:
            out = module.forward(x_q, x_kv, mask)
        result[f"out.{i}"] = _plain(out)
        out.backward(arrays[f"cotangent.{i}"].copy())
    tensors = inputs | {name: parameters[name] for name in NAMES if name in parameters}
    for name, tensor in tensors.items():
        if tensor.grad is not None:
            result[f"grad.{name}"] = _plain(tensor.grad)
        result[f"after.{name}"] = _plain(tensor)
    if mask is not None:
        result["after.mask"] = _plain(mask)
    return result


def _drive_refused(unit: ModuleType, params: Params, arrays: Arrays) -> Arrays:
    module = unit.MultiHeadAttention(**params["module"])
    call, mask = params["call"], arrays.get("mask")
    tensors = [_tensor(arrays[name]) for name in ("x_q", "x_kv", "x") if name in arrays]
    if call in ("attend", "forward"):
        getattr(module, call)(*tensors, *([] if mask is None else [mask.copy()]))
    elif call in ("split_heads", "merge_heads"):
        getattr(module, call)(*tensors)
    elif call == "head_mask" and mask is not None:
        module.head_mask(mask.copy(), *params["sizes"])
    return {}


EXPECTED: dict[str, Callable[[Params, Arrays], Expected]] = {
    "init": _expected_init,
    "split": _expected_split,
    "merge": _expected_merge,
    "head_mask": _expected_mask,
    "packed": _expected_packed,
    "attend": _expected_attend,
    "refused": _expected_refused,
}
DRIVERS: dict[str, Callable[[ModuleType, Params, Arrays], Arrays]] = {
    "init": _drive_init,
    "split": _drive_split,
    "merge": _drive_merge,
    "head_mask": _drive_mask,
    "packed": _drive_packed,
    "attend": _drive_attend,
    "refused": _drive_refused,
}

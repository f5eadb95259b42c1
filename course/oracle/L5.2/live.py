"""A seed comes in; fresh random cases of unit L5.2 leave, and what a correct masks.py and a student's give for each.

    cases(seed)        trusted process    what to try: sizes, offsets, windows, lengths, masks
    expected(case)     trusted process    what a correct unit returns for it, made by torch without comparing positions
    drive(unit, case)  in the sandbox     what this unit returns for it, beside a student's code

A case is {id, kind, says, params, arrays}: `params` is JSON, `arrays` maps names to arrays, `says` describes the case
in a student's words. It holds no expected value, nor anything made from one. `drive` returns arrays by name: the mask
of one call, that of an equal call after the first was written into, and the arguments as they are afterwards.
`expected` has for each of these names {array, rtol, atol, scaled, says, optional, values}, as grader/comparator.py
reads them. An additive mask is returned as where it is 0, where it is -inf, and its dtype: only finite numbers are
compared.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
Params = dict[str, Any]
Case = dict[str, Any]
Expected = dict[str, dict[str, Any]]

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
DTYPES = ("bool", "int64", "float16", "float32", "float64")
"""of results; every other dtype is told as one more"""


def cases(seed: int) -> list[Case]:
    """The cases of a seed: always the same kinds in the same order, with other sizes and numbers."""
    draw = np.random.default_rng(seed)
    made = [*_causal(draw), *_window(draw), *_padding(draw), *_combine(draw), *_additive(draw), *_refused(draw)]
    return [{"id": f"{number:02}"} | case for number, case in enumerate(made, 1)]


def expected(case: Case) -> Expected:
    """What a correct unit returns for a case; everything is compared exactly."""
    if case["kind"] == "refused":
        return {"outcome": _outcome_is("ValueError")}
    mask = RIGHT[case["kind"]](case["params"], case["arrays"])
    result = {"outcome": _outcome_is("no error")}
    for call, says in (("first", "the result"), ("again", "the result of a second equal call")):
        if case["kind"] == "additive":
            dtype = case["params"]["dtype"] or "float32"
            result[f"{call}.zero"] = _exactly(mask, f"where {says} is 0")
            result[f"{call}.hidden"] = _exactly(~mask, f"where {says} is -inf")
            code = np.array(DTYPES.index(dtype), dtype=np.int64)
            result[f"{call}.dtype"] = _exactly(code, f"the dtype of {says}", (*DTYPES, "another dtype"))
        else:
            result[call] = _exactly(mask, says)
    for name, array in case["arrays"].items():
        result[f"after.{name}"] = _exactly(array, f"{name} after the calls")
    return result


def drive(unit: ModuleType, case: Case) -> Arrays:
    """What this unit returns for a case, as arrays of DTYPES; never changes the case's arrays.

    An exception becomes the outcome, and what else was returned is lost; SystemExit and KeyboardInterrupt pass through.
    """
    outcome = 0
    returned: Arrays = {}
    try:
        returned = _returned(unit, case["kind"], case["params"], case["arrays"])
    except Exception as error:
        outcome = _outcome(error)
    return {"outcome": np.array(outcome, dtype=np.int64)} | returned


# --- cases ---------------------------------------------------------------------------------------------------------


def _case(kind: str, says: str, params: Params, arrays: Arrays | None = None) -> Case:
    return {"kind": kind, "says": says, "params": params, "arrays": arrays or {}}


def _between(draw: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(draw.integers(low, high + 1))


def _causal(draw: np.random.Generator) -> Iterator[Case]:
    """As many keys as queries by default and by number, more keys, fewer keys, and new queries behind old keys."""
    for default, q_offset in ((True, 0), (True, _between(draw, 1, 3)), (False, 0)):
        T = _between(draw, 2, 9)
        yield _causal_case({"Tq": T, "Tk": None if default else T, "q_offset": q_offset})
    for _ in range(2):
        Tq, Tk = _between(draw, 2, 5), _between(draw, 6, 9)
        yield _causal_case({"Tq": Tq, "Tk": Tk, "q_offset": 0})
        yield _causal_case({"Tq": Tk, "Tk": Tq, "q_offset": _between(draw, 0, 2)})
        yield _causal_case({"Tq": Tq, "Tk": Tk, "q_offset": Tk - Tq})
        yield _causal_case({"Tq": Tq, "Tk": Tk, "q_offset": _between(draw, 1, Tk)})
    yield _causal_case({"Tq": 1, "Tk": 1, "q_offset": 0})


def _causal_case(params: Params) -> Case:
    keys = "" if params["Tk"] is None else f", Tk {params['Tk']}"
    return _case("causal", f"causal_mask of Tq {params['Tq']}{keys}, q_offset {params['q_offset']}", params)


def _window(draw: np.random.Generator) -> Iterator[Case]:
    """Windows of one, of a few and of more keys than there are, at the first key and behind others."""
    for window in (1, 2, _between(draw, 3, 4), _between(draw, 20, 30)):
        for moved in (False, True):
            Tq, Tk = _between(draw, 5, 7), _between(draw, 8, 11)
            params = {"Tq": Tq, "Tk": Tk, "window": window, "q_offset": _between(draw, 1, Tk - Tq) if moved else 0}
            said = f"Tq {Tq}, Tk {Tk}, window {window}, q_offset {params['q_offset']}"
            yield _case("window", f"sliding_window_mask of {said}", params)


def _padding(draw: np.random.Generator) -> Iterator[Case]:
    """Lengths that differ, with 0 and T among them, and one sequence alone."""
    for B in (1, 2, 3, 5):
        T = _between(draw, 4, 9)
        lengths = draw.integers(1, T, B)
        if B > 2:
            lengths[:2] = draw.permutation([0, T])
        yield _case("padding", f"padding_mask of lengths {lengths.tolist()}, T {T}", {"T": T}, {"lengths": lengths})


def _combine(draw: np.random.Generator) -> Iterator[Case]:
    """Masks of one shape, of shapes that broadcast, and one alone."""
    B, T = 2 + _between(draw, 0, 1), 4 + _between(draw, 0, 1)
    square, batch = (T, T), (B, 1, T)
    shapes: list[list[tuple[int, ...]]] = [
        [square],
        [square, square],
        [square, batch],
        [batch, square],
        [square, (T,)],
        [(B, 1, 1, T), square, (B, 1, T, T)],
        [square, square, square],
    ]
    for chosen in shapes:
        masks = {f"mask{number}": draw.random(shape) < 0.7 for number, shape in enumerate(chosen)}
        yield _case("combine", f"combine of masks of shapes {', '.join(str(list(s)) for s in chosen)}", {}, masks)


def _additive(draw: np.random.Generator) -> Iterator[Case]:
    """Every dtype and the default, with a query that may attend nothing."""
    for dtype in (None, "float16", "float32", "float64"):
        mask = draw.random((_between(draw, 1, 3), _between(draw, 2, 4), _between(draw, 2, 5))) < 0.6
        mask[0, 0], mask[0, 1] = False, True
        said = "" if dtype is None else f" in {dtype}"
        yield _case(
            "additive", f"to_additive of a mask of shape {list(mask.shape)}{said}", {"dtype": dtype}, {"mask": mask}
        )


def _refused(draw: np.random.Generator) -> Iterator[Case]:
    n, low = _between(draw, 2, 5), -_between(draw, 1, 4)
    for of, params in (
        ("causal", {"Tq": 0, "Tk": None, "q_offset": 0}),
        ("causal", {"Tq": low, "Tk": n, "q_offset": 0}),
        ("causal", {"Tq": n, "Tk": 0, "q_offset": 0}),
        ("causal", {"Tq": n, "Tk": n, "q_offset": low}),
        ("window", {"Tq": n, "Tk": 0, "window": 1, "q_offset": 0}),
        ("window", {"Tq": n, "Tk": n, "window": 0, "q_offset": 0}),
        ("window", {"Tq": n, "Tk": n, "window": low, "q_offset": 0}),
        ("window", {"Tq": n, "Tk": n, "window": 1, "q_offset": low}),
    ):
        said = ", ".join(f"{name} {value}" for name, value in params.items() if value is not None)
        yield _case("refused", f"a {of} mask of {said}", {"of": of} | params)
    for T, lengths in ((0, [0]), (n, [1, n + 1]), (n, [n, low]), (n, [[1, 2]])):
        arrays = {"lengths": np.array(lengths)}
        yield _case("refused", f"padding_mask of lengths {lengths}, T {T}", {"of": "padding", "T": T}, arrays)
    true = np.ones((n, n), dtype=bool)
    for dtype in ("int64", "float32"):
        number = np.ones((n, n), dtype=dtype)
        for says, masks in (("first", [number, true]), ("last", [true, number]), ("alone", [number])):
            arrays = {f"mask{place}": mask for place, mask in enumerate(masks)}
            yield _case("refused", f"combine with a mask of {dtype}, {says}", {"of": "combine"}, arrays)
        yield _case("refused", f"to_additive of {dtype}", {"of": "additive", "dtype": None}, {"mask": number})
    wide = {"mask0": true, "mask1": np.ones((n, n + 1), dtype=bool)}
    yield _case("refused", "combine of masks that do not broadcast", {"of": "combine"}, wide)


# --- what a correct unit returns, in the trusted process -------------------------------------------------------------


def _exactly(array: Array, says: str, values: Sequence[str] = ()) -> dict[str, Any]:
    return {"array": array, "rtol": 0.0, "atol": 0.0, "scaled": False, "says": says, "optional": False} | {
        "values": list(values)
    }


def _outcome_is(name: str) -> dict[str, Any]:
    return _exactly(np.array(OUTCOMES.index(name), dtype=np.int64), "what the call ends with", OUTCOMES)


def _right_causal(params: Params, arrays: Arrays) -> Array:
    return _band(params["Tq"], params["Tq"] if params["Tk"] is None else params["Tk"], params["q_offset"])


def _right_window(params: Params, arrays: Arrays) -> Array:
    q_offset = params["q_offset"]
    return _band(params["Tq"], params["Tk"], q_offset, q_offset - params["window"] + 1)


def _band(Tq: int, Tk: int, last: int, first: int | None = None) -> Array:
    """True from diagonal `first` to diagonal `last`, by torch's triangles."""
    import torch

    ones = torch.ones(Tq, Tk, dtype=torch.bool).tril(last)
    mask: Array = (ones if first is None else ones.triu(first)).numpy()
    return mask


def _right_padding(params: Params, arrays: Arrays) -> Array:
    mask = np.zeros((len(arrays["lengths"]), params["T"]), dtype=bool)
    for row, length in zip(mask, arrays["lengths"], strict=True):
        row[:length] = True
    return mask


def _right_combine(params: Params, arrays: Arrays) -> Array:
    return np.array(np.min(np.broadcast_arrays(*arrays.values()), axis=0))


def _right_additive(params: Params, arrays: Arrays) -> Array:
    return arrays["mask"]


RIGHT = {
    "causal": _right_causal,
    "window": _right_window,
    "padding": _right_padding,
    "combine": _right_combine,
    "additive": _right_additive,
}


# --- what this unit returns, in the sandbox ---------------------------------------------------------------------------


def _returned(unit: ModuleType, kind: str, params: Params, arrays: Arrays) -> Arrays:
    given = {name: array.copy() for name, array in arrays.items()}
    of = params.get("of", kind)
    first = _call(unit, of, params, given)
    returned = _told(of, "first", first)
    first[...] = 1
    returned |= _told(of, "again", _call(unit, of, params, given))
    return returned | {f"after.{name}": array for name, array in given.items()}


def _call(unit: ModuleType, of: str, params: Params, given: Arrays) -> Any:
    if of == "causal":
        sizes = (params["Tq"],) if params["Tk"] is None else (params["Tq"], params["Tk"])
        return unit.causal_mask(*sizes, q_offset=params["q_offset"])
    if of == "window":
        return unit.sliding_window_mask(params["Tq"], params["Tk"], params["window"], q_offset=params["q_offset"])
    if of == "padding":
        return unit.padding_mask(given["lengths"], params["T"])
    if of == "combine":
        return unit.combine(*given.values())
    return (
        unit.to_additive(given["mask"]) if params["dtype"] is None else unit.to_additive(given["mask"], params["dtype"])
    )


def _told(of: str, call: str, result: Any) -> Arrays:
    """A copy of what a call returned; of an additive mask, where it is what."""
    if type(result) is not np.ndarray:
        raise TypeError(f"an array was expected, not {type(result).__name__}")
    if of != "additive":
        return {call: np.array(result, order="C")}
    names = [name for name in DTYPES if result.dtype == name]
    code = DTYPES.index(names[0]) if names else len(DTYPES)
    return {
        f"{call}.zero": np.array(result == 0, order="C"),
        f"{call}.hidden": np.array(result == -np.inf, order="C"),
        f"{call}.dtype": np.array(code, dtype=np.int64),
    }


def _outcome(error: Exception) -> int:
    """The place in OUTCOMES of an exception: its own class, else the nearest of its bases."""
    names = [base.__name__ for base in type(error).__mro__]
    return next((OUTCOMES.index(name) for name in names if name in OUTCOMES), len(OUTCOMES) - 1)

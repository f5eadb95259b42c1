"""A path comes in; the golden fixture of unit 2.3, computed head by head in float64, is written there.

`closed` is the closed-book case: two sequences of three positions, eight features, two heads, with a cotangent and the
gradients of sum(out * cotangent). Its numbers have two decimals, so that it can be typed. `snapshot` is larger and
float32, with the output alone.

    python course/oracle/2.3/mha_torch.py course/fixtures/2.3/mha_torch.npz
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

SEED = 2_3
CLOSED, CLOSED_HEADS = (2, 3, 8), 2
SNAPSHOT, SNAPSHOT_HEADS = (3, 10, 48), 4
WEIGHTS = ("q_proj_weight", "k_proj_weight", "v_proj_weight", "o_proj_weight")

Array = NDArray[Any]
Arrays = dict[str, Array]


def make_fixture() -> Arrays:
    """All arrays of the fixture by name, `closed.…` and `snapshot.…`."""
    draw = np.random.default_rng(SEED)
    closed = {name: array.round(2) for name, array in drawn(draw, CLOSED).items()}
    closed["cotangent"] = draw.uniform(-1, 1, CLOSED).round(2)
    closed |= out_and_gradients(closed, CLOSED_HEADS)
    snapshot = {name: array.astype("float32") for name, array in drawn(draw, SNAPSHOT).items()}
    wide = {name: array.astype("float64") for name, array in snapshot.items()}
    wide["cotangent"] = np.ones(SNAPSHOT)
    snapshot["out"] = out_and_gradients(wide, SNAPSHOT_HEADS)["out"].astype("float32")
    cases = {"closed": closed, "snapshot": snapshot}
    return {f"{case}.{name}": array for case, arrays in cases.items() for name, array in arrays.items()}


def drawn(draw: np.random.Generator, shape: tuple[int, ...]) -> Arrays:
    """Inputs of about unit size, and weights that keep it."""
    D = shape[-1]
    limit = (3 / D) ** 0.5
    made = {"in_features": draw.uniform(-1.7, 1.7, shape)}
    return made | {name: draw.uniform(-limit, limit, (D, D)) for name in WEIGHTS}


def out_and_gradients(arrays: Arrays, num_heads: int) -> Arrays:
    """Head by head: weights of a row's past by the formula, the heads side by side, and autograd for the gradients."""
    leaves = {name: torch.tensor(arrays[name], requires_grad=True) for name in ("in_features", *WEIGHTS)}
    x, wq, wk, wv, wo = leaves.values()
    T, d = x.shape[-2], x.shape[-1] // num_heads
    past = torch.ones(T, T, dtype=torch.float64).tril()
    heads = []
    for h in range(num_heads):
        rows = slice(h * d, (h + 1) * d)
        q, k, v = (x @ weight[rows].T for weight in (wq, wk, wv))  # [B, T, d]
        powers = torch.exp(torch.einsum("bid,bjd->bij", q, k) * d**-0.5) * past  # [B, T, T]
        heads.append((powers / powers.sum(-1, keepdim=True)) @ v)
    out = torch.cat(heads, dim=-1) @ wo.T  # [B, T, D]
    (out * torch.tensor(arrays["cotangent"])).sum().backward()
    found = {"out": out.detach().numpy().copy()}
    for name, leaf in leaves.items():
        assert leaf.grad is not None
        found[f"grad.{name}"] = leaf.grad.numpy().copy()
    return found


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    np.savez(target, allow_pickle=False, **make_fixture())

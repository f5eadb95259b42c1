"""A path comes in; the golden fixture of unit L5.3, computed by torch's nn.MultiheadAttention, is written there.

Two cases in float64 with distinct sizes, `self` (causal and padding) and `cross` (padding); each holds inputs, the
eight parameters under the names of our state_dict, a random cotangent, the output, the weights of every head, and
the gradients of sum(out * cotangent) with respect to all of them.

    python course/oracle/L5.3/mha_torch.py course/fixtures/L5.3/mha_torch.npz
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

SEED = 5_3
D_MODEL, N_HEADS = 12, 3
SELF_LENGTHS = (5, 3)  # of two sequences padded to 5
CROSS_LENGTHS = (6, 2)  # of two key sequences padded to 6, read by 4 queries
PROJECTIONS = ("q_proj", "k_proj", "v_proj")

Arrays = dict[str, NDArray[Any]]


def make_fixture() -> Arrays:
    """All arrays of the fixture by name, `self.…` and `cross.…`."""
    draw = np.random.default_rng(SEED)
    causal = np.tril(np.ones((5, 5), dtype=bool))
    x = draw.standard_normal((2, 5, D_MODEL))
    cases = {
        "self": attend(draw, x, x, causal[None] & keep(SELF_LENGTHS, 5)),
        "cross": attend(
            draw,
            draw.standard_normal((2, 4, D_MODEL)),
            draw.standard_normal((2, 6, D_MODEL)),
            np.broadcast_to(keep(CROSS_LENGTHS, 6), (2, 4, 6)),
        ),
    }
    return {f"{case}.{name}": array for case, arrays in cases.items() for name, array in arrays.items()}


def keep(lengths: tuple[int, ...], T: int) -> NDArray[np.bool_]:
    """[B, 1, T]: True for the keys that are not padding."""
    return (np.arange(T) < np.array(lengths)[:, None])[:, None, :]


def attend(draw: np.random.Generator, x_q: NDArray[Any], x_kv: NDArray[Any], mask: NDArray[Any]) -> Arrays:
    """One case: mask [B, Tq, Tk], True = may attend. With x_q is x_kv, the gradient of x_q is that of both roles."""
    module = torch.nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True, dtype=torch.float64)
    weight = torch.tensor(draw.standard_normal((3 * D_MODEL, D_MODEL)) * D_MODEL**-0.5)
    bias = torch.tensor(draw.standard_normal(3 * D_MODEL) * 0.5)
    with torch.no_grad():
        module.in_proj_weight.copy_(weight)
        module.in_proj_bias.copy_(bias)
        module.out_proj.weight.copy_(torch.tensor(draw.standard_normal((D_MODEL, D_MODEL)) * D_MODEL**-0.5))
        module.out_proj.bias.copy_(torch.tensor(draw.standard_normal(D_MODEL) * 0.5))
    queries = torch.tensor(x_q, requires_grad=True)
    keys = queries if x_kv is x_q else torch.tensor(x_kv, requires_grad=True)
    forbidden = torch.tensor(np.repeat(~mask, N_HEADS, axis=0))  # torch wants [B * H, Tq, Tk], True = may not
    out, weights = module(queries, keys, keys, attn_mask=forbidden, need_weights=True, average_attn_weights=False)
    cotangent = torch.tensor(draw.standard_normal(tuple(out.shape)))
    (out * cotangent).sum().backward()
    arrays = {
        "x_q": x_q,
        "x_kv": x_kv,
        "mask": np.ascontiguousarray(mask),
        "cotangent": array(cotangent),
        "out": array(out),
        "weights": array(weights),
        "grad.x_q": array(queries.grad),
        "grad.x_kv": array(keys.grad),
    }
    return arrays | parameters(module)


def parameters(module: torch.nn.MultiheadAttention) -> Arrays:
    """The parameters and their gradients under our names; torch packs the rows of q, k and v."""
    arrays: Arrays = {}
    packed: dict[str, torch.Tensor] = {"weight": module.in_proj_weight, "bias": module.in_proj_bias}
    out: dict[str, torch.Tensor] = {"weight": module.out_proj.weight, "bias": module.out_proj.bias}
    for kind, tensor in packed.items():
        for i, name in enumerate(PROJECTIONS):
            rows = slice(i * D_MODEL, (i + 1) * D_MODEL)
            arrays[f"{name}.{kind}"] = array(tensor)[rows].copy()
            arrays[f"grad.{name}.{kind}"] = array(tensor.grad)[rows].copy()
    for kind, tensor in out.items():
        arrays[f"out_proj.{kind}"] = array(tensor)
        arrays[f"grad.out_proj.{kind}"] = array(tensor.grad)
    return arrays


def array(tensor: torch.Tensor | None) -> NDArray[Any]:
    assert tensor is not None
    result: NDArray[Any] = tensor.detach().numpy().copy()
    return result


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    np.savez(target, allow_pickle=False, **make_fixture())

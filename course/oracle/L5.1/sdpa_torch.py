"""A path comes in; the golden fixture of unit L5.1, computed by torch's scaled_dot_product_attention, is written there.

Four cases in float64 with distinct sizes: `plain` (three heads of two sequences, no mask), `causal` (a [Tq, Tk] mask),
`padding` (a [B, 1, 1, Tk] mask, a scale that is given) and `flat` (no leading axes). Each holds q, k, v, the mask and
the scale where there are any, a random cotangent, the output, the weights, and the gradients of sum(out * cotangent).

    python course/oracle/L5.1/sdpa_torch.py course/fixtures/L5.1/sdpa_torch.npz
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

SEED = 5_1
CAUSAL = np.tril(np.ones((5, 5), dtype=bool))
PADDING = (np.arange(6) < np.array([6, 2])[:, None])[:, None, None, :]  # [B, 1, 1, Tk]: two sequences padded to 6

Arrays = dict[str, NDArray[Any]]


def make_fixture() -> Arrays:
    """All arrays of the fixture by name, `plain.…`, `causal.…`, `padding.…` and `flat.…`."""
    draw = np.random.default_rng(SEED)
    cases = {
        "plain": attend(draw, (2, 3), Tq=4, Tk=5, d=6, dv=2),
        "causal": attend(draw, (2,), Tq=5, Tk=5, d=3, dv=4, mask=CAUSAL),
        "padding": attend(draw, (2, 2), Tq=3, Tk=6, d=4, dv=5, mask=PADDING, scale=0.3),
        "flat": attend(draw, (), Tq=2, Tk=3, d=5, dv=4),
    }
    return {f"{case}.{name}": array for case, arrays in cases.items() for name, array in arrays.items()}


def attend(
    draw: np.random.Generator,
    leading: tuple[int, ...],
    *,
    Tq: int,
    Tk: int,
    d: int,
    dv: int,
    mask: NDArray[Any] | None = None,
    scale: float | None = None,
) -> Arrays:
    """One case: q [..., Tq, d], k [..., Tk, d], v [..., Tk, dv], mask True = may attend."""
    q, k, v = (
        torch.tensor(draw.standard_normal((*leading, *shape)), requires_grad=True)
        for shape in ((Tq, d), (Tk, d), (Tk, dv))
    )
    allowed = None if mask is None else torch.from_numpy(mask)

    def attention(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, values, attn_mask=allowed, scale=scale)

    out = attention(v)
    # torch does not return the weights: they are what it makes of the identity as values.
    weights = attention(torch.eye(Tk, dtype=torch.float64).expand(*leading, Tk, Tk))
    cotangent = torch.tensor(draw.standard_normal((*leading, Tq, dv)))
    gradients = torch.autograd.grad((out * cotangent).sum(), (q, k, v))
    tensors = {"q": q, "k": k, "v": v, "cotangent": cotangent, "out": out, "weights": weights}
    tensors |= {f"grad.{name}": gradient for name, gradient in zip("qkv", gradients, strict=True)}
    arrays: Arrays = {name: tensor.detach().numpy().copy() for name, tensor in tensors.items()}
    if mask is not None:
        arrays["mask"] = mask.copy()
    if scale is not None:
        arrays["scale"] = np.array(scale)
    return arrays


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    np.savez(target, allow_pickle=False, **make_fixture())

"""A path comes in; the golden fixture of unit L5.2, masks and weights made by torch, is written there.

Masks are torch.tril and torch.triu of ones, so that no line of them is a comparison of positions. `decoder` is what a
decoder sees of a padded batch, with the weights that torch's attention gives under it; `window` is a window behind
keys that are cached already, and its weights. Every query has a key: torch gives NaN for one without.

    python course/oracle/L5.2/masks_torch.py course/fixtures/L5.2/masks_torch.npz
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

SEED = 5_2
LENGTHS, T = (5, 3, 1), 5
TQ, TK, OFFSET, WINDOW = 3, 7, 4, 3  # three new queries behind four cached keys
WIDTH = 4

Arrays = dict[str, NDArray[Any]]


def make_fixture() -> Arrays:
    """All arrays of the fixture by name, `decoder.…` and `window.…`: the masks, their parts, scores and weights."""
    draw = np.random.default_rng(SEED)
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    padding = torch.zeros(len(LENGTHS), T, dtype=torch.bool)
    for sequence, length in enumerate(LENGTHS):
        padding[sequence, :length] = True
    decoder = causal & padding[:, None, :]  # [B, T, T]
    window = torch.ones(TQ, TK, dtype=torch.bool).tril(OFFSET).triu(OFFSET - WINDOW + 1)
    arrays = {
        "decoder.lengths": np.array(LENGTHS),
        "decoder.causal": causal.numpy(),
        "decoder.padding": padding.numpy(),
        "decoder.mask": decoder.numpy(),
        "window.mask": window.numpy(),
    }
    return arrays | attention(draw, "decoder", decoder) | attention(draw, "window", window)


def attention(draw: np.random.Generator, case: str, mask: torch.Tensor) -> Arrays:
    """Random scores under a mask, and the weights of torch's attention: the values are the identity."""
    *leading, queries, keys = mask.shape
    q, k = (torch.from_numpy(draw.standard_normal((*leading, n, WIDTH))) for n in (queries, keys))
    identity = torch.eye(keys, dtype=torch.float64).expand(*leading, keys, keys)
    weights = torch.nn.functional.scaled_dot_product_attention(q, k, identity, attn_mask=mask)
    scores = q @ k.transpose(-2, -1) / WIDTH**0.5
    return {f"{case}.scores": scores.numpy(), f"{case}.weights": weights.numpy()}


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **make_fixture())

"""Two sequences go in, one asking and one answering; what each position read, head by head, comes out."""

from typing import Any

from numpy.typing import NDArray

from tinyllm.autograd.tensor import Tensor
from tinyllm.nn.layers import Linear
from tinyllm.nn.module import Module

class MultiHeadAttention(Module):
    """Attention in `n_heads` slices of the features, each d_head = d_model / n_heads wide.

    All four projections are Linear(d_model, d_model, bias), drawn in the order q, k, v, out from one `rng`; without
    one from PCG32(0).substream("init"). state_dict keys: q_proj.weight, q_proj.bias, then k_proj, v_proj, out_proj.
    In training mode the weights are dropped at rate `dropout`, from one PCG32(0).substream("dropout") per module that
    goes on from call to call. Raises ValueError for sizes below 1, heads that do not divide d_model, and dropout
    outside [0, 1).
    """

    d_model: int
    n_heads: int
    d_head: int
    dropout: float
    q_proj: Linear
    k_proj: Linear
    v_proj: Linear
    out_proj: Linear

    def __init__(
        self, d_model: int, n_heads: int, dropout: float = 0.0, bias: bool = True, rng: Any = None
    ) -> None: ...
    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, d] -> [B, H, T, dh]; head h holds the features from h * dh on. ValueError for another shape."""

    def merge_heads(self, x: Tensor) -> Tensor:
        """[B, H, T, dh] -> [B, T, d], the inverse of split_heads. ValueError for another shape."""

    def head_mask(self, mask: NDArray[Any] | None, B: int, Tq: int, Tk: int) -> NDArray[Any] | None:
        """A mask that broadcasts to [B, H, Tq, Tk] as it is meant, or None for None.

        Takes [Tq, Tk], [B, Tq, Tk] and four axes that broadcast. ValueError for a mask that is not bool, has one
        axis or more than four, or does not broadcast.
        """

    def attend(self, x_q: Tensor, x_kv: Tensor, mask: NDArray[Any] | None = None) -> tuple[Tensor, Tensor]:
        """x_q [B, Tq, d] reads from x_kv [B, Tk, d]: the output [B, Tq, d] and the weights [B, H, Tq, Tk].

        The weights are those before dropout. ValueError for inputs that do not have three axes, batch sizes that
        differ, a width other than d_model, or a mask that head_mask refuses.
        """

    def forward(self, x_q: Tensor, x_kv: Tensor, mask: NDArray[Any] | None = None) -> Tensor:
        """The output of `attend` [B, Tq, d]."""

    def load_packed_in_proj(self, weight: NDArray[Any], bias: NDArray[Any] | None = None) -> None:
        """Copy torch's in_proj_weight [3d, d] and in_proj_bias [3d], rows q, then k, then v, into the projections.

        Without `bias` the biases stay as they are. ValueError, with nothing copied, for another shape or for a bias
        when the module was built with bias=False.
        """

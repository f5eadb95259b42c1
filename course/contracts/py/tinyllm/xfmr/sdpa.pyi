"""Queries, keys and values of one or many heads go in; mixed values and the weights used come out.

Shapes throughout: q [..., Tq, d], k [..., Tk, d], v [..., Tk, dv], weights p [..., Tq, Tk], with equal leading sizes;
mask is bool, True = may attend, and broadcasts to p. `scale` defaults to 1 / sqrt(d). Results have the dtype of q, k
and v, whatever kind of number the scale is. No argument is written into.
"""

from typing import Any

from numpy.typing import NDArray

from tinyllm.autograd.tensor import Tensor

def sdpa_forward(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    mask: NDArray[Any] | None = None,
    scale: float | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """softmax(q k^T scale) v and the weights, on arrays; a query that may attend to no key gets zeros.

    Raises ValueError for shapes that disagree, a mask that is not bool or does not broadcast, and a scale that is not
    finite and positive.
    """

def sdpa_backward(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    p: NDArray[Any],
    dout: NDArray[Any],
    scale: float | None = None,
    dropout_mult: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The gradients of q, k and v for the gradient `dout` of the output; `dropout_mult` is what p was multiplied by."""

def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: NDArray[Any] | None = None,
    dropout_p: float = 0.0,
    scale: float | None = None,
    rng: Any = None,
) -> tuple[Tensor, Tensor]:
    """The same as one node of the graph: (output, weights before dropout, a constant).

    With dropout_p above 0 draws rng.uniforms(p.size) in C order, keeps a weight where its draw is at least dropout_p,
    and multiplies it by 1 / (1 - dropout_p); with 1 all are 0, with 0 nothing is drawn. Raises ValueError for shapes
    that disagree, a mask that is not bool or does not broadcast, a scale that is not finite and positive, dropout_p
    outside [0, 1], and dropout without an rng.
    """

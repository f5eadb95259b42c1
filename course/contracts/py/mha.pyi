"""A sequence and four projection weights go in; what every position read from itself and those before it comes out."""

from torch import Tensor

def run_multihead_self_attention(
    d_model: int,
    num_heads: int,
    q_proj_weight: Tensor,
    k_proj_weight: Tensor,
    v_proj_weight: Tensor,
    o_proj_weight: Tensor,
    in_features: Tensor,
) -> Tensor:
    """Causal multi-head self-attention of in_features [..., T, d_model], in its shape and dtype.

    The weights are [d_model, d_model] in torch's layout, rows for outputs and columns for inputs, and there is no bias.
    Head h has the features from h * d on of queries, keys and values, d = d_model / num_heads, and divides its scores
    by sqrt(d). Position t reads from the positions 0 to t of its own sequence; any number of axes, none among them,
    stands before T. No dropout, no positions, no rotation: equal calls give equal results. Everything is computed in
    the dtype of in_features, which all weights have too, and autograd gives the gradients of in_features and of all
    four weights. No argument is changed. What happens when num_heads does not divide d_model is open.
    """

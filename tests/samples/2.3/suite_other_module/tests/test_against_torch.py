import torch
from mha import run_multihead_self_attention


def test_same_as_torchs_module():
    torch.manual_seed(0)
    module = torch.nn.MultiheadAttention(12, 3, bias=False, batch_first=True).double().eval()
    torch.manual_seed(0)
    weights = [torch.nn.Linear(12, 12, bias=False).double().weight for _ in range(4)]
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    expected, _ = module(x, x, x, attn_mask=mask)
    out = run_multihead_self_attention(12, 3, *weights, x)
    torch.testing.assert_close(out, expected)


def test_shape():
    weights = [torch.randn(12, 12) for _ in range(4)]
    assert run_multihead_self_attention(12, 3, *weights, torch.randn(2, 5, 12)).shape == (2, 5, 12)

"""In classes, with finite differences instead of a second implementation's gradients."""

import unittest

import torch
from mha import run_multihead_self_attention as mha


def tensors(B, T, D):
    torch.manual_seed(B * 100 + T * 10 + D)
    return [torch.randn(D, D).double() * 0.5 for _ in range(4)], torch.randn(B, T, D).double()


class Numbers(unittest.TestCase):
    def compare(self, B, T, D, H):
        (wq, wk, wv, wo), x = tensors(B, T, D)
        out = mha(D, H, wq, wk, wv, wo, x)
        self.assertEqual(out.dtype, torch.float64)
        d = D // H
        for b in range(B):
            for t in range(T):
                parts = []
                for h in range(H):
                    rows = slice(h * d, h * d + d)
                    q, k, v = wq[rows] @ x[b, t], x[b, : t + 1] @ wk[rows].T, x[b, : t + 1] @ wv[rows].T
                    parts.append(torch.softmax(k @ q / d**0.5, 0) @ v)
                self.assertTrue(torch.allclose(out[b, t], wo @ torch.cat(parts), atol=1e-8, rtol=1e-6))

    def test_closed_book_case(self):
        self.compare(2, 3, 8, 2)

    def test_one_head(self):
        self.compare(2, 4, 6, 1)

    def test_many_heads(self):
        self.compare(3, 5, 12, 6)

    def test_one_sequence_without_batch(self):
        weights, x = tensors(2, 4, 6)
        self.assertTrue(torch.allclose(mha(6, 2, *weights, x[1]), mha(6, 2, *weights, x)[1]))

    def test_strided_input(self):
        weights, x = tensors(2, 4, 6)
        wide = torch.cat([x, x], -1)[..., :6]
        self.assertTrue(torch.allclose(mha(6, 3, *weights, wide), mha(6, 3, *weights, x)))


class Gradients(unittest.TestCase):
    def check(self, D, H):
        weights, x = tensors(1, 3, D)
        leaves = [t.requires_grad_() for t in (*weights, x)]
        self.assertTrue(torch.autograd.gradcheck(lambda *given: mha(D, H, *given), leaves, raise_exception=False))

    def test_one_head(self):
        self.check(3, 1)

    def test_two_heads(self):
        self.check(4, 2)


class Conduct(unittest.TestCase):
    def test_nothing_is_left_behind(self):
        weights, x = tensors(2, 5, 8)
        kept = [t.clone() for t in (*weights, x)]
        first, second = mha(8, 2, *weights, x), mha(8, 2, *weights, x)
        self.assertTrue(torch.equal(first, second))
        for now, then in zip((*weights, x), kept, strict=True):
            self.assertTrue(torch.equal(now, then))

import unittest

import numpy as np
from numpy.testing import assert_allclose

from tinyllm.autograd.tensor import Tensor
from tinyllm.num.gradcheck import numerical_grad
from tinyllm.num.rng import PCG32
from tinyllm.prob.rv import normal
from tinyllm.xfmr.mha import MultiHeadAttention

NAMES = ["q_proj", "k_proj", "v_proj", "out_proj"]


def T64(a, **kw):
    return Tensor(a, dtype=np.float64, **kw)


class Base(unittest.TestCase):
    d, H, B, Tq, Tk = 6, 2, 2, 3, 5

    def setUp(self):
        self.rng = np.random.default_rng(7)
        self.mha = self.module()
        self.xq = self.rng.normal(size=(self.B, self.Tq, self.d))
        self.xk = self.rng.normal(size=(self.B, self.Tk, self.d))

    def module(self, **options):
        m = MultiHeadAttention(self.d, self.H, **options)
        for name, p in m.named_parameters():
            p.data = self.rng.normal(size=p.shape)
        return m

    def oracle(self, m, xq, xk, mask=True, keep=1.0):
        W = m.state_dict()

        def lin(name, x):
            return np.einsum("btj,ij->bti", x, W[name + ".weight"]) + W.get(name + ".bias", 0)

        def split(x):
            return x.reshape(*x.shape[:2], self.H, -1)

        q, k, v = split(lin("q_proj", xq)), split(lin("k_proj", xk)), split(lin("v_proj", xk))
        s = np.einsum("bihc,bjhc->bhij", q, k) / np.sqrt(self.d // self.H)
        s = np.where(mask, s, -1e300)
        w = np.exp(s - s.max(-1, keepdims=True))
        w /= w.sum(-1, keepdims=True)
        o = np.einsum("bhij,bjhc->bihc", w * keep, v).reshape(xq.shape)
        return lin("out_proj", o), w

    def check(self, m, xq, xk, mask=None, meant=True, keep=1.0):
        out, w = m.attend(T64(xq), T64(xk), mask)
        want, want_w = self.oracle(m, xq, xk, meant, keep)
        assert_allclose(w.data, want_w, rtol=1e-8, atol=1e-10)
        assert_allclose(out.data, want, rtol=1e-8, atol=1e-10)
        if not (m.training and m.dropout):  # another call would draw on
            assert_allclose(m.forward(T64(xq), T64(xk), mask).data, want, rtol=1e-8, atol=1e-10)


class TestAttend(Base):
    def test_self(self):
        self.check(self.mha, self.xk, self.xk)

    def test_cross(self):
        self.check(self.mha, self.xq, self.xk)

    def test_cross_same_length(self):
        self.check(self.mha, self.xq, self.xk[:, :3])

    def test_no_bias(self):
        self.check(self.module(bias=False), self.xq, self.xk)

    def test_masks(self):
        m2 = self.rng.random((3, 5)) < 0.5
        m2[:, 2] = True
        m3 = np.stack([m2, ~m2])
        m3[:, :, 0] = True
        m4 = np.stack([m3, m3[::-1]])
        for mask, meant in [(m2, m2), (m3, m3[:, None]), (m4, m4)]:
            with self.subTest(ndim=mask.ndim):
                self.check(self.mha, self.xq, self.xk, mask, meant)


class TestDropout(Base):
    def test_eval(self):
        m = self.module(dropout=0.5)
        m.eval()
        self.check(m, self.xq, self.xk)

    def test_train(self):
        m = self.module(dropout=0.5)
        stream = PCG32(0).substream("dropout")
        for _ in range(2):
            keep = stream.uniforms(60).reshape(2, 2, 3, 5) >= 0.5
            self.check(m, self.xq, self.xk, keep=keep / 0.5)


class TestLayout(Base):
    def test_split_and_merge(self):
        x = np.arange(2.0 * 5 * 6).reshape(2, 5, 6)
        heads = self.mha.split_heads(T64(x))
        assert_allclose(heads.data[1, 1, 4], [57, 58, 59])
        assert_allclose(heads.data[0, 0, 3], [18, 19, 20])
        assert_allclose(self.mha.merge_heads(heads).data, x)


class TestParameters(Base):
    def test_names_and_values(self):
        for bias in (True, False):
            m = MultiHeadAttention(6, 2, bias=bias, rng=PCG32(3))
            g = PCG32(3)
            keys = [f"{n}.{kind}" for n in NAMES for kind in (["weight", "bias"] if bias else ["weight"])]
            self.assertEqual(list(m.state_dict()), keys)
            for n in NAMES:
                assert_allclose(m.state_dict()[n + ".weight"].ravel(), normal(g, 36) * 6**-0.5, rtol=1e-5, atol=1e-6)

    def test_load(self):
        w, b = self.rng.normal(size=(18, 6)), self.rng.normal(size=18)
        self.mha.load_packed_in_proj(w, b)
        self.mha.load_packed_in_proj(w)
        w2 = w.copy()
        w[:] = 0
        for i, n in enumerate(NAMES[:3]):
            assert_allclose(self.mha.state_dict()[n + ".weight"], w2[6 * i : 6 * i + 6])
            assert_allclose(self.mha.state_dict()[n + ".bias"], b[6 * i : 6 * i + 6])

    def test_bad_load_changes_nothing(self):
        before = self.mha.state_dict()
        with self.assertRaises(ValueError):
            self.mha.load_packed_in_proj(np.ones((18, 6)), np.ones(6))
        for n, v in self.mha.state_dict().items():
            assert_allclose(v, before[n])

    def test_gradients(self):
        xq, xk = self.xq[:1], self.xk[:1]
        a, b = T64(xq, requires_grad=True), T64(xk, requires_grad=True)
        c = self.rng.normal(size=xq.shape)
        self.mha(a, b).backward(c)

        def f(x, y):
            return float((self.mha(T64(x), T64(y)).data * c).sum())

        for got, want in zip([a.grad, b.grad], numerical_grad(f, [xq, xk]), strict=True):
            assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        for name, p in self.mha.named_parameters():
            if name != "k_proj.bias":
                self.assertGreater(np.abs(p.grad).max(), 0, name)


class TestErrors(Base):
    def test_sizes(self):
        for args in [(0, 1), (6, 0), (6, 4), (6, 2, 1.0), (6, 2, -0.5)]:
            with self.subTest(args=args), self.assertRaises(ValueError):
                MultiHeadAttention(*args)

    def test_masks(self):
        for mask in [np.ones((3, 5)), np.ones(5, bool), np.ones((5, 3), bool), np.ones((1, 1, 1, 3, 5), bool)]:
            self.assertRaises(ValueError, self.mha.attend, T64(self.xq), T64(self.xk), mask)

    def test_batches(self):
        self.assertRaises(ValueError, self.mha.attend, T64(self.xq[:1]), T64(self.xk))


if __name__ == "__main__":
    unittest.main()

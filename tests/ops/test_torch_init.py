#!/usr/bin/env python3
"""Initial values against torch.nn.init: equal where nothing is drawn, equally distributed where something is.

usage: test_torch_init.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import unittest

from engine import B, D, E, L, P, check, fn, ours, step_end, theirs
import torch
from torch.nn import init


class KaimingOptions(C.Structure):
    _fields_ = [("a", D), ("fan_out", B), ("nonlinearity", C.c_char_p)]


def of(name, *args):
    return fn("det_init_" + name, None, P, P, *args)


gain_of = fn("det_init_gain", D, C.c_char_p, D)
KAIMING = {n: of("kaiming_%s_of" % n, C.POINTER(KaimingOptions)) for n in ("uniform", "normal")}


class Initial(unittest.TestCase):
    def values(self, f, *shape_and_args):
        shape, args = shape_and_args[0], shape_and_args[1:]
        t = ours(torch.zeros(shape))
        f(E, t, *args)
        ret = theirs(t)
        step_end(E)
        return ret

    def equal(self, name, shape, their, *args, types=()):
        torch.testing.assert_close(self.values(of(name, *types), shape, *args), their(torch.empty(shape)))

    def alike(self, a, their, what):
        """Twenty quantiles of the two samples differ by little of their spread."""
        b = their(torch.empty(a.shape)).flatten()
        q = torch.linspace(0.025, 0.975, 20)
        spread = float(b.std())
        off = float((a.flatten().quantile(q) - b.quantile(q)).abs().max())
        self.assertLess(off, 0.06 * spread, what)
        self.assertLess(abs(float(a.std()) / spread - 1), 0.04, what)

    def test_without_draws(self):
        self.equal("ones", (3, 4), init.ones_)
        self.equal("zeros", (3,), init.zeros_)
        self.equal("constant", (2, 3, 4), lambda t: init.constant_(t, 0.3), 0.3, types=(D,))
        for shape in ((4, 7), (7, 4), (5, 5)):
            self.equal("eye", shape, init.eye_)
        for shape, groups in (((6, 4, 3), 1), ((6, 4, 3, 5), 2), ((6, 2, 3, 3, 4), 3), ((4, 8, 1, 1), 1)):
            self.equal("dirac", shape, lambda t: init.dirac_(t, groups), groups, types=(L,))

    def test_distributions(self):
        for name, args in (("uniform", (-0.3, 0.8)), ("normal", (0.4, 2.0)), ("trunc_normal", (0.1, 1.0, -0.5, 1.5)),
                           ("trunc_normal", (0.0, 1.0, 2.0, 4.0)), ("xavier_uniform", (1.7,)), ("xavier_normal", (0.6,))):
            a = self.values(of(name, *[D] * len(args)), (150, 20, 3, 3), *args)
            self.alike(a, lambda t: getattr(init, name + "_")(t, *args), name)
            if name in ("uniform", "trunc_normal"):
                lo, hi = args[-2:]
                self.assertTrue(lo <= float(a.min()) and float(a.max()) <= hi)

    def test_kaiming(self):
        for name in ("uniform", "normal"):
            for k in ({}, {"a": 5 ** 0.5}, {"mode": "fan_out", "nonlinearity": "relu"}, {"nonlinearity": "tanh"}):
                o = KaimingOptions(k.get("a", 0), "mode" in k, k.get("nonlinearity", "leaky_relu").encode())
                self.alike(self.values(KAIMING[name], (150, 20, 3, 3), C.byref(o)),
                           lambda t: getattr(init, "kaiming_%s_" % name)(t, **k), "kaiming %s %s" % (name, k))
        for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"):
            self.assertAlmostEqual(gain_of(n.encode(), 0.2), init.calculate_gain(n, 0.2), places=12)

    def test_orthogonal(self):
        for shape in ((40, 30), (30, 40), (16, 4, 3, 3), (1, 5)):
            a = self.values(of("orthogonal", D), shape, 1.5)
            m = a.reshape(shape[0], -1) / 1.5
            n = min(m.shape)
            torch.testing.assert_close(m.T @ m if m.shape[1] == n else m @ m.T, torch.eye(n), rtol=0, atol=1e-5)

    def test_sparse(self):
        a = self.values(of("sparse", D, D), (50, 400), 0.13, 0.01)
        b = init.sparse_(torch.empty(50, 400), 0.13)
        self.assertTrue(((a == 0).sum(0) == 7).all())
        self.assertTrue(((b == 0).sum(0) == 7).all())
        self.assertGreater(len(set((a[:, c] == 0).nonzero().flatten()[0].item() for c in range(400))), 20)
        self.assertLess(abs(float(a[a != 0].std()) / 0.01 - 1), 0.03)

    def test_wrong_shapes(self):
        for name, shape, types, args in (("eye", (3,), (), ()), ("dirac", (3, 3), (L,), (1,)), ("dirac", (3, 3, 3), (L,), (2,)),
                                         ("xavier_uniform", (3,), (D,), (1,)), ("sparse", (3, 3), (D, D), (2, 1)),
                                         ("orthogonal", (3,), (D,), (1,)), ("trunc_normal", (3,), (D,) * 4, (0, 1, 2, 1))):
            t = ours(torch.zeros(shape))
            of(name, *types)(E, t, *args)
            with self.assertRaises(AssertionError, msg=name):
                check()
            fn("det_engine_clear_error", None, P)(E)
            step_end(E)


if __name__ == "__main__":
    unittest.main(verbosity=1)

#!/usr/bin/env python3
"""Every case of every operation (cases_*.c) against the PyTorch expression that it carries: the value, its shape and
dtype, and the gradients of all inputs.

usage: test_torch_ops.py LIBRARY [OPERATION]     exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import os
import sys
import unittest

from engine import B, E, I, P, check, fn, grad, theirs
import torch
from torch.nn import functional as F

op, what, expression = (fn("case_" + n, C.c_char_p, I) for n in ("op", "what", "torch"))
start = fn("case_start", P, P, I)
case_in = fn("case_in", P, P, I)
value, weights = (fn("case_" + n, P, P) for n in ("value", "weights"))
wants_grad = fn("case_wants_grad", B, P)
end = fn("case_end", None, P, P)

ALLOWED = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 1e-2, torch.float16: 2e-3}
HALF = torch.bfloat16 if os.environ.get("DET_OPS_DEVICE", "cpu") == "cpu" else torch.float16  # what a CPU takes f16 as
ONLY = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


def inputs(run):
    """Torch tensors of the case's inputs, leaves where the engine's want a gradient."""
    ret = []
    while case_in(run, len(ret)):
        p = case_in(run, len(ret))
        ret.append(theirs(p).requires_grad_(wants_grad(p)))
    return ret


class Cases(unittest.TestCase):
    def close(self, a, b, name):
        allowed = max(ALLOWED.get(a.dtype, 0), 1.5e-2 if "bf16" in name else 0)
        if name.startswith("hardsigmoid"):
            allowed = max(allowed, 1e-7)  # PyTorch's 1/6 is a float in f64 too
        self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), name)
        finite = b.isfinite()
        self.assertTrue(torch.equal(a.isfinite(), finite), name)
        for kind in (torch.isnan, torch.isposinf):
            self.assertTrue(torch.equal(kind(a.double()), kind(b.double())), name)
        if not a.is_floating_point() or not finite.any():
            self.assertTrue(torch.equal(a.double().nan_to_num(), b.double().nan_to_num()), name)
            return
        scale = max(float(b[finite].abs().max()), 1e-3)
        off = float((a.double() - b.double())[finite].abs().max()) / scale
        self.assertLessEqual(off, allowed, name)

    def one(self, i, name):
        run = start(E, i)
        torch.set_default_dtype(torch.float64 if "(f64," in name else torch.float32)  # of what expressions make
        check()
        x = inputs(run)
        y = eval(expression(i).decode(), {"torch": torch, "F": F, "half": HALF, **{"x%d" % k: t for k, t in enumerate(x)}})
        self.close(theirs(value(run)), y.detach(), name)
        self.assertEqual(bool(wants_grad(value(run))), y.requires_grad, name + ": requires a gradient")
        if y.requires_grad and y.numel() > 0:
            (y.to(theirs(weights(run)).dtype) * theirs(weights(run))).sum().backward()
            for k, t in enumerate(x):
                if t.grad is not None:
                    self.close(theirs(grad(case_in(run, k))), t.grad, "%s: gradient of x%d" % (name, k))
        end(E, run)

    def test_all(self):
        compared = alone = i = 0
        while op(i):
            name = "%s (%s)" % (op(i).decode(), what(i).decode())
            if expression(i) is None:
                alone += 1
            elif ONLY in (None, op(i).decode()):
                with self.subTest(name):
                    self.one(i, name)
                compared += 1
            i += 1
        print("%d cases compared, %d have no counterpart in PyTorch" % (compared, alone))
        self.assertGreater(compared, 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)

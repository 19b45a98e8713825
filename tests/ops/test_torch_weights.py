#!/usr/bin/env python3
"""Weights that travel: torchvision's residual networks load here, ours (trained here) give the same logits there; other
element types, names that differ, files above 4 GiB, and files that are refused.

usage: test_torch_weights.py LIBDET ZIP64      exit status 77: PyTorch or torchvision is absent, nothing was tested
"""
import ctypes as C
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

ZIP64 = sys.argv.pop(2)

from engine import (B, E, I, L, P, Err, LinearOptions, SgdOptions, backward, check, cross_entropy, double, fn, forward, load, module_add,
                    module_destroy, module_train, nn_linear, nn_module, optim_step, ours, sgd, step_end, tensor_list, theirs,
                    zero_grad)
import numpy
import torch

warnings.simplefilter("ignore")
try:
    import torchvision
except ImportError as e:
    print("skipped: no torchvision (%s)" % e)
    sys.exit(77)


class ResnetOptions(C.Structure):
    _fields_ = [("classes", L), ("channels", L), ("small_images", B), ("zero_init_residual", B)]


MAP = C.CFUNCTYPE(P, P, C.c_char_p)


class WeightsOptions(C.Structure):
    _fields_ = [("partial", B), ("prefix", C.c_char_p), ("map", MAP), ("map_arg", P), ("model", I)]


resnet = fn("det_nn_resnet_create", P, P, I, C.POINTER(ResnetOptions))
load_file = fn("det_module_load_file_of", I, P, C.c_char_p, C.POINTER(WeightsOptions), C.POINTER(Err))
save_file = fn("det_module_save_file", I, P, C.c_char_p, C.POINTER(Err))
optim_destroy = fn("det_optim_destroy", None, P)


class Weights(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.err = Err()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def saved(self, value, name="w.pth", **k):
        torch.save(value, self.path(name), **k)
        return self.path(name)

    def load(self, module, path, **k):
        return load_file(module, path.encode(), C.byref(WeightsOptions(**k)), C.byref(self.err))

    def ok(self, rc):
        self.assertEqual(rc, 0, self.err.text)

    def same(self, module, net):
        state = net.state_dict()
        for name, p in tensor_list(module):
            torch.testing.assert_close(theirs(p), state[name], rtol=0, atol=0)

    def same_logits(self, module, net, size=64):
        x = torch.randn(2, 3, size, size)
        module_train(module, False)
        with torch.no_grad():
            want = net.eval()(x)
        torch.testing.assert_close(theirs(forward(module, ours(x))), want, rtol=1e-3, atol=1e-4 * float(want.abs().max()))
        step_end(E)

    def test_torchvision_loads_here(self):
        for depth in (18, 50):
            net = getattr(torchvision.models, "resnet%d" % depth)(weights=None)
            mine = resnet(E, depth, C.byref(ResnetOptions()))
            self.ok(self.load(mine, self.saved(net.state_dict())))
            self.same(mine, net)
            self.same_logits(mine, net)
            module_destroy(mine)

    def test_trained_here_runs_there(self):
        mine = resnet(E, 18, C.byref(ResnetOptions(classes=10)))
        o = sgd(mine, C.byref(SgdOptions(lr=0.05, momentum=0.9)))
        for _ in range(3):
            zero_grad(o)
            backward(E, cross_entropy(E, forward(mine, ours(torch.randn(4, 3, 64, 64))), ours(torch.randint(0, 10, (4,)))))
            optim_step(o)
            step_end(E)
            check()
        optim_destroy(o)
        self.ok(save_file(mine, self.path("ours.pth").encode(), C.byref(self.err)))
        self.assertEqual(os.listdir(self.dir.name), ["ours.pth"])
        net = torchvision.models.resnet18(num_classes=10)
        net.load_state_dict(torch.load(self.path("ours.pth")))
        self.same(mine, net)
        self.same_logits(mine, net)
        module_destroy(mine)

    def linear(self):
        """A container with fc (2, 3)."""
        root = nn_module(E)
        module_add(root, b"fc", nn_linear(E, 3, 2, C.byref(LinearOptions())))
        return root

    def test_double(self):
        """Ours in f64 goes there and comes back; both compute in it."""
        mine, back = (resnet(E, 18, C.byref(ResnetOptions(classes=10))) for _ in range(2))
        double(mine)
        double(back)
        self.ok(save_file(mine, self.path("f64.pth").encode(), C.byref(self.err)))
        net = torchvision.models.resnet18(num_classes=10).double().eval()
        net.load_state_dict(torch.load(self.path("f64.pth")))
        self.ok(self.load(back, self.saved(net.state_dict())))
        x = torch.randn(2, 3, 64, 64, dtype=torch.float64)
        module_train(back, False)
        with torch.no_grad():
            torch.testing.assert_close(theirs(forward(back, ours(x))), net(x), rtol=1e-10, atol=1e-12)
        step_end(E)
        module_destroy(mine)
        module_destroy(back)

    def test_where_the_state_is(self):
        net = torch.nn.Sequential()
        net.add_module("fc", torch.nn.Linear(3, 2))
        state = net.state_dict()
        for n, value in enumerate((state, {"state_dict": state, "epoch": 3}, {"model": state}, {"models_state_dict": [{}, state]},
                                   {"module." + k: v for k, v in state.items()})):
            mine = self.linear()
            self.ok(self.load(mine, self.saved(value), model=1))
            self.same(mine, net)
            module_destroy(mine)
        os.mkdir(self.path("checkpoint"))
        self.saved({"models_state_dict": [state]}, "checkpoint/state_dict.pth")
        mine = self.linear()
        self.ok(self.load(mine, self.path("checkpoint")))
        self.same(mine, net)
        self.assertLess(self.load(mine, self.path("checkpoint"), model=1), 0)
        self.assertIn(b"it has 1 models", self.err.text)
        module_destroy(mine)

    def test_prefix_map_and_partial(self):
        net = torch.nn.Sequential()
        net.add_module("fc", torch.nn.Linear(3, 2))
        other = {"net.head." + k[3:]: v for k, v in net.state_dict().items()}
        other["extra"] = torch.zeros(1)
        path = self.saved(other)
        mine = self.linear()
        self.assertLess(self.load(mine, path), 0)
        for word in (b"missing in the state: fc.weight, fc.bias", b"net.head.weight", b"extra"):
            self.assertIn(word, self.err.text)
        keep = [C.create_string_buffer(b"fc.weight"), C.create_string_buffer(b"fc.bias")]
        rename = MAP(lambda arg, name: C.addressof(keep[name == b"head.bias"]))
        self.ok(self.load(mine, path, prefix=b"net.", map=rename))
        self.same(mine, net)
        module_destroy(mine)
        mine = self.linear()
        before = theirs(tensor_list(mine)[1][1])
        self.ok(self.load(mine, self.saved({"fc.weight": net.fc.weight.detach(), "more": torch.zeros(2)}), partial=True))
        torch.testing.assert_close(theirs(tensor_list(mine)[0][1]), net.fc.weight.detach())
        torch.testing.assert_close(theirs(tensor_list(mine)[1][1]), before)
        module_destroy(mine)

    def test_other_element_types_and_strides(self):
        mine = self.linear()
        for kind in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.bool):
            weight = (torch.randn(2, 3) * 3).to(kind)
            self.ok(self.load(mine, self.saved({"fc.weight": weight, "fc.bias": torch.ones(2, dtype=kind)})))
            torch.testing.assert_close(theirs(tensor_list(mine)[0][1]), weight.float(), rtol=0, atol=0)
        base = torch.randn(4, 6)
        self.ok(self.load(mine, self.saved({"fc.weight": base[:3, 1:5:2].T, "fc.bias": base[1, ::3]})))
        torch.testing.assert_close(theirs(tensor_list(mine)[0][1]), base[:3, 1:5:2].T)
        for weight, bias in ((torch.randn(1, 3).expand(2, 3), torch.randn(()).expand(2)),
                             (torch.randn(2, 1).expand(2, 3), base.view(-1)[7:9]),
                             (torch.randn(9).as_strided((2, 3), (1, 1)), torch.nn.Parameter(torch.randn(2)))):
            self.ok(self.load(mine, self.saved({"fc.weight": weight, "fc.bias": bias})))
            torch.testing.assert_close(theirs(tensor_list(mine)[0][1]), weight, rtol=0, atol=0)
            torch.testing.assert_close(theirs(tensor_list(mine)[1][1]), bias.detach(), rtol=0, atol=0)
        module_destroy(mine)

    def test_what_lies_beside(self):
        """Numbers of NumPy, an optimizer's state and a generator's do no harm."""
        state = {"fc.weight": torch.randn(2, 3), "fc.bias": torch.randn(2)}
        p = torch.nn.Parameter(torch.randn(2))
        adam = torch.optim.Adam([p])
        p.sum().backward()
        adam.step()
        mine = self.linear()
        self.ok(self.load(mine, self.saved({"model": state, "optimizer": adam.state_dict(), "rng": torch.get_rng_state(),
                                            "best": numpy.float64(0.5), "history": numpy.arange(3)})))
        torch.testing.assert_close(theirs(tensor_list(mine)[0][1]), state["fc.weight"], rtol=0, atol=0)
        module_destroy(mine)

    def test_refused(self):
        mine = self.linear()
        before = theirs(tensor_list(mine)[0][1])
        good = self.saved({"fc.weight": torch.randn(2, 3), "fc.bias": torch.randn(2)})

        class Evil:
            def __reduce__(self):
                return os.mkdir, (self.where,)
        evil = Evil()
        evil.where = self.path("executed")
        with open(good, "rb") as f:
            whole = f.read()
        with open(self.path("cut.pth"), "wb") as f:
            f.write(whole[:-40])
        with open(self.path("pickle.pth"), "wb") as f:
            pickle.dump({"fc.weight": 1}, f)
        for path, word in ((self.path("absent.pth"), b"absent.pth"), (self.path("cut.pth"), b"zip"),
                           (self.path("pickle.pth"), b"zip"), (self.saved(evil, "evil.pth"), b"refused"),
                           (self.saved({"fc.weight": torch.zeros(3, 2), "fc.bias": torch.zeros(2)}, "shape.pth"), b"fc.weight"),
                           (self.saved({"fc.weight": 3, "fc.bias": torch.zeros(2)}, "int.pth"), b"not a tensor"),
                           (self.saved([1], "list.pth"), b"a dict is needed"),
                           (self.saved({"fc.weight": torch.zeros(2, 3, dtype=torch.complex64)}, "c.pth"), b"view_as_real"),
                           (self.saved({"fc.weight": torch.zeros(2, 3).to_sparse()}, "coo.pth"), b"to_dense"),
                           (self.saved({"fc.weight": torch.zeros(2, 3).to_sparse_csr()}, "csr.pth"), b"to_dense"),
                           (self.saved({"fc.weight": torch.quantize_per_tensor(torch.zeros(2, 3), 1, 0, torch.qint8)}, "q.pth"),
                            b"dequantize"),
                           (self.saved({"fc.weight": torch.zeros(1).expand(1 << 40)}, "huge.pth"), b"contiguous"),
                           (self.saved(torch.nn.Linear(3, 2), "module.pth"), b"model.state_dict()"),
                           (self.saved({"fc.weight": torch.zeros(2, 3)}, "old.pth", _use_new_zipfile_serialization=False), b"")):
            self.assertLess(self.load(mine, path), 0, path)
            self.assertIn(word, self.err.text)
        self.assertFalse(os.path.exists(evil.where))
        torch.testing.assert_close(theirs(tensor_list(mine)[0][1]), before)
        module_destroy(mine)

    def zip64(self, size, count, first):
        """A file of ZIP64's, as torch and zipfile read it."""
        path = self.path("zip64.pth")
        subprocess.run([ZIP64, path, str(size), str(count), str(first)], check=True)
        read = torch.load(path)
        self.assertEqual([read[0].numel(), len(read)], [size, count + 1])
        self.assertEqual([t.tolist() for t in (read[0][-3:], read[-1])], [[1, 2, 3]] * 2)
        with zipfile.ZipFile(path) as z:
            self.assertEqual(len(z.namelist()), count + 4)
            self.assertEqual(z.read("archive/data/1"), bytes([1, 2, 3]))
        os.unlink(path)

    def test_zip64(self):
        self.zip64(1000, 3, 1)
        self.zip64(1000, 66000, 0)

    @unittest.skipUnless(os.environ.get("DET_TEST_LONG"), "5 GiB: only in a long run")
    def test_above_4_gib(self):
        self.zip64(5 << 30, 2, 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)

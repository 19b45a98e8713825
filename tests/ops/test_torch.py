#!/usr/bin/env python3
"""The engine against PyTorch: values and gradients of every layer, optimizers, schedulers, and the first ten
losses of the MNIST CNN and of a net with batch norm, from the same weights.

usage: test_torch.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import math
import sys
import unittest

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as e:
    print("skipped: no PyTorch for %s (%s)" % (sys.executable, e))
    sys.exit(77)

LIB = C.CDLL(sys.argv.pop(1))
P, D, I, L, B = C.c_void_p, C.c_double, C.c_int, C.c_int64, C.c_bool


class Err(C.Structure):
    _fields_ = [("code", I), ("text", C.c_char * 2048)]


class EngineOptions(C.Structure):
    _fields_ = [("device", C.c_char_p), ("seed", C.c_uint64), ("threads", I)]


class ConvOptions(C.Structure):
    _fields_ = [("stride", I), ("padding", I), ("dilation", I), ("groups", I), ("no_bias", B), ("relu", B)]


class NormOptions(C.Structure):
    _fields_ = [("eps", D), ("momentum", D), ("relu", B)]


class LinearOptions(C.Structure):
    _fields_ = [("no_bias", B)]


class SgdOptions(C.Structure):
    _fields_ = [("lr", D), ("momentum", D), ("dampening", D), ("weight_decay", D), ("nesterov", B)]


class AdamOptions(C.Structure):
    _fields_ = [("lr", D), ("beta1", D), ("beta2", D), ("eps", D), ("weight_decay", D)]


class Named(C.Structure):
    _fields_ = [("name", C.c_char_p), ("tensor", P)]


def fn(name, result, *args):
    f = getattr(LIB, name)
    f.restype, f.argtypes = result, args
    return f


create = fn("det_engine_create", I, C.POINTER(EngineOptions), C.POINTER(P), C.POINTER(Err))
error = fn("det_engine_error", I, P, C.POINTER(Err))
step_end = fn("det_engine_step_end", None, P)
from_host = fn("det_from_host", P, P, I, I, C.POINTER(L), P)
requires_grad = fn("det_requires_grad", P, P, P)
grad = fn("det_tensor_grad", P, P)
ndim = fn("det_tensor_ndim", I, P)
dims = fn("det_tensor_dims", C.POINTER(L), P)
nbytes = fn("det_tensor_bytes", C.c_size_t, P)
dtype = fn("det_tensor_dtype", I, P)
read = fn("det_tensor_read", I, P, P, C.c_size_t, P)
write = fn("det_tensor_write", I, P, P, C.c_size_t, P)
backward = fn("det_backward", I, P, P)
item = fn("det_item", D, P, P)
mul, add, sub = (fn("det_" + n, P, P, P, P) for n in ("mul", "add", "sub"))
total, mean, relu, log_softmax, softmax, global_avg = (
    fn("det_" + n, P, P, P) for n in ("sum", "mean", "relu", "log_softmax", "softmax", "global_avg_pool2d"))
flatten = fn("det_flatten", P, P, P, I)
linear = fn("det_linear", P, P, P, P, P)
conv2d = fn("det_conv2d", P, P, P, P, P, C.POINTER(ConvOptions))
max_pool, avg_pool = (fn("det_%s_pool2d" % n, P, P, P, I, I, I) for n in ("max", "avg"))
cross_entropy, nll, mse = (fn("det_" + n, P, P, P, P) for n in ("cross_entropy", "nll_loss", "mse_loss"))
forward = fn("det_forward", P, P, P)
nn_module, nn_relu, nn_flatten = (fn("det_nn_" + n, P, P) for n in ("module", "relu", "flatten"))
nn_conv = fn("det_nn_conv2d_create", P, P, L, L, I, C.POINTER(ConvOptions))
nn_linear = fn("det_nn_linear_create", P, P, L, L, C.POINTER(LinearOptions))
nn_norm = fn("det_nn_batch_norm2d_create", P, P, L, C.POINTER(NormOptions))
nn_max_pool = fn("det_nn_max_pool2d", P, P, I, I, I)
module_add = fn("det_module_add", P, P, C.c_char_p, P)
module_destroy = fn("det_module_destroy", None, P)
module_train = fn("det_module_train", None, P, B)
state = fn("det_module_state", C.POINTER(Named), P, C.POINTER(C.c_size_t))
clip_norm = fn("det_clip_grad_norm", D, P, D)
sgd = fn("det_sgd_create", P, P, C.POINTER(SgdOptions))
adam = fn("det_adam_create", P, P, C.POINTER(AdamOptions))
zero_grad = fn("det_optim_zero_grad", None, P)
optim_step = fn("det_optim_step", I, P)
optim_lr = fn("det_optim_lr", D, P, C.c_size_t)
step_lr = fn("det_step_lr", P, P, L, D)
exponential_lr = fn("det_exponential_lr", P, P, D)
cosine_lr = fn("det_cosine_annealing_lr", P, P, L, D)
lr_step = fn("det_lr_step", None, P)

E = P()
FAULT = Err()
assert create(C.byref(EngineOptions(b"cpu", 1, 2)), C.byref(E), C.byref(FAULT)) == 0, FAULT.text
torch.set_num_threads(2)
torch.manual_seed(7)


def check():
    if error(E, C.byref(FAULT)) < 0:
        raise AssertionError(FAULT.text.decode())


def ours(t):
    """A tensor of the engine with the values of a torch one; a leaf that wants a gradient where t does."""
    t2 = t.detach().contiguous()
    shape = (L * max(t2.dim(), 1))(*t2.shape)
    kind = {torch.float32: 0, torch.int64: 1, torch.uint8: 2}[t2.dtype]
    ret = from_host(E, kind, t2.dim(), shape, t2.data_ptr())
    if t.requires_grad:
        requires_grad(E, ret)
    check()
    return ret


def theirs(p):
    check()
    shape = [dims(p)[i] for i in range(ndim(p))]
    t = torch.zeros(shape, dtype=[torch.float32, torch.int64, torch.uint8][dtype(p)])
    assert read(p, t.data_ptr(), nbytes(p), None) == 0
    return t


def tensor_list(module):
    n = C.c_size_t()
    p = state(module, C.byref(n))
    return [(p[i].name.decode(), p[i].tensor) for i in range(n.value)]


def load(module, net):
    """Gives the engine's module the state of a torch one; the names must be equal, in order."""
    named = tensor_list(module)
    assert [n for n, _ in named] == list(net.state_dict()), [n for n, _ in named]
    for name, p in named:
        t = net.state_dict()[name].contiguous()
        assert write(p, t.data_ptr(), nbytes(p), None) == 0


class Functions(unittest.TestCase):
    def close(self, a, b, what):
        self.assertEqual(a.shape, b.shape, what)
        scale = max(float(b.abs().max()), 1e-3)
        off = float((a - b).abs().max()) / scale
        self.assertLess(off, 2e-5, what)

    def compare(self, what, our, their, *tensors):
        """our(*handles) and their(*tensors): values, and gradients of a weighted sum."""
        handles = [ours(t) for t in tensors]
        y, z = our(*handles), their(*tensors)
        self.close(theirs(y), z.detach(), what)
        w = torch.rand_like(z)
        (z * w).sum().backward()
        self.assertEqual(backward(E, total(E, mul(E, y, ours(w)))), 0)
        for i, (h, t) in enumerate(zip(handles, tensors)):
            if t.requires_grad:
                self.close(theirs(grad(h)), t.grad, "%s: gradient %d" % (what, i))
        step_end(E)

    def rand(self, *shape):
        return torch.randn(*shape).requires_grad_()

    def test_arithmetic(self):
        self.compare("add", lambda a, b: add(E, a, b), torch.add, self.rand(3, 5), self.rand(3, 5))
        self.compare("sub", lambda a, b: sub(E, a, b), torch.sub, self.rand(3, 5), self.rand(3, 5))
        self.compare("mul", lambda a, b: mul(E, a, b), torch.mul, self.rand(3, 5), self.rand(3, 5))
        self.compare("mean", lambda a: mean(E, a), torch.mean, self.rand(2, 3, 4, 5))
        self.compare("relu", lambda a: relu(E, a), F.relu, self.rand(9, 31))

    def test_linear(self):
        self.compare("linear", lambda *a: linear(E, *a), F.linear, self.rand(7, 33), self.rand(11, 33), self.rand(11))
        self.compare("3-D", lambda *a: linear(E, *a), F.linear, self.rand(2, 3, 8), self.rand(4, 8), self.rand(4))

    def test_conv2d(self):
        for n, i, o, k, size, stride, pad in ((2, 1, 8, 3, 28, 1, 0), (3, 5, 7, 3, 9, 2, 1), (2, 16, 32, 5, 12, 1, 2),
                                              (4, 3, 64, 7, 21, 2, 3), (2, 8, 4, 1, 6, 1, 0)):
            for use_relu in (False, True):
                o_ = ConvOptions(stride=stride, padding=pad, relu=use_relu)
                post = F.relu if use_relu else (lambda t: t)
                self.compare("conv %s" % [n, i, o, k], lambda x, w, b: conv2d(E, x, w, b, C.byref(o_)),
                             lambda x, w, b: post(F.conv2d(x, w, b, stride, pad)), self.rand(n, i, size, size + 1),
                             self.rand(o, i, k, k), self.rand(o))

    def test_pools(self):
        for k, s, p in ((2, 2, 0), (3, 2, 1), (3, 1, 0), (2, 3, 1)):
            self.compare("max", lambda x: max_pool(E, x, k, s, p), lambda x: F.max_pool2d(x, k, s, p), self.rand(2, 5, 9, 8))
            self.compare("avg", lambda x: avg_pool(E, x, k, s, p), lambda x: F.avg_pool2d(x, k, s, p), self.rand(2, 5, 9, 8))
        self.compare("global", lambda x: global_avg(E, x), lambda x: F.adaptive_avg_pool2d(x, 1), self.rand(3, 6, 7, 5))

    def test_flatten_keeps_the_order_of_channels(self):
        o = ConvOptions(padding=1)
        self.compare("flatten", lambda x, w, b: flatten(E, conv2d(E, x, w, b, C.byref(o)), 1),
                     lambda x, w, b: torch.flatten(F.conv2d(x, w, b, 1, 1), 1), self.rand(2, 3, 5, 6), self.rand(4, 3, 3, 3),
                     self.rand(4))

    def test_losses(self):
        y = torch.randint(0, 10, (13,))
        self.compare("ce", lambda x, t: cross_entropy(E, x, t), F.cross_entropy, self.rand(13, 10), y)
        self.compare("nll", lambda x, t: nll(E, x, t), F.nll_loss, self.rand(13, 10), y)
        self.compare("mse", lambda x, t: mse(E, x, t), F.mse_loss, self.rand(4, 6), self.rand(4, 6))
        self.compare("log_softmax", lambda x: log_softmax(E, x), lambda x: F.log_softmax(x, -1), self.rand(5, 1000))
        self.compare("softmax", lambda x: softmax(E, x), lambda x: F.softmax(x, -1), self.rand(5, 33))

    def test_batch_norm(self):
        for use_relu in (False, True):
            net, mine = nn.BatchNorm2d(6), nn_norm(E, 6, C.byref(NormOptions(relu=use_relu)))
            with torch.no_grad():
                net.weight.uniform_(0.5, 2), net.bias.uniform_(-1, 1)
            load(mine, net)
            post = F.relu if use_relu else (lambda t: t)
            for train in (True, True, False):
                net.train(train), module_train(mine, train)
                self.compare("bn", lambda x: forward(mine, x), lambda x: post(net(x)),
                             (self.rand(4, 6, 9, 7).detach() * 3 + 2).requires_grad_())
            for name, p in tensor_list(mine):
                self.close(theirs(p).float(), net.state_dict()[name].float(), name)
            module_destroy(mine)


class MnistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class OurMnistNet:
    def __init__(self):
        self.root = nn_module(E)
        conv, lin = ConvOptions(), LinearOptions()
        self.conv1 = module_add(self.root, b"conv1", nn_conv(E, 1, 32, 3, C.byref(conv)))
        self.conv2 = module_add(self.root, b"conv2", nn_conv(E, 32, 64, 3, C.byref(conv)))
        self.fc1 = module_add(self.root, b"fc1", nn_linear(E, 9216, 128, C.byref(lin)))
        self.fc2 = module_add(self.root, b"fc2", nn_linear(E, 128, 10, C.byref(lin)))

    def forward(self, x):
        x = relu(E, forward(self.conv2, relu(E, forward(self.conv1, x))))
        x = flatten(E, max_pool(E, x, 2, 2, 0), 1)
        return forward(self.fc2, relu(E, forward(self.fc1, x)))


class NormNet(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 24, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(24 * 9, 10))


class OurNormNet:
    def __init__(self):
        layers = [nn_conv(E, 3, 16, 3, C.byref(ConvOptions(padding=1, no_bias=True))),
                  nn_norm(E, 16, C.byref(NormOptions())), nn_relu(E), nn_max_pool(E, 2, 0, 0),
                  nn_conv(E, 16, 24, 3, C.byref(ConvOptions(stride=2))), nn_relu(E), nn_flatten(E),
                  nn_linear(E, 24 * 9, 10, C.byref(LinearOptions()))]
        make = fn("det_nn_sequential_create", P, P, C.POINTER(P), C.c_size_t)
        self.root = make(E, (P * len(layers))(*layers), len(layers))

    def forward(self, x):
        return forward(self.root, x)


class Training(unittest.TestCase):
    def losses(self, net, mine, shape, their_optim, our_optim, steps=10, clip=None):
        """The losses of both over the same batches; the weights of `net` go to `mine` first."""
        load(mine.root, net)
        theirs_o, ours_o = their_optim(net.parameters()), our_optim(mine.root)
        check()
        pairs = []
        for _ in range(steps):
            x, y = torch.randn(*shape), torch.randint(0, 10, (shape[0],))
            theirs_o.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            zero_grad(ours_o)
            our_loss = cross_entropy(E, mine.forward(ours(x)), ours(y))
            backward(E, our_loss)
            if clip:
                norm = float(torch.nn.utils.clip_grad_norm_(net.parameters(), clip))
                self.assertAlmostEqual(clip_norm(mine.root, clip), norm, delta=1e-4 * norm)
            theirs_o.step(), optim_step(ours_o)
            pairs.append((item(E, our_loss), float(loss)))
            step_end(E)
            check()
        for name, p in tensor_list(mine.root):
            a, b = theirs(p).float(), net.state_dict()[name].float()
            self.assertLess(float((a - b).abs().max()), 2e-3 * max(1.0, float(b.abs().max())), name)
        return pairs

    def equal(self, pairs, delta=2e-5):
        for i, (a, b) in enumerate(pairs):
            self.assertAlmostEqual(a, b, delta=delta * max(1.0, abs(b)), msg="loss %d of %s" % (i, pairs))

    def test_mnist_cnn_first_ten_losses(self):
        self.equal(self.losses(MnistNet(), OurMnistNet(), (64, 1, 28, 28), lambda p: torch.optim.SGD(p, 0.01),
                               lambda m: sgd(m, C.byref(SgdOptions(lr=0.01)))))

    def test_norm_net_sgd_variants(self):
        for k in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
                  {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.01}):
            self.equal(self.losses(NormNet(), OurNormNet(), (8, 3, 14, 14), lambda p: torch.optim.SGD(p, 0.05, **k),
                                   lambda m: sgd(m, C.byref(SgdOptions(lr=0.05, **k)))), 1e-4)

    def test_norm_net_adam_and_clipping(self):
        for decay in (0, 0.01):
            self.equal(self.losses(NormNet(), OurNormNet(), (8, 3, 14, 14),
                                   lambda p: torch.optim.Adam(p, 1e-3, weight_decay=decay),
                                   lambda m: adam(m, C.byref(AdamOptions(lr=1e-3, weight_decay=decay))), clip=0.5), 1e-3)

    def test_schedulers(self):
        S = torch.optim.lr_scheduler
        for their, our in ((lambda o: S.StepLR(o, 3, 0.5), lambda o: step_lr(o, 3, 0.5)),
                           (lambda o: S.ExponentialLR(o, 0.93), lambda o: exponential_lr(o, 0.93)),
                           (lambda o: S.CosineAnnealingLR(o, 7, 0.01), lambda o: cosine_lr(o, 7, 0.01))):
            mine = OurNormNet()
            o, p = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1), sgd(mine.root, C.byref(SgdOptions(lr=0.1)))
            a, b = their(o), our(p)
            for _ in range(30):
                o.step(), a.step(), lr_step(b)
                self.assertTrue(math.isclose(optim_lr(p, 0), o.param_groups[0]["lr"], rel_tol=1e-12))

    def test_initial_values_have_the_same_distribution(self):
        named = dict(tensor_list(OurMnistNet().root))
        for name, t in MnistNet().state_dict().items():
            mine = theirs(named[name])
            self.assertLess(abs(float(mine.abs().max()) / float(t.abs().max()) - 1), 0.2, name)
            if t.numel() > 1000:
                self.assertLess(abs(float(mine.std()) / float(t.std()) - 1), 0.05, name)


if __name__ == "__main__":
    unittest.main(verbosity=1)

#!/usr/bin/env python3
"""Training against PyTorch from the same weights: the first ten losses of the MNIST CNN and of a net with batch
norm, which trains in f64 too; initial values.

usage: test_torch_training.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import unittest

from engine import (E, P, AdamOptions, ConvOptions, LinearOptions, NormOptions, SgdOptions, adam, backward, check,
                    clip_norm, cross_entropy, double, flatten, fn, forward, item, load, max_pool, module_add, module_destroy, module_train, nn_conv, nn_flatten, nn_linear, nn_max_pool,
                    nn_module, nn_norm, nn_relu, optim_step, ours, relu, sgd, step_end, tensor_list,
                    theirs, zero_grad)
import torch
from torch import nn
from torch.nn import functional as F


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
    def losses(self, net, mine, shape, their_optim, our_optim, steps=10, clip=None, f64=False):
        """The losses of both over the same batches; the weights of `net` go to `mine` first."""
        if f64:
            net.double(), double(mine.root)
        load(mine.root, net)
        theirs_o, ours_o = their_optim(net.parameters()), our_optim(mine.root)
        check()
        pairs = []
        for _ in range(steps):
            x, y = torch.randn(*shape), torch.randint(0, 10, (shape[0],))
            x = x.double() if f64 else x
            theirs_o.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            zero_grad(ours_o)
            our_loss = cross_entropy(E, mine.forward(ours(x)), ours(y))
            backward(E, our_loss)
            if clip:
                norm = float(torch.nn.utils.clip_grad_norm_(net.parameters(), clip))
                self.assertAlmostEqual(item(E, clip_norm(mine.root, clip)), norm, delta=(1e-10 if f64 else 1e-4) * norm)
            theirs_o.step(), optim_step(ours_o)
            pairs.append((item(E, our_loss), float(loss)))
            step_end(E)
            check()
        for name, p in tensor_list(mine.root):
            a, b = theirs(p).double(), net.state_dict()[name].double()
            self.assertLess(float((a - b).abs().max()), (1e-9 if f64 else 2e-3) * max(1.0, float(b.abs().max())), name)
        return pairs

    def equal(self, pairs, delta=2e-5):
        for i, (a, b) in enumerate(pairs):
            self.assertAlmostEqual(a, b, delta=delta * max(1.0, abs(b)), msg="loss %d of %s" % (i, pairs))

    def test_mnist_cnn_first_ten_losses(self):
        self.equal(self.losses(MnistNet(), OurMnistNet(), (64, 1, 28, 28), lambda p: torch.optim.SGD(p, 0.01),
                               lambda m: sgd(m, C.byref(SgdOptions(lr=0.01)))))

    def test_batch_norm_keeps_the_same_statistics(self):
        net, mine = nn.BatchNorm2d(6), nn_norm(E, 6, C.byref(NormOptions()))
        load(mine, net)
        for train in (True, True, False):
            net.train(train), module_train(mine, train)
            x = torch.randn(4, 6, 9, 7) * 3 + 2
            torch.testing.assert_close(theirs(forward(mine, ours(x))), net(x), rtol=2e-5, atol=2e-5)
            step_end(E)
        for name, p in tensor_list(mine):
            torch.testing.assert_close(theirs(p), net.state_dict()[name], rtol=2e-5, atol=2e-5)
        module_destroy(mine)

    def test_norm_net_adam_and_clipping(self):
        for decay in (0, 0.01):
            self.equal(self.losses(NormNet(), OurNormNet(), (8, 3, 14, 14),
                                   lambda p: torch.optim.Adam(p, 1e-3, weight_decay=decay),
                                   lambda m: adam(m, C.byref(AdamOptions(lr=1e-3, weight_decay=decay))), clip=0.5), 1e-3)

    def test_f64(self):
        """Against PyTorch's doubles; gradients are clipped, so that every optimizer sees a vector of f64."""
        for their_optim, our_optim in ((lambda p: torch.optim.Adam(p, 1e-3, weight_decay=0.01),
                                        lambda m: adam(m, C.byref(AdamOptions(lr=1e-3, weight_decay=0.01)))),
                                       (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
                                        lambda m: sgd(m, C.byref(SgdOptions(lr=0.1, momentum=0.9))))):
            self.equal(self.losses(NormNet(), OurNormNet(), (8, 3, 14, 14), their_optim, our_optim, clip=0.5, f64=True),
                       1e-9)

    def test_initial_values_have_the_same_distribution(self):
        named = dict(tensor_list(OurMnistNet().root))
        for name, t in MnistNet().state_dict().items():
            mine = theirs(named[name])
            if t.numel() > 100:
                self.assertLess(abs(float(mine.abs().max()) / float(t.abs().max()) - 1), 0.2, name)
            if t.numel() > 1000:
                self.assertLess(abs(float(mine.std()) / float(t.std()) - 1), 0.05, name)


if __name__ == "__main__":
    unittest.main(verbosity=1)

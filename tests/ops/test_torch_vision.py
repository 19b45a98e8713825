#!/usr/bin/env python3
"""Modules of images and signals, and residual networks, against PyTorch and torchvision: names, values, gradients,
running statistics, initial values, and the first ten losses of ResNet-18.

usage: test_torch_vision.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import unittest

from engine import (B, D, E, I, L, P, ConvOptions, NormOptions, SgdOptions, backward, check, cross_entropy, fn, forward,
                    grad, item, load, module_destroy, module_train, mul, ours, sgd, optim_step, step_end, tensor_list,
                    theirs, total, zero_grad)
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

REFLECT, REPLICATE, CIRCULAR = 1, 2, 3


class PoolOptions(C.Structure):
    _fields_ = [("kernel", I), ("stride", I), ("padding", I), ("ceil_mode", B), ("exclude_pad", B), ("kernel_hw", I * 2),
                ("stride_hw", I * 2), ("padding_hw", I * 2)]


class ResizeOptions(C.Structure):
    _fields_ = [("height", L), ("width", L), ("scale", D), ("mode", I), ("align_corners", B)]


class ResnetOptions(C.Structure):
    _fields_ = [("classes", L), ("channels", L), ("small_images", B), ("zero_init_residual", B)]


def conv(name, *sizes, **options):
    return fn("det_nn_%s_create" % name, P, P, L, L, I, P)(E, *sizes, C.byref(ConvOptions(**options)))


def norm(name, channels, **options):
    return fn("det_nn_%s_create" % name, P, P, L, P)(E, channels, C.byref(NormOptions(**options)))


def pool(name, kernel, **options):
    return fn("det_nn_%s_create" % name, P, P, I, P)(E, kernel, C.byref(PoolOptions(**options)))


def plain(name, *args):
    return fn("det_nn_" + name, P, P, *(I for _ in args))(E, *args)


def sized(name, *args):
    return fn("det_nn_" + name, P, P, *(L for _ in args))(E, *args)


def pad(mode, *pads):
    return fn("det_nn_pad", P, P, I, I, C.POINTER(I))(E, mode, len(pads), (I * len(pads))(*pads))


def upsample(**options):
    return fn("det_nn_upsample_create", P, P, P)(E, C.byref(ResizeOptions(**options)))


def unflatten(*dims):
    return fn("det_nn_unflatten", P, P, I, C.POINTER(L))(E, len(dims), (L * len(dims))(*dims))


def resnet(depth, **options):
    ret = fn("det_nn_resnet_create", P, P, I, P)(E, depth, C.byref(ResnetOptions(**options)))
    check()
    return ret


I43, S = (2, 4, 7, 9), (2, 4, 11)  # images, signals

# What makes ours, the module of PyTorch, the shape of x.
MODULES = [
    (lambda: conv("conv2d", 4, 6, 3, groups=2, stride_hw=(2, 1), padding_hw=(1, 2)),
     nn.Conv2d(4, 6, 3, (2, 1), (1, 2), groups=2), I43),
    (lambda: conv("conv2d", 4, 6, 0, kernel_hw=(2, 5), same=True, no_bias=True),
     nn.Conv2d(4, 6, (2, 5), padding="same", bias=False), I43),
    (lambda: conv("conv2d", 4, 3, 3, padding=2, padding_mode=REFLECT), nn.Conv2d(4, 3, 3, padding=2, padding_mode="reflect"), I43),
    (lambda: conv("conv2d", 4, 3, 3, padding=1, padding_mode=REPLICATE), nn.Conv2d(4, 3, 3, padding=1, padding_mode="replicate"), I43),
    (lambda: conv("conv2d", 4, 3, 3, padding=1, padding_mode=CIRCULAR), nn.Conv2d(4, 3, 3, padding=1, padding_mode="circular"), I43),
    (lambda: conv("conv1d", 4, 6, 3, stride=2, dilation=2, groups=2), nn.Conv1d(4, 6, 3, 2, dilation=2, groups=2), S),
    (lambda: conv("conv_transpose2d", 4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
     nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), I43),
    (lambda: conv("conv_transpose2d", 4, 5, 4, stride=2, no_bias=True), nn.ConvTranspose2d(4, 5, 4, 2, bias=False), I43),
    (lambda: conv("conv_transpose1d", 4, 3, 5, stride=3), nn.ConvTranspose1d(4, 3, 5, 3), S),
    (lambda: norm("batch_norm2d", 4), nn.BatchNorm2d(4), I43),
    (lambda: norm("batch_norm2d", 4, cumulative=True), nn.BatchNorm2d(4, momentum=None), I43),
    (lambda: norm("batch_norm2d", 4, no_affine=True, eps=1e-3), nn.BatchNorm2d(4, 1e-3, affine=False), I43),
    (lambda: norm("batch_norm2d", 4, no_track=True), nn.BatchNorm2d(4, track_running_stats=False), I43),
    (lambda: norm("batch_norm1d", 4, momentum=0.3), nn.BatchNorm1d(4, momentum=0.3), S),
    (lambda: norm("batch_norm1d", 9), nn.BatchNorm1d(9), (5, 9)),
    (lambda: plain("max_pool1d", 3, 2, 1), nn.MaxPool1d(3, 2, 1), S),
    (lambda: plain("avg_pool1d", 3, 0, 1), nn.AvgPool1d(3, padding=1), S),
    (lambda: plain("avg_pool2d", 3, 2, 1), nn.AvgPool2d(3, 2, 1), I43),
    (lambda: pool("max_pool", 3, stride=2, ceil_mode=True), nn.MaxPool2d(3, 2, ceil_mode=True), I43),
    (lambda: pool("avg_pool", 2, padding=1, exclude_pad=True), nn.AvgPool2d(2, padding=1, count_include_pad=False), I43),
    (lambda: sized("adaptive_avg_pool2d", 3, 0), nn.AdaptiveAvgPool2d((3, None)), I43),
    (lambda: sized("adaptive_max_pool2d", 2, 4), nn.AdaptiveMaxPool2d((2, 4)), I43),
    (lambda: sized("adaptive_avg_pool1d", 4), nn.AdaptiveAvgPool1d(4), S),
    (lambda: sized("adaptive_max_pool1d", 1), nn.AdaptiveMaxPool1d(1), S),
    (lambda: pad(REFLECT, 1, 2, 3, 0), nn.ReflectionPad2d((1, 2, 3, 0)), I43),
    (lambda: pad(0, 1, 2, 3, 0), nn.ZeroPad2d((1, 2, 3, 0)), I43),
    (lambda: pad(REPLICATE, 3, 1), nn.ReplicationPad1d((3, 1)), S),
    (lambda: upsample(scale=2, mode=1), nn.Upsample(scale_factor=2, mode="bilinear"), I43),
    (lambda: upsample(height=5, width=12), nn.Upsample((5, 12)), I43),
    (lambda: sized("identity"), nn.Identity(), I43),
    (lambda: sized("softmax"), nn.Softmax(-1), (3, 5)),
    (lambda: unflatten(2, -1, 3), nn.Unflatten(1, (2, 4, 3)), (5, 24)),
]


class Modules(unittest.TestCase):
    def close(self, a, b, what, tolerance=3e-5):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(b.detach().abs().max())), msg=lambda m: what + m)

    def batch(self, mine, net, shape):
        """One batch through both: value, gradients of x and of the parameters."""
        x = (torch.randn(*shape) * 2 + 1).requires_grad_()
        y, our_x = net(x), ours(x)
        our_y = forward(mine, our_x)
        self.close(theirs(our_y), y, "value of %s: " % net)
        weights = torch.randn(*y.shape)
        net.zero_grad()
        (y * weights).sum().backward()
        backward(E, total(E, mul(E, our_y, ours(weights))))
        self.close(theirs(grad(our_x)), x.grad, "gradient of %s: " % net)
        their_params = dict(net.named_parameters())
        for name, p in tensor_list(mine):
            if name in their_params:
                self.close(theirs(grad(p)), their_params[name].grad, "gradient of %s of %s: " % (name, net))
        zero_module(mine)
        step_end(E)

    def test_each_module(self):
        for make, net, shape in MODULES:
            mine = make()
            check()
            load(mine, net)
            for train in (True, True, False):
                net.train(train), module_train(mine, train)
                self.batch(mine, net, shape)
            for name, p in tensor_list(mine):
                self.close(theirs(p).float(), net.state_dict()[name].float(), "%s of %s: " % (name, net))
            module_destroy(mine)

    def test_initial_values_are_in_the_same_range(self):
        for name, net in (("conv2d", nn.Conv2d(64, 96, 3, groups=2)), ("conv1d", nn.Conv1d(64, 96, 3, groups=2)),
                          ("conv_transpose2d", nn.ConvTranspose2d(64, 96, 3, groups=2))):
            mine = conv(name, 64, 96, 3, groups=2)
            for key, p in tensor_list(mine):
                most = float(net.state_dict()[key].abs().max())
                self.assertAlmostEqual(float(theirs(p).abs().max()), most, delta=0.1 * most, msg=name + " " + key)
            module_destroy(mine)


zero_module = fn("det_module_zero_grad", None, P)


class Resnet(unittest.TestCase):
    def test_names_and_logits_are_torchvisions(self):
        for depth, make in ((18, torchvision.models.resnet18), (50, torchvision.models.resnet50)):
            net, mine = make(num_classes=7).eval(), resnet(depth, classes=7)
            load(mine, net)
            module_train(mine, False)
            x = torch.randn(2, 3, 48, 40)
            with torch.no_grad():
                want = net(x)
            torch.testing.assert_close(theirs(forward(mine, ours(x))), want, rtol=1e-3, atol=1e-3 * float(want.abs().max()))
            step_end(E)
            module_destroy(mine)

    def test_first_ten_losses(self):
        net, mine = torchvision.models.resnet18(num_classes=10), resnet(18, classes=10, small_images=True)
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        load(mine, net)
        theirs_o, ours_o = torch.optim.SGD(net.parameters(), 0.003), sgd(mine, C.byref(SgdOptions(lr=0.003)))
        for i in range(10):
            x, y = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))
            theirs_o.zero_grad(), zero_grad(ours_o)
            loss, our_loss = F.cross_entropy(net(x), y), cross_entropy(E, forward(mine, ours(x)), ours(y))
            loss.backward(), backward(E, our_loss)
            theirs_o.step(), optim_step(ours_o)
            self.assertAlmostEqual(item(E, our_loss), float(loss), delta=5e-3, msg="loss %d" % i)
            step_end(E)
            check()
        module_destroy(mine)

    def test_the_last_norm_of_a_block_may_start_at_zero(self):
        mine = resnet(50, zero_init_residual=True)
        weights = {n: float(theirs(p).abs().max()) for n, p in tensor_list(mine) if ".bn" in n and n.endswith("weight")}
        self.assertTrue(all((w == 0) == (".bn3." in n) for n, w in weights.items()), weights)
        module_destroy(mine)


if __name__ == "__main__":
    unittest.main(verbosity=1)

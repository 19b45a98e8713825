#!/usr/bin/env python3
"""Optimizers and schedulers against PyTorch, step by step: parameters, state and rates; and going on from a state.

usage: test_torch_optim.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import copy
import ctypes as C
import math
import unittest

from engine import (B, D, E, L, P, AdamOptions, Err, LinearOptions, SgdOptions, adam, backward, check, fn, forward, load, mul,
                    nn_linear, optim_step, ours, sgd, step_end, tensor_list, theirs, total, zero_grad)
import torch
from torch.optim import lr_scheduler as S

N = C.c_size_t
SCALE = C.CFUNCTYPE(D, L, P)
ERR = Err()


class RmspropOptions(C.Structure):
    _fields_ = [("lr", D), ("alpha", D), ("eps", D), ("weight_decay", D), ("momentum", D), ("centered", B), ("maximize", B)]


class AdagradOptions(C.Structure):
    _fields_ = [("lr", D), ("lr_decay", D), ("weight_decay", D), ("initial_accumulator_value", D), ("eps", D), ("maximize", B)]


class OneCycleOptions(C.Structure):
    _fields_ = [("pct_start", D), ("linear", B), ("no_momentum", B), ("base_momentum", D), ("max_momentum", D),
                ("div_factor", D), ("final_div_factor", D), ("three_phase", B), ("max_lrs", P)]


class CyclicOptions(C.Structure):
    _fields_ = [("step_size_up", L), ("step_size_down", L), ("mode", C.c_int), ("gamma", D), ("no_momentum", B),
                ("base_momentum", D), ("max_momentum", D)]


class PlateauOptions(C.Structure):
    _fields_ = [("maximize", B), ("factor", D), ("threshold", D), ("absolute", B), ("cooldown", L), ("min_lr", D), ("eps", D)]


class Stage(C.Structure):
    _fields_ = [("lr", P), ("until", L)]


class Value(C.Structure):
    pass


class Values(C.Structure):
    _fields_ = [("v", C.POINTER(Value)), ("n", N)]


Value._fields_ = [("name", C.c_char_p), ("kind", C.c_int), ("i", L), ("f", D), ("pair", D * 2), ("floats", C.POINTER(D)),
                  ("n", N), ("tensor", P), ("str", C.c_char_p), ("dicts", C.POINTER(Values))]


class Setting(C.Structure):
    _fields_ = [("name", C.c_char_p), ("value", D)]


class Settings(C.Structure):
    _fields_ = [("v", C.POINTER(Setting)), ("n", N)]


adamw = fn("det_adamw_create", P, P, C.POINTER(AdamOptions))
rmsprop = fn("det_rmsprop_create", P, P, C.POINTER(RmspropOptions))
adagrad = fn("det_adagrad_create", P, P, C.POINTER(AdagradOptions))
TEST = C.CFUNCTYPE(B, P, C.c_char_p, P)
add_group = fn("det_optim_add_group_of", C.c_int, P, P, TEST, P, C.POINTER(Settings))
set_number = fn("det_optim_set", C.c_int, P, N, C.c_char_p, D)
get_number = fn("det_optim_get", D, P, N, C.c_char_p)
set_lr = fn("det_optim_set_lr", None, P, N, D)
group_values = fn("det_optim_group_values", C.POINTER(Value), P, N, C.POINTER(N))
param_state = fn("det_optim_param_state", C.POINTER(Value), P, N, C.POINTER(N))
lr_state = fn("det_lr_state", C.POINTER(Value), P, C.POINTER(N))
lr_load = fn("det_lr_load_state", C.c_int, P, C.POINTER(Value), N, C.POINTER(Err))
lr_step = fn("det_lr_step", None, P)
lr_metric = fn("det_lr_step_metric", None, P, D)
lr_last = fn("det_lr_last", D, P, N)
step_lr = fn("det_step_lr", P, P, L, D)
multi_step = fn("det_multi_step_lr_create", P, P, D, C.POINTER(L), N)
exponential = fn("det_exponential_lr", P, P, D)
constant = fn("det_constant_lr", P, P, D, L)
linear = fn("det_linear_lr", P, P, D, D, L)
polynomial = fn("det_polynomial_lr", P, P, L, D)
cosine = fn("det_cosine_annealing_lr", P, P, L, D)
warm = fn("det_cosine_annealing_warm_restarts", P, P, L, L, D)
lambda_lr = fn("det_lambda_lr", P, P, SCALE, P)
multiplicative = fn("det_multiplicative_lr", P, P, SCALE, P)
one_cycle_of = fn("det_one_cycle_lr_create", P, P, D, L, C.POINTER(OneCycleOptions))
cyclic_of = fn("det_cyclic_lr_create", P, P, D, D, C.POINTER(CyclicOptions))
plateau_of = fn("det_reduce_lr_on_plateau_create", P, P, L, C.POINTER(PlateauOptions))
sequential_of = fn("det_sequential_lr_create", P, P, C.POINTER(Stage), N)
chained_of = fn("det_chained_lr_create", P, P, C.POINTER(P), N)


def values(v, n):
    """An array of struct det_value as what torch has in its place."""
    kinds = [lambda x: None, lambda x: bool(x.i), lambda x: x.i, lambda x: x.f, lambda x: tuple(x.pair),
             lambda x: x.floats[:x.n], lambda x: theirs(x.tensor), lambda x: x.str.decode(), lambda x: x.floats[:x.n],
             lambda x: [None] * x.n, lambda x: {k: x.floats[:x.n].count(k) for k in x.floats[:x.n]},
             lambda x: [values(x.dicts[i].v, x.dicts[i].n) for i in range(x.n)]]
    return {v[i].name.decode(): kinds[v[i].kind](v[i]) for i in range(n)}


def asked(f, *args):
    n = N()
    return values(f(*args, C.byref(n)), n.value)


# What later versions of PyTorch have in their dictionaries beside what 1.13 has, which ours are: they take them without.
# FORMER: what the last ones have no more.
LATER = set() if torch.__version__ < "2" else {"_anneal_func_type", "_is_initial", "capturable", "decoupled_weight_decay", "default_min_lr",
                                               "differentiable", "fused", "use_beta1"}
FORMER = set() if torch.__version__ < "2" else {"verbose"}


class Same(unittest.TestCase):
    def same(self, a, b, what, rel=1e-12):
        """a is ours, b PyTorch's: the same keys and values; PyTorch's functions and weak references are left out."""
        if isinstance(b, dict):
            skip = {"anneal_func", "_scale_fn_ref"} | (LATER - set(a))
            known = set(a) - (FORMER - set(b))
            self.assertEqual(sorted(known), sorted(k for k in b if k not in skip), what)
            for k in known:
                if k == "_step_count" and "_schedulers" in what and LATER:
                    self.assertIn(a[k] - b[k], (0, 1), what)  # the last ones do not count how a part of a sequence begins
                    continue
                self.same(a[k], b[k], "%s %s" % (what, k), rel)
        elif isinstance(b, (list, tuple)):
            self.assertEqual(len(a), len(b), what)
            for x, y in zip(a, b):
                self.same(x, y, what, rel)
        elif isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7, msg=what)
        elif isinstance(b, float) or isinstance(a, float):
            self.assertTrue(math.isclose(a, b, rel_tol=rel), "%s: %r, PyTorch: %r" % (what, a, b))
        elif b is None:
            self.assertFalse(a, what)
        else:
            self.assertEqual(a, b, what)


class Optimizers(Same):
    def state_of(self, b, like):
        """Ours as PyTorch's dict, a copy: it would take the tensors themselves."""
        groups = [{**asked(group_values, b, g), "params": group["params"]} for g, group in enumerate(like["param_groups"])]
        return copy.deepcopy({"state": {i: asked(param_state, b, i) for i in range(2)}, "param_groups": groups})

    def compare(self, their, our, groups=False, steps=12):
        net = torch.nn.Linear(37, 19)
        mine = nn_linear(E, 37, 19, C.byref(LinearOptions()))
        load(mine, net)
        params = [{"params": [net.weight]}, {"params": [net.bias], "lr": 0.003, "weight_decay": 0.0}] if groups else net.parameters()
        a, b = their(params), our(mine)
        check()
        if groups:
            s = (Setting * 2)(Setting(b"lr", 0.003), Setting(b"weight_decay", 0.0))
            is_bias = TEST(lambda arg, name, p: name == b"bias")
            self.assertEqual(add_group(b, None, is_bias, None, C.byref(Settings(s, 2))), 1)
        for k in range(steps):
            w = torch.randn(5, 19) * (1 + k % 3)
            x = torch.randn(5, 37)
            a.zero_grad(), zero_grad(b)
            (net(x) * w).sum().backward()
            backward(E, total(E, mul(E, forward(mine, ours(x)), ours(w))))
            a.step(), optim_step(b)
            step_end(E)
            check()
            for (name, p), q in zip(tensor_list(mine), net.parameters()):
                torch.testing.assert_close(theirs(p), q.detach(), rtol=2e-5, atol=2e-6, msg="%s %s step %d" % (a, name, k))
            if k == steps // 2:
                a.load_state_dict(self.state_of(b, a.state_dict()))
        sd = a.state_dict()
        for g, group in enumerate(sd["param_groups"]):
            self.same(asked(group_values, b, g), {k: v for k, v in group.items() if k != "params"}, "group")
        for i in range(2):
            self.assertEqual(list(asked(param_state, b, i)), list(sd["state"].get(i, {})))
            for k, v in sd["state"].get(i, {}).items():
                mine_v = asked(param_state, b, i)[k]
                if isinstance(v, torch.Tensor) and isinstance(mine_v, torch.Tensor):
                    torch.testing.assert_close(mine_v, v, rtol=1e-4, atol=1e-5, msg=k)
                else:
                    self.assertEqual(mine_v, v)

    def test_sgd(self):
        for k in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"weight_decay": 0.1},
                  {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.01}, {"momentum": 0.5, "maximize": True}):
            for groups in (False, True):
                self.compare(lambda p: torch.optim.SGD(p, 0.01, **k), lambda m: sgd(m, C.byref(SgdOptions(lr=0.01, **k))), groups)

    def test_adam_and_adamw(self):
        for k in ({}, {"weight_decay": 0.05}, {"amsgrad": True}, {"maximize": True, "eps": 1e-5},
                  {"amsgrad": True, "maximize": True, "weight_decay": 0.3}):
            o = AdamOptions(lr=0.01, **k)
            self.compare(lambda p: torch.optim.Adam(p, 0.01, **k), lambda m: adam(m, C.byref(o)))
            self.compare(lambda p: torch.optim.AdamW(p, 0.01, **k), lambda m: adamw(m, C.byref(o)), True)

    def test_adam_without_beta1(self):
        def mine(m):
            o = adam(m, C.byref(AdamOptions(beta2=0.9)))
            self.assertEqual(set_number(o, 0, b"beta1", 0), 0)
            return o
        self.compare(lambda p: torch.optim.Adam(p, betas=(0.0, 0.9)), mine)

    def test_rmsprop(self):
        for k in ({}, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.5, "centered": True, "weight_decay": 0.01},
                  {"alpha": 0.9, "eps": 1e-6, "maximize": True}):
            self.compare(lambda p: torch.optim.RMSprop(p, 0.01, **k), lambda m: rmsprop(m, C.byref(RmspropOptions(lr=0.01, **k))))

    def test_adagrad(self):
        for k in ({}, {"lr_decay": 0.1}, {"weight_decay": 0.1, "maximize": True}, {"initial_accumulator_value": 0.3}):
            self.compare(lambda p: torch.optim.Adagrad(p, 0.1, **k), lambda m: adagrad(m, C.byref(AdagradOptions(lr=0.1, **k))))


def falling(k, arg=None):
    return 1.0 / (1 + 0.01 * k)


FALLING = SCALE(falling)


def sequence(o, *stages):
    made = (Stage * len(stages))(*[Stage(lr, until) for lr, until in stages])
    return sequential_of(o, made, len(stages))


def milestones(*steps):
    return (L * len(steps))(*steps), len(steps)


class Schedulers(Same):
    # PyTorch's and ours, over hundreds of steps.
    CASES = {
        "step": (lambda o: S.StepLR(o, 30, 0.7), lambda o: step_lr(o, 30, 0.7)),
        "multi": (lambda o: S.MultiStepLR(o, [90, 40, 40], 0.3), lambda o: multi_step(o, 0.3, *milestones(90, 40, 40))),
        "exponential": (lambda o: S.ExponentialLR(o, 0.99), lambda o: exponential(o, 0.99)),
        "constant": (lambda o: S.ConstantLR(o, 0.25, 17), lambda o: constant(o, 0.25, 17)),
        "linear": (lambda o: S.LinearLR(o, 0.1, 0.9, 33), lambda o: linear(o, 0.1, 0.9, 33)),
        "linear down": (lambda o: S.LinearLR(o, 1, 0.2, 50), lambda o: linear(o, 1, 0.2, 50)),
        "polynomial": (lambda o: S.PolynomialLR(o, 120, 0.9), lambda o: polynomial(o, 120, 0.9)),
        "cosine": (lambda o: S.CosineAnnealingLR(o, 25, 0.003), lambda o: cosine(o, 25, 0.003)),
        "warm": (lambda o: S.CosineAnnealingWarmRestarts(o, 10, 2, 0.001), lambda o: warm(o, 10, 2, 0.001)),
        "lambda": (lambda o: S.LambdaLR(o, falling), lambda o: lambda_lr(o, FALLING, None)),
        "multiplicative": (lambda o: S.MultiplicativeLR(o, falling), lambda o: multiplicative(o, FALLING, None)),
        "one cycle": (lambda o: S.OneCycleLR(o, 0.7, 200), lambda o: one_cycle_of(o, 0.7, 200, C.byref(OneCycleOptions()))),
        "one cycle of three": (
            lambda o: S.OneCycleLR(o, [0.7, 0.2], 210, pct_start=0.4, anneal_strategy="linear", three_phase=True, div_factor=10,
                                   final_div_factor=50, base_momentum=0.7, max_momentum=0.9),
            lambda o: one_cycle_of(o, 0, 210, C.byref(OneCycleOptions(
                pct_start=0.4, linear=True, three_phase=True, div_factor=10, final_div_factor=50, base_momentum=0.7,
                max_momentum=0.9, max_lrs=C.cast((D * 2)(0.7, 0.2), P))))),
        "cyclic": (lambda o: S.CyclicLR(o, 0.01, 0.4, 20), lambda o: cyclic_of(o, 0.01, 0.4, C.byref(CyclicOptions(20)))),
        "cyclic 2": (lambda o: S.CyclicLR(o, 0.01, 0.4, 20, 35, "triangular2", cycle_momentum=False),
                     lambda o: cyclic_of(o, 0.01, 0.4, C.byref(CyclicOptions(20, 35, 1, no_momentum=True)))),
        "cyclic exp": (lambda o: S.CyclicLR(o, 0.01, 0.4, 20, mode="exp_range", gamma=0.99, base_momentum=0.5),
                       lambda o: cyclic_of(o, 0.01, 0.4, C.byref(CyclicOptions(20, 0, 2, 0.99, base_momentum=0.5)))),
        "chained": (lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 12), S.ExponentialLR(o, 0.98)]),
                    lambda o: chained_of(o, (P * 2)(constant(o, 0.1, 12), exponential(o, 0.98)), 2)),
        "sequence": (lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1, 20), S.CosineAnnealingLR(o, 60), S.ExponentialLR(o, 0.97)],
                                              [20, 80]),
                     lambda o: sequence(o, (linear(o, 0.1, 1, 20), 20), (cosine(o, 60, 0), 80), (exponential(o, 0.97), 0))),
        "sequence of others": (
            lambda o: S.SequentialLR(o, [S.MultiStepLR(o, [5], 0.5), S.CosineAnnealingWarmRestarts(o, 9), S.LambdaLR(o, falling),
                                         S.StepLR(o, 4, 0.9)], [15, 50, 90]),
            lambda o: sequence(o, (multi_step(o, 0.5, *milestones(5)), 15), (warm(o, 9, 1, 0), 50), (lambda_lr(o, FALLING, None), 90),
                               (step_lr(o, 4, 0.9), 0))),
    }

    def make(self, case, kind="sgd"):
        """PyTorch's optimizer and scheduler and ours, with two groups of different rates."""
        their, our = self.CASES[case] if isinstance(case, str) else case
        p = [torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))]
        groups = [{"params": p[:1]}, {"params": p[1:], "lr": 0.05}]
        mine = nn_linear(E, 3, 2, C.byref(LinearOptions()))
        a = torch.optim.SGD(groups, 0.1, 0.9) if kind == "sgd" else torch.optim.Adam(groups, 0.1)
        b = sgd(mine, C.byref(SgdOptions(lr=0.1, momentum=0.9))) if kind == "sgd" else adam(mine, C.byref(AdamOptions(lr=0.1)))
        s = (Setting * 1)(Setting(b"lr", 0.05))
        add_group(b, None, TEST(lambda arg, name, p: name == b"bias"), None, C.byref(Settings(s, 1)))
        ret = a, their(a), b, our(b)
        a.step()
        check()
        return ret

    def rates(self, a, b, what):
        for g in range(2):
            group = a.param_groups[g]
            self.same(get_number(b, g, b"lr"), group["lr"], "%s: rate" % what, 1e-10)
            if "momentum" in group:
                self.same(get_number(b, g, b"momentum"), group["momentum"], "%s: momentum" % what)
            else:
                self.same(get_number(b, g, b"beta1"), group["betas"][0], "%s: beta1" % what)

    def test_all_over_200_steps(self):
        for case in self.CASES:
            a, x, b, y = self.make(case)
            for k in range(200):
                what = "%s step %d" % (case, k)
                self.rates(a, b, what)
                if k % 40 == 0 or k == 199:
                    self.same(asked(lr_state, y), x.state_dict(), what, 1e-10)
                x.step(), lr_step(y)
                check()

    def test_adam_cycles_beta1(self):
        a, x, b, y = self.make("one cycle", "adam")
        for k in range(200):
            self.rates(a, b, "step %d" % k)
            x.step(), lr_step(y)
        self.same(asked(lr_state, y), x.state_dict(), "one cycle")

    def test_resumed_in_the_middle(self):
        for case in self.CASES:
            _, _, b, y = self.make(case)
            for k in range(57):
                lr_step(y)
            _, _, b2, y2 = self.make(case)
            n = N()
            v = lr_state(y, C.byref(n))
            self.assertEqual(lr_load(y2, v, n, C.byref(ERR)), 0, ERR.text)
            for g in range(2):
                set_lr(b2, g, get_number(b, g, b"lr"))
            for k in range(57, 150):
                lr_step(y), lr_step(y2)
                check()
                self.assertEqual([get_number(b, g, b"lr") for g in range(2)], [get_number(b2, g, b"lr") for g in range(2)], case)

    def test_plateau(self):
        for k, o in (({}, PlateauOptions()), ({"mode": "max", "factor": 0.5, "threshold_mode": "abs", "threshold": 0.01, "cooldown": 3},
                                              PlateauOptions(maximize=True, factor=0.5, absolute=True, threshold=0.01, cooldown=3)),
                     ({"min_lr": 0.02, "factor": 0.3}, PlateauOptions(min_lr=0.02, factor=0.3))):
            a, x, b, y = self.make((lambda t: S.ReduceLROnPlateau(t, patience=4, **k), lambda t: plateau_of(t, 4, C.byref(o))))
            for step in range(120):
                metric = math.exp(-step / 30) + 0.05 * math.sin(step * 7)
                x.step(metric), lr_metric(y, metric)
                self.rates(a, b, "plateau step %d" % step)
            self.same(asked(lr_state, y), x.state_dict(), "plateau")


if __name__ == "__main__":
    unittest.main(verbosity=1)

#!/usr/bin/env python3
"""Modules of sequences against PyTorch from the same weights: values, states, gradients; and the first ten losses of
an LSTM language model and of a small GPT-2 whose output layer is its embedding.

usage: test_torch_seq.py LIBRARY      exit status 77: PyTorch is absent, nothing was tested
"""
import ctypes as C
import math
import unittest

from engine import (B, D, E, I, L, P, AdamOptions, LinearOptions, SgdOptions, adam, backward, check, cross_entropy, double, fn,
                    forward, grad, item, load, module_add, module_destroy, mul, nn_linear, nn_module, optim_step, ours,
                    sgd, step_end, tensor_list, theirs, total, zero_grad)
import torch
from torch import nn
from torch.nn import functional as F


class EmbeddingOptions(C.Structure):
    _fields_ = [("padding", B), ("padding_idx", L)]


class RowOptions(C.Structure):
    _fields_ = [("eps", D), ("no_bias", B), ("plain", B)]


class RnnOptions(C.Structure):
    _fields_ = [("layers", I), ("no_bias", B), ("batch_first", B), ("bidirectional", B), ("dropout", D)]


class RnnState(C.Structure):
    _fields_ = [("h", P), ("c", P)]


class MultiheadOptions(C.Structure):
    _fields_ = [("no_bias", B), ("batch_first", B), ("dropout", D)]


class AttentionOptions(C.Structure):
    _fields_ = [("mask", P), ("causal", B), ("dropout", D), ("scale", D)]


nn_embedding = fn("det_nn_embedding_create", P, P, L, L, C.POINTER(EmbeddingOptions))
nn_layer_norm, nn_rms_norm = (fn("det_nn_%s_norm_create" % n, P, P, L, C.POINTER(RowOptions)) for n in ("layer", "rms"))
nn_group_norm = fn("det_nn_group_norm_create", P, P, L, L, C.POINTER(RowOptions))
nn_lstm, nn_gru = (fn("det_nn_%s_create" % n, P, P, L, L, C.POINTER(RnnOptions)) for n in ("lstm", "gru"))
rnn_forward = fn("det_rnn_forward", P, P, P, C.POINTER(RnnState))
rnn_keep = fn("det_rnn_state_keep", None, P, C.POINTER(RnnState), C.POINTER(RnnState))
rnn_finish = fn("det_rnn_state_finish", None, C.POINTER(RnnState))
nn_multihead = fn("det_nn_multihead_attention_create", P, P, L, L, C.POINTER(MultiheadOptions))
multihead = fn("det_multihead_forward", P, P, P, P, P, C.POINTER(AttentionOptions))
packed_attention = fn("det_packed_attention_opt", P, P, P, L, C.POINTER(AttentionOptions))
share_param = fn("det_module_share_param", P, P, C.c_char_p, P, C.c_char_p)
params = fn("det_module_params", P, P, C.POINTER(C.c_size_t))
reshape = fn("det_reshape", P, P, P, I, C.POINTER(L))
add, gelu_tanh = fn("det_add", P, P, P, P), fn("det_gelu_tanh", P, P, P)
positions = fn("det_sinusoidal_positions", P, P, L, L)
module_zero_grad = fn("det_module_zero_grad", None, P)
clip_norm = fn("det_clip_grad_norm", P, P, D)


def state_of(h, c=None):
    return RnnState(ours(h), ours(c) if c is not None else None)


class Modules(unittest.TestCase):
    def close(self, a, b, what, allowed=2e-5):
        self.assertEqual(a.shape, b.shape, what)
        self.assertLess(float((a - b).abs().max()) / max(float(b.abs().max()), 1e-3), allowed, what)

    def gradients(self, net, mine, y, z, what):
        """Of the same weighted sum of both outputs, for all parameters; ends the step."""
        w = torch.rand_like(z)
        net.zero_grad(), module_zero_grad(mine)
        (z * w).sum().backward()
        self.close(theirs(y), z.detach(), what)
        self.assertEqual(backward(E, total(E, mul(E, y, ours(w)))), 0)
        check()
        named = dict(net.named_parameters())
        for name, p in tensor_list(mine):
            if name in named:
                self.close(theirs(grad(p)), named[name].grad, "%s: gradient of %s" % (what, name))
        step_end(E)

    def rnn(self, what, net, make, **options):
        mine = make(E, net.input_size, net.hidden_size, C.byref(RnnOptions(layers=net.num_layers, **options)))
        check()
        load(mine, net)
        x = torch.randn(3, 5, net.input_size)
        rows = net.num_layers * (2 if net.bidirectional else 1)
        batch = 3 if net.batch_first else 5
        self.gradients(net, mine, forward(mine, ours(x)), net(x)[0], what)
        h, c = torch.randn(rows, batch, net.hidden_size), torch.randn(rows, batch, net.hidden_size)
        lstm = isinstance(net, nn.LSTM)
        s = state_of(h, c if lstm else None)
        y = rnn_forward(mine, ours(x), C.byref(s))
        z, after = net(x, (h, c) if lstm else h)
        for got, want in zip((s.h, s.c), after if lstm else (after,)):
            self.close(theirs(got), want.detach(), what + ": state")
        self.gradients(net, mine, y, z, what + " with a state")
        module_destroy(mine)

    def test_lstm_and_gru(self):
        for kind, make in ((nn.LSTM, nn_lstm), (nn.GRU, nn_gru)):
            name = kind.__name__
            self.rnn(name, kind(7, 11), make)
            self.rnn(name + " 2 layers", kind(7, 18, num_layers=2), make)
            self.rnn(name + " batch first", kind(4, 5, batch_first=True), make, batch_first=True)
            self.rnn(name + " no bias", kind(4, 5, bias=False), make, no_bias=True)
            self.rnn(name + " both ways", kind(4, 5, 2, bidirectional=True), make, bidirectional=True)

    def test_norms_and_embedding(self):
        for net, mine, x in (
                (nn.LayerNorm(9), nn_layer_norm(E, 9, C.byref(RowOptions())), torch.randn(4, 3, 9)),
                (nn.GroupNorm(3, 6), nn_group_norm(E, 3, 6, C.byref(RowOptions())), torch.randn(4, 6, 5, 3)),
                (nn.Embedding(11, 5, padding_idx=3),
                 nn_embedding(E, 11, 5, C.byref(EmbeddingOptions(True, 3))), torch.randint(0, 11, (4, 6)))):
            check()
            if isinstance(net, nn.Embedding):
                self.assertEqual(float(theirs(tensor_list(mine)[0][1])[3].abs().sum()), 0)
            load(mine, net)
            self.gradients(net, mine, forward(mine, ours(x)), net(x), type(net).__name__)
            module_destroy(mine)

    def test_multihead_attention(self):
        for options in ({}, {"batch_first": True}, {"bias": False}):
            net = nn.MultiheadAttention(12, 3, **options)
            mine = nn_multihead(E, 12, 3, C.byref(MultiheadOptions(no_bias=not options.get("bias", True),
                                                                   batch_first=options.get("batch_first", False))))
            check()
            load(mine, net)
            x, other = torch.randn(4, 5, 12), torch.randn(*((4, 6, 12) if "batch_first" in options else (6, 5, 12)))
            self.gradients(net, mine, forward(mine, ours(x)), net(x, x, x)[0], "self attention %s" % options)
            y = multihead(mine, ours(x), ours(other), None, None)
            self.gradients(net, mine, y, net(x, other, other)[0], "cross attention %s" % options)
            module_destroy(mine)

    def test_initial_values_have_the_same_distribution(self):
        for net, mine in ((nn.LSTM(40, 50), nn_lstm(E, 40, 50, C.byref(RnnOptions()))),
                          (nn.Embedding(100, 40), nn_embedding(E, 100, 40, C.byref(EmbeddingOptions()))),
                          (nn.MultiheadAttention(40, 4), nn_multihead(E, 40, 4, C.byref(MultiheadOptions())))):
            check()
            for (name, p), (want, t) in zip(tensor_list(mine), net.state_dict().items()):
                self.assertEqual(name, want)
                self.assertLess(abs(float(theirs(p).std() - t.std())), 0.1 * float(t.std()) + 1e-9, name)
            module_destroy(mine)

    def test_sinusoidal_positions(self):
        t, i = torch.arange(7.0)[:, None], torch.arange(0, 10, 2)
        angles = t / 10000 ** (i / 10)
        want = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.close(theirs(positions(E, 7, 10)), want, "positions")
        step_end(E)


class LanguageModel(nn.Module):
    def __init__(self, words, width, layers):
        super().__init__()
        self.encoder, self.rnn = nn.Embedding(words, width), nn.LSTM(width, width, layers)
        self.decoder = nn.Linear(width, words)

    def forward(self, x, state):
        y, state = self.rnn(self.encoder(x), state)
        return self.decoder(y).flatten(0, 1), state


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.proj, self.ln_2 = nn.Linear(width, width), nn.LayerNorm(width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)


class Gpt2(nn.Module):
    def __init__(self, words, time, width, heads, layers):
        super().__init__()
        self.heads = heads
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(time, width)
        self.h = nn.Sequential(*[Block(width) for _ in range(layers)])
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def attend(self, x):
        q, k, v = (t.transpose(1, 2) for t in x.unflatten(2, (3, self.heads, -1)).unbind(2))
        mask = torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)
        return ((q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask).softmax(-1) @ v).transpose(1, 2).flatten(2)

    def forward(self, x):
        y = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for b in self.h:
            y = y + b.proj(self.attend(b.attn(b.ln_1(y))))
            y = y + b.out(F.gelu(b.fc(b.ln_2(y)), approximate="tanh"))
        return self.lm_head(self.ln_f(y)).flatten(0, 1)


def add_layers(root, *layers):
    return {name: module_add(root, name.encode(), m) for name, m in layers}


def our_linear(i, o, bias=True):
    return nn_linear(E, i, o, C.byref(LinearOptions(no_bias=not bias)))


def our_gpt2(net, words, time, width, layers):
    """The modules by name; "root" is all of them."""
    def norm():
        return nn_layer_norm(E, width, C.byref(RowOptions()))
    root, table = nn_module(E), C.byref(EmbeddingOptions())
    m = add_layers(root, ("wte", nn_embedding(E, words, width, table)), ("wpe", nn_embedding(E, time, width, table)))
    h = module_add(root, b"h", nn_module(E))
    m["blocks"] = [add_layers(module_add(h, str(i).encode(), nn_module(E)), ("ln_1", norm()),
                              ("attn", our_linear(width, 3 * width)), ("proj", our_linear(width, width)),
                              ("ln_2", norm()), ("fc", our_linear(width, 4 * width)),
                              ("out", our_linear(4 * width, width))) for i in range(layers)]
    m.update(add_layers(root, ("ln_f", norm()), ("lm_head", our_linear(width, words, False))))
    share_param(m["lm_head"], b"weight", m["wte"], b"weight")
    check()
    load(root, net)
    return {**m, "root": root}


def gpt2_forward(m, x, heads):
    y = add(E, forward(m["wte"], ours(x)), forward(m["wpe"], ours(torch.arange(x.shape[1]))))
    causal = C.byref(AttentionOptions(causal=True))
    for b in m["blocks"]:
        a = packed_attention(E, forward(b["attn"], forward(b["ln_1"], y)), heads, causal)
        y = add(E, y, forward(b["proj"], a))
        y = add(E, y, forward(b["out"], gelu_tanh(E, forward(b["fc"], forward(b["ln_2"], y)))))
    y = forward(m["lm_head"], forward(m["ln_f"], y))
    check()
    words = theirs(y).shape[-1]
    return reshape(E, y, 2, (L * 2)(-1, words))


class Losses(unittest.TestCase):
    def equal(self, pairs, allowed):
        for i, (a, b) in enumerate(pairs):
            self.assertAlmostEqual(a, b, delta=allowed * abs(b), msg="loss %d of %s" % (i, pairs))

    def language_model(self, f64, allowed):
        words, width, time, batch = 101, 24, 7, 5
        net = LanguageModel(words, width, 2)
        root = nn_module(E)
        m = add_layers(root, ("encoder", nn_embedding(E, words, width, C.byref(EmbeddingOptions()))),
                       ("rnn", nn_lstm(E, width, width, C.byref(RnnOptions(layers=2)))),
                       ("decoder", our_linear(width, words)))
        if f64:
            net.double(), double(root)
        load(root, net)
        theirs_o, ours_o = torch.optim.SGD(net.parameters(), 2.0), sgd(root, C.byref(SgdOptions(lr=2.0)))
        kept, state, pairs = RnnState(), None, []
        for _ in range(10):
            x, y = torch.randint(0, words, (time, batch)), torch.randint(0, words, (time * batch,))
            theirs_o.zero_grad()
            out, state = net(x, state)
            state = tuple(s.detach() for s in state)
            loss = F.cross_entropy(out, y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.25)
            theirs_o.step()
            zero_grad(ours_o)
            s = RnnState(kept.h, kept.c)
            out = forward(m["decoder"], rnn_forward(m["rnn"], forward(m["encoder"], ours(x)), C.byref(s)))
            our_loss = cross_entropy(E, reshape(E, out, 2, (L * 2)(-1, words)), ours(y))
            rnn_keep(E, C.byref(kept), C.byref(s))
            backward(E, our_loss)
            clip_norm(root, 0.25)
            optim_step(ours_o)
            pairs.append((item(E, our_loss), float(loss)))
            step_end(E)
        check()
        rnn_finish(C.byref(kept))
        self.equal(pairs, allowed)

    def test_lstm_language_model_first_ten_losses(self):
        self.language_model(False, 2e-5)

    def test_lstm_language_model_in_f64(self):
        self.language_model(True, 1e-9)

    def gpt2(self, f64, allowed):
        words, time, width, heads, layers = 131, 16, 48, 4, 3
        net = Gpt2(words, time, width, heads, layers)
        for p in net.parameters():
            nn.init.normal_(p, 0, 0.1) if p.dim() > 1 else None
        m = our_gpt2(net, words, time, width, layers)
        if f64:
            net.double(), double(m["root"]), load(m["root"], net)
        n = C.c_size_t()
        params(m["root"], C.byref(n))
        self.assertEqual(n.value, len(list(net.parameters())))
        theirs_o = torch.optim.Adam(net.parameters(), 1e-3)
        ours_o, pairs = adam(m["root"], C.byref(AdamOptions(lr=1e-3))), []
        for _ in range(10):
            x, y = torch.randint(0, words, (2, time)), torch.randint(0, words, (2 * time,))
            theirs_o.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            theirs_o.step()
            zero_grad(ours_o)
            our_loss = cross_entropy(E, gpt2_forward(m, x, heads), ours(y))
            backward(E, our_loss)
            optim_step(ours_o)
            pairs.append((item(E, our_loss), float(loss)))
            step_end(E)
            check()
        self.equal(pairs, allowed)

    def test_gpt2_first_ten_losses(self):
        self.gpt2(False, 1e-4)

    def test_gpt2_in_f64(self):
        self.gpt2(True, 1e-9)


if __name__ == "__main__":
    unittest.main(verbosity=1)

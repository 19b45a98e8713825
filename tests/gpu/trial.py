#!/usr/bin/env python3
"""A PyTorchTrial on a device: where its tensors are, mixed precision with a scaler, and resuming.

usage: trial.py DEVICE      cuda, or cpu (the same without a GPU; bfloat16 there)
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import torch  # noqa: E402
from determined import pytorch  # noqa: E402
from support import LineTrial, fit, store  # noqa: E402

DEVICE = "cuda" if sys.argv.pop(1) == "cuda" else "cpu"
Batch = pytorch.Batch
# torch.cuda.amp's is deprecated since 2.4, and the other one is not there before 2.3.
GradScaler = getattr(torch.amp, "GradScaler", None) if hasattr(torch, "amp") else None
GradScaler = GradScaler or torch.cuda.amp.GradScaler


class Kept(pytorch.PyTorchCallback):
    def __init__(self):
        self.uuids = []

    def on_checkpoint_upload_end(self, uuid):
        self.uuids.append(uuid)


class Placed(LineTrial):
    """Draws on the device, so that the device's random state counts."""

    def __init__(self, context):
        super().__init__(context)
        self.kept, self.places = Kept(), set()

    def build_callbacks(self):
        return {"kept": self.kept}

    def loss(self, batch):
        x, y = batch
        self.places |= {t.device.type for t in (x, y, self.model.weight)}
        noise = torch.rand(x.shape, device=x.device) if self.model.training else 0
        return ((self.model(x + noise) - y) ** 2).mean()


class Mixed(Placed):
    def __init__(self, context):
        self.scaler, self.forward_types = context.wrap_scaler(GradScaler(enabled=DEVICE == "cuda")), set()
        super().__init__(context)

    def loss(self, batch):
        with torch.autocast(DEVICE, dtype=torch.float16 if DEVICE == "cuda" else torch.bfloat16):
            self.forward_types.add(self.model(batch[0]).dtype)
            return super().loss(batch)

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.loss(batch)
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optim, scaler=self.scaler)
        self.scaler.update()
        return {"loss": loss}


def weights(trial):
    return {k: v.cpu() for k, v in trial.model.state_dict().items()}


class OnDevice(unittest.TestCase):
    def resumed(self, trial_class):
        with store():
            whole = fit(trial_class, Batch(9), checkpoint_period=Batch([4]), checkpoint_policy="none")
            rest = fit(trial_class, Batch(9), seed=99, latest_checkpoint=whole.kept.uuids[0], checkpoint_policy="none")
        self.assertEqual(whole.places, {DEVICE})
        for name, value in weights(whole).items():
            self.assertTrue(torch.isfinite(value).all())
            self.assertTrue(torch.equal(value, weights(rest)[name]), name)
        return whole

    def test_resumed_bit_for_bit(self):
        self.resumed(Placed)

    def test_mixed_precision(self):
        whole = self.resumed(Mixed)
        self.assertEqual(whole.forward_types, {torch.float16 if DEVICE == "cuda" else torch.bfloat16})


if __name__ == "__main__":
    unittest.main(verbosity=1)

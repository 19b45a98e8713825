"""Mixed precision by apex, with a stand-in: a loss scaler of 4 that counts its updates."""
import contextlib
import os
import sys
import types
import unittest
from unittest import mock

import torch
from determined import errors, pytorch
from determined.pytorch import Batch
from support import LineTrial, fit, store


class Amp(types.ModuleType):
    def __init__(self):
        super().__init__("apex.amp")
        self.options, self.steps = None, 0

    def initialize(self, models, optimizers=None, enabled=True, opt_level="O1", cast_model_type=None, patch_torch_functions=None,
                   keep_batchnorm_fp32=None, master_weights=None, loss_scale=None, cast_model_outputs=None, num_losses=1, verbosity=1,
                   min_loss_scale=None, max_loss_scale=2.0**24):
        self.options = {"opt_level": opt_level, "max_loss_scale": max_loss_scale}
        return models, optimizers

    @contextlib.contextmanager
    def scale_loss(self, loss, optimizers):
        yield loss * 4
        for p in self.master_params(optimizers[0]):
            p.grad /= 4
        self.steps += 1

    def master_params(self, optimizer):
        return (p for group in optimizer.param_groups for p in group["params"])

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


@contextlib.contextmanager
def modules(named):
    """Only these come and go: patch.dict would take away what torch imports meanwhile."""
    sys.modules.update(named)
    try:
        yield
    finally:
        for name in named:
            del sys.modules[name]


@contextlib.contextmanager
def installed():
    amp, apex = Amp(), types.ModuleType("apex")
    apex.amp = amp
    with modules({"apex": apex, "apex.amp": amp}):
        yield amp


def configure(context, models, optimizers, **options):
    """As on a GPU: only the check of the device sees it."""
    with mock.patch.object(context, "device", torch.device("cuda")), unittest.TestCase().assertWarns(FutureWarning):
        return context.configure_apex_amp(models, optimizers, **options)


class Mixed(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        self.model, self.optim = configure(context, self.model, self.optim, opt_level="O2")

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optim, clip_grads=lambda params: torch.nn.utils.clip_grad_norm_(params, 5.0))
        return {"loss": loss}


class Plain(Mixed):
    def __init__(self, context):
        LineTrial.__init__(self, context)


class Apex(unittest.TestCase):
    def test_training(self):
        """The loss is scaled and the gradients are not; the scaler's state is in checkpoints."""
        with store() as where, installed() as amp:
            trial = fit(Mixed, Batch(3))
            self.assertEqual((amp.options["opt_level"], amp.options["max_loss_scale"], amp.steps), ("O2", 2.0**24, 3))
            uuid = os.listdir(where)[0]
            self.assertEqual(torch.load(os.path.join(where, uuid, "state_dict.pth"))["amp_state"], {"steps": 3})
            amp.steps = 0
            fit(Mixed, Batch(4), latest_checkpoint=uuid)
            self.assertEqual(amp.steps, 4)
        with store():
            self.assertTrue(torch.equal(fit(Plain, Batch(3)).model.weight, trial.model.weight))

    def test_wrong_use(self):
        def twice(context, trial):
            configure(context, trial.model, trial.optim)
            configure(context, trial.model, trial.optim)

        def with_scaler(context, trial):
            context._scaler = types.SimpleNamespace(is_enabled=lambda: True)
            configure(context, trial.model, trial.optim)

        def model_after(context, trial):
            configure(context, trial.model, trial.optim)
            context.wrap_model(torch.nn.Linear(1, 1))

        def optimizer_after(context, trial):
            configure(context, trial.model, trial.optim)
            context.wrap_optimizer(trial.optim)

        for wrong, said in ((twice, "twice"), (with_scaler, "exclude"), (model_after, "before configure_apex_amp"), (optimizer_after, "before configure_apex_amp"),
                            (lambda context, trial: context.configure_apex_amp(trial.model, trial.optim), "needs a GPU")):
            with installed(), store(), pytorch.init() as context, self.subTest(said):
                trial = LineTrial(context)
                with self.assertRaisesRegex(errors.InvalidExperimentException, said):
                    wrong(context, trial)

    def test_two_losses(self):
        class Two(Mixed):
            def train_batch(self, batch, epoch_idx, batch_idx):
                self.context.backward(self.loss(batch))
                self.context.backward(self.loss(batch))

        with installed(), store(), self.assertRaisesRegex(errors.InvalidExperimentException, "twice in one batch"):
            fit(Two, Batch(1))

    def test_not_installed(self):
        with store(), pytorch.init() as context, modules({"apex": None}):
            trial = LineTrial(context)
            self.assertEqual(context.configure_apex_amp(trial.model, trial.optim, enabled=False), (trial.model, trial.optim))
            with self.assertRaisesRegex(errors.InvalidExperimentException, "not installed.*use_amp"):
                configure(context, trial.model, trial.optim)


if __name__ == "__main__":
    unittest.main()

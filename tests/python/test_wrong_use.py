"""Wrong use of the package: each kind gets its error or warning, with the call that mends it."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import determined as det
import torch
from determined import _python, core, errors, pytorch
from determined.core import _alive
from determined.common.check import CheckFailedError
from determined.exec import harness
from determined.experimental import client, test_one_batch
from determined.launch import deepspeed, horovod, torch_distributed
from determined.pytorch import _mistakes
from support import LineTrial, Numbers, fit, store
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

Batch = pytorch.Batch
Invalid = errors.InvalidExperimentException
MODE = pytorch.LRScheduler.StepMode
KINDS = []


def kind(error, text, length=Batch(2), **options):
    """A LineTrial made wrong: fitting it ends in `error` whose text contains `text`."""
    def add(cls):
        KINDS.append((cls.__name__, error, text, cls, length, options))
        return cls
    return add


@kind(Invalid, r"call context.wrap_model\(\) in the trial's __init__\(\), and use what it returns")
class NoModel(LineTrial):
    def __init__(self, context):
        self.context = context


@kind(Invalid, r"call context.wrap_optimizer\(\) in the trial's __init__\(\)")
class NoOptimizer(LineTrial):
    def __init__(self, context):
        context.wrap_model(torch.nn.Linear(1, 1))


@kind(Invalid, r"exactly one of evaluate_batch\(\) and evaluate_full_dataset\(\)")
class NoEvaluation(LineTrial):
    evaluate_batch = pytorch.PyTorchTrial.evaluate_batch


@kind(Invalid, r"exactly one of evaluate_batch\(\) and evaluate_full_dataset\(\)")
class BothEvaluations(LineTrial):
    def evaluate_full_dataset(self, data_loader):
        return {}


@kind(Invalid, r"use what context.wrap_optimizer\(\) returned")
class StrangeOptimizer(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.context.step_optimizer(torch.optim.SGD(self.model.parameters(), lr=1))


@kind(errors.InternalException, "training has not started")
class StepInInit(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        context.step_optimizer(self.optim)


@kind(Invalid, "auto_zero_grads=False", aggregation_frequency=2)
class KeepsGradients(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.context.backward(self.loss(batch))
        self.context.step_optimizer(self.optim, auto_zero_grads=False)


@kind(TypeError, r"takes the loss as a tensor, not a float: call .item\(\) only on what is reported")
class LossIsANumber(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.context.backward(self.loss(batch).item())


@kind(RuntimeError, "Use determined.pytorch.DataLoader; or, .* you can disable this check by calling")
class PlainTrainingLoader(LineTrial):
    def build_training_data_loader(self):
        return torch.utils.data.DataLoader(Numbers())


@kind(RuntimeError, "Use determined.pytorch.DataLoader")
class PlainValidationLoader(LineTrial):
    def build_validation_data_loader(self):
        return torch.utils.data.DataLoader(Numbers())


@kind(RuntimeError, "Use determined.pytorch.DataLoader")
class LoaderForgotten(LineTrial):
    def build_training_data_loader(self):
        pytorch.DataLoader(Numbers())


@kind(RuntimeError, "validation_loader is empty")
class EmptyValidation(LineTrial):
    def build_validation_data_loader(self):
        return pytorch.DataLoader(Numbers(0))


@kind(TypeError, r"train_batch\(\) must return a dict of metrics or a loss tensor, not int")
class TrainsToANumber(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        return 5


@kind(TypeError, r"evaluate_batch\(\) must return a dict of metrics, not Tensor")
class EvaluatesToATensor(LineTrial):
    def evaluate_batch(self, batch, batch_idx):
        return self.loss(batch)


@kind(TypeError, r"evaluate_full_dataset\(\) must return a dict of metrics, not NoneType")
class EvaluatesToNothing(LineTrial):
    evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

    def evaluate_full_dataset(self, data_loader):
        pass


@kind(CheckFailedError, "inconsistent training metrics")
class ChangingNames(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        return {f"m{batch_idx}": 1.0}


@kind(ValueError, "Validation metric names must match across all batches of data")
class ChangingValidationNames(LineTrial):
    def evaluate_batch(self, batch, batch_idx):
        return {f"m{batch_idx}": 1.0}


@kind(TypeError, "metric names must be str")
class NumberedMetric(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        return {1: 1.0}


@kind(Invalid, 'no reducer for the metric "error"')
class ReducerOfAnother(LineTrial):
    def evaluation_reducer(self):
        return {"other": pytorch.Reducer.AVG}


@kind(Invalid, r"names \['other'\], which evaluate_batch\(\) does not return; it returns \['error'\]")
class ReducerTooMany(LineTrial):
    def evaluation_reducer(self):
        return {"error": pytorch.Reducer.AVG, "other": pytorch.Reducer.MAX}


@kind(Invalid, "is no determined.pytorch.Reducer")
class ReducerByName(LineTrial):
    def evaluation_reducer(self):
        return "mean"


@kind(Invalid, r"build_callbacks\(\) must return a dict of name to callback, not a list")
class ListOfCallbacks(LineTrial):
    def build_callbacks(self):
        return [pytorch.PyTorchCallback()]


@kind(Invalid, "derive it from determined.pytorch.PyTorchCallback")
class StrangeCallback(LineTrial):
    def build_callbacks(self):
        return {"a": object()}


class Strange:
    """A batch whose records nobody can count."""

    def to(self, device):
        return self


@kind(TypeError, r"override get_batch_length\(\)")
class UncountableBatch(LineTrial):
    def build_validation_data_loader(self):
        return pytorch.DataLoader(Numbers(), collate_fn=lambda records: Strange())

    def evaluate_batch(self, batch, batch_idx):
        return {"error": 1.0}


@kind(Invalid, "MANUAL_STEP and call its step")
class SteppedPlateau(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        context.wrap_lr_scheduler(ReduceLROnPlateau(self.optim), MODE.STEP_EVERY_BATCH)


@kind(Invalid, r"call context.wrap_optimizer\(\) before wrap_lr_scheduler\(\)")
class SchedulerOfAnother(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        context.wrap_lr_scheduler(StepLR(torch.optim.SGD(self.model.parameters(), lr=1), 1), MODE.MANUAL_STEP)


@kind(TypeError, "must be one of LRScheduler.StepMode")
class SchedulerModeAsText(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        context.wrap_lr_scheduler(StepLR(self.optim, 1), "epoch")


@kind(Invalid, "before wrap_model")
class LateAmp(LineTrial):
    def __init__(self, context):
        super().__init__(context)
        context.experimental.use_amp()


@kind(Invalid, "one serves all optimizers")
class TwoScalers(LineTrial):
    def __init__(self, context):
        context.wrap_scaler(torch.cuda.amp.GradScaler(enabled=False))
        context.wrap_scaler(torch.cuda.amp.GradScaler(enabled=False))


@kind(ValueError, 'no hyperparameter "lr"; there are: batch', hparams={"batch": 1})
class MissingHyperparameter(LineTrial):
    def __init__(self, context):
        context.get_hparam("lr")


@kind(ValueError, r"give them to determined.pytorch.init\(hparams=...\)")
class NoHyperparameters(LineTrial):
    def __init__(self, context):
        context.get_hparams()


@kind(Invalid, "must be a whole number of at least", hparams={"global_batch_size": "8"})
class BatchSizeAsText(LineTrial):
    pass


@kind(ValueError, "needs max_length in local training", length=None)
class NoLength(LineTrial):
    pass


@kind(TypeError, r"fit\(max_length=Batch\(\[1\]\)\): local training needs one whole number, such as Batch\(100\)", length=Batch([1]))
class LengthIsAList(LineTrial):
    pass


@kind(TypeError, r"fit\(max_length=...\) takes a determined.pytorch.Batch or Epoch, such as Batch\(100\), not 5", length=5)
class LengthIsANumber(LineTrial):
    pass


@kind(TypeError, r"fit\(validation_period=...\) takes .* not 2", validation_period=2)
class PeriodIsANumber(LineTrial):
    pass


@kind(FileNotFoundError, "checkpoint 0e3c1b8e", latest_checkpoint="0e3c1b8e-0000-4000-8000-000000000000")
class NoSuchCheckpoint(LineTrial):
    pass


@kind(Invalid, r"A trial does not call .*: determined.launch.torch_distributed .* rank and size are context.distributed.rank")
class OwnProcessGroup(LineTrial):
    def __init__(self, context):
        torch.distributed.init_process_group("gloo")


@kind(Invalid, r"of before 2020. Replace build_model\(\): call context.wrap_model\(\) in __init__\(\)")
class OldMethods(LineTrial):
    def build_model(self):
        return torch.nn.Linear(1, 1)

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=1)

    def create_lr_scheduler(self, optimizer):
        return pytorch.LRScheduler(StepLR(optimizer, 1), MODE.STEP_EVERY_EPOCH)


@kind(Invalid, r"evaluate_batch\(\): without the parameter `model`; use the model that __init__\(\) kept")
class OldArguments(LineTrial):
    def train_batch(self, batch, model, epoch_idx, batch_idx):
        return {}

    def evaluate_batch(self, batch, model):
        return {}


@kind(Invalid, r"evaluate_full_dataset\(\): without the parameter `model`")
class OldFullEvaluation(LineTrial):
    evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

    def evaluate_full_dataset(self, data_loader, model):
        return {}


@kind(Invalid, r"context.get_model\(\) is of the interface of before 2020: keep what context.wrap_model\(\) returns")
class OldModel(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.context.get_model()


@kind(Invalid, r"keep what context.wrap_optimizer\(\) returns")
class OldOptimizer(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.context.get_optimizer()


@kind(Invalid, r"keep what context.wrap_lr_scheduler\(\) returns")
class OldScheduler(LineTrial):
    def train_batch(self, batch, epoch_idx, batch_idx):
        self.context.get_lr_scheduler()


@kind(Invalid, r"Use context.device, .* in place of .cuda\(\)")
class PinnedModel(LineTrial):
    def __init__(self, context):
        context.wrap_model(torch.nn.Linear(1, 1).cuda(99))


@kind(Invalid, r"Use context.device, .* torch.cuda.set_device\(\)")
class PinnedProcess(LineTrial):
    def __init__(self, context):
        torch.cuda.set_device(99)


@kind(Invalid, r"leave out DistributedDataParallel, which context.wrap_model\(\) adds")
class OwnParallel(LineTrial):
    def __init__(self, context):
        context.wrap_model(torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1)))


def overriding(**methods):
    return type("Mine", (LineTrial,), methods)


def in_init(call):
    """A LineTrial whose __init__() ends with call(trial, context)."""
    def init(self, context):
        LineTrial.__init__(self, context)
        call(self, context)

    return overriding(__init__=init)


class LateHook(pytorch.PyTorchCallback):
    def on_validation_end(self):
        pass


class EarlyHook(pytorch.PyTorchCallback):
    def on_training_epoch_start(self):
        pass

    def on_checkpoint_upload_end(self, uuid, more=None):
        pass


def clipped(self, batch, epoch_idx, batch_idx):
    self.context.step_optimizer(self.optim, clip_grads=1.0)


#: Trials as newcomers write them, and what each is told.
MISTAKES = [
    (overriding(train_batch=lambda self, batch: {}), TypeError, r"Mine.train_batch\(batch\) cannot be called.* write `def train_batch\(self, batch, epoch_idx, batch_idx\)`"),
    (overriding(evaluate_batch=lambda self, x: {}), TypeError, r"write `def evaluate_batch\(self, batch\)`"),
    (overriding(build_callbacks=lambda self, context: {}), TypeError, r"the loop calls it with nothing; write `def build_callbacks\(self\)`"),
    (overriding(build_callbacks=lambda self: {"c": LateHook()}), TypeError, r"LateHook.on_validation_end\(\) .* write `def on_validation_end\(self, metrics\)`"),
    (overriding(build_training_data_loader=lambda self: None), RuntimeError, r"build_training_data_loader\(\) returned a NoneType, not a determined.pytorch.DataLoader"),
    (overriding(build_validation_data_loader=lambda self: Numbers()), RuntimeError, r"build_validation_data_loader\(\) returned a Numbers"),
    (overriding(train_batch=clipped), TypeError, r"step_optimizer\(clip_grads=...\) takes a function .*clip_grad_norm_\(params, 1.0\), not a float"),
    (in_init(lambda self, c: c.wrap_model(torch.nn.Linear)), TypeError, r"wrap_model\(\) takes a torch.nn.Module, not the class Linear: make one by Linear"),
    (in_init(lambda self, c: c.wrap_model(abs)), TypeError, r"wrap_model\(\) takes a torch.nn.Module, not a builtin_function_or_method"),
    (in_init(lambda self, c: c.wrap_optimizer(self.model.parameters())), TypeError, r"wrap_optimizer\(\) takes an optimizer, such as .*, not a generator"),
    (in_init(lambda self, c: c.wrap_lr_scheduler(self.optim, MODE.STEP_EVERY_EPOCH)), TypeError, r"wrap_lr_scheduler\(\) takes a scheduler of the optimizer, .* not a SGD"),
    (in_init(lambda self, c: c.wrap_lr_scheduler(StepLR(self.optim, 1), MODE.STEP_EVERY_EPOCH, 0)), ValueError, r"wrap_lr_scheduler\(frequency=...\) .* not 0"),
    (in_init(lambda self, c: c.set_profiler(True)), TypeError, r"set_profiler\(\) takes the arguments of torch.profiler.profile\(\), by name"),
    (in_init(lambda self, c: c.optimizer_step(self.optim)), AttributeError, "did you mean step_optimizer"),
    (in_init(lambda self, c: c.get_hyperparameter("lr")), AttributeError, "did you mean get_hparam"),
    (in_init(lambda self, c: c.get_trial_id()), AttributeError, r"context.get_trial_id\(\): local training has none"),
    (in_init(lambda self, c: pytorch.DataLoader(Numbers)), TypeError, r"DataLoader takes a dataset, not the class Numbers: make one by Numbers"),
]


class WrongUse(unittest.TestCase):
    def test_table(self):
        for name, error, text, cls, length, options in KINDS:
            with self.subTest(name), store(), self.assertRaisesRegex(error, text):
                fit(cls, length, **options)

    def test_old_interface_without_init(self):
        """What the entrypoint module:Class meets: the advice, not "abstract class"."""
        class Old(pytorch.PyTorchTrial):
            build_training_data_loader = build_validation_data_loader = lambda self: None
            build_model = OldMethods.build_model
            optimizer = OldMethods.optimizer

            def train_batch(self, batch, model, epoch_idx, batch_idx):
                return {}

        with self.assertRaisesRegex(Invalid, "context.wrap_optimizer"):
            test_one_batch(Old)

    def test_own_helper(self):
        """A method that only shares its name with an old one is the trial's own business."""
        class Helped(LineTrial):
            def build_model(self):
                return torch.nn.Linear(1, 1)

        with store():
            fit(Helped, Batch(1))

    def warnings(self, cls, length=Batch(1)):
        with store(), self.assertLogs("determined.pytorch", "WARNING") as logs:
            fit(cls, length)
        return "".join(logs.output)

    def test_old_scheduler(self):
        """It made no error: training went on without a schedule."""
        class Old(LineTrial):
            create_lr_scheduler = OldMethods.create_lr_scheduler

        class Own(Old):
            def __init__(self, context):
                super().__init__(context)
                context.wrap_lr_scheduler(self.create_lr_scheduler(self.optim)._scheduler, MODE.STEP_EVERY_EPOCH)

        advice = r"call context.wrap_lr_scheduler\(\) in __init__\(\)"
        self.assertRegex(self.warnings(Old), advice)
        self.assertNotRegex(self.warnings(Own), advice)

    def test_gradients(self):
        """Which train nothing, or not as meant: said at the first step, once, and only there."""
        def stepping(backward):
            def train_batch(self, batch, epoch_idx, batch_idx):
                loss = self.loss(batch)
                backward(self, loss)
                self.context.step_optimizer(self.optim)
                return {"loss": loss}

            return overriding(train_batch=train_batch)

        self.assertRegex(self.warnings(stepping(lambda self, loss: None)), "found no gradient .* nothing is trained")
        self.assertRegex(self.warnings(stepping(lambda self, loss: loss.backward())), r"come from no context.backward\(loss\)")
        self.assertNotRegex(self.warnings(stepping(lambda self, loss: self.context.backward(loss))), "context.step_optimizer")

    def test_no_step(self):
        """A model that is never trained, or by the optimizer's own step(): said once, after some batches."""
        def training(step, batches=40):
            def train_batch(self, batch, epoch_idx, batch_idx):
                loss = self.loss(batch)
                self.context.backward(loss)
                step(self, batch_idx)
                return {"loss": loss}

            return self.warnings(overriding(train_batch=train_batch), Batch(batches))

        said = training(lambda self, n: self.optim.step())
        self.assertEqual(said.count("no context.step_optimizer(optimizer) in the first 16 batches"), 1, said)
        for step in (lambda self, n: self.context.step_optimizer(self.optim),
                     lambda self, n: n % 8 or self.context.step_optimizer(self.optim)):
            self.assertNotIn("no context.step_optimizer", training(step))
        self.assertNotIn("no context.step_optimizer", training(lambda self, n: None, batches=8))

    def test_misnamed_evaluation(self):
        class Misnamed(LineTrial):
            evaluate_batch = pytorch.PyTorchTrial.evaluate_batch

            def evaluate_batsch(self, batch):
                return {}

        with store(), self.assertRaisesRegex(Invalid, r"Misnamed has evaluate_batsch\(\): did you mean evaluate_batch\(\)\?"):
            fit(Misnamed, Batch(2))

    def test_own_exit(self):
        """sys.exit() in a trial's code: said with its line, or, where it fails, as a traceback that ends in it."""
        code = ("import logging\nlogging.basicConfig()\nfrom determined.exec import harness\n"
                "harness.leave(lambda: harness.load_trial_class('model_def:T') and 0)")

        def run(text):
            with tempfile.TemporaryDirectory() as d:
                with open(os.path.join(d, "model_def.py"), "w") as f:
                    f.write(text)
                r = subprocess.run([sys.executable, "-c", code], cwd=d, capture_output=True, text=True)
                return r.returncode, r.stderr

        status, said = run("import sys\nsys.exit(0)\n")
        self.assertEqual(status, 0)
        self.assertIn("sys.exit() ended the trial before its training did (model_def.py, line 2, in <module>)", said)
        status, said = run("import sys\nsys.exit(3)\n")
        self.assertEqual((status, said.strip().split("\n")[-1]), (3, "SystemExit: 3"), said)
        self.assertIn('model_def.py", line 2', said)
        status, said = run("import argparse\nargparse.ArgumentParser().parse_args(['--x'])\n")
        self.assertEqual((status, said.strip().split("\n")[-1]), (2, "SystemExit: 2"), said)
        status, said = run("raise SystemExit('no ' + 'data')\n")
        self.assertEqual((status, said.count("no data"), said.strip().split("\n")[-1]), (1, 1, "SystemExit: no data"), said)

    def test_life_begins(self):
        """The first sign of life is the file that its agent watches (proto/progress.h)."""
        with tempfile.NamedTemporaryFile() as f, mock.patch.dict(os.environ, {"DET_PROGRESS_FILE": f.name}):
            f.write(bytes(64))
            f.flush()
            _alive.begin()
            with open(f.name, "rb") as g:
                kept = g.read()
            self.assertEqual((kept[:16], kept[24:28], len(kept)), (b"DETPROG1" + bytes(8), bytes(4), 64))
            self.assertNotEqual(kept[16:24], bytes(8))
        with mock.patch.dict(os.environ, {"DET_PROGRESS_FILE": "/nonexistent/progress"}):
            _alive.begin()  # a task may remove its own

    def test_learning_rate_of_another_trial(self):
        def trial(rate, trial_id):
            def begins(self, context):
                LineTrial.__init__(self, context)
                self.optim.param_groups[0]["lr"] = rate
                if trial_id:
                    context._core.train._trial_id = trial_id

            return overriding(__init__=begins)

        with store() as kept:
            fit(trial(0.5, 0), Batch(2))
            (uuid,) = os.listdir(kept)
            for mine, whose, said in ((0.25, 7, True), (0.5, 7, False), (0.25, 0, False)):  # another's; the same; one that goes on
                with self.subTest(mine=mine, whose=whose), self.assertLogs("determined.pytorch", "WARNING") as logs:
                    fit(trial(mine, whose), Batch(3), latest_checkpoint=uuid)
                warned = "sets a learning rate of 0.25, but the checkpoint's optimizer has 0.5, which holds"
                (self.assertRegex if said else self.assertNotRegex)("".join(logs.output), warned)

    def test_denied(self):
        def fails(error):
            def train_batch(self, batch, epoch_idx, batch_idx):
                raise error

            return overriding(train_batch=train_batch)

        account = f"uid {os.geteuid()}"
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "closed", "data", "train.pt")
            os.makedirs(os.path.dirname(path))
            with mock.patch("os.access", lambda p, mode, **_: not p.startswith(os.path.join(top, "closed"))):
                for error in (PermissionError(13, "Permission denied", path),
                              PermissionError(f"Caught PermissionError in DataLoader worker.\n[Errno 13] Permission denied: '{path}'")):
                    with store(), self.assertRaisesRegex(PermissionError, f"{account}.*, which may not enter {top}/closed$"):
                        fit(fails(error), Batch(1))
            with store(), self.assertRaisesRegex(PermissionError, f"{account}.*, which may not use {path} so"):
                fit(fails(PermissionError(13, "Permission denied", path)), Batch(1))

    def test_own_group_and_parallel_model(self):
        """Which work, to no use."""
        class Own(LineTrial):
            def __init__(self, context):
                torch.distributed.init_process_group("gloo", init_method="file://" + os.path.abspath("meet"), rank=0, world_size=1)
                super().__init__(context)

        class Parallel(LineTrial):
            def __init__(self, context):
                super().__init__(context)
                self.model = context.wrap_model(torch.nn.DataParallel(self.model))

        try:
            self.assertRegex(self.warnings(Own), "a process group was made that nothing uses. A trial does not call")
        finally:
            torch.distributed.destroy_process_group()
        self.assertRegex(self.warnings(Parallel), "was given a DataParallel: give it the model itself")

    def test_at_import(self):
        with tempfile.TemporaryDirectory() as top, mock.patch.object(sys, "path", [top, *sys.path]), mock.patch("os.getcwd", lambda: top):
            with open(os.path.join(top, "joins_at_import.py"), "w") as f:
                f.write("import torch\ntorch.distributed.init_process_group('gloo')\n")
            self.assertRaisesRegex(Invalid, "A trial does not call", harness.load_trial_class, "joins_at_import:T")

    def test_mistakes(self):
        for cls, error, text in MISTAKES:
            with self.subTest(text), store(), self.assertRaisesRegex(error, text):
                fit(cls, Batch(1))

    def test_lengths(self):
        for length, error in ((Batch(0), ValueError), (pytorch.Epoch(-1), ValueError), (Batch(2.5), TypeError), (pytorch.Epoch("3"), TypeError)):
            with self.subTest(length), store(), self.assertRaisesRegex(error, re.escape(f"fit(max_length={length!r}): local training needs")):
                fit(LineTrial, length)
        with store(), self.assertRaisesRegex(TypeError, r"Batch\(\['1'\]\): the numbers of the steps must be ints"):
            fit(LineTrial, Batch(1), validation_period=Batch(["1"]))
        with store(), self.assertLogs("determined.pytorch", "WARNING") as logs:
            fit(LineTrial, Batch(1), checkpoint_policy="latest")
        self.assertIn("""fit(checkpoint_policy='latest') is none of "best", "all" and "none\"""", "".join(logs.output))

    def test_hooks(self):
        """One that is called as it was before, and one that takes more than it is given."""
        with store():
            fit(overriding(build_callbacks=lambda self: {"c": EarlyHook()}), Batch(1))

    def test_init(self):
        for given, error in (({"hparams": ["lr"]}, TypeError), ({"exp_conf": "const.yaml"}, TypeError), ({"distributed": True}, TypeError),
                             ({"aggregation_frequency": 0}, ValueError), ({"aggregation_frequency": "2"}, ValueError)):
            with self.subTest(given), self.assertRaisesRegex(error, rf"determined.pytorch.init\({next(iter(given))}=...\) takes a"), pytorch.init(**given):
                pass
        with self.assertRaisesRegex(AttributeError, "write `with determined.pytorch.init"):
            LineTrial(pytorch.init())

    def test_core(self):
        with store(), core.init() as context:
            open("file", "w").close()
            upload, train = context.checkpoint.upload, context.train
            steps = {"steps_completed": 1}
            self.assertRaisesRegex(NotADirectoryError, r"upload\(\) was given file, which is no directory", upload, "file", steps)
            for shard in (False, True):
                self.assertRaisesRegex(FileNotFoundError, r"upload\(\) was given none, which is no directory", upload, "none", steps, shard=shard)
            self.assertRaisesRegex(ValueError, "must be a number of batches, not 'five'", upload, ".", {"steps_completed": "five"})
            for report in (train.report_training_metrics, train.report_validation_metrics, lambda *args: train.report_metrics("test", *args)):
                self.assertRaisesRegex(TypeError, r"report_.*\(steps_completed=...\) takes a number of batches", report, {"loss": 1.0}, 3)
                self.assertRaisesRegex(TypeError, r"report_.*\(metrics=...\) takes a dict", report, 3, 0.5)
            self.assertRaisesRegex(TypeError, "such as EarlyExitReason.INVALID_HP, not 'bad'", train.report_early_exit, "bad")
            self.assertRaisesRegex(TypeError, r"operations\(searcher_mode=...\) takes a", lambda: next(context.searcher.operations("chief")))
        for given in ("preempt_mode", "tensorboard_mode"):
            self.assertRaisesRegex(TypeError, rf"core.init\({given}=...\) takes a determined.core", core.init, **{given: "AUTO"})

    def test_client(self):
        """Names in place of the enums: found before the master is asked."""
        one = object.__new__(client.Determined)
        one._master = mock.Mock(get=lambda path, **query: {"experiments": [], "trials": [], "checkpoints": []})
        experiment = client.Experiment._of(one._master, {"id": 1, "state": "STATE_ACTIVE", "name": "", "archived": False})
        for call, given, said in ((one.list_experiments, {"states": ["COMPLETED"]}, r"list_experiments\(states=\[...\]\) takes a .*ExperimentState, such as"),
                                  (one.list_experiments, {"sort_by": "name"}, r"list_experiments\(sort_by=...\) .* such as ExperimentSortBy.ID, not 'name'"),
                                  (experiment.list_trials, {"sort_by": client.ExperimentSortBy.ID}, r"list_trials\(sort_by=...\) takes a .*TrialSortBy"),
                                  (experiment.list_trials, {"order_by": "desc"}, r"list_trials\(order_by=...\) takes a .*OrderBy, such as"),
                                  (experiment.list_checkpoints, {"order_by": "desc"}, r"list_checkpoints\(order_by=...\) takes a .*OrderBy"),
                                  (experiment.list_checkpoints, {"sort_by": 7}, r"list_checkpoints\(sort_by=...\) takes a .*CheckpointSortBy")):
            with self.subTest(said):
                self.assertRaisesRegex(TypeError, said, call, **given)
        self.assertEqual((one.list_experiments(states=[client.ExperimentState.ACTIVE]), experiment.list_checkpoints("loss")), ([], []))

    def test_trainer(self):
        with store(), pytorch.init() as context:
            self.assertRaisesRegex(TypeError, r"Trainer\(trial, context\) takes the context", pytorch.Trainer, context, LineTrial(context))
            self.assertRaisesRegex(TypeError, "not the class LineTrial", pytorch.Trainer(LineTrial, context).fit, max_length=Batch(1))
        with store(), pytorch.init() as context, self.assertRaisesRegex(TypeError, "takes a PyTorchTrial"):
            pytorch.Trainer(object(), context).fit(max_length=Batch(1))

    def test_loaders(self):
        with self.assertRaisesRegex(ValueError, "a Dataset with __getitem__"):
            class Stream(torch.utils.data.IterableDataset):
                def __iter__(self):
                    return iter(())
            pytorch.DataLoader(Stream())

    def test_reducers(self):
        with store(), pytorch.init() as context:
            self.assertRaises(AssertionError, context.wrap_reducer, 7)
            reducer = context.wrap_reducer(sum, "n")
            self.assertRaisesRegex(AssertionError, "twice", context.wrap_reducer, reducer)

    def test_ranks(self):
        """Several ranks without torch.distributed; and torch.distributed with ranks the context knows nothing of."""
        with store(), pytorch.init() as context:
            context.distributed.size = 2
            with self.assertRaisesRegex(AssertionError, "init_process_group"):
                context.wrap_model(torch.nn.Linear(1, 1))
        with mock.patch("torch.distributed.is_initialized", lambda: True), mock.patch("torch.distributed.get_world_size", lambda: 2), \
                mock.patch("torch.distributed.get_rank", lambda: 0), store(), self.assertLogs("determined.pytorch", "WARNING") as logs:
            fit(LineTrial, Batch(1))
        self.assertIn("from_torch_distributed() to determined.pytorch.init()", "".join(logs.output))
        self.assertRaisesRegex(ValueError, "start the script with its launcher", core.DistributedContext.from_torch_distributed)

    def test_pinned_gpus(self):
        class Pinning(LineTrial):
            def __init__(self, context):
                os.environ["CUDA_VISIBLE_DEVICES"] = "3"
                super().__init__(context)

        with mock.patch.dict(os.environ), store(), self.assertLogs("determined.pytorch", "WARNING") as logs:
            fit(Pinning, Batch(1))
        self.assertIn("use context.device", "".join(logs.output))
        pinned = mock.Mock(parameters=lambda: [mock.Mock(device=torch.device("cuda:0"))])
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            _mistakes.check_model_device(pinned, torch.device("cuda:1"))
        self.assertIn("pinned to cuda:0; context.wrap_model() moves it to cuda:1", "".join(logs.output))
        error = _mistakes.explain_backward(torch.zeros(1), torch.device("cuda:1"))
        self.assertRegex(str(error), "the loss is on cpu, but .* cuda:1: use context.device")

    def test_unmovable_batch(self):
        with self.assertLogs("determined.pytorch", "WARNING") as logs:
            pytorch.to_device({"a": "text"}, "cpu", set())
        self.assertIn("not able to move data of type str to cpu", "".join(logs.output))

    def test_python_that_cannot_train(self):
        """PATH may name a python3 that lacks torch: the error says which, and which other has it."""
        for module in ("determined.pytorch", "determined.exec.harness"):
            done = subprocess.run([sys.executable, "-S", "-c", f"import {module}"], capture_output=True, text=True)
            self.assertRegex(done.stderr, f"ModuleNotFoundError: {sys.executable} has no torch, which training needs; /.* can: name it in place of python3")
        with mock.patch("sys.version_info", (3, 9, 1)), mock.patch("shutil.which", lambda *a, **kw: None):
            self.assertRegex(_python.problem(), "is Python 3.9, and training needs 3.11 or newer; .* install torch")
        for version, says in (("3, 9, 1", "ImportError: .* is Python 3.9, and determined in a task needs 3.10 or newer: name one in env"), ("3, 10", "^$")):
            done = subprocess.run([sys.executable, "-c", f"import determined, sys; sys.version_info = ({version}, 0, 0); import determined.core"],
                                  capture_output=True, text=True)
            self.assertRegex(done.stderr, says)
        with mock.patch.object(det, "get_cluster_info", lambda: mock.Mock(task_type="TRIAL", container_addrs=["a"])), \
                mock.patch.object(_python, "_lacks", lambda: "has no torch"), mock.patch("sys.stderr") as stderr, \
                mock.patch.dict(os.environ), self.assertRaises(SystemExit):
            torch_distributed.main(["--trial", "a:B"])
        self.assertIn("has no torch", "".join(c.args[0] for c in stderr.write.call_args_list))

    def test_metadata(self):
        """A checkpoint that could not be reported is not stored either."""
        with store() as where, core.init() as context:
            with open("weights", "w") as f:
                f.write("1 2")
            for metadata in (None, {"steps": 1}):
                for shard in (False, True):
                    with self.subTest(metadata=metadata, shard=shard):
                        self.assertRaisesRegex(ValueError, "steps_completed", context.checkpoint.upload, ".", metadata, shard=shard)
                        with self.assertRaisesRegex(ValueError, "steps_completed"), context.checkpoint.store_path(metadata, shard=shard) as (path, _):
                            (path / "weights").write_text("1 2")
                        self.assertEqual((os.listdir(where), os.listdir(".")), ([], ["weights"]))

    def test_launchers(self):
        """Outside of a task, and with nothing to start, launchers say what to do."""
        for launcher, other in ((deepspeed, "deepspeed"), (horovod, "horovodrun"), (torch_distributed, "torchrun")):
            with mock.patch("sys.stderr") as stderr, self.assertRaises(SystemExit) as e:
                launcher.main(["python3", "train.py"])
            self.assertEqual(e.exception.code, 1)
            self.assertIn(other, "".join(c.args[0] for c in stderr.write.call_args_list))
            with mock.patch("sys.stderr") as stderr, self.assertRaises(SystemExit) as e:
                launcher.main(["--trial", "a:B", "more"])
            self.assertIn("usage", "".join(c.args[0] for c in stderr.write.call_args_list))


if __name__ == "__main__":
    unittest.main()

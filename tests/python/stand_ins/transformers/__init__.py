"""Stands in for Hugging Face's transformers, which Debian does not have: the documented order of a Trainer's callbacks.

One number is what it trains: the loss is 1 / step. What a real Trainer does besides is not here.
"""
import json
import os
import types

from transformers.trainer_utils import get_last_checkpoint


class TrainerCallback:
    def nothing(self, args, state, control, **kwargs):
        pass

    on_train_begin = on_train_end = on_epoch_begin = on_epoch_end = on_step_begin = on_step_end = nothing
    on_evaluate = on_save = on_log = nothing


class TrainingArguments:
    def __init__(self, output_dir, max_steps=-1, num_train_epochs=3.0, logging_steps=500, eval_steps=0, save_steps=0,
                 overwrite_output_dir=False, learning_rate=5e-5, report_to=None, save_strategy="steps",
                 metric_for_best_model=None, greater_is_better=False):
        self.output_dir, self.overwrite_output_dir, self.resume_from_checkpoint = output_dir, overwrite_output_dir, None
        self.max_steps, self.num_train_epochs, self.logging_steps = max_steps, num_train_epochs, logging_steps
        self.eval_steps, self.save_steps = eval_steps, save_steps
        self.save_strategy = save_strategy
        self.metric_for_best_model, self.greater_is_better = metric_for_best_model, greater_is_better


class DefaultFlow(TrainerCallback):
    """What the arguments ask for; the Trainer's own first callback."""

    def on_step_end(self, args, state, control, **kwargs):
        due = lambda every: every and state.global_step % every == 0
        control.should_log = control.should_log or due(args.logging_steps)
        control.should_evaluate = control.should_evaluate or due(args.eval_steps)
        control.should_save = control.should_save or due(args.save_steps)
        control.should_training_stop = control.should_training_stop or state.global_step >= state.max_steps


class Trainer:
    steps_in_epoch = batches_in_epoch = 5  # fewer steps: the last batches are too few for one

    def __init__(self, model=None, args=None, train_dataset=None, eval_dataset=None, callbacks=()):
        self.args, self.model = args, model
        self.callbacks = [DefaultFlow(), *callbacks]
        self.state = types.SimpleNamespace(global_step=0, epoch=0.0, max_steps=0, best_metric=None, log_history=[], is_world_process_zero=True)
        self.control = types.SimpleNamespace(should_log=False, should_evaluate=False, should_save=False, should_training_stop=False)

    def tell(self, event, **kwargs):
        for callback in self.callbacks:
            getattr(callback, event)(self.args, self.state, self.control, model=self.model, **kwargs)

    def log(self, logs):
        self.control.should_log = False
        logs = {**logs, "epoch": self.state.epoch}
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self.tell("on_log", logs=logs)

    def evaluate(self):
        metrics = {"eval_loss": 1 / self.state.global_step, "eval_runtime": 0.1}
        self.log(metrics)
        self.control.should_evaluate = False
        self.tell("on_evaluate", metrics=metrics)
        return metrics

    def save(self):
        where = os.path.join(self.args.output_dir, f"checkpoint-{self.state.global_step}")
        os.makedirs(where, exist_ok=True)
        with open(os.path.join(where, "trainer_state.json"), "w") as f:
            json.dump(vars(self.state), f, sort_keys=True)
        self.control.should_save = False
        self.tell("on_save")

    def log_evaluate_save(self):
        if self.control.should_log:
            self.log({"loss": 1 / self.state.global_step, "learning_rate": 0.1})
        if self.control.should_evaluate:
            self.judge(self.evaluate())
        if self.control.should_save:
            self.save()

    def judge(self, metrics):
        """Whether it is the best so far says too whether it is saved, where only the best ones are, whatever a callback asked for."""
        if self.args.metric_for_best_model is None:
            return
        loss = metrics[self.args.metric_for_best_model]
        best = self.state.best_metric
        is_best = best is None or (loss > best if self.args.greater_is_better else loss < best)
        self.state.best_metric = loss if is_best else best
        if self.args.save_strategy == "best":
            self.control.should_save = is_best

    def resume(self, checkpoint):
        if checkpoint is not None:
            with open(os.path.join(checkpoint, "trainer_state.json")) as f:
                vars(self.state).update(json.load(f))

    def step(self):
        self.control.should_log = self.control.should_evaluate = self.control.should_save = False
        self.tell("on_step_begin")
        self.state.global_step += 1
        whole, step = divmod(self.state.global_step - 1, self.steps_in_epoch)
        self.state.epoch = whole + (step + 1) / self.batches_in_epoch
        self.tell("on_step_end")
        self.log_evaluate_save()

    def train(self, resume_from_checkpoint=None):
        self.resume(resume_from_checkpoint)
        steps = self.args.max_steps
        self.state.max_steps = steps if steps > 0 else int(self.args.num_train_epochs * self.steps_in_epoch)
        self.control.should_training_stop = False
        self.tell("on_train_begin")
        while self.state.global_step < self.state.max_steps:
            self.tell("on_epoch_begin")
            while True:
                self.step()
                if self.control.should_training_stop or self.state.global_step % self.steps_in_epoch == 0:
                    break
            self.tell("on_epoch_end")
            self.log_evaluate_save()
            if self.control.should_training_stop:
                break
        self.log({"train_runtime": 1.0})
        self.tell("on_train_end")


__all__ = ["Trainer", "TrainerCallback", "TrainingArguments", "get_last_checkpoint"]

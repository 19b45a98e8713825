"""A callback of Hugging Face's Trainer: its metrics, checkpoints, searcher and pauses are the cluster's.

It knows nothing of models. On a cluster the Trainer trains up to the length that the searcher asks for, evaluates there
and saves; without one the metrics are only logged.
"""

import json
import logging
import math
import os
import re
import time
from typing import Any, Dict, List, Optional, Tuple

from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

import determined as det
from determined import core

logger = logging.getLogger("determined.transformers")

EVAL = "eval_"
TEST = "test_"
TRAIN_AVG = "train_"
TRAIN = "train_progress"
PROGRESS_S = 1.0  # between two reports of how far a trial is


def get_metric_type(d: Dict[str, Any]) -> str:
    """What the Trainer logs, from the first of its names: evaluation, test, the sums at the end of training, or training."""
    first = next(iter(d), "")
    return next((kind for kind in (EVAL, TEST, TRAIN_AVG) if first.startswith(kind)), TRAIN)


def get_ds_config_path_from_args(args: List[str]) -> Optional[str]:
    """The value after --deepspeed, in a command's arguments."""
    for i, arg in enumerate(args):
        if arg == "--deepspeed":
            return args[i + 1] if i + 1 < len(args) else None
        if arg.startswith("--deepspeed="):
            return arg.partition("=")[2]
    return None


def _unit(config: Dict[str, Any]) -> Tuple[str, Optional[int]]:
    """In what the searcher counts, and its longest training; a custom one names no length."""
    searcher = config.get("searcher") or {}
    if searcher.get("name") == "custom":
        return "batches", None
    length = searcher.get("max_length")
    if not isinstance(length, dict) or len(length) != 1 or next(iter(length)) not in ("batches", "epochs"):
        raise ValueError(
            f"searcher.max_length is {length!r}: for the Trainer it must be in its units, as in {{batches: 100}} "
            "(--max_steps 100) or {epochs: 3} (--num_train_epochs 3)"
        )
    return next((str(unit), int(n)) for unit, n in length.items())


def _warn_of_lengths(unit: str, length: int, args: Any) -> None:
    """The Trainer plans its learning rates for the length in its own arguments."""
    steps = args.max_steps
    other = {"batches": "epochs", "epochs": "batches"}[unit]
    mine = "batches" if steps != -1 else "epochs"
    trains = steps if mine == "batches" else args.num_train_epochs
    if mine == unit and trains == length:
        return
    logger.warning(
        "Searcher configuration does not match HF Trainer configuration. "
        f"Searcher uses {unit}={length}, while HF Trainer uses {unit if mine == unit else other}={trains}. "
        "Continuing this run may cause Searcher not to behave correctly. "
        "Make sure to match the units between HF Trainer and Searcher: "
        "use (--num_train_epochs and searcher.max_length.epochs) OR (--max_steps and searcher.max_length.batches)."
    )


def _at_end(args: Any, state: Any) -> bool:
    """Of all the epochs that the arguments ask for."""
    return bool(args.max_steps <= 0 and state.global_step >= state.max_steps)


def _epochs(state: Any, is_whole: bool) -> float:
    """Before 4.46 transformers does not count what lies behind an epoch's last whole gradient: 2.8 at the end of the third."""
    return float(math.ceil(state.epoch - 1e-6) if is_whole else state.epoch)


class DetCallback(TrainerCallback):  # type: ignore
    """Make one on every rank before `trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)`."""

    def __init__(
        self,
        core_context: core.Context,
        args: Any,
        filter_metrics: Optional[List[str]] = None,
        user_data: Optional[Dict[str, Any]] = None,
    ) -> None:
        super().__init__()
        self.core_context = core_context
        self.filter_metrics = filter_metrics
        self.user_data = user_data
        self.last_metrics: Dict[str, Any] = {}
        self._steps = {"training": -1, "validation": -1, "saved": -1}  # the step of the last report of each, and save
        self._pending = False  # the operation's length is reached; its evaluation and checkpoint are not all there
        self._leaving = False
        self._idle = False  # the trial was complete before this run
        self._progress_at = 0.0
        self._chief = core_context.distributed.rank == 0
        self._info = det.get_cluster_info()
        self.current_op: Optional[core.SearcherOperation] = None
        if self._info is None:
            logger.warning("not on a cluster: metrics are logged, and nothing else of the Trainer's changes")
            return
        self._config = self._info.trial._config
        self.searcher_metric = (self._config.get("searcher") or {}).get("metric")
        self.searcher_unit, length = _unit(self._config)
        if length is not None:
            _warn_of_lengths(self.searcher_unit, length, args)
        self.load_last_checkpoint(args)
        self.searcher_ops = core_context.searcher.operations()
        self.current_op = next(self.searcher_ops, None)
        self._idle = self.current_op is None

    def load_last_checkpoint(self, args: Any) -> None:
        """Where this trial ran before: its last checkpoint, for args.resume_from_checkpoint."""
        assert self._info is not None
        uuid = self._info.latest_checkpoint
        if uuid is None:
            return
        if getattr(args, "overwrite_output_dir", False) is True:
            logger.info("Skip downloading last checkpoint from Determined due to overwrite_output_dir=True.")
            return
        self.core_context.checkpoint.download(uuid, args.output_dir)
        args.resume_from_checkpoint = self._downloaded(args.output_dir)
        logger.info(f"Latest checkpoint downloaded to {args.resume_from_checkpoint}.")

    @staticmethod
    def _downloaded(output_dir: str) -> Optional[str]:
        """Not just the newest: what a run wrote after its last checkpoint of the cluster may lie there too."""
        try:
            with open(os.path.join(output_dir, "metadata.json"), encoding="utf-8") as f:
                path = os.path.join(output_dir, f"checkpoint-{int(json.load(f)['steps_completed'])}")
        except (OSError, ValueError, KeyError, TypeError):
            path = ""
        return path if os.path.isdir(path) else get_last_checkpoint(output_dir)

    # ---- what the Trainer tells ----

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.current_op is not None:
            self._take_up(args, state, control)
        if self._idle:
            logger.info("the searcher has nothing more for this trial")
            control.should_training_stop = True

    def _take_up(self, args: Any, state: Any, control: Any) -> None:
        """A run may have ended between its last save and its report: what it would have told is in the saved log."""
        logged = [logs for logs in state.log_history if logs.get("step") == state.global_step]
        evaluated = [logs for logs in logged if any(name.startswith(EVAL) for name in logs)]
        for logs in evaluated:
            self.last_metrics.update(self._filtered(logs))
        done = state.global_step if self.searcher_unit == "batches" else _epochs(state, _at_end(args, state))
        while evaluated and self.current_op is not None and done >= self.current_op.length:
            self._complete(control, self._metric(state))
            self._idle = self.current_op is None

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An operation that stays open would look like a trial that is complete."""
        self._complete_unsaved(state, control)
        if self.current_op is None or self._leaving:
            return
        where = f"training ended at step {state.global_step}, but the searcher asks for {self.current_op.length} {self.searcher_unit}"
        if state.global_step < state.max_steps:
            logger.warning(f"{where}: stopped before its own end, the trial has no metric for the searcher there")
            return
        raise RuntimeError(
            f"{where}, evaluated and saved there: make --max_steps or --num_train_epochs reach it, or start the trial anew"
        )

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        if logs is None:
            logger.warning("on_log called with empty logs")
            return
        kind = get_metric_type(logs)
        metrics = self._filtered(logs)
        if kind == TRAIN:
            self._report("training", state.global_step, metrics)
        elif kind == EVAL:
            self._report("validation", state.global_step, metrics)
        else:
            logger.info(f"Metrics not reported: metric type = {kind}.")

    def _filtered(self, logs: Dict[str, Any]) -> Dict[str, Any]:
        wanted = self.filter_metrics
        return {k: v for k, v in logs.items() if not wanted or any(part in k for part in wanted)}

    def _report(self, group: str, step: int, metrics: Dict[str, Any]) -> None:
        """Once for each step: a second set of evaluation data has its metrics under names of its own, but no step."""
        self.last_metrics.update(metrics)
        if self._steps[group] == step:
            logger.warning(f"{group} metrics of step {step} were reported already: {', '.join(metrics)} are left out")
            return
        self._steps[group] = step
        if not self._chief or self._idle:
            return
        if group == "training":
            self.core_context.train.report_training_metrics(steps_completed=step, metrics=metrics)
        else:
            self.core_context.train.report_validation_metrics(steps_completed=step, metrics=metrics)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._complete_unsaved(state, control)
        if self.current_op is None:
            return
        if self.searcher_unit == "batches":
            self._trained(state.global_step, state, control)
        self._make_room(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.current_op is not None and self.searcher_unit == "epochs":
            is_whole = not control.should_training_stop or _at_end(args, state)
            self._trained(_epochs(state, is_whole), state, control)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """save_strategy="best" saves or not by this evaluation, whatever was asked for: nothing more is waited for then."""
        if getattr(args, "save_strategy", None) == "best" and self.searcher_metric in (metrics or {}):
            self._complete_unsaved(state, control)

    def _complete_unsaved(self, state: Any, control: Any) -> None:
        if self._pending:
            self._complete(control, self._metric(state))

    def _trained(self, done: float, state: Any, control: Any) -> None:
        assert self.current_op is not None
        length, step = self.current_op.length, state.global_step
        now = time.monotonic()
        if self._chief and (now - self._progress_at >= PROGRESS_S or done >= length):
            self._progress_at = now
            self.current_op.report_progress(min(done, length))
        if done < length:
            return
        if not self._pending:
            unit = "steps" if self.searcher_unit == "batches" else "epochs"
            logger.info(f"Max length of {length} {unit} reached for current searcher operation. Updating searcher.")
        self._pending = True
        control.should_log = control.should_log or self._steps["training"] != step
        control.should_evaluate = control.should_evaluate or self._steps["validation"] != step
        control.should_save = control.should_save or control.should_evaluate or self._steps["saved"] != step
        if not control.should_save:
            self._complete(control, self._metric(state))

    def _make_room(self, control: Any) -> None:
        if not self._leaving and self.core_context.preempt.should_preempt():
            self._leaving = True
        control.should_save = control.should_save or self._leaving

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._info is None or self._idle:
            return
        step = state.global_step
        metric = self._metric(state) if self._pending else None  # a wrong name is told before anything is stored
        self._upload(args.output_dir, step)
        self._steps["saved"] = step
        if self._pending:
            self._complete(control, metric)
        if not self._leaving:
            self._leaving = self.core_context.preempt.should_preempt()
        if self._leaving:
            logger.info("asked to make room: the checkpoint is stored, and training ends here")
            control.should_training_stop = True

    def _upload(self, output_dir: str, step: int) -> None:
        """Each machine stores what lies in its directory, which its ranks share, once all of them have written."""
        assert self._info is not None
        if self._chief and self.user_data is not None:
            with open(os.path.join(output_dir, f"checkpoint-{step}", "my_data.json"), "w", encoding="utf-8") as f:
                json.dump(self.user_data, f)
        distributed = self.core_context.distributed
        distributed.allgather(None)
        wanted = re.compile(rf"(checkpoint-{step}|runs)/")
        stores = distributed.local_rank == 0
        self.core_context.checkpoint.upload(
            output_dir if stores else None,
            metadata={"steps_completed": step, "trial_id": self._info.trial.trial_id},
            shard=True,
            selector=(lambda path: wanted.match(path) is not None) if stores else None,
        )

    def _complete(self, control: Any, metric: Any) -> None:
        """Evaluated and saved at the operation's length: the searcher says whether there is more."""
        assert self.current_op is not None
        self._pending = False
        if self._chief:
            logger.info(f"Metric reported to searcher: {metric}")
            self.current_op.report_completed(metric)
        self.current_op = next(self.searcher_ops, None)
        if self.current_op is None:
            control.should_training_stop = True

    def _metric(self, state: Any) -> Any:
        if self.searcher_metric in self.last_metrics:
            return self.last_metrics[self.searcher_metric]
        best = getattr(state, "best_metric", None)
        if best is None:
            names = ", ".join(n for n in self.last_metrics if n.startswith(EVAL)) or "nothing"
            raise ValueError(f"searcher.metric is {self.searcher_metric!r}, but the Trainer's evaluation has {names}")
        logger.warning(
            f"Searcher metric {self.searcher_metric} from the yaml config file does not match any of the recorded metrics "
            f"in {self.last_metrics}. Reporting trainer_state.best_metric to the searcher."
        )
        return best

"""A logger of Lightning 2 that reports to the cluster."""

import logging
import re
from typing import Any, Dict, Optional, Tuple

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from determined import core
from determined.experimental import Determined, core_v2

logger = logging.getLogger("determined.lightning")

VALIDATION = re.compile(r"val(id|idation)?([_/. -]|$)")
EPOCH = "epoch"  # Lightning adds it to every call

_sent: Tuple[Any, Dict[str, int]] = (None, {})  # the trial's train context, and the last step of each group that it has


class DetLogger(Logger):  # type: ignore
    """`Trainer(logger=DetLogger(...))`: metrics named val..., valid... or validation... are the trial's validations, others its training.

    Lightning logs a step's metrics in several calls, and the cluster takes one report a step: a step is reported once
    the next one comes, and the last one at the end. Steps that were reported before, as by a second Trainer that begins
    at 0 again, are left out.
    """

    def __init__(
        self,
        *,
        defaults: Optional[core_v2.DefaultConfig] = None,
        unmanaged: Optional[core_v2.UnmanagedConfig] = None,
        client: Optional[Determined] = None,
    ) -> None:
        super().__init__()
        self._options: Dict[str, Any] = {"defaults": defaults, "unmanaged": unmanaged, "client": client}
        self._owns = False
        self._step: Optional[int] = None
        self._waiting: Dict[str, Dict[str, Any]] = {}
        self._warned = False

    @property
    def name(self) -> str:
        return "DetLogger"

    @property
    def version(self) -> str:
        return "0.1"

    @property
    def experiment(self) -> None:
        self._begin()

    @rank_zero_only
    def _begin(self) -> None:
        if core_v2.train is None:  # else the script did, and ends it
            core_v2.init(distributed=core.DummyDistributedContext(), **self._options)  # rank 0 alone reports
            self._owns = True

    @rank_zero_only
    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        pass

    @rank_zero_only
    def log_metrics(self, metrics: Dict[str, Any], step: Optional[int] = None) -> None:
        step = step if step is not None else self._step or 0
        if step != self._step:
            self._flush()
        self._step = step
        names = {name: "validation" if VALIDATION.match(name) else "training" for name in metrics if name != EPOCH}
        for name, group in names.items():
            self._waiting.setdefault(group, {})[name] = metrics[name]
        if EPOCH in metrics:
            for group in set(names.values()) or {"training"}:
                self._waiting.setdefault(group, {})[EPOCH] = metrics[EPOCH]

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        self._begin()
        assert core_v2.train is not None and self._step is not None
        if "training" in waiting and self._is_new("training", self._step):
            core_v2.train.report_training_metrics(steps_completed=self._step, metrics=waiting["training"])
        if "validation" in waiting and self._is_new("validation", self._step):
            core_v2.train.report_validation_metrics(steps_completed=self._step, metrics=waiting["validation"])

    def _is_new(self, group: str, step: int) -> bool:
        """The cluster refuses other values for a step that it has, whichever logger of this process gave them."""
        global _sent
        if _sent[0] is not core_v2.train:
            _sent = (core_v2.train, {})
        last = _sent[1].setdefault(group, -1)
        if step > last:
            _sent[1][group] = step
            return True
        if not self._warned:
            logger.warning(
                f"{group} metrics of step {step} are left out, as step {last} was reported before: a new Trainer counts its "
                "steps from 0; this is said once"
            )
            self._warned = True
        return False

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self._flush()
        if self._owns:
            core_v2.close()
            self._owns = False

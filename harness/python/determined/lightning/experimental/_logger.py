"""A logger of Lightning 2 that reports to the cluster."""

from typing import Any, Dict, Optional

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from determined import core
from determined.experimental import Determined, core_v2


class DetLogger(Logger):  # type: ignore
    """`Trainer(logger=DetLogger(...))`: metrics whose names begin with "val" are the trial's validations, others its training.

    Lightning logs a step's metrics in several calls, and the cluster takes one report a step: a step is reported once
    the next one comes, and the last one at the end.
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
        for name, value in metrics.items():
            group = "validation" if name.startswith("val") else "training"
            self._waiting.setdefault(group, {})[name] = value

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        self._begin()
        assert core_v2.train is not None and self._step is not None
        if "training" in waiting:
            core_v2.train.report_training_metrics(steps_completed=self._step, metrics=waiting["training"])
        if "validation" in waiting:
            core_v2.train.report_validation_metrics(steps_completed=self._step, metrics=waiting["validation"])

    @rank_zero_only
    def finalize(self, status: str) -> None:
        self._flush()
        if self._owns:
            core_v2.close()
            self._owns = False

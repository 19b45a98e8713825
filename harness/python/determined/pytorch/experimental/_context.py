"""What a batch processor asks of its trial."""

import contextlib
import pathlib
import shutil
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Union

import torch

import determined as det
from determined import core
from determined.pytorch import _data, _reducer


def get_default_device(core_context: core.Context) -> torch.device:
    """This rank's GPU, or the processors."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device(f"cuda:{core_context.distributed.get_local_rank()}")


class TorchBatchProcessorContext:
    """Given to the processor's constructor."""

    def __init__(self, core_context: core.Context, output_id: str) -> None:
        self._core = core_context
        self._output_id = output_id
        self._reducers: List[_reducer.WrappedReducer] = []
        self._warned: Set[type] = set()
        self._used_upload_path = False
        self.device = get_default_device(core_context)

    # ---- facts ----

    def get_hparams(self) -> Dict[str, Any]:
        info = det.get_cluster_info()
        assert info is not None and info.task_type == "TRIAL", "get_hparams() needs a trial of the cluster"
        return info.trial.hparams

    def get_distributed_rank(self) -> int:
        return self._core.distributed.get_rank()

    def get_distributed_size(self) -> int:
        return self._core.distributed.get_size()

    def get_tensorboard_path(self) -> pathlib.Path:
        return self._core.train.get_tensorboard_path() or pathlib.Path("runs")

    # ---- models and data ----

    def to_device(self, data: Any, warned_types: Optional[Set[type]] = None) -> Any:
        return _data.to_device(data, self.device, self._warned if warned_types is None else warned_types)

    def prepare_model_for_inference(self, model: torch.nn.Module) -> torch.nn.Module:
        model.eval()
        model.to(self.device)
        return model

    # ---- results ----

    @contextlib.contextmanager
    def upload_path(self) -> Iterator[pathlib.Path]:
        """A directory whose files go to the checkpoint store, below <one id for the trial>/rank_<rank>; no checkpoint of its own."""
        self._used_upload_path = True
        with tempfile.TemporaryDirectory() as where:
            yield pathlib.Path(where)
            self._core.checkpoint._storage._need()
            shutil.copytree(where, self._output_path() / f"rank_{self.get_distributed_rank()}", dirs_exist_ok=True)

    def _output_path(self) -> pathlib.Path:
        return self._core.checkpoint._storage.path_of(self._output_id)

    def report_metrics(self, group: str, steps_completed: int, metrics: Dict[str, Any]) -> None:
        self._core.train.report_metrics(group, steps_completed, metrics)

    def report_task_using_model_version(self, model_version: Any) -> None:
        self._no_sources()

    def report_task_using_checkpoint(self, checkpoint: Any) -> None:
        self._no_sources()

    @staticmethod
    def _no_sources() -> None:
        raise NotImplementedError("which model or checkpoint a trial uses is not kept in this version: leave this call out")

    # ---- metrics over all records ----

    def wrap_reducer(
        self,
        reducer: Union[_reducer.MetricReducer, Callable[[List[Any]], Any]],
        name: Optional[str] = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> _reducer.MetricReducer:
        return _reducer.wrap(self._reducers, reducer, name, for_training, for_validation)

    def reset_reducers(self) -> None:
        for wrapped in self._reducers:
            wrapped.reset()

    def reduce_metrics(self, for_training: bool) -> Dict[str, Any]:
        """On every rank in the same order; {} on all but the chief."""
        metrics: Dict[str, Any] = {}
        for wrapped in self._reducers:
            if not (wrapped.for_training if for_training else wrapped.for_validation):
                continue
            shares = self._core.distributed.gather(wrapped.per_slot_reduce())
            if shares is not None:
                metrics.update(wrapped.cross_slot_reduce(shares))
        return metrics

"""torch_batch_process(): every record of a data set once, on all slots."""

import abc
import json
import logging
import math
import os
import pathlib
import uuid
from typing import Any, Dict, Iterator, Optional, Tuple, Type

import torch
import torch.distributed

import determined as det
from determined import core, pytorch
from determined.pytorch.experimental._context import TorchBatchProcessorContext

logger = logging.getLogger("determined.pytorch")

_DONE = "batch_completed.json"


class TorchBatchProcessor(abc.ABC):
    """What happens with a batch; made on every rank as `Processor(context=...)`."""

    @abc.abstractmethod
    def __init__(self, context: TorchBatchProcessorContext) -> None:
        pass

    @abc.abstractmethod
    def process_batch(self, batch: Any, batch_idx: int) -> None:
        """`batch_idx` counts this rank's batches, and goes on where a run before ended."""

    def on_checkpoint_start(self) -> None:
        """Before what was processed counts as done: write what is still in memory."""

    def on_finish(self) -> None:
        """All records were processed."""


def _check(dataset: Any, batch_size: Optional[int], interval: int, options: Dict[str, Any]) -> None:
    if interval <= 0:
        raise ValueError("checkpoint_interval should be a positive integer")
    if options.get("shuffle"):
        raise ValueError("'shuffle' must be false for accurate sharding and checkpointing")
    for name in ("sampler", "batch_sampler"):
        if name in options:
            raise ValueError(f"Please remove '{name}' arg as we will initialize a {name} automatically.")
    if batch_size is not None and "batch_size" in options:
        raise ValueError("batch_size is passed into torch_batch_process and dataloader_kwargs")
    if not hasattr(dataset, "__len__"):
        raise Exception("Dataset must implement __len__()")


def _distributed() -> Optional[core.DistributedContext]:
    """As a launcher started this process."""
    if os.environ.get("USE_TORCH_DISTRIBUTED"):
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return core.DistributedContext.from_torch_distributed()
    info = det.get_cluster_info()
    if info is not None and len(info.slot_ids) > 1:
        raise ValueError(
            "In multi-slot managed cluster training, you must wrap your training script with a distributed launch layer "
            "such as determined.launch.torch_distributed"
        )
    return None


def _iterations(whole: int, max_batches: Optional[int]) -> int:
    """Of every rank; the last ones may lack a batch for some."""
    if max_batches is None:
        return whole
    if 0 < max_batches <= whole:
        return max_batches
    what = "is not valid" if max_batches <= 0 else "exceeds sharded dataset length"
    logger.warning(f"iterate_length {max_batches} {what}. Ignoring this argument and iterate over entire dataset once")
    return whole


class _Run:
    """One run of one rank."""

    def __init__(self, context: core.Context, batches: int, max_batches: Optional[int], interval: int) -> None:
        self._core = context
        self._interval = interval
        self._chief = context.distributed.get_rank() == 0
        self.iterations = _iterations(math.ceil(batches / context.distributed.get_size()), max_batches)
        self._operations = context.searcher.operations()
        self._operation = next(self._operations, None)
        self.skip, self._output_id = self._before()
        self.context = TorchBatchProcessorContext(context, self._output_id)

    def _before(self) -> Tuple[int, str]:
        """What the trial's runs before this one have done, and where its results are."""
        latest = self._core.info.latest_checkpoint if self._core.info is not None else None
        if latest is None:
            return 0, self._core.distributed.broadcast(str(uuid.uuid4()))
        with self._core.checkpoint.restore_path(latest) as path:
            metadata = json.loads((pathlib.Path(path) / "metadata.json").read_text(encoding="utf-8"))
        logger.info(f"Previous run completed {metadata['steps_completed']} steps")
        return int(metadata["steps_completed"]), str(metadata["default_output_uuid"])

    def is_over(self) -> bool:
        return self._operation is None

    def work(self, processor: TorchBatchProcessor, batches: Iterator[Any]) -> int:
        """How many iterations are done: fewer than all where it was asked to make room."""
        for i in range(self.skip, self.iterations):
            batch = next(batches, None)
            if batch is not None:
                processor.process_batch(batch=batch, batch_idx=i)
            if (i + 1) % self._interval == 0 or i + 1 == self.iterations:
                self._checkpoint(processor, i + 1)
                if i + 1 < self.iterations and self._core.preempt.should_preempt():
                    return i + 1
        if self.skip >= self.iterations:
            self._checkpoint(processor, self.iterations)
        return self.iterations

    def _checkpoint(self, processor: TorchBatchProcessor, steps: int) -> None:
        """Once every rank's results are written."""
        logger.info(f"Completed steps:  {steps} and checkpointing")
        processor.on_checkpoint_start()
        self._core.distributed.gather(steps)
        if not self._chief:
            return
        metadata = {"steps_completed": steps, "default_output_uuid": self._output_id}
        with self._core.checkpoint.store_path(metadata) as (path, _):
            (pathlib.Path(path) / _DONE).write_text(json.dumps({"batch_completed": steps}), encoding="utf-8")
        assert self._operation is not None
        self._operation.report_progress(self._operation.length * steps / max(self.iterations, 1))

    def report(self, steps: int) -> Dict[str, Any]:
        metrics = self.context.reduce_metrics(for_training=False)
        if self._chief and metrics:
            self._core.train.report_validation_metrics(steps, metrics)
        return metrics

    def finish(self, metrics: Dict[str, Any]) -> None:
        """All ranks are through: the trial is complete."""
        self._core.distributed.gather(None)
        if self._chief and self.context._used_upload_path:
            logger.info(f"Files stored with default paths are at: {self.context._output_path()}")
        info = self._core.info
        config = info.trial._config if info is not None and info.task_type == "TRIAL" else {}
        metric = metrics.get(str((config.get("searcher") or {}).get("metric")), 1)
        operation = self._operation
        while operation is not None:  # a search by halving asks for more, of which there is nothing
            if self._chief:
                operation.report_completed(metric)
            operation = next(self._operations, None)


def torch_batch_process(
    batch_processor_cls: Type[TorchBatchProcessor],
    dataset: "torch.utils.data.Dataset[Any]",
    batch_size: Optional[int] = None,
    max_batches: Optional[int] = None,
    checkpoint_interval: int = 5,
    dataloader_kwargs: Optional[Dict[str, Any]] = None,
    distributed_context: Optional[core.DistributedContext] = None,
) -> None:
    """Gives each batch of `dataset` to one rank's processor; `max_batches` and `checkpoint_interval` count a rank's batches.

    Without a cluster: in this process, with checkpoints and results in the user's data directory.
    """
    options = dict(dataloader_kwargs or {})
    _check(dataset, batch_size, checkpoint_interval, options)
    options.pop("shuffle", None)
    size = options.pop("batch_size", None) or batch_size or 1
    distributed = distributed_context or _distributed()
    with core.init(distributed=distributed, preempt_mode=core.PreemptMode.WorkersAskChief) as context:
        run = _Run(context, math.ceil(len(dataset) / size), max_batches, checkpoint_interval)  # type: ignore[arg-type]
        if run.is_over():
            logger.info("the trial is complete already")
            return
        processor = batch_processor_cls(context=run.context)
        loader = pytorch.DataLoader(dataset, batch_size=size, shuffle=False, **options).get_data_loader(
            repeat=False, skip=run.skip, num_replicas=run.context.get_distributed_size(), rank=run.context.get_distributed_rank()
        )
        done = run.work(processor, iter(loader))
        metrics = run.report(done)
        if done == run.iterations:
            processor.on_finish()
            run.finish(metrics)

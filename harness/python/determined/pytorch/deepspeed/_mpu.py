"""Which ranks load data and report, where a model itself is spread over ranks."""

import dataclasses
from typing import Any

from determined import core


@dataclasses.dataclass
class ModelParallelUnit:
    data_parallel_rank: int
    data_parallel_world_size: int
    should_report_metrics: bool
    should_build_data_loader: bool


def make_data_parallel_mpu(dist_context: core.DistributedContext) -> ModelParallelUnit:
    """Every rank has the whole model."""
    return ModelParallelUnit(dist_context.get_rank(), dist_context.get_size(), True, True)


def make_deepspeed_mpu(topology: Any) -> ModelParallelUnit:
    """Of a PipelineParallelGrid (an engine's `grid`): the first and the last stage read data, in their first slice."""
    ends = topology.get_pipe_parallel_rank() in (0, topology.get_pipe_parallel_world_size() - 1)
    return ModelParallelUnit(
        topology.get_data_parallel_rank(),
        topology.get_data_parallel_world_size(),
        should_report_metrics=True,
        should_build_data_loader=ends and topology.get_slice_parallel_rank() == 0,
    )

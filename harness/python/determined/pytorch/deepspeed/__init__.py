"""DeepSpeed beside the cluster: its configuration from hyperparameters, its groups of ranks.

DeepSpeedTrial is not here: a script with DeepSpeed's own engine, started by determined.launch.deepspeed, reports by
determined.core (core.DistributedContext.from_deepspeed()).
"""

from typing import Any

from determined._absent import absent
from determined.pytorch.deepspeed._mpu import ModelParallelUnit, make_data_parallel_mpu, make_deepspeed_mpu
from determined.pytorch.deepspeed._overwrite import overwrite_deepspeed_config

_ABSENT = ("DeepSpeedTrial", "DeepSpeedTrialContext", "DeepSpeedContext", "DeepSpeedTrialController")


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise absent(
            f"determined.pytorch.deepspeed.{name} is not available in this version: start a script with DeepSpeed's own engine "
            "by `python3 -m determined.launch.deepspeed`, and report by determined.core "
            "(core.DistributedContext.from_deepspeed())"
        )
    raise AttributeError(f"module 'determined.pytorch.deepspeed' has no attribute '{name}'")


__all__ = ["ModelParallelUnit", "make_data_parallel_mpu", "make_deepspeed_mpu", "overwrite_deepspeed_config"]

"""Train PyTorch models on a cluster, or without one."""

import importlib
from typing import Any

from determined import _stacks, errors, util
from determined._import import import_from_path
from determined._info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo, get_cluster_info
from determined._legacy import EnvContext, ExperimentConfig, LegacyTrial, TrialContext, TrialController
from determined.errors import InvalidHP

__version__ = "0.27.0"

_stacks.answer()

#: What a log viewer's level filter reads; keep the shape.
LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"

#: `import determined as det` is enough for det.core and the like; what is not used costs nothing.
_SUBMODULES = ("common", "core", "experimental", "launch", "lightning", "pytorch", "searcher", "tensorboard", "transformers")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"determined.{name}")
    if name == "_loop":  # it is about to be imported
        from determined._python import check_extension

        check_extension()
    raise AttributeError(f"module 'determined' has no attribute '{name}'")


__all__ = [
    "LOG_FORMAT",
    "ClusterInfo",
    "EnvContext",
    "ExperimentConfig",
    "InvalidHP",
    "LegacyTrial",
    "RendezvousInfo",
    "ResourcesInfo",
    "TrialContext",
    "TrialController",
    "TrialInfo",
    "errors",
    "get_cluster_info",
    "import_from_path",
    "util",
]

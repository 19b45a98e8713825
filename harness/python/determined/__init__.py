"""Train PyTorch models on a cluster, or without one."""

from determined import errors, util
from determined._import import import_from_path
from determined._info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo, get_cluster_info
from determined._legacy import EnvContext, ExperimentConfig, LegacyTrial, TrialContext, TrialController
from determined.errors import InvalidHP

__version__ = "0.27.0"

#: What a log viewer's level filter reads; keep the shape.
LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"

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

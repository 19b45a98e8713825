"""The older place of determined.experimental and its client, which scripts still name; its parts are modules here too."""

import sys
import types
import warnings
from typing import Any

from determined.experimental import client
from determined.experimental.client import *  # noqa: F401,F403

warnings.warn("determined.common.experimental is determined.experimental now, and determined.experimental.client", FutureWarning, stacklevel=2)

_PARTS = ("checkpoint", "determined", "experiment", "metrics", "model", "project", "resource_pool", "trial", "user", "workspace")


def _part(name: str) -> types.ModuleType:
    """A module with all names of the client."""
    module = types.ModuleType(f"{__name__}.{name}", "A part of determined.experimental.client.")
    vars(module).update({n: getattr(client, n) for n in client.__all__}, __getattr__=client.__getattr__)
    return module


for _name in _PARTS:
    sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _part(_name)


def __getattr__(name: str) -> Any:
    return getattr(client, name)

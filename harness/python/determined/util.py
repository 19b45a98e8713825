"""Small helpers that trials import."""

import os
import random
from typing import Any, Dict


def force_create_symlink(src: str, dst: str) -> None:
    """Make `dst` a symbolic link to `src`, replacing a link that is there already."""
    try:
        os.symlink(src, dst, target_is_directory=True)
    except FileExistsError:
        if os.readlink(dst) == src:
            return
        os.unlink(dst)
        os.symlink(src, dst, target_is_directory=True)


def sample_hparams(ranges: Dict[str, Any]) -> Dict[str, Any]:
    """One value for every hyperparameter range, drawn at random."""
    return {name: _sample(value) for name, value in ranges.items()}


def _sample(spec: Any) -> Any:
    if not isinstance(spec, dict):
        return spec
    kind = spec.get("type")
    if kind is None:
        return sample_hparams(spec)
    if kind == "const":
        return spec["val"]
    if kind == "categorical":
        return random.choice(spec["vals"])
    low, high = spec["minval"], spec["maxval"]
    if kind == "int":
        return random.randint(low, high)
    if kind == "log":
        return spec.get("base", 10.0) ** random.uniform(low, high)
    return random.uniform(low, high)

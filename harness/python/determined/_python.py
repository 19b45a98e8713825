"""Which Python runs this, and whether it can train: a host may have several, and PATH decides."""

import importlib.util
import os
import shutil
import subprocess
import sys
from typing import Optional

_OLDEST = (3, 11)
_LOADS = (3, 10)  # the oldest that the extension can be loaded into
_ASK = f"import importlib.util as u, sys; sys.exit(sys.version_info < {_OLDEST} or u.find_spec('torch') is None)"


def _lacks() -> Optional[str]:
    if sys.version_info < _OLDEST:
        return "is Python {}.{}, and training needs {}.{} or newer".format(*sys.version_info[:2], *_OLDEST)
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        return "has no torch, which training needs"
    return None


def _other() -> Optional[str]:
    """One of this host that can; asked without what this one was told by PYTHON... variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    for place in [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"]:
        python = shutil.which("python3", path=place)
        if python and subprocess.run([python, "-c", _ASK], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def problem() -> Optional[str]:
    """What keeps this Python from training, and what to do; None: nothing."""
    lacks = _lacks()
    if lacks is None:
        return None
    other = _other()
    mend = f"{other} can: name it in place of python3, or put its directory first on PATH" if other else (
        "no other python3 on PATH can either: install torch for one of Python {}.{} or newer".format(*_OLDEST))
    return f"{sys.executable} {lacks}; {mend}"


def check_extension() -> None:
    """Before the extension is loaded, which an older Python refuses with the name of a symbol. The client's wheel has none."""
    if sys.version_info < _LOADS and os.path.exists(os.path.join(os.path.dirname(__file__), "_loop.abi3.so")):
        raise ImportError(
            "{} is Python {}.{}, and determined in a task needs {}.{} or newer: name one in environment.python, or put its directory "
            "first on PATH".format(sys.executable, *sys.version_info[:2], *_LOADS))


def check() -> None:
    text = problem()
    if text:
        raise ModuleNotFoundError(text)

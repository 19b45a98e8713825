"""Starts one process for each slot by DeepSpeed, where it is installed.

usage: python3 -m determined.launch.deepspeed [DEEPSPEED_OVERRIDES... --] (--trial TRIAL | SCRIPT...)
"""

import os
import sys
from typing import List, NoReturn

from determined.launch import _common

USAGE = "\n".join((__doc__ or "").splitlines()[2:])


def command_line(slots: int, overrides: List[str], script: List[str]) -> List[str]:
    # deepspeed gives its ranks the host's first GPUs: they see the task's again.
    visible = [f"{name}={os.environ[name]}" for name in ("CUDA_VISIBLE_DEVICES",) if name in os.environ]
    return [
        *("deepspeed", "--num_gpus", str(slots)),
        *("--master_port", os.environ.get("C10D_PORT", "29400")),
        *("--no_python", "--no_local_rank"),
        *overrides,
        *("env", *visible, sys.executable, "-m", "determined.launch.wrap_rank", "RANK"),
        *script,
    ]


def main(argv: List[str]) -> NoReturn:
    overrides, script = _common.parse(argv, USAGE)
    info = _common.cluster()
    _common.check(script)
    _common.need("deepspeed", "deepspeed", info)
    os.environ["USE_DEEPSPEED"] = "1"
    _common.become(command_line(len(info.slot_ids), overrides, script))


if __name__ == "__main__":
    main(sys.argv[1:])

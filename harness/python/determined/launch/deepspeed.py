"""Starts one process for each slot by DeepSpeed, where it is installed.

usage: python3 -m determined.launch.deepspeed [DEEPSPEED_OVERRIDES... --] (--trial TRIAL | SCRIPT...)
"""

import os
import shutil
import subprocess
import sys
from typing import List

from determined.launch import _common

USAGE = "\n".join((__doc__ or "").splitlines()[2:])


def main(argv: List[str]) -> int:
    overrides, script = _common.parse(argv, USAGE)
    info = _common.cluster()
    if shutil.which("deepspeed") is None:
        _common.fail(
            "deepspeed is not installed on this host: install it, or start the ranks by "
            "python3 -m determined.launch.torch_distributed"
        )
    if len(info.container_addrs) > 1:
        _common.fail("determined.launch.deepspeed starts ranks on one host; use torch_distributed for several")
    os.environ["USE_DEEPSPEED"] = "1"
    command = ["deepspeed", "--num_gpus", str(len(info.slot_ids)), "--no_python", *overrides]
    wrapped = [sys.executable, "-m", "determined.launch.wrap_rank", "RANK", *script]
    return subprocess.call([*command, *wrapped])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

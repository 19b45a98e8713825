"""Starts one process for each slot by torch.distributed.

usage: python3 -m determined.launch.torch_distributed [TORCH_OVERRIDES... --] (--trial TRIAL | SCRIPT...)

TORCH_OVERRIDES go to torch.distributed.run; TRIAL is module:Class.
"""

import os
import sys
from typing import List, NoReturn

import determined as det
from determined.launch import _common

USAGE = "\n".join((__doc__ or "").splitlines()[2:])


def command_line(info: det.ClusterInfo, overrides: List[str], script: List[str]) -> List[str]:
    nodes = len(info.container_addrs)
    master = "localhost" if nodes == 1 else info.container_addrs[0]
    return [
        *(sys.executable, "-m", "determined.launch.torchrun"),
        *("--nnodes", str(nodes)),
        *("--nproc_per_node", str(len(info.slot_ids))),
        *("--node_rank", str(info.container_rank)),
        *("--max_restarts", "0"),
        *("--master_addr", master),
        *("--master_port", os.environ.get("C10D_PORT", "29400")),
        *overrides,
        *("--no_python", sys.executable, "-m", "determined.launch.wrap_rank", "RANK"),
        *script,
    ]


def main(argv: List[str]) -> NoReturn:
    overrides, script = _common.parse(argv, USAGE)
    info = _common.cluster()
    _common.check(script)
    os.environ["USE_TORCH_DISTRIBUTED"] = "True"
    _common.become(command_line(info, overrides, script))


if __name__ == "__main__":
    main(sys.argv[1:])

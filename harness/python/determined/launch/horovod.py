"""Starts one process for each slot of this host by Horovod, where it is installed.

usage: python3 -m determined.launch.horovod [HVD_OVERRIDES... --] (--trial TRIAL | SCRIPT...)
"""

import os
import sys
from typing import List, NoReturn

from determined.launch import _common

USAGE = "\n".join((__doc__ or "").splitlines()[2:])


def main(argv: List[str]) -> NoReturn:
    auto = "--autohorovod" in argv
    overrides, script = _common.parse([a for a in argv if a != "--autohorovod"], USAGE)
    info = _common.cluster()
    _common.check(script)
    if auto and len(info.container_addrs) == 1 and len(info.slot_ids) <= 1:
        _common.become(script)
    _common.need("horovodrun", "horovod", info)
    os.environ["USE_HOROVOD"] = "1"
    slots = str(len(info.slot_ids))
    command = ["horovodrun", "-np", slots, "-H", f"localhost:{slots}", "--start-timeout", "1200"]
    wrapped = [sys.executable, "-m", "determined.launch.wrap_rank", "HOROVOD_RANK,OMPI_COMM_WORLD_RANK", *script]
    _common.become([*command, "--gloo-timeout-seconds", "240", *overrides, *wrapped])


if __name__ == "__main__":
    main(sys.argv[1:])

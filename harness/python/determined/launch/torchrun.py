"""torch.distributed.run, told what Debian's builds of torch need.

usage: python3 -m determined.launch.torchrun [OPTIONS...] SCRIPT...        as torchrun takes them
"""

import os
import sys
from typing import List

import torch.distributed.run

from determined import _libuv


def broken_redirects() -> List[str]:
    """torch 1.x (Debian 12) fails on Python 3.11 unless it is told what to redirect."""
    old = int(torch.__version__.split(".")[0]) < 2
    return ["-r", "9:1", "-t", "9:1"] if old and sys.version_info >= (3, 11) else []


def own_stores(argv: List[str]) -> List[str]:
    """Where torchrun's store has no libuv, workers that share it fail; of one host they can make one by USE_LIBUV, which is heeded."""
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    args = torch.distributed.run.parse_args(argv)
    one_host = args.rdzv_backend == "static" and args.nnodes in ("1", "1:1")
    return ["--standalone", "--local_addr", "localhost"] if one_host else []


def main(argv: List[str]) -> None:
    extra = own_stores(argv) if _libuv.spare() else []
    torch.distributed.run.main([*broken_redirects(), *extra, *argv])


if __name__ == "__main__":
    main(sys.argv[1:])

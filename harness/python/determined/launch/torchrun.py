"""torch.distributed.run, told what Debian's builds of torch need.

usage: python3 -m determined.launch.torchrun [OPTIONS...] SCRIPT...        as torchrun takes them
"""

import sys
from typing import List

import torch.distributed.run

from determined import _libuv


def broken_redirects() -> List[str]:
    """torch 1.x (Debian 12) fails on Python 3.11 unless it is told what to redirect."""
    old = int(torch.__version__.split(".")[0]) < 2
    return ["-r", "9:1", "-t", "9:1"] if old and sys.version_info >= (3, 11) else []


def main(argv: List[str]) -> None:
    _libuv.spare()
    torch.distributed.run.main([*broken_redirects(), *argv])


if __name__ == "__main__":
    main(sys.argv[1:])

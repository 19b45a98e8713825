"""Debian 13's torch was built without libuv, which its stores ask for unless they are told not to."""

import functools
import importlib
import os

import torch.distributed

#: Who makes stores and takes no word from outside: workers that share torchrun's store, and torchrun.
_MAKERS = (
    "torch.distributed.rendezvous",
    "torch.distributed.elastic.rendezvous.c10d_rendezvous_backend",
    "torch.distributed.elastic.rendezvous.static_tcp_rendezvous",
)


def _is_missing() -> bool:
    try:
        torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    except RuntimeError as e:
        return "libuv" in str(e)
    return False


def spare() -> bool:
    """Lets torchrun and init_process_group() do without, in this process, where there is none: whether that is so."""
    if not _is_missing():
        return False
    os.environ.setdefault("USE_LIBUV", "0")
    for name in _MAKERS:
        maker = importlib.import_module(name)
        setattr(maker, "TCPStore", functools.partial(torch.distributed.TCPStore, use_libuv=False))
    return True

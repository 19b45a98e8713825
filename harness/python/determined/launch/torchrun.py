"""torch.distributed.run, told what Debian's builds of torch need, and to end when its workers have.

usage: python3 -m determined.launch.torchrun [OPTIONS...] SCRIPT...        as torchrun takes them
"""

import contextlib
import importlib
import itertools
import os
import random
import socket
import sys
from typing import Any, List

import torch.distributed.run
from torch.distributed.elastic.rendezvous import rendezvous_handler_registry
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

from determined import _libuv
from determined.launch import _common

_api: Any = importlib.import_module("torch.distributed.elastic.rendezvous.api")
_BACKEND = "own_stores"
#: How often torchrun looks whether its workers have ended; by default every 5 s, in which their slots stand idle.
_LOOKS_OFTEN = ["--monitor_interval", "0.1"]


def broken_redirects() -> List[str]:
    """torch 1.x (Debian 12) fails on Python 3.11 unless it is told what to redirect."""
    old = int(torch.__version__.split(".")[0]) < 2
    return ["-r", "9:1", "-t", "9:1"] if old and sys.version_info >= (3, 11) else []


class OwnStores(StaticTCPRendezvous):
    """Hosts that know their numbers, as by default, but workers that make a store of their own, on a port that rank 0's host finds."""

    use_agent_store = False  # type: ignore

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._rounds = itertools.count()

    def get_backend(self) -> str:
        return _BACKEND

    def next_rendezvous(self) -> Any:
        info: Any = super().next_rendezvous()
        round_store = torch.distributed.PrefixStore(f"{_BACKEND}-{next(self._rounds)}", info.store)
        place = _api.RendezvousStoreInfo.build(info.rank, round_store, self.master_addr)
        return _api.RendezvousInfo(info.store, info.rank, info.world_size, place)


def own_stores(argv: List[str]) -> List[str]:
    """Where torchrun's store has no libuv, workers that share it fail; one of their own heeds USE_LIBUV."""
    os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    args = torch.distributed.run.parse_args(argv)
    if args.rdzv_backend != "static":
        return []

    def create(p: Any) -> OwnStores:
        host, port = parse_rendezvous_endpoint(p.endpoint, args.master_port)
        return OwnStores(host, port, args.node_rank, p.max_nodes, p.run_id, p.get_as_int("timeout", 900))

    rendezvous_handler_registry.register(_BACKEND, create)
    return ["--rdzv_backend", _BACKEND, "--rdzv_endpoint", args.rdzv_endpoint or f"{args.master_addr}:{args.master_port}"]


_DEFAULT_PORT = 29500


def _free_ports(count: int) -> List[int]:
    """Below those that the kernel gives to whoever connects: it could take one before rank 0 listens, minutes later."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        end = int(f.read().split()[0])
    candidates = range(max(end - 10000, 1024), end)
    found: List[int] = []
    for port in random.SystemRandom().sample(candidates, len(candidates)):
        if len(found) == count:
            break
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("", port))
            found.append(port)
    if len(found) < count:
        raise OSError(f"no {count} free ports in {candidates}: name one by --master_port, or raise net.ipv4.ip_local_port_range")
    return found


def own_ports(argv: List[str]) -> List[str]:
    """Two launches on one host must not meet: where no other host has to know a port, free ones for those that nobody named."""
    parser = torch.distributed.run.get_args_parser()
    if parser.get_default("master_port") == _DEFAULT_PORT:  # else of the environment
        parser.set_defaults(master_port=None)
    args = parser.parse_args(argv)
    if args.nnodes not in ("1", "1:1"):
        return []
    master, *ours = map(str, _free_ports(3))
    for name, port in zip(("INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2"), ours):
        os.environ.setdefault(name, port)
    named = args.master_port is not None or args.rdzv_endpoint or args.rdzv_backend != "static" or args.standalone
    return [] if named else ["--master_port", master]


def check_script(argv: List[str]) -> None:
    args = torch.distributed.run.parse_args(argv)
    if not args.module:
        _common.check([*([] if args.no_python else [sys.executable]), args.training_script])


def main(argv: List[str]) -> None:
    check_script(argv)
    argv = [*own_ports(argv), *argv]
    extra = own_stores(argv) if _libuv.spare() else []
    torch.distributed.run.main([*broken_redirects(), *_LOOKS_OFTEN, *extra, *argv])


if __name__ == "__main__":
    main(sys.argv[1:])

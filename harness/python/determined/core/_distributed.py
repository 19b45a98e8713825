"""Ranks that tell each other Python values."""

import os
import pickle
import socket
from typing import Any, Dict, List, Optional

DEFAULT_PORT = 12360  # of the object collectives; the training loop uses the one after next


class DistributedContext:
    """Which rank this process is, and collectives of any picklable value.

    Every rank must make the same calls in the same order. Making the object waits for all ranks.
    """

    def __init__(
        self,
        *,
        rank: Optional[int],
        size: Optional[int],
        local_rank: Optional[int],
        local_size: Optional[int],
        cross_rank: Optional[int],
        cross_size: Optional[int],
        chief_ip: Optional[str] = None,
        pub_port: int = DEFAULT_PORT,
        pull_port: int = DEFAULT_PORT + 16,
        port_offset: int = 0,
        force_tcp: bool = False,
    ) -> None:
        given = [v is not None for v in (rank, size, local_rank, local_size, cross_rank, cross_size)]
        if any(given) and not all(given):
            raise ValueError("give all of rank, size, local_rank, local_size, cross_rank and cross_size, or none")
        self.rank: int = rank or 0
        self.size: int = size if size is not None else 1
        self.local_rank: int = local_rank or 0
        self.local_size: int = local_size if local_size is not None else 1
        self.cross_rank: int = cross_rank or 0
        self.cross_size: int = cross_size if cross_size is not None else 1
        assert chief_ip is not None or self.local_size == self.size, (
            "chief_ip is needed where ranks are on several machines: the address of rank 0's machine"
        )
        self._chief_ip = chief_ip or "127.0.0.1"
        self._port = int(os.environ.get("INTER_TRAIN_PROCESS_COMM_PORT_1") or pub_port)
        self._loop_port = int(os.environ.get("INTER_TRAIN_PROCESS_COMM_PORT_2") or pull_port)
        self._all: Any = None
        self._local: Any = None
        self._closed = False
        if self.size > 1:
            self._all = self._open(self.rank, self.size, self._chief_ip, self._port)
        if self.local_size > 1:
            self._local = self._open_local()

    def _open(self, rank: int, size: int, host: str, port: int) -> Any:
        from determined import _loop

        return _loop.Comm(rank, size, self.local_rank, self.local_size, host, port, self._secret())

    def _open_local(self) -> Any:
        """The ranks of each machine meet at a port that its first rank found free."""
        if self.cross_size == 1:
            return self._all
        port = 0
        if self.local_rank == 0:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                port = s.getsockname()[1]
        ports = self.allgather((self.cross_rank, self.local_rank, port))
        mine = next(p for cross, local, p in ports if cross == self.cross_rank and local == 0)
        return self._open(self.local_rank, self.local_size, "127.0.0.1", mine)

    @staticmethod
    def _secret() -> Optional[str]:
        return os.environ.get("DET_SESSION_TOKEN") or None

    def _loop_address(self) -> Dict[str, Any]:
        """Where the training loop's own collectives meet."""
        return {"chief_host": self._chief_ip, "port": self._loop_port, "secret": self._secret()}

    # ---- constructors ----

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: Optional[str] = None) -> "DistributedContext":
        return cls(
            rank=hvd.rank(),
            size=hvd.size(),
            local_rank=hvd.local_rank(),
            local_size=hvd.local_size(),
            cross_rank=hvd.cross_rank(),
            cross_size=hvd.cross_size(),
            chief_ip=chief_ip or os.environ.get("DET_CHIEF_IP"),
        )

    @classmethod
    def from_deepspeed(cls, chief_ip: Optional[str] = None) -> "DistributedContext":
        return cls._from_env("LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", chief_ip)

    @classmethod
    def from_torch_distributed(cls, chief_ip: Optional[str] = None) -> "DistributedContext":
        return cls._from_env("LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", chief_ip)

    @classmethod
    def _from_env(
        cls, local_size: str, cross_rank: str, cross_size: str, chief_ip: Optional[str]
    ) -> "DistributedContext":
        env = os.environ
        missing = [n for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK", local_size, cross_rank, cross_size) if n not in env]
        if missing:
            raise ValueError(f"the environment has no {', '.join(missing)}: start the script with its launcher")
        return cls(
            rank=int(env["RANK"]),
            size=int(env["WORLD_SIZE"]),
            local_rank=int(env["LOCAL_RANK"]),
            local_size=int(env[local_size]),
            cross_rank=int(env[cross_rank]),
            cross_size=int(env[cross_size]),
            chief_ip=chief_ip or env.get("DET_CHIEF_IP"),
        )

    # ---- facts ----

    def get_rank(self) -> int:
        return self.rank

    def get_local_rank(self) -> int:
        return self.local_rank

    def get_size(self) -> int:
        return self.size

    def get_num_agents(self) -> int:
        return self.cross_size

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._local is not None and self._local is not self._all:
            self._local.close()
        if self._all is not None:
            self._all.close()

    def _leave(self, why: str) -> None:
        """For ranks that would wait for this one: their collectives fail and say why. Afterwards this one has none."""
        if self._all is not None:
            self._all.leave(why)

    # ---- collectives ----

    @staticmethod
    def _allgather(comm: Any, value: Any) -> List[Any]:
        return [value] if comm is None else [pickle.loads(b) for b in comm.allgather(pickle.dumps(value))]

    @staticmethod
    def _broadcast(comm: Any, value: Any) -> Any:
        return value if comm is None else pickle.loads(comm.broadcast(pickle.dumps(value)))

    def gather(self, stuff: Any) -> Optional[List[Any]]:
        """All values in the order of ranks at the chief; None elsewhere."""
        values = self._allgather(self._all, stuff)
        return values if self.rank == 0 else None

    def gather_local(self, stuff: Any) -> Optional[List[Any]]:
        values = self._allgather(self._local, stuff)
        return values if self.local_rank == 0 else None

    def allgather(self, stuff: Any) -> List[Any]:
        """All values in the order of ranks, everywhere."""
        return self._allgather(self._all, stuff)

    def allgather_local(self, stuff: Any) -> List[Any]:
        return self._allgather(self._local, stuff)

    def broadcast(self, stuff: Any) -> Any:
        """The chief's value, everywhere."""
        return self._broadcast(self._all, stuff if self.rank == 0 else None)

    def broadcast_local(self, stuff: Any = None) -> Any:
        return self._broadcast(self._local, stuff if self.local_rank == 0 else None)


class DummyDistributedContext(DistributedContext):
    """One process, which is its own chief."""

    def __init__(self) -> None:
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)

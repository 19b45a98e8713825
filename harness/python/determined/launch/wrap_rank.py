"""Runs a command and puts its rank before every line that it prints.

usage: python3 -m determined.launch.wrap_rank RANK|VARIABLE,VARIABLE... [--no-redirect-stdio] [--] COMMAND...

RANK is a number, or names of environment variables of which the first that is set holds it.
"""

import os
import select
import signal
import subprocess
import sys
from typing import IO, List

from determined.launch import _command, _common

PIPE_MAX = 1 << 20  # more than a pipe holds


def find_rank(text: str) -> int:
    if text.isdigit():
        return int(text)
    for name in text.split(","):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    raise ValueError(f"wrap_rank: none of {text} is set to a number")


class _Stream:
    """What the command writes to a pipe, as whole lines; a carriage return, as progress bars print it, ends a line too."""

    def __init__(self, rank: int, source: IO[bytes], sink: IO[bytes]) -> None:
        self._prefix = f"[rank={rank}] ".encode()
        self._source, self._sink = source, sink
        self._rest = b""
        self._returned = False  # the last block ended with a carriage return, whose newline may follow

    def fileno(self) -> int:
        return self._source.fileno()

    def forward(self) -> bool:
        """All that the pipe holds now; False: there will be no more."""
        block = os.read(self.fileno(), PIPE_MAX)
        text = block[1:] if self._returned and block.startswith(b"\n") else block
        self._returned = block.endswith(b"\r")
        lines = (self._rest + text).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        self._write(lines)
        return bool(block)

    def end(self) -> None:
        self._write([self._rest] if self._rest else [])

    def _write(self, lines: List[bytes]) -> None:
        self._sink.writelines(self._prefix + line + b"\n" for line in lines)
        self._sink.flush()


def forward(ended: int, streams: List[_Stream]) -> None:
    """Until `ended` can be read, and no longer: what the command leaves running may hold its pipes for ever."""
    reading = list(streams)
    over = False
    while reading and not over:
        over = ended in select.select([ended, *reading], [], [])[0]
        ready = select.select(reading, [], [], 0)[0]  # once it is over, all that the command wrote
        reading = [s for s in reading if s not in ready or s.forward()]
    for s in streams:
        s.end()


def start(rank: int, command: List[str]) -> "subprocess.Popen[bytes]":
    problem = _command.problem(command)
    if problem is None:
        try:
            return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError as e:
            problem = _command.explain(command, e)
    code, text = problem
    _common.fail(f"[rank={rank}] {text}", code)


def run(rank: int, command: List[str]) -> int:
    process = start(rank, command)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda got, frame: process.send_signal(got))
    assert process.stdout is not None and process.stderr is not None
    streams = [_Stream(rank, process.stdout, sys.stdout.buffer), _Stream(rank, process.stderr, sys.stderr.buffer)]
    forward(os.pidfd_open(process.pid), streams)
    code = process.wait()
    return code if code >= 0 else 128 - code


def main(argv: List[str]) -> int:
    redirect = argv[1:2] != ["--no-redirect-stdio"]
    command = argv[1 if redirect else 2 :]
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 1
    rank = find_rank(argv[0])
    if not redirect:
        _common.become(command)
    return run(rank, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs a command and puts its rank before every line that it prints.

usage: python3 -m determined.launch.wrap_rank RANK|VARIABLE,VARIABLE... [--no-redirect-stdio] COMMAND...

RANK is a number, or names of environment variables of which the first that is set holds it.
"""

import os
import signal
import subprocess
import sys
import threading
from typing import BinaryIO, List


def find_rank(text: str) -> int:
    if text.isdigit():
        return int(text)
    for name in text.split(","):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    raise ValueError(f"wrap_rank: none of {text} is set to a number")


def _forward(rank: int, source: BinaryIO, sink: BinaryIO) -> None:
    """Whole lines; a carriage return, as progress bars print it, ends a line too."""
    prefix, rest = f"[rank={rank}] ".encode(), b""
    while True:
        block = os.read(source.fileno(), 65536)
        lines = (rest + block).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest = lines.pop() if block else b""
        if not block and lines and not lines[-1]:
            lines.pop()
        for line in lines:
            sink.write(prefix + line + b"\n")
        sink.flush()
        if not block:
            return


def run(rank: int, command: List[str]) -> int:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda got, frame: process.send_signal(got))
    assert process.stdout is not None and process.stderr is not None
    pairs = ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
    threads = [threading.Thread(target=_forward, args=(rank, source, sink)) for source, sink in pairs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    code = process.wait()
    return code if code >= 0 else 128 - code


def main(argv: List[str]) -> int:
    if len(argv) < 2:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 1
    rank, command = find_rank(argv[0]), argv[1:]
    if command[0] == "--no-redirect-stdio":
        os.execvp(command[1], command[1:])
    return run(rank, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

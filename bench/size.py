#!/usr/bin/env python3
"""size: resident memory of an idle master and agent, bytes of each binary, lines of C and of tests."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
from cluster import BIN, TOP, Cluster  # noqa: E402


def emit(figure, value, unit, bench="size"):
    print(json.dumps({"bench": bench, "figure": figure, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None}), flush=True)


def rss_mb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def lines(*paths):
    files = subprocess.run(["git", "-C", TOP, "ls-files", *paths], text=True, capture_output=True, check=True).stdout.split()
    return sum(len(open(os.path.join(TOP, f), errors="replace").readlines()) for f in files)


def main():
    with Cluster(agents=1, slots=2) as c:
        emit("master_rss", round(rss_mb(c.pid("master")), 1), "MB")
        emit("agent_rss", round(rss_mb(c.pid("agent-0")), 1), "MB")
    for name in ("det-master", "det-agent", "det-task", "det-harness", "det"):
        emit(name + "_bytes", os.path.getsize(os.path.join(BIN, name)), "bytes")
    source = lines("*.c", "*.h", "*.cc", "*.cu", ":!tests", ":!bench", ":!examples")
    tests = lines("tests/*.c", "tests/*.h", "tests/*.py", "tests/*.sh", "tests/run", "tests/*/run")
    emit("c_lines", source, "lines")
    emit("test_lines_per_source_line", round(tests / source, 3), "")


if __name__ == "__main__":
    main()

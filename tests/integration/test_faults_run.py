"""A runner of faults that is told to end leaves no cluster behind."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TOP, processes_with, wait_until


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def main():
    mark = f"DET_TEST_MARK={os.getpid()}"
    env = dict(os.environ, DET_TEST_MARK=str(os.getpid()))
    p = subprocess.Popen([sys.executable, f"{TOP}/tests/faults/run", "--beside", "2", "3"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: "det-agent" in map(name_of, processes_with(mark)), 60, "a cluster")
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=300)
        assert p.returncode == 128 + signal.SIGTERM, p.returncode
        wait_until(lambda: not processes_with(mark), 30, "the end of all that it started")
    finally:
        for pid in processes_with(mark):
            os.kill(pid, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())

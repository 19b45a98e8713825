#!/usr/bin/python3
"""run.py [--stub] TEST    runs one file of tests

Where there is no PyTorch, or sanitizers are on, which PyTorch does not bear, or with --stub, the tests that need only its shape
run with stub/torch in its place; the others are skipped (exit status 77).
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WITH_STUB = {"test_extension.py": [], "test_golden.py": ["Golden.test_alone"]}


def sanitizer():
    """The library that must be loaded before the interpreter's own."""
    extension = importlib.util.find_spec("determined._loop").origin
    lines = subprocess.run(["ldd", extension], check=True, capture_output=True, text=True).stdout.splitlines()
    return next(line.split()[2] for line in lines if "libasan" in line)


def run_with_stub(test):
    if os.path.basename(test) not in WITH_STUB:
        print("skipped: no PyTorch here, or none that bears sanitizers")
        sys.exit(77)
    env = {**os.environ, "PYTHONPATH": os.path.join(HERE, "stub") + ":" + os.environ.get("PYTHONPATH", "")}
    if os.environ.get("DET_SANITIZED"):
        env.update(LD_PRELOAD=sanitizer(), PYTHONMALLOC="malloc", ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
    os.execve(sys.executable, [sys.executable, test, *WITH_STUB[os.path.basename(test)]], env)


sys.path.insert(0, HERE)
stub = sys.argv[1] == "--stub"
if stub or importlib.util.find_spec("torch") is None or os.environ.get("DET_SANITIZED"):
    run_with_stub(sys.argv[2 if stub else 1])
sys.argv[:] = [sys.argv[1], *sys.argv[2:]]
# What PyTorch's launchers leave in the directory of temporary files goes with it.
own = tempfile.mkdtemp(prefix="det-python-")
pid = os.fork()
if pid:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    shutil.rmtree(own)
    sys.exit(status if status >= 0 else 128 - status)
os.environ["TMPDIR"], tempfile.tempdir = own, None
spec = importlib.util.spec_from_file_location("__main__", sys.argv[0])
module = importlib.util.module_from_spec(spec)
sys.modules["__main__"] = module
spec.loader.exec_module(module)

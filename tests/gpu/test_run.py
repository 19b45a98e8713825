#!/usr/bin/env python3
"""What tests/gpu/run makes of tests that hang, crash, fail and print without end: in a pack whose programs are scripts, on a host
whose nvidia-smi is one.
"""
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import unittest

import losses

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
LIMIT_S = "5"

# What stands for python3: it runs shell scripts, has PyTorch, and unpacks.
PYTHON = """case "$1" in
-c) case "$2" in *torch*) echo torch 9 ;; *tarfile*) exec /usr/bin/python3 "$@" ;; esac ;;
*) exec sh "$@" ;;
esac"""
HANGS = "echo begins; exec sleep 1000"
FLOODS = "echo first; head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo last; exit 1"


def script(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + text + "\n")
    os.chmod(path, 0o755)


def of_session(sid):
    """Those that still run."""
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat") as f:
                state, _, _, session = f.read().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == sid and state != "Z":
            yield pid


def kill_session(sid):
    """All of it, also what it starts meanwhile: timeout(1) gives what it bounds a process group of its own."""
    while left := list(of_session(sid)):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Pack:
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.root, self.out = self.dir.name + "/pack", self.dir.name + "/out"
        for d in (self.root + "/libraries", self.out):
            os.makedirs(d)
        open(self.root + "/libraries.list", "w").close()
        self.script("bin/nvidia-smi", 'echo "GPU 0: Fake (UUID: GPU-a)"')
        self.script("bin/python3", PYTHON)
        self.script("build/tests/ops/test_ops", "echo all cases")

    def script(self, path, text):
        script(os.path.join(self.root, path), text)

    def torch_test(self, name, text):
        self.script(f"tests/ops/test_torch_{name}.py", text)

    def start(self, *tests, limit=LIMIT_S, beside=4):
        env = dict(os.environ, OUT=self.out, TMPDIR=self.dir.name, DET_GPU_LIMIT=limit, PATH=self.root + "/bin:" + os.environ["PATH"])
        env.pop("DET_BUILD", None)
        return subprocess.Popen(["bash", RUN, "--packed", self.root, "--beside", str(beside), *tests], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True)

    def seal(self, says):
        """As tests/gpu/pack leaves it: what is built lies in an archive."""
        self.script("build/tests/ops/test_ops", f"echo {says}")
        with tarfile.open(self.root + "/binaries.tar.xz", "w:xz") as t:
            for name in ("build", "libraries"):
                t.add(os.path.join(self.root, name), name)
                shutil.rmtree(os.path.join(self.root, name))

    def logs(self):
        """The kept logs by name."""
        with tarfile.open(self.out + "/logs.tar.gz") as t:
            return {os.path.basename(m.name): t.extractfile(m).read() for m in t.getmembers() if m.isfile()}


class Run(unittest.TestCase):
    def setUp(self):
        self.pack = Pack()
        self.addCleanup(self.pack.dir.cleanup)

    def test_each_costs_its_own_result_only(self):
        p = self.pack
        p.torch_test("ops", HANGS)
        p.torch_test("seq", FLOODS)
        p.torch_test("vision", "kill -SEGV $$")
        p.torch_test("optim", "echo every optimizer")
        run = p.start("facts", "ops", "torch-ops", "torch-seq", "torch-vision", "optim", "nccl")
        said, _ = run.communicate()
        self.assertEqual(run.returncode, 1, said)
        self.assertTrue(said.endswith("3 passed, 3 failed, 1 skipped\n"), said)
        self.assertIn(f"FAIL  torch-ops: no end after {LIMIT_S} s\n      begins\n", said)
        self.assertIn("skip  nccl: built without NCCL\n", said)
        logs = p.logs()
        self.assertEqual(logs["optim.log"], b"every optimizer\n")
        self.assertIn(b"GPU 0: Fake", logs["facts.log"])
        self.assertTrue(logs["torch-seq.log"].startswith(b"first\n") and logs["torch-seq.log"].endswith(b"last\n"))
        self.assertLess(len(logs["torch-seq.log"]), 1 << 21)
        results = logs["results.txt"].decode()
        for line in ("ok    facts", "ok    ops", "FAIL  torch-seq (status 1", "FAIL  torch-vision (status 139"):
            self.assertIn(line, results)

    def test_nothing_of_a_cluster_stays(self):
        p = self.pack
        p.script("tests/gpu/on_cluster.py", 'echo "$TMPDIR $DET_GPU_LIMIT"; touch "$TMPDIR/left"')
        said, _ = p.start("cluster").communicate()
        self.assertTrue(said.endswith("1 passed, 0 failed, 0 skipped\n"), said)
        folder, limit = p.logs()["cluster.log"].decode().split()
        self.assertEqual((os.path.dirname(folder), limit), (p.dir.name, LIMIT_S))
        self.assertFalse(os.path.exists(folder))

    def test_a_pack_is_unpacked_when_it_is_another(self):
        p = self.pack
        for says in ("one", "another"):
            p.seal(says)
            for what in ("fresh", "unpacked"):
                said, _ = p.start("ops").communicate()
                self.assertTrue(said.endswith("1 passed, 0 failed, 0 skipped\n"), said)
                self.assertEqual(p.logs()["ops.log"].decode(), says + "\n", what)

    def test_a_machine_that_is_taken_away_leaves_what_was_done(self):
        p = self.pack
        p.torch_test("ops", "echo all of them")
        p.torch_test("vision", HANGS)
        run = p.start("ops", "torch-ops", "torch-vision", limit="1000", beside=1)
        said = ""
        while "ok    torch-ops" not in said:
            line = run.stdout.readline()
            self.assertTrue(line, said)
            said += line
        while "torch-ops.log" not in p.logs():
            self.assertIsNone(run.poll())
        kill_session(run.pid)
        run.communicate()
        self.assertEqual(p.logs()["torch-ops.log"], b"all of them\n")


class Tf32(unittest.TestCase):
    def test_what_is_wrong_is_said(self):
        exact, rounded, cpu = [2.3, 2.2, 2.1], [2.301, 2.201, 2.15], [2.3, 2.2, 2.1]
        self.assertIsNone(losses.problem_of_tf32(exact, rounded, rounded, cpu))
        self.assertIn("two runs", losses.problem_of_tf32(exact, rounded, exact, cpu))
        self.assertIn("changes nothing", losses.problem_of_tf32(exact, exact, exact, cpu))
        for far in (2.4, float("nan")):
            wrong = [2.301, far, 2.15]
            self.assertIn("losses [1]", losses.problem_of_tf32(exact, wrong, wrong, cpu))

    def test_it_is_asked_for_by_the_environment(self):
        with tempfile.TemporaryDirectory() as d:
            program = os.path.join(d, "bench-train")
            script(program, 'case $BENCH_DEVICE-$DET_ALLOW_TF32 in cuda-1) l=2.0005 ;; *) l=2.0 ;; esac\n'
                   'echo "{\\"losses\\":[$l,1,1,1,1,1,1,1,1,1]}"')
            with self.assertRaises(SystemExit) as nothing:  # a CPU knows no TF32
                losses.compare_tf32(program, "cpu", ["net"])
            self.assertIn("changes nothing", str(nothing.exception))
            losses.compare_tf32(program, "cuda", ["net"])


if __name__ == "__main__":
    unittest.main(verbosity=1)

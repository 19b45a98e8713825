"""Training without a cluster, as people start it: in a notebook's cell, and by torchrun."""
import concurrent.futures
import contextlib
import importlib
import io
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import torch.distributed.run
from determined import _libuv
from determined.launch import _common, deepspeed, horovod, torchrun, wrap_rank
from jupyter_client.manager import start_new_kernel
from test_ranks import free_port
from torch.distributed.elastic.rendezvous import RendezvousParameters

HERE = os.path.dirname(os.path.abspath(__file__))
CELL = """
import sys
sys.path.insert(0, {here!r})
from determined import pytorch
from support import LineTrial
class Mine(LineTrial):
    pass
with pytorch.init(hparams={{"lr": 0.1}}) as context:
    trial = Mine(context)
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch({epochs}))
print("trained", len(trial.seen), type(trial).__module__)
"""
SCRIPT = """
import sys
sys.path.insert(0, {here!r})
import torch
from determined import pytorch
from support import LineTrial
with pytorch.init() as context:
    trial, group = LineTrial(context), context.distributed
    pytorch.Trainer(trial, context).fit(max_length=pytorch.Epoch(1))
    # In one piece: the ranks share a pipe, and torchrun starts Python without a buffer.
    print("rank %d of %d trained %d\\n" % (group.rank, group.size, len(trial.seen)), end="", flush=True)
    group.allgather(None)
torch.distributed.destroy_process_group()
"""

OWN_GROUP = """
import torch, torch.distributed as d
d.init_process_group("gloo")
sum_of_ranks = torch.tensor(d.get_rank())
d.all_reduce(sum_of_ranks)
print("rank %d of %d: %d\\n" % (d.get_rank(), d.get_world_size(), sum_of_ranks), end="", flush=True)
d.barrier()
d.destroy_process_group()
"""


class Local(unittest.TestCase):
    def run_python(self, *args, **env):
        with tempfile.TemporaryDirectory() as top:
            script = os.path.join(top, "train.py")
            with open(script, "w") as f:
                f.write(SCRIPT.format(here=HERE))
            done = subprocess.run([sys.executable, *[a if a != "SCRIPT" else script for a in args]], cwd=top, capture_output=True, text=True,
                                  env={**os.environ, "XDG_DATA_HOME": top, "OMP_NUM_THREADS": "1", **env})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_notebook(self):
        """A Jupyter kernel; a person runs a cell again after changing it."""
        printed = []

        def take(message):
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])

        with tempfile.TemporaryDirectory() as top:
            env = {**os.environ, "HOME": top, "XDG_DATA_HOME": top, "IPYTHONDIR": top, "OMP_NUM_THREADS": "1"}
            manager, client = start_new_kernel(startup_timeout=300, kernel_name="python3", env=env, cwd=top)
            try:
                for epochs in (1, 2):
                    answer = client.execute_interactive(CELL.format(here=HERE, epochs=epochs), timeout=300, output_hook=take)
                    self.assertEqual(answer["content"]["status"], "ok", answer)
            finally:
                client.stop_channels()
                manager.shutdown_kernel(now=True)
        self.assertEqual("".join(printed), "trained 3 __main__\ntrained 6 __main__\n")

    def test_torchrun(self):
        """Two launches at once, which nobody told of ports: each its own ranks."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = [pool.submit(self.run_python, "-m", "determined.launch.torchrun", "--nproc_per_node", "2", "SCRIPT") for _ in range(2)]
            for out in [run.result() for run in runs]:
                for rank in (0, 1):
                    self.assertIn(f"rank {rank} of 2 trained 2", out)

    def test_ports_nobody_else_is_given(self):
        """Found free, on every address, and below those that the kernel gives to whoever connects."""
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            end = int(f.read().split()[0])
        self.assertLess(max(torchrun._free_ports(20)), end)
        with mock.patch.object(torchrun.random.SystemRandom, "sample", lambda self, ports, n: [taken.getsockname()[1], *ports]), socket.socket() as taken:
            taken.bind(("127.0.0.2", 0))
            self.assertNotIn(taken.getsockname()[1], torchrun._free_ports(1))

    def test_ends_with_its_workers(self):
        """torchrun waits 5 s between two looks at its workers, in which their slots would stand idle; ours looks often."""
        with tempfile.TemporaryDirectory() as top:
            script = os.path.join(top, "own.py")
            with open(script, "w") as f:
                f.write("")
            code = ("import sys, time\nreal, slept = time.sleep, []\ntime.sleep = lambda s: (slept.append(s), real(s))\n"
                    "from determined.launch import torchrun\ntorchrun.main(['--nproc_per_node', '1', sys.argv[1]])\nprint('slept', max(slept))")
            out = subprocess.run([sys.executable, "-c", code, script], cwd=top, check=True, capture_output=True, text=True, timeout=240).stdout
            self.assertEqual(out.splitlines()[-1], "slept 0.1")

    def test_own_process_group(self):
        """A script that knows nothing of this package, on two hosts and on one."""
        port = str(free_port())
        with tempfile.TemporaryDirectory() as top:
            script = os.path.join(top, "own.py")
            with open(script, "w") as f:
                f.write(OWN_GROUP)
            for hosts, numbers in (("2", (0, 1)), ("1", (0,))):
                lines = ["-m", "determined.launch.torchrun", "--nnodes", hosts, "--nproc_per_node", "2", "--master_addr", "127.0.0.1", "--master_port", port]
                started = [subprocess.Popen([sys.executable, *lines, "--node_rank", str(n), script], cwd=top, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}) for n in numbers]
                said = [p.communicate(timeout=240) for p in started]
                self.assertEqual([p.returncode for p in started], [0] * len(started), said)
                printed = "".join(out for out, _ in said).splitlines()
                world = 2 * len(numbers)
                self.assertEqual(sorted(printed), [f"rank {r} of {world}: {sum(range(world))}" for r in range(world)])


class Libuv(unittest.TestCase):
    """A torch that was built without it, as Debian 13's."""

    @staticmethod
    def store(*args, use_libuv=True, **kwargs):
        if use_libuv:
            raise RuntimeError("use_libuv was requested but PyTorch was build without libuv support")
        return "store"

    def run_without(self, argv):
        """What torchrun and its stores get where there is none."""
        makers = [importlib.import_module(name) for name in _libuv._MAKERS]
        with contextlib.ExitStack() as stack:
            for m in (torch.distributed, *makers):
                stack.enter_context(mock.patch.object(m, "TCPStore", self.store))
            stack.enter_context(mock.patch.dict(os.environ))
            run = stack.enter_context(mock.patch("torch.distributed.run.main"))
            os.environ.pop("USE_LIBUV", None)
            torchrun.main(argv)
            self.assertEqual(os.environ["USE_LIBUV"], "0")
            self.assertEqual([m.TCPStore("localhost", 1) for m in makers], ["store"] * len(makers))
        return run.call_args.args[0]

    def test_workers_make_their_own_store(self):
        """Which torch 1.13 knows nothing of: its classes are stood in for."""
        class Api:
            @staticmethod
            def build(rank, store, address):
                return (rank, store, address)

        Api.RendezvousStoreInfo, Api.RendezvousInfo = Api, lambda *a: a
        two = ["--nnodes", "2", "--node_rank", "1", "--master_port", "29477"]
        for argv, host, port in ((["--nproc_per_node", "2", __file__], "127.0.0.1", None),
                                 ([*two, "--master_addr", "a", __file__, "--nnodes", "3"], "a", 29477),
                                 ([*two, "--rdzv_endpoint", "b", __file__], "b", 29477), ([*two, "--rdzv_endpoint", "b:7", __file__], "b", 7)):
            with mock.patch.dict(torchrun.rendezvous_handler_registry._registry):
                got = self.run_without(argv)
                self.assertEqual(got[-len(argv):], argv)
                args = torch.distributed.run.parse_args(got)
                self.assertEqual(args.rdzv_backend, "own_stores")
                handler = torchrun.rendezvous_handler_registry.create_handler(
                    RendezvousParameters(args.rdzv_backend, args.rdzv_endpoint, "none", 1, 2))
            self.assertEqual((handler.master_addr, handler.master_port), (host, port or args.master_port))
            self.assertNotEqual(handler.master_port, 29500, "where every launch would be")
            self.assertEqual((handler.rank, handler.world_size, handler.use_agent_store), (args.node_rank, 2, False))
            info = types.SimpleNamespace(store=None, rank=args.node_rank, world_size=2)
            with mock.patch.object(torchrun.StaticTCPRendezvous, "next_rendezvous", lambda self: info), mock.patch.object(torchrun, "_api", Api), \
                    mock.patch("torch.distributed.PrefixStore", lambda name, store: name):
                for n in (0, 1):
                    self.assertEqual(handler.next_rendezvous(), (None, args.node_rank, 2, (args.node_rank, f"own_stores-{n}", host)))

    def test_a_rendezvous_of_ones_own_is_left_alone(self):
        argv = ["--rdzv_backend", "c10d", __file__]
        self.assertNotIn("own_stores", self.run_without(argv))

    def test_there(self):
        with mock.patch("torch.distributed.TCPStore"), mock.patch.dict(os.environ), mock.patch("torch.distributed.run.main") as run:
            os.environ.pop("USE_LIBUV", None)
            torchrun.main([__file__])
            self.assertNotIn("USE_LIBUV", os.environ)
        self.assertNotIn("own_stores", run.call_args.args[0])


TOLD = """
import os, sys
said = ",".join(os.environ[n] for n in [*sys.argv[2:], "CUDA_VISIBLE_DEVICES"])
open(f"{sys.argv[1]}/rank{os.environ[sys.argv[2]]}", "a").write(said)
"""


class Imports(unittest.TestCase):
    def test_libraries_below_the_working_directory(self):
        """A virtual environment beside the code: what is imported from it stays shared."""
        with tempfile.TemporaryDirectory() as top:
            for path, text in (("venv/library.py", ""), ("model.py", "kept = 1"), ("code/model.py", "import library")):
                os.makedirs(os.path.join(top, os.path.dirname(path)), exist_ok=True)
                pathlib.Path(top, path).write_text(text)
            script = ("import os, sys\nsys.path.append(os.path.join(os.getcwd(), 'venv'))\nimport library, model\nimport determined as det\n"
                      "with det.import_from_path('code'):\n    import model as theirs\n    assert theirs.library is library\n"
                      "assert sys.modules['model'].kept")
            subprocess.run([sys.executable, "-c", script], cwd=top, check=True)


class Lines(unittest.TestCase):
    """Of a rank, with its number."""

    def test_what_is_left_running(self):
        """A rank has ended when its script has, whatever the script leaves behind."""
        script = "sleep 600 & echo $!; printf 'no end of line' >&2; exit 3"
        done = subprocess.run([sys.executable, "-m", "determined.launch.wrap_rank", "1", "sh", "-c", script], capture_output=True, text=True)
        os.kill(int(done.stdout.removeprefix("[rank=1] ")), signal.SIGKILL)
        self.assertEqual((done.returncode, done.stderr), (3, "[rank=1] no end of line\n"))

    def test_ends_of_lines(self):
        """Also those that come in two parts."""
        source, command = os.pipe()
        with open(source, "rb") as source, open(command, "wb", buffering=0) as command:
            lines = wrap_rank._Stream(2, source, io.BytesIO())
            for part in (b"10%\r", b"\n", b"\n20%\r30%\r\n4", b"0%\n", b"50%"):
                command.write(part)
                self.assertTrue(lines.forward())
            lines.end()
        self.assertEqual(lines._sink.getvalue().decode().split("\n"), [f"[rank=2] {x}" for x in ("10%", "", "20%", "30%", "40%", "50%")] + [""])


LEAVE = """
import atexit, sys, torch
from determined import InvalidHP, core
from determined.exec import harness
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
def main():
    if sys.argv[1] == "invalid":
        with core.init():
            raise InvalidHP("no")
    if sys.argv[1] == "fails":
        raise ValueError("what went wrong")
    if sys.argv[1] == "says":
        sys.exit("no data today")
    return 4
atexit.register(print, "the interpreter's shutdown")
harness.leave(main)
"""


class Leaving(unittest.TestCase):
    def test_without_shutdown(self):
        """A rank that joined a process group, however it ends: gloo's threads may never let the interpreter go."""
        for how, code, said in (("invalid", 0, ""), ("fails", 1, "ValueError: what went wrong\n"), ("says", 1, "no data today\n"), ("returns", 4, "")):
            with self.subTest(how):
                done = subprocess.run([sys.executable, "-c", LEAVE, how], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertTrue(done.stderr.endswith(said), done.stderr)


class Launchers(unittest.TestCase):
    """Of others: where they are installed they are given the ranks of this host, and each rank's lines its number."""

    def launched(self, launcher, hosts=1):
        info = types.SimpleNamespace(container_addrs=["10.0.0.1", "10.0.0.2"][:hosts], slot_ids=[0, 1])
        with mock.patch.object(_common, "cluster", lambda: info), mock.patch("shutil.which", lambda name: name), mock.patch.dict(os.environ), \
                mock.patch.object(_common, "become") as become:
            launcher.main(["--own", "x", "--", "--trial", "model_def:Line"])
        return become.call_args.args[0]

    def test_one_process(self):
        """A launcher is what it starts, so that whoever ends the one ends the other."""
        with tempfile.TemporaryDirectory() as top:
            cluster = {"master_url": "http://master", "cluster_id": "c", "agent_id": "a", "slot_ids": [0], "task_id": "t",
                       "allocation_id": "t.1", "session_token": "s", "task_type": "TRIAL"}
            trial = {"trial_id": 1, "experiment_id": 1, "trial_seed": 1, "hparams": {}, "config": {}, "steps_completed": 0,
                     "trial_run_id": 1, "debug": False}
            rendezvous = {"container_addrs": ["127.0.0.1"], "container_rank": 0, "container_slot_counts": [1]}
            for name, value in (("cluster", cluster), ("trial", trial), ("rendezvous", rendezvous)):
                pathlib.Path(top, name + ".json").write_text(json.dumps(value))
            command = [sys.executable, "-m", "determined.launch.horovod", "--autohorovod", sys.executable, "-c", "import os; print(os.getpid())"]
            with subprocess.Popen(command, env={**os.environ, "DET_INFO_DIR": top}, stdout=subprocess.PIPE, text=True) as launcher:
                self.assertEqual(launcher.communicate()[0].strip(), str(launcher.pid))

    def test_installed(self):
        for launcher, name, number in ((horovod, "horovodrun", ["-np", "2"]), (deepspeed, "deepspeed", ["--num_gpus", "2"])):
            words = self.launched(launcher)
            self.assertEqual(words[:3], [name, *number])
            self.assertIn("--own x", " ".join(words))
            self.assertEqual(words[-3:], ["-m", "determined.exec.harness", "model_def:Line"])
            self.assertIn("determined.launch.wrap_rank", words)

    def test_ranks(self):
        """By stand-ins: each rank runs the script once, and sees the GPUs and the port of its task."""
        info = types.SimpleNamespace(container_addrs=["10.0.0.1"], slot_ids=[2, 3])
        given = {"CUDA_VISIBLE_DEVICES": "GPU-c,GPU-d", "C10D_PORT": "29477"}
        for launcher, name, told in ((deepspeed, "deepspeed", ["0,2,29477", "1,2,29477"]), (horovod, "horovodrun", ["0,2", "1,2"])):
            variables = ["RANK", "WORLD_SIZE", "MASTER_PORT"] if name == "deepspeed" else ["HOROVOD_RANK", "HOROVOD_SIZE"]
            with self.subTest(name), tempfile.TemporaryDirectory() as top, mock.patch.object(_common, "cluster", lambda: info), \
                    mock.patch.dict(os.environ, {**given, "PATH": top + os.pathsep + os.environ["PATH"]}):
                with open(os.path.join(top, name), "w") as f:
                    f.write(f'#!/bin/sh\nexec {sys.executable} {HERE}/fake_launchers.py {name} "$@"\n')
                os.chmod(f.name, 0o755)
                with mock.patch.object(_common, "become", subprocess.check_call):
                    launcher.main(["--", sys.executable, "-c", TOLD, top, *variables])
                said = sorted(rank.read_text() for rank in pathlib.Path(top).glob("rank*"))
                self.assertEqual(said, [t + ",GPU-c,GPU-d" for t in told])

    def test_several_hosts(self):
        for launcher in (horovod, deepspeed):
            with mock.patch("sys.stderr") as stderr, self.assertRaises(SystemExit):
                self.launched(launcher, hosts=2)
            self.assertIn("use torch_distributed for several", "".join(c.args[0] for c in stderr.write.call_args_list))


if __name__ == "__main__":
    unittest.main()

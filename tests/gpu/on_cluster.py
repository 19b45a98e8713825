#!/usr/bin/env python3
"""Trials on a cluster of one host with a GPU: det-master, det-agent and PostgreSQL. Each case has a limit of its own, and one
that fails costs no other; what it leaves is ended, and the ends of its logs are printed.

usage: on_cluster.py DEVICE [CASE...]      cuda, emulated (kernels and NVML of ours), or cpu (without what asks for a GPU)
"""
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[1:1] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", d) for d in ("lib", "integration")]
import masters  # noqa: E402
import paced  # noqa: E402
import promtext  # noqa: E402
from cluster import TERMINAL, TOP, Cluster, alive, processes_with, wait_until  # noqa: E402
from test_bad_input import write_trial  # noqa: E402

DEVICE = sys.argv[1]
PYTHON = os.environ.get("DET_GPU_PYTHON")  # one with PyTorch
TRIALS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trials")
CASE_S = 50 if DEVICE == "cuda" else 120
END_S = 35  # what the last case's words and the clean-up may take
ALL_S = int(os.environ.get("DET_GPU_LIMIT", 630)) - END_S
BEGIN = time.monotonic()
HAS_SLOTS = DEVICE != "cpu"  # of GPUs
SLACK_MIB = 512  # what a driver may keep

# Ranks share a device that the agent, which gives a GPU to one, knows nothing of.
SHARE = """
#include <stdlib.h>
static void __attribute__((constructor)) share(void)
{
    if (getenv("SHARED_DEVICE")) {
        setenv("CUDA_VISIBLE_DEVICES", "0", 1);
        setenv("DET_DEVICE", getenv("SHARED_DEVICE"), 1);
    }
}
"""
# Each start says what it computes on.
TELLS = "    paced_tell(ctx);\n    create(self, ctx);"
TELL = """static void paced_tell(struct det_trial_context *ctx)
{
    printf("computes on %s\\n", det_engine_device(det_trial_engine(ctx)));
}

static void paced_create"""
# Rank 1 waits; rank 0 says that it goes on, into the mean over the ranks.
ONE_IS_HELD = """if (det_trial_rank(ctx) == 1)
        wait_while_held(batch_idx);
    else
        say_arrived(batch_idx);"""
SAYS = """static void say_arrived(int64_t batch_idx)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/arrived-%lld", getenv("PACE_HOLD") ? getenv("PACE_HOLD") : "/nowhere", (long long)batch_idx);
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
}

static void paced_batch"""
TAKES_ALL = "while (det_zeros(e, DET_F32, 1, (int64_t[]){1 << 28})) { }"
HOLDS_MEMORY = """
import sys, torch
x = torch.zeros(1 << 28, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
sys.stdin.read()
"""


def config(entrypoint, batches=1, metric="error", slots=1, variables=(), **more):
    python = {"python": PYTHON} if PYTHON else {}
    return {"name": "gpu", "entrypoint": entrypoint, "max_restarts": 0, "resources": {"slots_per_trial": slots},
            "hyperparameters": {"global_batch_size": 16}, "reproducibility": {"experiment_seed": 7},
            "searcher": {"name": "single", "metric": metric, "max_length": {"batches": batches}},
            "environment": {"environment_variables": list(variables), **python}, **more}


class OutOfTime(AssertionError):
    pass


def nvidia_smi(what):
    return subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={what}", "--format=csv,noheader,nounits"], capture_output=True, text=True,
                          check=True).stdout.strip().splitlines()[0]


class Host:
    """The cluster: its agent has the GPU as a slot, or, as `shared`, slots of CPUs whose tasks share it."""

    def __init__(self):
        self.cluster, self.kind = None, None

    def begin(self, kind):
        c = self.cluster
        if not c:
            c = Cluster(agents=0)
            c.__enter__()
            self.cluster = c
            c.api("GET", "/experiments?limit=1")  # and a token
        if self.kind != kind or alive(c.pid("agent-0")) is False:
            c.stop("agent-0")
            c.slots, c.n_agents = ("8" if kind == "shared" else "auto" if HAS_SLOTS else "1"), 1
            c.start_agent(0)
            self.kind = kind
            wait_until(self.is_ready, 30, "the agent")
        return c

    def slots(self):
        return [s for a in self.cluster.api("GET", "/agents")["agents"] for s in a["slots"].values()]

    def slot(self):
        return self.slots()[0]

    def is_ready(self):
        """Its slots are those of this agent, not of the one before, free and usable."""
        slots = self.slots()
        kind = "cuda" if self.kind == "slot" and HAS_SLOTS else "cpu"
        count = 8 if self.kind == "shared" else None
        return slots and len(slots) == (count or len(slots)) and all(
            kind in s["device"]["type"].lower() and not s["container"] and s.get("state", "USABLE") == "USABLE" for s in slots)

    def experiments(self):
        return self.cluster.api("GET", "/experiments?limit=1000")["experiments"]

    def end_all(self):
        for e in self.experiments():
            if e["state"] not in TERMINAL:
                with contextlib.suppress(Exception):
                    self.cluster.api("POST", f"/experiments/{e['id']}/kill", {})
        wait_until(lambda: all(e["state"] in TERMINAL for e in self.experiments()), 10, "the end of all experiments")

    def tell(self, since):
        """In short, what the daemons and the trials of a failing case said."""
        c = self.cluster
        for e in self.experiments():
            if e["id"] > since:
                for t in c.trials(e["id"]):
                    print(f"--- experiment {e['id']} {e['state']}, trial {t['id']} {t['state']}", *c.logs(t["id"]).splitlines()[-25:], sep="\n")
        c.show_logs(12)
        print(json.dumps(self.slots())[:2000])


HOST = Host()


class Case(unittest.TestCase):
    kind = "slot"

    def run(self, result=None):
        bad, begin, since = len(result.failures) + len(result.errors), time.monotonic(), 0
        with contextlib.suppress(Exception):
            since = max([e["id"] for e in HOST.experiments()], default=0)
        super().run(result)
        signal.alarm(0)
        print(f"    {time.monotonic() - begin:.1f} s {self._testMethodName}", flush=True)
        if len(result.failures) + len(result.errors) > bad:
            print(result.failures[-1][1] if result.failures else result.errors[-1][1])
            self.bounded(10, lambda: HOST.tell(since))
        self.bounded(15, HOST.end_all)
        sys.stdout.flush()
        sys.stderr.flush()

    @staticmethod
    def bounded(seconds, what):
        signal.alarm(seconds)
        try:
            what()
        except Exception as e:
            print(f"{type(e).__name__}: {e}")
        finally:
            signal.alarm(0)

    def setUp(self):
        left = ALL_S - (time.monotonic() - BEGIN)
        if left < 5:
            self.fail(f"the {ALL_S} s for all cases are over")
        signal.alarm(int(min(CASE_S, left)))
        self.c = HOST.begin(self.kind)
        wait_until(HOST.is_ready, 30, "a free slot")

    # ---- what cases are made of ----

    def trial_of(self, exp):
        return wait_until(lambda: self.c.trials(exp), 30, "a trial")[0]["id"]

    def wait_in(self, exp, condition, what):
        """For something of a trial, while it is there."""
        def met():
            if condition():
                return True
            self.assertNotIn(self.c.experiment(exp)["state"], TERMINAL, f"waiting for {what}")
        wait_until(met, 30, what)

    def finish(self, exp, state="STATE_COMPLETED"):
        """Its trial, and its log."""
        e = wait_until(lambda: (lambda e: e if e["state"] in TERMINAL else None)(self.c.experiment(exp)), 60, f"the end of experiment {exp}")
        self.assertEqual(e["state"], state, f"experiment {exp}")
        trial = self.c.trials(exp)[0]
        return trial, self.c.logs(trial["id"])

    def says(self, log, words):
        if words not in log:
            self.fail(f"{words!r} is not in the log, which ends with\n{log[-1500:]}")

    def file_of(self, trial):
        found = [p for p in self.c.api("GET", f"/trials/{trial}/checkpoints")["checkpoints"] if p["state"] == "STATE_COMPLETED"]
        last = max(found, key=lambda p: p["metadata"]["steps_completed"])
        return self.c.path("checkpoints", last["uuid"], "state_dict.pth")

    def assert_same_file(self, a, b):
        ha, hb = (hashlib.sha256(open(self.file_of(t), "rb").read()).hexdigest() for t in (a, b))
        self.assertEqual(ha, hb)

    def assert_same_tensors(self, a, b):
        import torch

        def walk(name, x, y):
            if isinstance(x, torch.Tensor):
                self.assertTrue(torch.equal(x, y), name)
                self.assertTrue(not x.is_floating_point() or torch.isfinite(x).all(), name)
                return 1
            if isinstance(x, dict):
                self.assertEqual(list(x), list(y), name)
                return sum(walk(f"{name}.{k}", v, y[k]) for k, v in x.items())
            if isinstance(x, (list, tuple)):
                self.assertEqual(len(x), len(y), name)
                return sum(walk(f"{name}[{i}]", v, w) for i, (v, w) in enumerate(zip(x, y)))
            if isinstance(x, (int, float, str)):
                self.assertEqual(x, y, name)
            return 0

        safe = {"weights_only": False} if torch.__version__ >= "1.13" else {}
        a, b = (torch.load(self.file_of(t), map_location="cpu", **safe) for t in (a, b))
        n = walk("", a, b)
        self.assertGreater(n, 4)
        print(f"    {n} tensors with equal bits", flush=True)

    def polls(self):
        status, _, text = masters.get(self.c.port, "/metrics")
        return promtext.value(promtext.parse(text), "det_http_polls") if status == 200 else None

    def pause_held(self, exp, holds, batch, polls=True):
        """The only rank there is waits in a batch: it is told to pause, let go, and activated again once it has ended.
        polls: it asks all the time, else at the end of each scheduling unit."""
        self.wait_in(exp, lambda: self.c.trials(exp) and self.c.trials(exp)[0]["totalBatchesProcessed"] > 0, "batches")
        if polls:
            self.wait_in(exp, lambda: self.polls() == 1, "the rank to ask for word of a pause")
        self.c.det("experiment", "pause", str(exp))
        if polls:
            wait_until(lambda: self.polls() == 0, 30, "the rank to be told")
        holds.release(batch)
        self.go_on(exp)

    def go_on(self, exp):
        wait_until(lambda: not self.c.processes(exp), 30, "the end of the paused trial")
        done = self.c.trials(exp)[0]["totalBatchesProcessed"]
        self.c.det("experiment", "activate", str(exp))
        print(f"    paused after {done} batches", flush=True)

    def script(self, text, *files):
        d = tempfile.mkdtemp(dir=self.c.dir)
        for f in files:
            shutil.copy(os.path.join(TRIALS, f), d)
        return self.c.create(json.dumps(text), d)


    def paced(self, text, variables, holds, *changes):
        """An experiment by tests/faults/paced.c with changes."""
        digits = os.path.join(TOP, "examples", "digits")
        d = tempfile.mkdtemp(dir=self.c.dir)
        shutil.copy(os.path.join(digits, "digits.csv.gz"), d)
        shutil.copy(os.path.join(digits, "model_def.c"), os.path.join(d, "digits.c"))
        source = open(os.path.join(TOP, "tests", "faults", "paced.c")).read()
        for old, new in (("    create(self, ctx);", TELLS), ("static void paced_create", TELL), *changes):
            assert source.count(old) == 1, old
            source = source.replace(old, new)
        with open(os.path.join(d, "model_def.c"), "w") as f:
            f.write(source + SHARE)
        if holds:
            os.chmod(holds.folder, 0o777)
            variables = [*variables, "PACE_HOLD=" + holds.folder]
        hparams = {"global_batch_size": 32, "learning_rate": 0.05, "dropout": 0.25}
        return self.c.create(json.dumps(config("model_def:PacedTrial", variables=variables, hyperparameters=hparams, **text)), d)


class Slot(Case):
    """One slot: the GPU."""

    def test_inventory(self):
        if not HAS_SLOTS:
            self.skipTest("of GPUs only")
        slots, said = HOST.slots(), self.c.det("slot", "list").stdout
        print(said, self.c.det("agent", "list").stdout)
        if DEVICE == "cuda":
            name, uuid = nvidia_smi("name"), nvidia_smi("uuid")
            self.assertEqual([(s["device"]["brand"], s["device"]["uuid"]) for s in slots], [(name, uuid)])
            self.assertIn(name, said)

    def test_c_paused(self):
        batches, held = (20, 8) if DEVICE == "emulated" else (300, 32)
        text = {"batches": batches, "metric": "validation_loss", "scheduling_unit": 5}
        whole, log = self.finish(self.paced(text, [], None))
        self.says(log, "computes on " + ("cuda:0" if HAS_SLOTS else "cpu"))
        holds = paced.Holds(self.c)
        holds.hold(held)
        exp = self.paced(text, [], holds)
        self.pause_held(exp, holds, held)
        rest, _ = self.finish(exp)
        self.assertEqual(rest["restarts"], 0)
        self.assert_same_file(whole["id"], rest["id"])
        print("   ", self.c.metrics(rest["id"], "validation")[-1])

    def test_python_paused(self):
        if not PYTHON:
            self.skipTest("no python3 here has PyTorch")
        whole, log = self.finish(self.script(config("mixed:MixedTrial", 60, scheduling_unit=4), "mixed.py"))
        print("   ", *[line for line in log.splitlines() if " by " in line and "bfloat16" in line])
        holds = paced.Holds(self.c)
        holds.hold(18)
        exp = self.script(config("mixed:MixedTrial", 60, variables=["HOLD=" + holds.folder], scheduling_unit=4), "mixed.py")
        self.pause_held(exp, holds, 18, polls=False)
        rest, _ = self.finish(exp)
        self.assertEqual(rest["restarts"], 0)
        self.assert_same_tensors(whole["id"], rest["id"])
        if DEVICE == "cuda":
            self.says(log, "on cuda:0: torch.float16 by ")

    def test_nccl(self):
        """One rank: what PyTorch's NCCL does of it."""
        if not PYTHON:
            self.skipTest("no python3 here has PyTorch")
        _, log = self.finish(self.script(ddp(1), "ddp.py"))
        self.says(log, "rank 0 of 1 on " + ("cuda:0 by nccl" if DEVICE == "cuda" else "cpu by gloo"))

    def test_out_of_memory(self):
        """The trial ends with words that name the memory and the device, and the slot is free again."""
        before = int(nvidia_smi("memory.used")) if DEVICE == "cuda" else 0
        with tempfile.TemporaryDirectory() as d:
            write_trial(d, create=TAKES_ALL)
            few = {"cpu": "DET_MEM_LIMIT=100000000", "emulated": "EMULATED_MEMORY=100000000"}.get(DEVICE)
            exp = self.c.create(json.dumps({**config("model_def:Bad", 5, "loss", variables=[few] if few else [])}), d)
        trial, log = self.finish(exp, "STATE_ERROR")
        said = [line for line in log.splitlines() if "no memory for" in line or "DET_MEM_LIMIT" in line]
        print("   ", *said)
        self.assertTrue(said, log[-1500:])
        if DEVICE == "cuda":
            self.assertIn(nvidia_smi("name"), said[0])
            self.assertIn("out of memory", said[0])
        states = []
        def is_free():
            states.append(HOST.slot().get("state"))
            return HOST.is_ready()
        wait_until(is_free, 20, "the slot to be free")
        print("    the slot was", *dict.fromkeys(states))
        if DEVICE == "cuda":
            now = int(nvidia_smi("memory.used"))
            print(f"    {before} MiB in use before, {now} after")
            self.assertLess(now, before + SLACK_MIB)

    def test_figures(self):
        if not HAS_SLOTS:
            self.skipTest("of GPUs only")
        figures = wait_until(lambda: HOST.slot().get("gpu", {}).get("memoryTotalBytes") and HOST.slot()["gpu"], 20, "the GPU's figures")
        text = masters.get(self.c.port, "/metrics")[2]
        families = promtext.parse(text)
        print("   ", json.dumps(figures), *[line for line in text.splitlines() if line.startswith("det_gpu_")], sep="\n    ")
        print(self.c.det("slot", "list").stdout)
        for name in ("utilization_percent", "memory_used_bytes", "memory_bytes", "temperature_celsius", "power_watts", "sm_clock_mhz", "memory_clock_mhz"):
            self.assertIsNotNone(promtext.value(families, "det_gpu_" + name, agent="agent-0", slot="0"), name)
        if DEVICE == "cuda":
            self.assertLess(abs(figures["memoryTotalBytes"] / (1 << 20) - int(nvidia_smi("memory.total"))), SLACK_MIB)
            self.assertLess(abs(figures["temperatureCelsius"] - int(nvidia_smi("temperature.gpu"))), 30)

    @contextlib.contextmanager
    def somebody_else(self):
        """A process of nobody's task, which has memory of the GPU."""
        argv = [sys.executable, "-c", HOLDS_MEMORY] if DEVICE == "cuda" else ["cat"]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            try:
                if DEVICE == "cuda":
                    self.assertEqual(p.stdout.readline(), "ready\n")
                else:
                    with open(os.environ["FAKE_NVML_STATE"], "w") as f:
                        f.write(f"a pid {p.pid}\n")
                yield p
            finally:
                p.kill()
                if DEVICE != "cuda":
                    open(os.environ["FAKE_NVML_STATE"], "w").close()

    def test_foreign(self):
        """A slot that somebody else uses is not placed on, and whose process it is stands where one looks."""
        if not HAS_SLOTS or (DEVICE == "cuda" and not PYTHON):
            self.skipTest("of GPUs only, and of a python3 with PyTorch")
        with self.somebody_else() as other:
            state = wait_until(lambda: (lambda s: s if s in ("FOREIGN", "HELD") else None)(HOST.slot().get("state")), 20, "the process to be seen")
            exp = self.script(config(["true"], 1))
            trial = self.trial_of(exp)
            why = wait_until(lambda: (lambda t: t if "not usable" in t else None)(self.c.det("why", str(trial)).stdout), 10, "the reason")
            print("   ", state, "|", why.strip())
            print(self.c.det("slot", "list").stdout)
            self.assertEqual(state, "FOREIGN")
            self.assertIn(f"held by process {other.pid} (", why)
            self.assertIn(f"held by process {other.pid} (", self.c.det("slot", "list").stdout)
            self.assertFalse(self.c.processes(exp))
        self.finish(exp)


def ddp(ranks, **variables):
    launch = ["python3", "-m", "determined.launch.torch_distributed", "python3", "ddp.py"]
    return config([*(["env", "CUDA_VISIBLE_DEVICES=0"] if ranks > 1 else []), *launch], 30, slots=ranks, variables=[f"{k}={v}" for k, v in variables.items()])


class Shared(Case):
    """Two ranks on one GPU, which an agent gives to one only: theirs has slots of CPUs."""
    kind = "shared"

    def test_ddp_paused(self):
        if not PYTHON:
            self.skipTest("no python3 here has PyTorch")
        whole, exp = (self.script(ddp(2, **hold), "ddp.py") for hold in ({}, {"HOLD": 1}))
        self.wait_in(exp, lambda: self.c.trials(exp) and self.c.trials(exp)[0]["totalBatchesProcessed"] >= 10, "the report of step 10")
        self.c.det("experiment", "pause", str(exp))
        self.go_on(exp)
        (a, log), (b, rest) = self.finish(whole), self.finish(exp)
        words = f"rank 1 of 2 on {'cuda:0' if DEVICE == 'cuda' else 'cpu'} by gloo, from step "
        self.says(log, words + "0\n")
        self.says(rest, words + "1")  # to 14: told a little earlier it does not come to the step that waits
        self.assert_same_tensors(a["id"], b["id"])

    def two_ranks(self, holds=None):
        variables = {"cpu": [], "emulated": ["SHARED_DEVICE=cuda:0", "DET_COMM_DIR=/nowhere"]}.get(DEVICE, ["SHARED_DEVICE=cuda:0"])
        text = {"batches": 40, "metric": "validation_loss", "slots": 2, "max_restarts": 1, "scheduling_unit": 10, "min_checkpoint_period": {"batches": 10}}
        return self.paced(text, variables, holds, ("wait_while_held(batch_idx);", ONE_IS_HELD), ("static void paced_batch", SAYS))

    def rank(self, exp, n):
        found = processes_with(f"DET_EXPERIMENT_ID={exp}\0", f"DET_CACHE_DIR={self.c.path('cache')}\0", f"\0RANK={n}\0")
        self.assertEqual(len(found), 1)
        return found[0]

    def test_killed_in_a_collective(self):
        """The other rank ends at once; the trial goes on from its checkpoint, to the bits of one that nobody killed."""
        holds = paced.Holds(self.c)
        holds.hold(25)
        exp, whole = self.two_ranks(holds), self.two_ranks()
        self.wait_in(exp, lambda: os.path.exists(os.path.join(holds.folder, "arrived-25")), "rank 0 to begin the batch")
        zero, one = self.rank(exp, 0), self.rank(exp, 1)
        looks = []
        def waits():
            """For somebody: it has slept in several looks."""
            with open(f"/proc/{zero}/stat") as f:
                looks.append(f.read().rsplit(")", 1)[1].split()[0])
            return looks[-5:] == ["S"] * 5
        wait_until(waits, 20, "rank 0 to wait for rank 1")
        killed = time.monotonic()
        os.kill(one, signal.SIGKILL)
        wait_until(lambda: not alive(zero), 20, "the end of rank 0")
        print(f"    rank 0 ended {time.monotonic() - killed:.2f} s after rank 1 was killed")
        holds.release(25)
        rest, log = self.finish(exp)
        undisturbed, calm = self.finish(whole)
        self.says(log, "rank 1 was killed by signal 9")
        self.assertEqual(rest["restarts"], 1)
        self.assert_same_file(undisturbed["id"], rest["id"])
        if DEVICE == "cuda":
            print("   ", *[line for line in calm.splitlines() if "gloo" in line or "NCCL" in line][:3], sep="\n    ")
            self.says(calm, "gradients go through the host's memory, by gloo")


CASES = [Slot("test_inventory"), Slot("test_c_paused"), Slot("test_python_paused"), Slot("test_out_of_memory"), Slot("test_nccl"),
         Slot("test_figures"), Slot("test_foreign"), Shared("test_killed_in_a_collective"), Shared("test_ddp_paused")]


class Result(unittest.TextTestResult):
    def printErrors(self):
        """Each was printed at its end."""


def out_of_time(*_):
    raise OutOfTime("the case's time is over")


def end_undisturbed():
    """From here on: neither a case's time nor whoever says so again breaks into the clean-up."""
    signal.alarm(0)
    signal.signal(signal.SIGTERM, lambda *_: None)


def told_to_end(*_):
    """What ends unittest too: to it a SystemExit is the failure of one case."""
    end_undisturbed()
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGALRM, out_of_time)
    signal.signal(signal.SIGTERM, told_to_end)
    if DEVICE == "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"  # of a host with several
    chosen = [c for c in CASES if not sys.argv[2:] or c._testMethodName.removeprefix("test_") in sys.argv[2:]]
    try:
        done = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(unittest.TestSuite(chosen))
    except KeyboardInterrupt:
        sys.exit("told to end")
    finally:
        end_undisturbed()
        if HOST.cluster:
            HOST.cluster.__exit__(None, None, None)
    if not done.wasSuccessful():  # last, for whoever is given the end of the output only
        sys.exit("failed: " + ", ".join(case.id() for case, _ in done.failures + done.errors))


main()

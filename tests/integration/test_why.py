#!/usr/bin/env python3
"""det why: a queue, a cap, an agent switched off, a pause, an end; and that a suggestion, obeyed, helps."""
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, Cluster, wait_until  # noqa: E402


def config(slots=1, n=1, **resources):
    return json.dumps({"name": "why", "entrypoint": ["sleep", "600"], "max_restarts": 0, "resources": {"slots_per_trial": slots, **resources},
                       "searcher": {"name": "random", "metric": "x", "max_trials": n, "max_concurrent_trials": n, "max_length": {"batches": 10}},
                       "hyperparameters": {}})


def why(c, what):
    kind, _, i = what.partition(":")
    return c.api("GET", f"/{'trials' if kind == 'trial' else 'experiments'}/{i}/why")


def trial_of(c, exp):
    return wait_until(lambda: c.trials(exp), 20, "a trial")[0]["id"]


def running(c, exp):
    wait_until(lambda: c.experiment(exp)["state"] == "STATE_RUNNING", 30, f"experiment {exp} to run")


# Says that it validates after its seventh batch, then nothing until the file is there; ends once it is gone again.
WAITS = """
import os, sys, time
def alive(batches, phase):
    with open(os.environ["DET_PROGRESS_FILE"], "r+b") as f:
        f.write((0x31474f5250544544).to_bytes(8, "little") + batches.to_bytes(8, "little") + (1).to_bytes(8, "little") + phase.to_bytes(4, "little"))
alive(7, 2)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
while os.path.exists(sys.argv[1]):
    alive(int(time.monotonic() * 10), 1)
    time.sleep(0.05)
"""


def silent(c):
    """A rank that finishes no batch is said long before its verdict, and no more once it goes on."""
    go = c.path("go")
    exp = c.create(json.dumps({**json.loads(config()), "stall_timeout": 40, "entrypoint": ["/usr/bin/python3", "-c", WAITS, go]}), None)
    said = wait_until(lambda: (lambda t: t if "no batch" in t else None)(why(c, f"exp:{exp}")["text"]), 60, "the silence to be said")
    assert said.startswith("it runs on agent agent-0; rank 0: no batch for ") and said.endswith(" s (validating), a verdict comes at 40 s"), said
    open(go, "w").close()
    wait_until(lambda: why(c, f"exp:{exp}")["text"] == "it runs on agent agent-0", 60, "the silence to be over")
    os.unlink(go)
    c.wait(exp)


def reaches_the_second(c):
    """Of two masters the first takes connections and never answers: the other is asked too."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        masters = f"http://127.0.0.1:{mute.getsockname()[1]},http://127.0.0.1:{c.port}"
        p = subprocess.run([os.path.join(BIN, "det-task"), "--reach"], env={**os.environ, "DET_MASTERS": masters}, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and p.stdout.count("\n") <= 1, p


def slot(c, agent):
    return next(a["slots"][f"/agents/{agent}/slots/0"] for a in c.api("GET", "/agents")["agents"] if a["id"] == agent)


def slot_state(c, agent):
    return slot(c, agent)["state"]


def gpu_that_another_has(c):
    """A host of one GPU, by an NVML of our own (tests/unit/agent/fake_nvml.c), on which a process of somebody else runs."""
    other = subprocess.Popen(["sleep", "600"])
    state = c.path("nvml")
    with open(state, "w") as f:
        f.write(f"a pid {other.pid}\n")
    try:
        c.env.update(FAKE_NVML="w", FAKE_NVML_STATE=state, LD_LIBRARY_PATH=os.path.join(os.environ["DET_BUILD"], "tests", "unit", "agent"))
        c.slots, c.agent_args = "auto", ["--pool", "gpus"]
        c.start_agent(1)
        wait_until(lambda: any(a["id"] == "agent-1" and a["slots"] for a in c.api("GET", "/agents")["agents"]), 30, "the host with a GPU")
        wait_until(lambda: slot_state(c, "agent-1") == "FOREIGN", 30, "the process to be seen")
        exp = c.create(config(resource_pool="gpus"), None)
        trial = trial_of(c, exp)
        words = f"slot 0 of agent agent-1 is not usable: held by process {other.pid} (sleep) that is none of ours"
        a = why(c, f"trial:{trial}")
        assert a["waiting"] and words in a["text"] and a["slotsOut"][0]["state"] == "FOREIGN", a
        assert words in c.det("why", str(trial)).stdout
        assert f"held by process {other.pid}" in c.det("slot", "list").stdout
        assert f"slot 0 is not usable: held by process {other.pid}" in c.det("agent", "list").stderr
    finally:
        other.kill()
        other.wait()
    running(c, exp)  # it is free again
    assert slot_state(c, "agent-1") == "USABLE"
    wait_until(lambda: slot(c, "agent-1").get("gpu", {}).get("utilizationPercent") == 42, 60, "its GPU's figures")
    with open(state, "w") as f:
        f.write("a mem 9000\n")  # the run's: it is not free at once when that has ended
    c.api("POST", f"/experiments/{exp}/kill", {})
    c.wait(exp, state="STATE_CANCELED")
    exp = c.create(config(resource_pool="gpus"), None)
    trial = trial_of(c, exp)
    a = why(c, f"trial:{trial}")
    assert a["waiting"] and a["slotsOut"][0]["state"] in ("UNSEEN", "HELD") and "memory" in a["slotsOut"][0]["text"], a
    open(state, "w").close()
    running(c, exp)
    with open(state, "w") as f:
        f.write("a xid 79\n")
    wait_until(lambda: "XID 79" in why(c, f"trial:{trial}")["text"], 30, "the GPU's error to be told")
    wait_until(lambda: "Slot 0 of agent agent-1, which this run has: XID 79" in c.logs(trial), 30, "a line in its log")
    assert c.experiment(exp)["state"] == "STATE_RUNNING"
    c.api("POST", f"/experiments/{exp}/kill", {})
    c.wait(exp, state="STATE_CANCELED")
    last = c.create(config(resource_pool="gpus"), None)
    trial = trial_of(c, last)
    wait_until(lambda: "XID 79: the GPU has fallen off the bus" in why(c, f"trial:{trial}")["text"], 30, "the error to be told again")
    c.det("slot", "enable", "agent-1", "0")
    running(c, last)
    assert "used all the same: XID 79" in c.det("slot", "list").stdout


SDK_WAIT = """
import sys
from determined.experimental import client
url, password, exp = sys.argv[1:]
try:
    client.Determined(master=url, user="admin", password=open(password).read().strip()).get_experiment(int(exp)).wait()
except ValueError as e:
    print(e)
"""


def sdk_wait(c, exp):
    """What the SDK says to who waits for one that is paused."""
    env = {**os.environ, "PYTHONPATH": os.path.join(BIN, "..", "lib", "det", "python"), "XDG_CONFIG_HOME": c.path("config")}
    return subprocess.run([sys.executable, "-c", SDK_WAIT, f"http://127.0.0.1:{c.port}", c.path("admin.password"), str(exp)], env=env, text=True,
                          capture_output=True, timeout=60 * SLOWER, check=True).stdout


def held(c):
    """Eight trials fail of one mistake: the search is held, says why, and goes on if it is told to."""
    code = c.path("broken")
    os.mkdir(code)
    with open(os.path.join(code, "train.py"), "w") as f:
        f.write("import os\n\n\ndef build(seed):\n    raise ValueError(f'no layer {seed}')\n\n\nbuild(os.environ['DET_TRIAL_SEED'])\n")
    text = json.loads(config(slots=0, n=10))
    text["searcher"]["max_concurrent_trials"] = 1
    exp = c.create(json.dumps({**text, "entrypoint": ["/usr/bin/python3", "train.py"]}), code)
    c.wait(exp, state="STATE_PAUSED")
    a = why(c, f"exp:{exp}")
    said = "the first 8 of its trials to fail all failed of the same: ValueError: no layer "
    assert a["held"] and a["reason"] == "PAUSED" and said in a["text"] and a["text"].endswith("(train.py, line 5, in build)"), a
    assert said in c.det("why", f"exp:{exp}").stdout and said in c.det("experiment", "describe", str(exp)).stdout
    r = c.det("experiment", "wait", str(exp), check=False)
    assert r.returncode == 1 and said in r.stderr, r
    if not os.environ.get("DET_SANITIZED"):  # else the extension needs the sanitizer's library before the interpreter's own
        assert said in sdk_wait(c, exp)
    c.det("experiment", "activate", str(exp))
    c.wait(exp, state="STATE_ERROR")
    trials = c.trials(exp)
    assert [t["state"] for t in trials] == ["STATE_ERROR"] * 10, trials
    assert sum("is held (paused): " + said in c.logs(t["id"]) for t in trials) == 1


def names_the_experiment_of_that_number(c, exp):
    """A bare number is a trial's, but whoever types it may mean the experiment."""
    assert c.api("GET", f"/trials/{exp}")["trial"]["experimentId"] != exp
    assert f"There is an experiment {exp} too:  det why exp:{exp}\n" in c.det("why", str(exp)).stdout
    assert "too:" not in c.det("why", f"trial:{exp}").stdout
    last = max(t["id"] for e in c.api("GET", "/experiments?limit=-1")["experiments"] for t in c.trials(e["id"]))
    alone = 0
    while alone <= last:  # without any trial
        alone = c.api("POST", "/experiments", {"config": "{name: alone, searcher: {name: single, metric: loss, max_length: 1}}", "unmanaged": True})["experiment"]["id"]
    r = c.det("why", str(alone), check=False)
    assert r.returncode == 1 and f"trial {alone} not found; of experiment {alone}:  det why exp:{alone}" in r.stderr, r


def main():
    with Cluster(slots=2) as c:
        silent(c)
        reaches_the_second(c)
        held(c)
        first = c.create(config(slots=2), None)
        running(c, first)
        second = c.create(config(slots=2), None)
        a = why(c, f"exp:{second}")
        assert a["waiting"] and a["trialsWaiting"] == 1 and a["reason"] in ("SHARE", "ROOM"), a
        assert [b["experimentId"] for b in a["blockers"]] == [first] and a["blockers"][0]["owner"] == "admin", a
        assert a["pool"] == {"name": "default", "slots": 2, "free": 0, "switchedOff": 0, "away": 0, "waiting": 1}, a
        assert a["expectedStart"]["seconds"] is None and "reported" in a["expectedStart"]["basis"], a
        assert f"det experiment pause {first}" in [s["command"] for s in a["suggestions"]], a
        trial = trial_of(c, second)
        out = c.det("why", str(trial)).stdout
        assert f"Trial {trial} of experiment {second} has waited" in out and "IN THE WAY" in out and "What would help:" in out, out
        assert json.loads(c.det("why", f"exp:{second}", "--json").stdout)["trialId"] == trial
        job = c.experiment(second)["jobId"]
        assert f"experiment {second}" in c.det("why", job).stdout
        c.det("experiment", "kill", str(first))  # a command does not know how to pause
        running(c, second)
        assert why(c, f"trial:{trial}")["reason"] == "RUNNING"
        paused = c.create(config(), None, activate=False)
        a = why(c, f"exp:{paused}")
        assert a["reason"] == "PAUSED" and f"det experiment activate {paused}" in [s["command"] for s in a["suggestions"]], a
        # a cap
        c.api("POST", f"/experiments/{second}/kill", {})
        c.wait(second, state="STATE_CANCELED")
        capped = c.create(config(n=3, max_slots=1), None)
        running(c, capped)
        a = why(c, f"exp:{capped}")
        assert a["reason"] == "MAX_SLOTS" and a["trialsRunning"] == 1 and a["trialsWaiting"] == 2, a
        assert a["suggestions"][0]["command"] == f"det experiment set max-slots {capped} 2", a
        c.det(*a["suggestions"][0]["command"].split()[1:])
        wait_until(lambda: why(c, f"exp:{capped}")["trialsRunning"] == 2, 20, "the second trial")
        # an agent switched off
        c.det("agent", "disable", "agent-0", "--drain")
        c.api("POST", f"/experiments/{capped}/kill", {})
        c.wait(capped, state="STATE_CANCELED")
        third = c.create(config(), None)
        a = why(c, f"exp:{third}")
        assert a["reason"] == "AGENTS" and "switched off" in a["text"] and a["suggestions"][0]["command"] == "det agent enable agent-0", a
        c.det(*a["suggestions"][0]["command"].split()[1:])
        running(c, third)
        # what has ended, and what never was
        a = why(c, f"exp:{capped}")
        assert not a["waiting"] and a["reason"] == "ENDED" and "CANCELED" in a["text"], a
        failed = c.create(json.dumps({**json.loads(config(slots=0)), "entrypoint": ["sh", "-c", "exit 7"]}), None)
        c.wait(failed, state="STATE_ERROR")
        a = why(c, f"trial:{trial_of(c, failed)}")
        assert a["reason"] == "ENDED" and "ERROR" in a["text"] and "exited with code 7" in a["text"], a
        for wrong, code, text in (("999", 1, "trial 999 not found"), ("exp:999", 1, "experiment 999 not found"), ("soup", 2, "exp:3"),
                                  ("00000000-0000-0000-0000-000000000000", 1, "not found among those that are live")):
            r = c.det("why", wrong, check=False)
            assert r.returncode == code and text in r.stderr, (wrong, r.returncode, r.stderr)
        r = c.det("why", check=False)
        assert r.returncode == 2, r
        names_the_experiment_of_that_number(c, failed)
        gpu_that_another_has(c)
    print("test_why: passed")


main()

#!/usr/bin/env python3
"""Row 32: the master answers an agent, and none of its tasks.

The kernel refuses what accounts of tasks send, by a routing rule in the agent's network namespace, as a packet filter of a
host does. It is told within 30 s, in the trial's log, the agent's and `det why`, with the address and the system's words.
What is mended by then goes on in the same process, and nothing is told of it any more. What is not ends after its bound as a
failed start of that host's: another host takes the trial, which loses no restart.
"""
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, Cluster, wait_until  # noqa: E402
from faults import Row, is_root  # noqa: E402
from net import Namespace  # noqa: E402

TOLD_S, BOUND_S, MORE_S = 30, 120, 30  # from the run's start; from when it is told; for the other host to take it
UIDS = "1900000000-1999999999"  # det-agent's own choice for tasks
CONFIG = {"name": "unanswered", "entrypoint": ["sleep", "900"], "max_restarts": 0, "hyperparameters": {}, "resources": {"slots_per_trial": 1},
          "searcher": {"name": "single", "metric": "x", "max_length": {"batches": 1}}}
PLAIN = "it runs on agent "


def start_agent(c, name, within=(), master=None):
    c.spawn(name, [*within, BIN + "/det-agent", "--master", master or f"http://127.0.0.1:{c.port}", "--token-file", c.path("agent.token"), "--id",
                   name, "--slots", "1", "--work-dir", c.path(name), "--task-uids", UIDS])
    wait_until(lambda: any(a["id"] == name for a in c.api("GET", "/agents")["agents"]), 30, name)


def refuse(net):
    """Rules are asked in the order of their numbers; that of the host's own addresses is the first unless another is put before."""
    net.inside("rule", "add", "pref", "5", "uidrange", UIDS, "prohibit")


def allow(net):
    net.inside("rule", "del", "pref", "5")


def why(c, exp):
    return c.api("GET", f"/experiments/{exp}/why")["text"]


def told(row, c, net):
    """A trial that runs and whose task gets no answer."""
    exp = c.create(json.dumps(CONFIG), None)
    wait_until(lambda: why(c, exp).startswith(PLAIN), 60, "the trial to run")
    since = time.monotonic()
    row.fault("no packet of a task leaves its host")
    text = wait_until(lambda: (lambda t: t if "no answer" in t else None)(why(c, exp)), 60, "the silence to be told")
    row.check(time.monotonic() - since <= TOLD_S, f"told after {time.monotonic() - since:.0f} s")
    row.check("agent agent-0 get no answer from the master" in text and f"{net.net}.1 port {c.port}" in text and "Permission denied" in text, text)
    trial = c.trials(exp)[0]["id"]
    wait_until(lambda: "The task on agent agent-0 gets no answer from the master: " in c.logs(trial), 60, "the trial's log to say so")
    with open(c.path("agent-0.log")) as f:
        row.check("the task gets no answer from the master: " in f.read(), "the agent's log says nothing")
    return exp, trial


def doctor(row, c, net, word):
    """It looks as a task does: as an account of its own."""
    r = subprocess.run([*net.argv(), BIN + "/det-agent", "doctor", "--master", net.url(c.port), "--token-file", c.path("agent.token"), "--slots", "1",
                        "--work-dir", c.path("agent-0"), "--task-uids", UIDS], capture_output=True, text=True, timeout=120)
    row.check(re.search(r"ok +master +http", r.stdout) and re.search(word, r.stdout), r.stdout)


def mended(row, c, net):
    exp, trial = told(row, c, net)
    before = c.processes(exp)
    doctor(row, c, net, r"FAIL +master for tasks +each as a uid of its own gets no answer from it: .*Permission denied\n +-> let that account")
    allow(net)
    doctor(row, c, net, r"ok +master for tasks +each as a uid of its own gets its answer")
    wait_until(lambda: why(c, exp) == PLAIN + "agent-0", 60, "nothing to be told")
    row.check(set(before) & set(c.processes(exp)), "the task was started again")
    row.check(c.api("GET", f"/trials/{trial}")["trial"]["restarts"] == 0, "a restart was used up")
    c.api("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    wait_until(c.slots_free, 60, "the slot")


def not_mended(row, c, net):
    refuse(net)
    exp, trial = told(row, c, net)
    since = time.monotonic()
    start_agent(c, "agent-1")
    wait_until(lambda: why(c, exp) == PLAIN + "agent-1", 2 * BOUND_S, "the other host to have it")
    took = time.monotonic() - since
    row.check(BOUND_S - MORE_S <= took <= BOUND_S + MORE_S, f"the other host has it after {took:.0f} s")
    row.check(c.api("GET", f"/trials/{trial}")["trial"]["restarts"] == 0, "a restart was used up")
    row.check("its processes on agent agent-0 get no answer from the master: " in c.logs(trial), "the end of the first run does not say why")
    c.api("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")


def run_round(row, c, net):
    net.inside("rule", "add", "pref", "10", "table", "local")
    net.inside("rule", "del", "pref", "0")
    refuse(net)
    start_agent(c, "agent-0", net.argv(), net.url(c.port))
    mended(row, c, net)
    not_mended(row, c, net)


def main():
    row = Row(32, __doc__)
    if not (is_root() and Namespace.is_possible()):
        row.skip("needs root and network namespaces")
    for n in row.numbers():
        with Cluster(agents=0, apart=True, master_args=["--host", "0.0.0.0", "--insecure"]) as c:
            net = Namespace()
            try:
                c.n_agents = 2
                row.attempt(n, run_round, row, c, net)
            finally:
                c.end_tasks()
                for name in ("agent-0", "agent-1"):
                    c.stop(name)
                net.close()
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Row 3: SIGSTOP of an agent, shorter and longer than its lease, then SIGCONT.

Shorter: its trial runs on and is re-adopted. Longer: the trial starts again on the other agent with the next run id,
and the twin that went on writes nothing any more and ends.
"""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import SLOWER, Cluster, wait_until  # noqa: E402
from faults import Row, hold  # noqa: E402

LEASE = 6
NOTICED = 10 + 4  # seconds of silence, and the beat at which it is looked for
CONFIG = {"name": "twin", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
          "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
          "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 1000000}},
          "min_checkpoint_period": {"batches": 2000}, "scheduling_unit": 200, "reproducibility": {"experiment_seed": 7}}


def run_id(c, trial):
    return int(c.sql(f"SELECT run_id FROM trials WHERE id={trial}"))


def written(c, trial, run):
    """What a run has written so far."""
    return (c.sql(f"SELECT count(*) FROM metrics WHERE trial_id={trial} AND run_id={run}"),
            c.sql(f"SELECT count(*) FROM checkpoints WHERE trial_id={trial} AND run_id={run} AND state='COMPLETED'"))


def start(c):
    """A trial that trains, and its agent's name."""
    exp = c.create(json.dumps(CONFIG), "examples/digits")
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: c.metrics(trial), 60, "a batch")
    agents = c.api_patiently("GET", "/agents")["agents"]
    name = next(a["id"] for a in agents if any(s["container"] for s in a["slots"].values()))
    return exp, trial, name


def end(row, c, exp):
    c.api_patiently("POST", f"/experiments/{exp}/kill")
    wait_until(lambda: not c.processes(exp), 20, "the processes to be gone")
    wait_until(c.slots_free, 20, "free slots")


def short_stop(row, c):
    exp, trial, name = start(c)
    os.kill(c.pid(name), signal.SIGSTOP)
    row.fault("stopped for 4 s")
    hold(4)
    os.kill(c.pid(name), signal.SIGCONT)
    had = len(c.metrics(trial))
    wait_until(lambda: len(c.metrics(trial)) > had, 60, "the trial to go on")
    row.check(run_id(c, trial) == 1, "the trial was started again")
    end(row, c, exp)


def long_stop(row, c):
    exp, trial, name = start(c)
    os.kill(c.pid(name), signal.SIGSTOP)
    row.fault("stopped beyond the lease")
    begun = time.monotonic()
    wait_until(lambda: run_id(c, trial) > 1, 60, "the trial's next run")
    took = time.monotonic() - begun
    row.check(took < (NOTICED + LEASE + 5) * SLOWER, f"the next run came after {took:.1f} s")
    first = written(c, trial, 1)
    wait_until(lambda: c.sql(f"SELECT count(*) FROM metrics WHERE trial_id={trial} AND run_id=2") != "0", 60, "the next run's batches")
    twin = [p for p in c.processes(exp) if "DET_TRIAL_RUN_ID=1\0" in environ(p)]
    os.kill(c.pid(name), signal.SIGCONT)
    wait_until(lambda: not [p for p in c.processes(exp) if "DET_TRIAL_RUN_ID=1\0" in environ(p)], 30, "the twin to end")
    row.check(written(c, trial, 1) == first, f"the stale twin ({len(twin)} processes) wrote: {first} became {written(c, trial, 1)}")
    row.check(run_id(c, trial) == 2, "the second run was disturbed")
    wait_until(lambda: all(a["enabled"] for a in c.api_patiently("GET", "/agents")["agents"]), 20, "the agent to be back")
    end(row, c, exp)


def environ(pid):
    try:
        with open(f"/proc/{pid}/environ") as f:
            return f.read()
    except OSError:
        return ""


def main():
    row = Row(3, __doc__, rounds=2, rounds_all=12)
    with Cluster(agents=2, slots=1, master_args=["--agent-reconnect-wait", str(LEASE)]) as c:
        for n in row.numbers():
            row.attempt(n, (short_stop, long_stop)[n % 2], row, c)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

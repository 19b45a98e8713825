#!/usr/bin/env python3
"""Row 31: the database is restored from an older dump while an agent of the time between is away with its trial.

The restored database gives its numbers out again, and experiment_seed makes the same trial of them. The agent comes back
and tells what its trial did. Nothing of it reaches the new experiment: no id repeats, the agent is refused and the master
says why, what its trial sends is kept aside; after `det-master new-life` the agent works here and what it had runs no more.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from masters import dump, new_life, restore  # noqa: E402

CONFIG = """name: life
entrypoint: model_def:DigitsTrial
max_restarts: 0
hyperparameters: {{global_batch_size: 16, learning_rate: 0.05, dropout: 0.1}}
searcher: {{name: single, metric: accuracy, smaller_is_better: false, max_length: {{batches: 1000000}}}}
reproducibility: {{experiment_seed: 7}}
scheduling_unit: {0}
min_checkpoint_period: {{batches: {1}}}
"""
OLD_UNIT, NEW_UNIT = 7, 20  # batches between two rows: tells who wrote one


def start(c, unit):
    exp = paced.create(c, CONFIG.format(unit, 3 * unit), 20)
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: c.metrics(trial), 90, "a row of metrics")
    return exp, trial


def ids(c, trial):
    """What no other life may give out again."""
    tasks = c.sql(f"SELECT task_id FROM trials WHERE id = {trial}").split()
    allocs = c.sql(f"SELECT id FROM allocations WHERE trial_id = {trial}").split()
    with open(f"/proc/{c.processes(c.sql(f'SELECT experiment_id FROM trials WHERE id = {trial}'))[0]}/environ") as f:
        env = dict(v.split("=", 1) for v in f.read().split("\0") if "=" in v)
    return {*tasks, *allocs, env["DET_CONTAINER_ID"], env["DET_SESSION_TOKEN"]}


def task_processes(c, exp):
    """Its ranks and the det-task above them, which has none of their variables."""
    ranks, found = c.processes(exp), set()
    for p in ranks:
        while p > 1:
            with open(f"/proc/{p}/status") as f:
                status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
            if status["Name"] not in ("det-harness", "det-task"):
                break
            found.add(p)
            p = int(status["PPid"])
    return found


def all_signal(pids, number):
    for p in pids:
        try:
            os.kill(p, number)
        except ProcessLookupError:
            pass


def run_round(row, c):
    saved = dump(c)
    old_exp, old_trial = start(c, OLD_UNIT)
    wait_until(lambda: c.sql(f"SELECT count(*) FROM checkpoints WHERE trial_id = {old_trial} AND state = 'COMPLETED'") != "0", 60, "a checkpoint")
    old_ids = ids(c, old_trial)
    away = task_processes(c, old_exp)
    c.stop("master", signal.SIGTERM)  # what the trial reports now waits on its host
    all_signal([c.pid("agent-0")], signal.SIGSTOP)
    all_signal(away, signal.SIGSTOP)
    restore(c, saved)
    row.fault("restored from an older dump")
    c.start_master()
    c.start_agent(1)
    c.n_agents = 2
    wait_until(lambda: any(a["id"] == "agent-1" for a in c.api_patiently("GET", "/agents")["agents"]), 30, "the new agent")
    new_exp, new_trial = start(c, NEW_UNIT)
    try:
        returns(row, c, new_exp, new_trial, old_exp, old_ids, away)
    finally:
        all_signal(away, signal.SIGCONT)
        all_signal([c.pid("agent-0")], signal.SIGCONT)


def strangers(c, trial):
    """Rows of the trial that it cannot have written itself."""
    return c.sql(f"SELECT count(*) FROM (SELECT steps FROM metrics WHERE trial_id = {trial} UNION ALL SELECT steps FROM checkpoints "
                 f"WHERE trial_id = {trial}) x WHERE steps % {NEW_UNIT} <> 0")


def tasks_of(c, ids):
    """What agent-0 still has of them."""
    return [name for name in os.listdir(c.path("agent-0", "tasks")) if any(i in name for i in ids)]


def returns(row, c, exp, trial, old_exp, old_ids, away):
    again = old_ids & ids(c, trial)
    row.check(not again, f"ids of the life before were given out again: {sorted(again)}")
    all_signal(away, signal.SIGCONT)
    all_signal([c.pid("agent-0")], signal.SIGCONT)
    at = len(c.metrics(trial))
    wait_until(lambda: len(c.metrics(trial)) > at + 3, 90, "the new trial to go on")
    wait_until(lambda: refused(c) or strangers(c, trial) != "0", 60, "the agent to be refused")
    row.check(strangers(c, trial) == "0", f"{strangers(c, trial)} rows of another life are in trial {trial}")
    wait_until(lambda: "agent-0" in c.det("master", "lives").stdout, 20, "the refused agent to be listed")
    wait_until(lambda: not c.processes(old_exp), 60, "the old trial to end")
    row.check(int(c.sql("SELECT count(*) FROM strays")) > 0, "nothing of the old trial was kept aside")
    c.stop("master", signal.SIGTERM)
    new_life(c)
    c.start_master()
    c.wait_agents(2)
    wait_until(lambda: not tasks_of(c, old_ids), 60, "what the old agent had to end")  # it may have got the new trial's next run
    row.check(strangers(c, trial) == "0", f"{strangers(c, trial)} rows of another life are in trial {trial}")
    wait_until(lambda: "agent-0" in c.det("master", "strays").stdout, 20, "the end of the old run to be listed")
    c.api_patiently("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    wait_until(c.slots_free, 30, "free slots")


def refused(c):
    with open(c.path("agent-0.log")) as f, open(c.path("master.log")) as g:
        return "det-master new-life" in f.read() and "det-master new-life" in g.read()


def main():
    row = Row(31, __doc__, rounds=1, rounds_all=5)
    for n in row.numbers():
        with Cluster(agents=1, slots=1) as c:
            row.attempt(n, run_round, row, c)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Row 2: kill -9 of master, agent, det-task or a rank, PostgreSQL stopped for 20 s, pause and activate, in random order.

Runs tests/faults/grid.yaml once undisturbed, then N times with faults from the seed, and compares by
hyperparameters: sha256 of the final model state and every metric row must be equal. No allocation's program may have begun
twice, and there may be no more runs than trials and faults that end one. After each round no process of a task may be left and every slot must be free. A round counts only if a fault struck while a trial was running.
"""
import hashlib
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import ApiError, Cluster, wait_until  # noqa: E402
from faults import Row, hold  # noqa: E402

KINDS = ("master", "agent", "task", "rank", "pg", "pause")


def pace(row):
    """Milliseconds between two batches: each pair of trials lasts through the faults of a round."""
    return 40 if row.all else 10


def create_grid(c, pace_ms=0):
    return paced.create(c, "tests/faults/grid.yaml", pace_ms)


def final_state(c, trial):
    """sha256 of the last checkpoint's model state."""
    cps = c.api_patiently("GET", f"/trials/{trial}/checkpoints")["checkpoints"]
    last = max((p for p in cps if p["state"] == "STATE_COMPLETED"), key=lambda p: p["metadata"]["steps_completed"])
    with open(c.path("checkpoints", last["uuid"], "state_dict.pth"), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def outcome(c, exp):
    """hyperparameters -> everything that must not depend on faults."""
    result = {}
    for t in c.trials(exp):
        rows = {g: c.metrics(t["id"], g) for g in ("training", "validation")}
        result[json.dumps(t["hparams"], sort_keys=True)] = {"state": final_state(c, t["id"]), **rows}
    return result


def running(c, exp):
    return [t for t in c.trials(exp) if t["state"] == "STATE_RUNNING" and t["totalBatchesProcessed"] > 0]


def processes_of(c, kind, exp):
    """Ids of this experiment's det-task processes or ranks."""
    if kind == "rank":
        return [p for p in c.processes(exp) if name_of(p) == "det-harness"]
    tasks = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if name_of(p) == "det-task" and f"{c.dir}/agent-0/tasks/{exp}." in command_of(p)]
    return [p for p in tasks if parent_of(p) not in tasks]  # not the first process of the ranks' namespace, which is of the ranks


def name_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read()
    except OSError:
        return ""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def kill_running(pid):
    """Whether the kill was its end. One that is ending by itself takes the signal too, and dies of something else: it does not stop."""
    try:
        os.kill(pid, signal.SIGSTOP)
        stopped = wait_until(lambda: (s := state_of(pid)) in ("T", "Z", "X") and s, 20, "it to stop or end") == "T"
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return stopped


class Faults:
    def __init__(self, cluster, rng):
        self.c, self.rng, self.rank_kills, self.log = cluster, rng, 0, []
        self.ended_runs = 0  # at most

    def strike(self, kind, exp):
        """True if the fault struck."""
        return getattr(self, "do_" + kind)(exp)

    def restart(self, name, start):
        self.c.procs[name].send_signal(signal.SIGKILL)
        self.c.procs.pop(name).wait()
        start()
        return True

    def do_master(self, exp):
        return self.restart("master", self.c.start_master)

    def do_agent(self, exp):
        return self.restart("agent-0", lambda: self.c.start_agent(0))

    def kill_one(self, kind, exp):
        pids = processes_of(self.c, kind, exp)
        if not pids:
            return False
        return kill_running(self.rng.choice(sorted(pids)))

    def do_task(self, exp):
        struck = self.kill_one("task", exp)
        self.ended_runs += struck
        return struck

    def do_rank(self, exp):
        struck = self.kill_one("rank", exp)
        self.rank_kills += struck
        self.ended_runs += struck
        return struck

    def do_pg(self, exp):
        self.c.stop("pg", signal.SIGINT)
        hold(20)
        self.c.start_pg()
        return True

    def do_pause(self, exp):
        self.ended_runs += self.c.slots
        try:
            self.c.api_patiently("POST", f"/experiments/{exp}/pause")
            wait_until(self.c.slots_free, 60, "paused trials to leave their slots")
            self.c.api_patiently("POST", f"/experiments/{exp}/activate")
        except ApiError as e:
            if e.status in (400, 404) and self.c.experiment(exp)["state"] == "STATE_COMPLETED":
                return False  # its last trial ended before it could pause
            raise
        return True


def strike_all(row, c, exp, kinds):
    """The faults of one round, each at a random moment of a running trial."""
    f = Faults(c, row.rng)
    for kind in kinds:
        wait_until(lambda: running(c, exp) or c.experiment(exp)["state"] == "STATE_COMPLETED", 60, "a running trial")
        hold(row.rng.uniform(0, 3))
        if running(c, exp) and f.strike(kind, exp):
            row.fault(kind)
    return f


def check_runs(row, c, exp, faults):
    """A trial that ran twice leaves equal rows, so the programs themselves say that they began."""
    begun = paced.starts(c)
    runs = {a: begun[a] for a in c.sql(f"SELECT id FROM allocations WHERE experiment_id={exp} AND trial_id IS NOT NULL").split()}
    twice = [a for a, n in runs.items() if n > 1]
    row.check(not twice, f"begun more than once: {', '.join(twice)}")
    most = len(c.trials(exp)) + faults.ended_runs
    row.check(sum(runs.values()) <= most, f"{sum(runs.values())} programs began in {len(runs)} runs; {most} is the most")


def run_round(row, c, kinds, reference):
    before = row.faults
    exp = create_grid(c, pace(row))
    faults = strike_all(row, c, exp, kinds)
    c.wait(exp, seconds=1200)
    got = outcome(c, exp)
    for hp in reference:
        for key in reference[hp]:
            row.check(got.get(hp, {}).get(key) == reference[hp][key], f"{hp}: {key} differs")
    restarts = sum(t["restarts"] for t in c.trials(exp))
    row.check(restarts == faults.rank_kills, f"{restarts} restarts counted for {faults.rank_kills} killed ranks")
    check_runs(row, c, exp, faults)
    row.check(row.faults > before, "no fault struck a running trial")
    wait_until(lambda: not c.processes(exp), 15, f"the processes of experiment {exp} to be gone")
    wait_until(c.slots_free, 15, "free slots")


def main():
    row = Row(2, __doc__, rounds=2, rounds_all=60,
              add=lambda ap: ap.add_argument("--kind", choices=KINDS, help="only this kind of fault"))
    kind = row.args.kind
    with Cluster(agents=1, slots=2) as c:
        exp = create_grid(c)
        t0 = time.monotonic()
        c.wait(exp, seconds=1200)
        print(f"undisturbed: {time.monotonic() - t0:.1f} s", flush=True)
        reference = outcome(c, exp)
        for n in row.numbers():
            kinds = [KINDS[(2 * n + i) % len(KINDS)] for i in range(2)] + row.rng.sample(KINDS, row.rng.randint(0, 1))
            row.attempt(n, run_round, row, c, [kind] * len(kinds) if kind else kinds, reference)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Row 25: a soak: a fault every 10 s for 15 minutes (--all; else a minute of them, every 4 s), while experiments follow one
another.

Every experiment must end as the undisturbed one did: same final state, same metric rows. In the last third no daemon is
restarted: their resident memory and open files must stay flat: a tenth and 1 MiB more, which is what a short run still warms up, and 6 files.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row, hold  # noqa: E402
from row_02_kill import KINDS, Faults, create_grid, outcome, pace, running  # noqa: E402

MILD = ("task", "rank", "pause", "pg")
GROWTH, GROWTH_KB, GROWTH_FDS = 1.1, 1024, 6


def size_of(c, name):
    """(resident KB, open files) of a daemon."""
    with open(f"/proc/{c.pid(name)}/status") as f:
        rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    return rss, len(os.listdir(f"/proc/{c.pid(name)}/fd"))


class Soak:
    def __init__(self, row, c, reference):
        self.row, self.c, self.faults = row, c, Faults(c, row.rng)
        self.reference = reference
        self.exp = create_grid(c, pace(row))

    def follow(self):
        """Judges the experiment that ended, and starts the next."""
        if self.c.experiment(self.exp)["state"] not in ("STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED"):
            return
        self.c.wait(self.exp)
        got = outcome(self.c, self.exp)
        for hp in self.reference:
            self.row.check(got.get(hp) == self.reference[hp], f"experiment {self.exp}: {hp} differs from the undisturbed run")
        self.row.done(self.row.rounds)
        self.exp = create_grid(self.c, pace(self.row))

    def warm_up(self):
        """A daemon that was started again just now has not yet grown to what any work takes: the rest of an experiment, and a whole one."""
        for _ in range(2):
            self.c.wait(self.exp, seconds=400)
            self.follow()
        wait_until(lambda: running(self.c, self.exp), 60, "the next experiment to train")

    def run(self, seconds, kinds, every):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            due = time.monotonic() + every
            kind = self.row.rng.choice(kinds)
            if running(self.c, self.exp) and self.faults.strike(kind, self.exp):
                self.row.fault(kind)
            self.follow()
            hold(max(0, due - time.monotonic()))


def settled(c):
    """Sizes once nothing is in flight."""
    wait_until(lambda: all(a["enabled"] for a in c.api_patiently("GET", "/agents")["agents"]), 60, "the agent")
    return {name: size_of(c, name) for name in ("master", "agent-0")}


def main():
    row = Row(25, __doc__, rounds=1)
    seconds, every = (900, 10) if row.all else (60, 4)
    with Cluster(agents=1, slots=2) as c:
        exp = create_grid(c)
        c.wait(exp, seconds=300)
        soak = Soak(row, c, outcome(c, exp))
        soak.run(seconds * 2 / 3, KINDS, every)
        soak.warm_up()
        before = settled(c)
        soak.run(seconds / 3, MILD if row.all else MILD[:3], every)
        c.wait(soak.exp, seconds=400)
        after = settled(c)
        soak.follow()
        for name in before:
            (kb0, fd0), (kb1, fd1) = before[name], after[name]
            print(f"row 25: {name}: {kb0} -> {kb1} KB, {fd0} -> {fd1} open files", flush=True)
            row.check(kb1 <= kb0 * GROWTH + GROWTH_KB and fd1 <= fd0 + GROWTH_FDS, f"{name} grows: {before[name]} -> {after[name]}")
        c.api("POST", f"/experiments/{soak.exp}/kill", {})
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

"""A row of tests/faults: options, counting and the one line that every row ends with.

    row = Row(3, __doc__, rounds=1, rounds_all=5)
    for n in row.numbers():
        row.attempt(n, one_round)          # calls row.fault("agent stopped") and row.check(trial_ran_on, "the trial ended")
    sys.exit(row.finish())

Every row takes `--rounds N --seed S --all` and `--share I/N` (every N-th round from the I-th on: N processes beside one
another do the whole row, each in a cluster of its own), prints "row NN: R rounds, F faults, V violations" last and exits 0 if no
promise was broken, 1 if one was, 77 if it could not run here (row.skip).
"""
import argparse
import os
import random
import sys
import time
import traceback

SKIPPED = 77


class Row:
    def __init__(self, number, doc, rounds=1, rounds_all=None, add=None):
        """rounds: without options; rounds_all: with --all. add: a function that adds options of its own to the parser."""
        ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
        ap.add_argument("--rounds", type=int, help=f"default: {rounds}, with --all {rounds_all or rounds}")
        ap.add_argument("--seed", type=int, default=1)
        ap.add_argument("--all", action="store_true", help="the long form: more rounds, long outages")
        ap.add_argument("--share", type=share, default=(0, 1), help="I/N: every N-th round, from round I (0 to N-1) on")
        if add:
            add(ap)
        self.args = ap.parse_args()
        self.first, self.step = self.args.share
        self.all, self.seed, self.number = self.args.all, self.args.seed, number
        self.wanted = self.args.rounds or (rounds_all if self.all and rounds_all else rounds)
        self.rng = random.Random(self.seed + 1000003 * self.first)
        self.rounds = self.faults = 0
        self.violations, self.struck, self.begun = [], [], time.monotonic()
        if not self.numbers():
            sys.exit(self.finish())

    def numbers(self):
        """The rounds asked for, from 0, or this process's share of them."""
        return range(self.first, self.wanted, self.step)

    def fault(self, what):
        """A fault struck."""
        self.faults += 1
        self.struck.append(what)

    def violation(self, what):
        self.violations.append(what)
        print(f"row {self.number:02}: VIOLATION: {what}", flush=True)

    def check(self, holds, what):
        """what: the promise's breach, said when it does not hold."""
        if not holds:
            self.violation(what)
        return bool(holds)

    def attempt(self, n, function, *args):
        """Runs one round; an exception is a violation, told with the logs of the cluster among args, and the next round goes on."""
        before = len(self.violations)
        try:
            function(*args)
        except Exception as e:
            traceback.print_exc()
            for a in args:
                getattr(a, "show_logs", int)()
            self.violation(f"round {n}: {type(e).__name__}: {e}")
        self.done(n, len(self.violations) == before)

    def done(self, n, ok=True):
        self.rounds += 1
        print(f"row {self.number:02}: round {n}: {', '.join(self.struck) or 'no fault'}: {'ok' if ok else 'NOT ok'}", flush=True)
        self.struck = []

    def skip(self, why):
        """What this row needs is not here; says so and ends the process."""
        print(f"row {self.number:02}: skipped: {why}", flush=True)
        sys.exit(SKIPPED)

    def finish(self):
        """The exit code, after the row's line."""
        if self.rounds and not self.faults:
            self.violation("no fault struck")
        print(f"row {self.number:02}: {self.rounds} rounds, {self.faults} faults, {len(self.violations)} violations "
              f"(seed {self.seed}, {time.monotonic() - self.begun:.0f} s)", flush=True)
        return 1 if self.violations else 0


def share(text):
    """"I/N" -> (I, N)."""
    first, step = map(int, text.split("/"))
    if not 0 <= first < step:
        raise ValueError
    return first, step


def hold(seconds):
    """Lets an outage last: its length is the fault itself, nothing is waited for."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.5))


def is_root():
    return os.geteuid() == 0

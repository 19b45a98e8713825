#!/usr/bin/env python3
"""Row 20: the master is killed anywhere in a search; its log replays to the same bytes, then and later.

Each round runs a search of another kind and kills the master three times on the way. After each kill, at the end and
after one more kill the log must replay: the same decisions of the same events, and at the end always the same digest.
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402

LENGTH = {"max_length": {"batches": 64}}
SEARCHES = [{"name": "async_halving", "num_rungs": 3, "divisor": 4, "max_trials": 6, "max_concurrent_trials": 4, **LENGTH},
            {"name": "adaptive_asha", "max_trials": 6, "max_concurrent_trials": 4, **LENGTH},
            {"name": "random", "max_trials": 6, "max_concurrent_trials": 4, **LENGTH},
            {"name": "async_halving", "stop_once": True, "num_rungs": 3, "divisor": 4, "max_trials": 6, **LENGTH}]
KILLS = 3


def config(search, seed):
    return json.dumps({"name": "replay", "entrypoint": "model_def:DigitsTrial", "max_restarts": 5, "scheduling_unit": 5,
                       "hyperparameters": {"global_batch_size": 16, "dropout": 0.1,
                                           "learning_rate": {"type": "log", "base": 10, "minval": -3, "maxval": -1}},
                       "searcher": {"metric": "accuracy", "smaller_is_better": False, **search},
                       "checkpoint_policy": "none", "reproducibility": {"experiment_seed": seed}})


def kill(row, c, what):
    c.stop("master", signal.SIGKILL)
    c.start_master()
    row.fault(f"kill {what}")


def replayed(row, c, exp, when):
    r = c.api_patiently("GET", f"/experiments/{exp}/searcher/replay")
    row.check(r["equal"], f"{when} the log does not replay: {r['difference']}")
    return r


def events(c, exp):
    return int(c.sql(f"SELECT count(*) FROM search_events WHERE experiment_id = {exp}"))


def run_round(row, n):
    search = SEARCHES[n % len(SEARCHES)]
    with Cluster(slots=4) as c:
        exp = c.create(config(search, row.rng.randint(1, 1 << 20)), "examples/digits")
        seen = 0
        for i in range(KILLS):
            more = seen + row.rng.randint(1, 3)
            wait_until(lambda: events(c, exp) >= more or c.experiment(exp)["state"] == "STATE_COMPLETED", 120, "the search to go on")
            kill(row, c, search["name"])
            seen = replayed(row, c, exp, f"after kill {i + 1}")["events"]
        c.wait(exp, seconds=240)
        end = replayed(row, c, exp, "at the end")
        row.check(end["events"] >= seen, "events are missing")
        kill(row, c, "after the end")
        row.check(replayed(row, c, exp, "from the tables alone") == end, "another digest of the same log")


def main():
    row = Row(20, __doc__, rounds=1, rounds_all=12)
    for n in row.numbers():
        row.attempt(n, run_round, row, n)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

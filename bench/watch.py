#!/usr/bin/env python3
"""watch: how long a report takes to the screen of somebody who watches.

usage: bench/run watch [--reports N] [--trials N]
`det trial watch ID` on a terminal, the trial one that runs elsewhere and reports losses that nothing else prints:
`lag_ms` is from the moment the request is sent until the loss is on the screen, `lag_p95_ms` its 95th percentile.
Reports come a second or so apart, at odd moments: so they meet each phase of what the screen waits for.
`many_of_a_core` is what `det experiment watch` of a search of 1,000 trials, all of which report, uses of a core;
`many_master_of_a_core` what master and PostgreSQL together use of one more than without it, in turns.
"""
import argparse
import json
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from cluster import BIN, Cluster  # noqa: E402
from ingest import cpu_seconds  # noqa: E402
from libscreen import Screen  # noqa: E402

LIMIT_MS = 500
TURN_S, TURNS, PER_SECOND = 15, 3, 40
CONFIG = "{name: watch, searcher: {name: single, metric: loss, max_length: 100}}"


def screen_of(c, *words):
    env = {**os.environ, **c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"),
           "XDG_CONFIG_HOME": c.path("config")}
    return Screen([BIN + "/det", *words], env)


def report(c, trial, n, loss):
    c.api("POST", f"/trials/{trial}/metrics", {"metrics": {"trialId": trial, "trialRunId": 1, "stepsCompleted": n,
                                                           "metrics": {"avgMetrics": {"loss": loss}}}, "group": "training"})


def unmanaged(c, trials):
    exp = c.api("POST", "/experiments", {"config": CONFIG, "unmanaged": True})["experiment"]["id"]
    ids = [c.api("POST", "/trials", {"experimentId": exp, "unmanaged": True, "hparams": {"lr": n}})["trial"]["id"] for n in range(trials)]
    for trial in ids:
        c.api("POST", f"/trials/{trial}/start", {"trialId": trial})
    return exp, ids


def lags(c, reports):
    _, (trial,) = unmanaged(c, 1)
    screen, found = screen_of(c, "trial", "watch", str(trial)), []
    try:
        for n in range(1, reports + 2):
            time.sleep(0.7 + random.random() * 0.6)
            text = f"loss {n + 0.125:.4g}"  # a number that stands nowhere else
            begun = time.monotonic()
            report(c, trial, n, n + 0.125)
            screen.wait_for(lambda seen, text=text: text in seen, text)
            found.append((time.monotonic() - begun) * 1000)
    finally:
        screen.close()
    return found[1:]  # the first draws the screen


def cpu_of_turn(c, trials, steps, screen):
    """Seconds of CPU of the daemons and of the screen's program while TURN_S of reports come."""
    pids = [c.pid("master"), c.pid("pg")] + ([screen.program.pid] if screen else [])
    before, begun = [cpu_seconds(p) for p in pids], time.monotonic()
    for n in range(TURN_S * PER_SECOND):
        trial = trials[n % len(trials)]
        steps[trial] = steps.get(trial, 0) + 1
        report(c, trial, steps[trial], 1 + random.random())
        if screen:
            screen.take()
        time.sleep(max(0, begun + (n + 1) / PER_SECOND - time.monotonic()))
    used = [cpu_seconds(p) - b for p, b in zip(pids, before)]
    took = time.monotonic() - begun
    return (used[0] + used[1]) / took, used[2] / took if screen else 0


def many(c, n):
    """Shares of a core: of the terminal's program, and of the daemons beyond what the reports cost them."""
    exp, trials = unmanaged(c, n)
    steps, alone, watched, own = {}, [], [], []
    for _ in range(TURNS):
        alone.append(cpu_of_turn(c, trials, steps, None)[0])
        screen = screen_of(c, "experiment", "watch", str(exp))
        try:
            screen.wait_for(lambda seen: "loss" in seen, "a loss")
            daemons, program = cpu_of_turn(c, trials, steps, screen)
        finally:
            screen.close()
        watched.append(daemons)
        own.append(program)
    return statistics.median(own), statistics.median(watched) - statistics.median(alone)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--reports", type=int, default=40)
    ap.add_argument("--trials", type=int, default=1000)
    o = ap.parse_args()
    with Cluster(agents=0) as c:
        found = lags(c, o.reports)
        own, daemons = many(c, o.trials)
    print(f"ms: {sorted(round(ms) for ms in found)}", file=sys.stderr)
    for figure, value in (("lag_ms", statistics.median(found)), ("lag_p95_ms", statistics.quantiles(found, n=20)[-1])):
        print(json.dumps({"bench": "watch", "figure": figure, "value": round(value, 1), "unit": "ms", "peer": "limit", "peer_value": LIMIT_MS,
                          "ratio": round(LIMIT_MS / value, 2)}), flush=True)
    for figure, value in (("many_of_a_core", own), ("many_master_of_a_core", daemons)):
        print(json.dumps({"bench": "watch", "figure": figure, "value": round(value, 4), "unit": "cores"}), flush=True)


if __name__ == "__main__":
    main()

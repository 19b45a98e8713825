#!/usr/bin/env python3
"""watch: how long a report takes to the screen of somebody who watches.

usage: bench/run watch [--reports N]
`det trial watch ID` on a terminal, the trial one that runs elsewhere and reports losses that nothing else prints:
`lag_ms` is from the moment the request is sent until the loss is on the screen, `lag_p95_ms` its 95th percentile.
Reports come a second or so apart, at odd moments: so they meet each phase of what the screen waits for.
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
from libscreen import Screen  # noqa: E402

LIMIT_MS = 500
CONFIG = "{name: watch, searcher: {name: single, metric: loss, max_length: 100}}"


def screen_of(c, *words):
    env = {**os.environ, **c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"),
           "XDG_CONFIG_HOME": c.path("config")}
    return Screen([BIN + "/det", *words], env)


def report(c, trial, n, loss):
    c.api("POST", f"/trials/{trial}/metrics", {"metrics": {"trialId": trial, "trialRunId": 1, "stepsCompleted": n,
                                                           "metrics": {"avgMetrics": {"loss": loss}}}, "group": "training"})


def lags(c, reports):
    exp = c.api("POST", "/experiments", {"config": CONFIG, "unmanaged": True})["experiment"]["id"]
    trial = c.api("POST", "/trials", {"experimentId": exp, "unmanaged": True, "hparams": {}})["trial"]["id"]
    c.api("POST", f"/trials/{trial}/start", {"trialId": trial})
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


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--reports", type=int, default=40)
    with Cluster(agents=0) as c:
        found = lags(c, ap.parse_args().reports)
    print(f"ms: {sorted(round(ms) for ms in found)}", file=sys.stderr)
    for figure, value in (("lag_ms", statistics.median(found)), ("lag_p95_ms", statistics.quantiles(found, n=20)[-1])):
        print(json.dumps({"bench": "watch", "figure": figure, "value": round(value, 1), "unit": "ms", "peer": "limit", "peer_value": LIMIT_MS,
                          "ratio": round(LIMIT_MS / value, 2)}), flush=True)


if __name__ == "__main__":
    main()

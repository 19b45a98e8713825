#!/usr/bin/env python3
"""hostile: how long others wait while the master is attacked, over how long without.

usage: bench/run hostile [ATTACK...]
Others: 8 kept connections that send 200 requests a second, each fourth of them a new experiment, the others reads. Each attack
(bench/libattack.py) runs in a process of its own, at the lowest priority; rounds with and without it in turn, medians of
DET_BENCH_ROUNDS (9) rounds of DET_BENCH_SECONDS (2). p95_ratio is the worst attack's, and each attack has a row of its own. fresh_ms:
the p95 of a new connection with one request on it, in the worst attack. memory: the master's, with 10,000 connections with made-up
tokens, each with the beginning of a body.
"""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
import libattack  # noqa: E402
from cluster import Cluster  # noqa: E402
from size import rss_mb  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "9"))
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", "2"))
LOAD = os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-load")
CLIENTS, PER_S, FRESH = 8, 200, 40
ATTACKS = ("large_bodies", "guessers", "refused_tokens", "nul", "slow_readers", "bombs", "idle", "half")
CONFIG = """
name: hostile
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: single, metric: loss, max_length: {batches: 200}}
"""


def requests_file(c):
    body, lines = c.path("create.json"), c.path("requests.txt")
    with open(body, "w") as f:
        json.dump({"config": CONFIG, "activate": False, "modelDefinition": []}, f)
    first = c.api("POST", "/experiments", {"config": CONFIG, "activate": False, "modelDefinition": []})["experiment"]["id"]
    reads = ["/api/v1/me", f"/api/v1/experiments/{first}", "/api/v1/experiments?limit=10"]
    with open(lines, "w") as f: # a connection takes each eighth line, so the creations are spread over all
        for i in range(4 * (CLIENTS + 1)):
            f.write(f"POST /api/v1/experiments {body}\n" if i % 4 == 3 else f"GET {reads[i % 4]}\n")
    return lines


def others(c, lines):
    """p95 in ms of the others' requests, and of a new connection with one on it."""
    p = subprocess.Popen([LOAD, str(c.port), str(SECONDS), str(CLIENTS), lines, str(PER_S)], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(c.token + "\n")
    p.stdin.close()
    fresh = []
    while p.poll() is None:
        begin = time.monotonic()
        c.request("GET", "/me")
        fresh.append(1000 * (time.monotonic() - begin))
        time.sleep(SECONDS / FRESH)
    out, why = p.stdout.read(), p.stderr.read()
    if p.returncode or json.loads(out)["errors"]:
        sys.exit(f"hostile: others were refused: {why}")
    return json.loads(out)["p95_ms"], sorted(fresh)[len(fresh) * 95 // 100]


def attacked(c, lines, name):
    alone, under = [], []
    for _ in range(ROUNDS):
        alone.append(others(c, lines))
        with libattack.Attack(c.port, c.token, getattr(libattack, name)):
            under.append(others(c, lines))
        print(f"{name}: p95 {alone[-1][0]:.1f} ms alone, {under[-1][0]:.1f} attacked; a new connection's {alone[-1][1]:.1f}, {under[-1][1]:.1f}; "
              f"the master has {rss_mb(c.pid('master')):.0f} MB", file=sys.stderr)
    return [[statistics.median(r[i] for r in rows) for i in (0, 1)] for rows in (alone, under)]


def emit(figure, value, unit):
    print(json.dumps({"bench": "hostile", "figure": figure, "value": value, "unit": unit}), flush=True)


def main():
    names = sys.argv[1:] or [*ATTACKS, "made_up"]
    unknown = [n for n in names if n not in (*ATTACKS, "made_up")]
    if unknown:
        sys.exit(f"hostile: no attack '{unknown[0]}'; there are: {', '.join((*ATTACKS, 'made_up'))}")
    with Cluster(agents=0) as c:
        c.login()
        lines, worst = requests_file(c), {}
        if "made_up" in names:
            with libattack.Attack(c.port, c.token, libattack.made_up):
                emit("made_up_10000_rss", round(rss_mb(c.pid("master")), 1), "MB")
        for name in (n for n in names if n != "made_up"):
            alone, under = attacked(c, lines, name)
            worst[name] = under[0] / alone[0], under[1]
            emit(f"p95_ratio {name}", round(worst[name][0], 2), "")
    if worst:
        emit("p95_ratio", round(max(w[0] for w in worst.values()), 2), "")
        emit("fresh_ms", round(max(w[1] for w in worst.values()), 1), "ms")


if __name__ == "__main__":
    main()

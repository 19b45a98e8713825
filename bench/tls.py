#!/usr/bin/env python3
"""tls: requests a second over TLS on kept connections, over the same without TLS.

usage: bench/run tls
Two masters with a database each, one at HTTPS with a certificate of its own authority, one at plain HTTP; one after the other, in turn.
8 kept connections send the next request when the last is answered: who one is, an experiment, a list of ten. Medians of
DET_BENCH_ROUNDS (5) rounds of DET_BENCH_SECONDS (3). handshakes_per_s: new connections with one request each, from this process.
"""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from cluster import Cluster  # noqa: E402
from tls_cluster import OwnCluster  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "5"))
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", "3"))
LOAD = os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-load")
CLIENTS = 8
CONFIG = """
name: tls
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: single, metric: loss, max_length: {batches: 200}}
"""


def requests_file(c):
    c.login()
    exp = c.api("POST", "/experiments", {"config": CONFIG, "activate": False, "modelDefinition": []})["experiment"]["id"]
    with open(c.path("requests.txt"), "w") as f:
        for i in range(3 * CLIENTS + 1):  # each connection sends each
            f.write("GET " + ("/api/v1/me", f"/api/v1/experiments/{exp}", "/api/v1/experiments?limit=10")[i % 3] + "\n")
    return c.path("requests.txt")


def per_s(c, port, lines):
    p = subprocess.run([LOAD, port, str(SECONDS), str(CLIENTS), lines], input=c.token + "\n", text=True, capture_output=True)
    if p.returncode or json.loads(p.stdout)["errors"]:
        sys.exit(f"tls: {p.stderr}")
    return json.loads(p.stdout)["per_s"]


def handshakes_per_s(c):
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < SECONDS:
        c.request("GET", "/me")
        n += 1
    return n / (time.monotonic() - begin)


def emit(**row):
    print(json.dumps({"bench": "tls", **row}), flush=True)


def main():
    with OwnCluster(agents=0) as over_tls, Cluster(agents=0) as plain:
        lines = requests_file(over_tls), requests_file(plain)
        pairs = []
        for _ in range(ROUNDS):
            pairs.append((per_s(over_tls, f"tls:{over_tls.port}", lines[0]), per_s(plain, str(plain.port), lines[1])))
            print("tls: {:.0f} requests a second, {:.0f} without TLS".format(*pairs[-1]), file=sys.stderr)
        ours, peer = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        emit(figure="requests_per_s", value=round(ours, 1), unit="1/s", peer="plain HTTP", peer_value=round(peer, 1), ratio=round(ours / peer, 2))
        emit(figure="handshakes_per_s", value=round(handshakes_per_s(over_tls), 1), unit="1/s", peer="plain HTTP",
             peer_value=round(handshakes_per_s(plain), 1))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""api: latency and requests per second of the reading routes over 100,000 trials and 10 million metric rows.

usage: bench/run api [--small] [--keep DIR]
The rows come from bench/api_rows.sql: 10,000 experiments of 10 trials, 100 reports each, and one trial with a metric of
a million reports. 32 keep-alive clients ask one route at a time, the next request when the last was answered, over
ids at random; each route once unmeasured first. PostgreSQL has shared_buffers for all rows, and has read them. `p95` is the worst route's; each route is on standard error. requests_per_s compares GET /api/v1/trials/ID
with nginx serving a static file of as many bytes to the same clients (package nginx-light). --small: a tenth of the rows.
--keep: the database stays in DIR, and is taken from there the next time.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from ingest import cpu_seconds  # noqa: E402

LOAD = os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-load")
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", "4"))
CLIENTS, PER = 32, 10
CONFIG = json.dumps({
    "name": "x", "description": "d", "entrypoint": "model_def:T", "max_restarts": 5, "labels": ["bench", "mnist"],
    "hyperparameters": {"learning_rate": {"type": "log", "base": 10, "minval": -4, "maxval": -1}, "global_batch_size": {"type": "const", "val": 64}},
    "searcher": {"name": "random", "metric": "loss", "max_trials": 10, "smaller_is_better": True, "max_length": {"batches": 10000}},
    "resources": {"slots_per_trial": 1, "resource_pool": "default"}, "reproducibility": {"experiment_seed": 1},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp", "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}})


def routes(experiments):
    trials = experiments * PER
    exp, trial = lambda: random.randint(1, experiments), lambda: random.randint(1, trials)
    return {
        "list experiments": lambda: f"/experiments?limit=20&offset={random.randint(0, 200)}&orderBy=ORDER_BY_DESC",
        "list by state": lambda: f"/experiments?limit=20&states=STATE_ERROR&offset={random.randint(0, 100)}",
        "list trials": lambda: f"/experiments/{exp()}/trials",
        "experiment": lambda: f"/experiments/{exp()}",
        "trial": lambda: f"/trials/{trial()}",
        "workloads": lambda: f"/trials/{trial()}/workloads?limit=20",
        "checkpoints": lambda: f"/trials/{trial()}/checkpoints",
        "chart": lambda: f"/trials/time-series?trialIds={trial()}&metricNames=loss&metricType=METRIC_TYPE_TRAINING",
        "long chart": lambda: f"/trials/time-series?trialIds={trials}&metricNames=loss&group=long",
    }


def ask(c, paths, port=None, prefix="/api/v1"):
    lines = c.path("load.txt")
    with open(lines, "w") as f:
        f.writelines(f"GET {prefix}{p}\n" for p in paths)
    r = subprocess.run([LOAD, str(port or c.port), str(SECONDS), str(CLIENTS), lines], input=c.token, text=True, capture_output=True, check=True)
    sys.stderr.write(r.stderr)
    r = json.loads(r.stdout)
    assert r["errors"] == 0, r
    return r


class Nginx:
    """nginx serving one file on loopback."""
    def __init__(self, size):
        if not shutil.which("nginx"):
            sys.exit("api: nginx is not installed: apt-get install nginx-light")
        self.dir = tempfile.mkdtemp(prefix="det-nginx-")
        os.chmod(self.dir, 0o755)
        with open(self.dir + "/file.json", "w") as f:
            f.write("x" * size)
        self.port = random.randint(20000, 30000)
        with open(self.dir + "/conf", "w") as f:
            f.write(f"worker_processes 1; daemon off; pid {self.dir}/pid; error_log {self.dir}/error;\nevents {{ worker_connections 256; }}\n"
                    f"http {{ access_log off; sendfile on; keepalive_requests 100000000; server {{ listen 127.0.0.1:{self.port}; root {self.dir}; }} }}\n")
        self.proc = subprocess.Popen(["nginx", "-c", self.dir + "/conf"], stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(self.dir + "/pid"), 10, "nginx")

    def stop(self):
        self.proc.terminate()
        self.proc.wait()
        shutil.rmtree(self.dir)


def load_rows(c, experiments, rows, long):
    begin = time.monotonic()
    if c.sql("SELECT count(*) FROM metric_heads WHERE grp = 'long'") == "0":
        subprocess.run(["psql", "-1qAtX", "-v", "ON_ERROR_STOP=1", "-h", c.path("pg-socket"), "-U", "det", "-d", "det", "-v", f"experiments={experiments}",
                        "-v", f"per={PER}", "-v", f"rows={rows}", "-v", f"long={long}", "-v", "config=" + CONFIG,
                        "-f", os.path.join(HERE, "api_rows.sql")], check=True, stdout=subprocess.DEVNULL)
        c.sql("VACUUM ANALYZE")
    c.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    c.sql("SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace")
    print(f"rows: {time.monotonic() - begin:.0f} s, {c.sql('SELECT pg_size_pretty(pg_database_size(current_database()))')}", file=sys.stderr)


def main():
    experiments, rows, long = (1000, 100, 100000) if "--small" in sys.argv else (10000, 100, 1000000)
    results = {}
    with Cluster(agents=0, keep=sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None,
                 pg_args=["shared_buffers=3GB"]) as c:
        c.login()
        load_rows(c, experiments, rows, long)
        for name, path in routes(experiments).items():
            ask_paths = [path() for _ in range(CLIENTS * 64)]
            ask(c, ask_paths)  # the master's sessions live for days: theirs is the first touch of each page of shared memory
            before = [cpu_seconds(c.pid(n)) for n in ("master", "pg")]
            r = results[name] = ask(c, ask_paths)
            cpu = [1e6 * (cpu_seconds(c.pid(n)) - b) / r["requests"] for n, b in zip(("master", "pg"), before)]
            r["size"] = int(r["bytes_per_s"] / r["per_s"])
            print(f"{name}: {r['per_s']:.0f}/s p50 {r['p50_ms']:.1f} p95 {r['p95_ms']:.1f} p99 {r['p99_ms']:.1f} ms, {r['size']} bytes, "
                  f"CPU a request: master {cpu[0]:.0f} PostgreSQL {cpu[1]:.0f} us", file=sys.stderr)
        nginx = Nginx(results["trial"]["size"])
        try:
            served = ask(c, ["/file.json"], nginx.port, "")
        finally:
            nginx.stop()
    worst = max(results, key=lambda n: results[n]["p95_ms"])
    print(json.dumps({"bench": "api", "figure": f"p95 ({worst})", "value": results[worst]["p95_ms"], "unit": "ms", "peer": "limit", "peer_value": 20,
                      "ratio": round(results[worst]["p95_ms"] / 20, 3)}))
    print(json.dumps({"bench": "api", "figure": "requests_per_s", "value": round(results["trial"]["per_s"]), "unit": "requests/s",
                      "peer": "nginx, a file of the same size", "peer_value": round(served["per_s"]), "ratio": round(results["trial"]["per_s"] / served["per_s"], 4)}))


if __name__ == "__main__":
    main()

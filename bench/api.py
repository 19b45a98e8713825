#!/usr/bin/env python3
"""api: latency of every reading route, with each filter and order that its contract has, and requests per second.

usage: bench/run api [--small] [--keep DIR] [--only TEXT] [--reuse] [--list]
The rows come from bench/api_rows.sql: 99,740 trials, 5,000 of them in one experiment and ten in each other one, 10 million
reports, and one trial with a metric of a million reports. The cases come from proto/openapi.yaml (bench/libapi.py). 32
keep-alive clients ask one case at a time, the next request when the last was answered, over ids at random, while 100
reports a second of ten metrics come in for trials of the large experiment, and 16 agents that run nothing have their 128
slots taken and a queue of as many trials (100,000 trials are all that may be asked for in groups); each case is asked
once unmeasured first.
The master looks each question up anew (`reuse_answers: false`), but for lists, searches and groups that none of the
reports can have changed; and equal ones that wait are looked up once. --reuse: it gives answers of charts and searches again
for up to two seconds, as it does for people (`p95_reuse`).
PostgreSQL has shared_buffers for all rows, and has read them. `p95` is the worst case's, `p95_alone` that of one client alone,
reports and queue as before; the worst ten of both are on standard error by name. requests_per_s compares GET /api/v1/trials/ID with nginx
serving a static file of as many bytes to the same clients. --small: a tenth of the rows. --keep: the database stays in DIR
(5 GB), and is taken from there the next time. --only: the cases whose name has TEXT in it. --list: their names.
"""
import argparse
import base64
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
import libapi  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from herd import Herd  # noqa: E402
from ingest import METRICS, cpu_seconds  # noqa: E402

LOAD = os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-load")
SECONDS = float(os.environ.get("DET_BENCH_SECONDS", "2"))
CLIENTS, PER, REPORTS_PER_S, LIMIT_MS = 32, 10, 100, 20
CONFIG = json.dumps({
    "name": "x", "description": "d", "entrypoint": "model_def:T", "max_restarts": 5, "labels": ["bench", "mnist"],
    "hyperparameters": {"learning_rate": {"type": "log", "base": 10, "minval": -4, "maxval": -1}, "global_batch_size": {"type": "const", "val": 64}},
    "searcher": {"name": "random", "metric": "loss", "max_trials": 10, "smaller_is_better": True, "max_length": {"batches": 10000}},
    "resources": {"slots_per_trial": 1, "resource_pool": "default"}, "reproducibility": {"experiment_seed": 1},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp", "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}})


class Refused(Exception):
    """The master answered some requests with an error."""


def ask(c, paths, port=None, clients=CLIENTS, seconds=SECONDS):
    lines = c.path("load.txt")
    with open(lines, "w") as f:
        f.writelines(f"GET {p}\n" for p in paths)
    r = subprocess.run([LOAD, str(port or c.port), str(seconds), str(clients), lines], input=c.token, text=True, capture_output=True)
    sys.stderr.write(r.stderr)
    assert r.returncode == 0, f"{paths[0]}: {r.stderr}"
    r = json.loads(r.stdout)
    if r["errors"]:
        raise Refused(f"{paths[0]}: {r['errors']} of {r['requests']} requests were refused")
    return r


class Reports:
    """Reports of trials of the large experiment, so many a second, until stop()."""
    def __init__(self, c, w):
        first = w.trials - w.big + 1
        c.sql(f"UPDATE trials SET run_id = run_id + 1, state = 'ACTIVE' WHERE id BETWEEN {first} AND {first + CLIENTS - 1}")
        run = c.sql(f"SELECT run_id FROM trials WHERE id = {first}")
        lines = c.path("reports.txt")
        with open(lines, "w") as f:
            for t in range(first, first + CLIENTS):
                body = {"metrics": {"trialId": t, "trialRunId": int(run), "stepsCompleted": "@@@@@@@@",
                                    "metrics": {"avgMetrics": {m: round(random.random(), 7) for m in METRICS}}}, "group": "training"}
                with open(c.path(f"report-{t}"), "w") as b:
                    b.write(json.dumps(body).replace('"@@@@@@@@"', f"{run}@@@@@@@@"))
                f.write(f"POST /api/v1/trials/{t}/metrics {c.path(f'report-{t}')}\n")
        self.proc = subprocess.Popen([LOAD, str(c.port), "86400", str(CLIENTS), lines, str(REPORTS_PER_S)], stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, text=True)
        self.proc.stdin.write(c.token)
        self.proc.stdin.close()
        kept = f"SELECT steps FROM metric_heads WHERE trial_id = {first} AND grp = 'training' AND run_id = {run}"
        wait_until(lambda: c.sql(kept), 20, "the first report")

    def stop(self):
        assert self.proc.poll() is None, "the reports stopped before the measurement did"
        self.proc.kill()
        self.proc.wait()


class Queue:
    """A cluster beside the rows, as a context: a search has all slots of its agents, and as many of its trials wait."""
    def __init__(self, c, w):
        self.c, self.w, self.herd = c, w, Herd(c, agents=libapi.AGENTS, slots=libapi.SLOTS)

    def __enter__(self):
        n = libapi.AGENTS * libapi.SLOTS
        for left in self.c.api("GET", "/experiments?name=queue")["experiments"]:  # by a run that broke off
            self.remove(left["id"])
        self.herd.__enter__()
        self.herd.wait(agents=libapi.AGENTS)
        search = {"name": "random", "metric": "loss", "max_length": {"batches": 1}, "max_trials": 2 * n, "max_concurrent_trials": 2 * n}
        self.exp = self.c.create(json.dumps({"name": "queue", "entrypoint": ["sleep", "1000"], "searcher": search,
                                             "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}}}), None)
        self.herd.wait(tasks=n)
        waiting = wait_until(lambda: self.ids("STATE_QUEUED") if len(self.ids("STATE_RUNNING")) == n else None, 60, "all slots to be taken")
        self.w.waiting = {"experiment": self.exp, "trials": waiting, "job": self.c.experiment(self.exp)["jobId"]}
        return self

    def ids(self, state):
        return [t["id"] for t in self.c.trials(self.exp) if t["state"] == state]

    def remove(self, exp):
        """A database that is kept has only its own rows the next time."""
        self.c.api("POST", f"/experiments/{exp}/kill")
        self.c.wait(exp, "STATE_CANCELED")
        self.c.api("DELETE", f"/experiments/{exp}")
        wait_until(lambda: self.c.sql(f"SELECT count(*) FROM experiments WHERE id = {exp}") == "0", 60, "the queue to be gone")

    def __exit__(self, *_):
        self.remove(self.exp)
        self.herd.__exit__()


class Nginx:
    """nginx serving one file on loopback."""
    def __init__(self, size):
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


def model_def():
    """A small directory, packed, in base64."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name in ("model_def.py", "const.yaml", "data/loader.py"):
            text = f"{name} of a model\n".encode() * 20
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text))
    return base64.b64encode(out.getvalue()).decode()


def load_rows(c, w, rows, long):
    begin = time.monotonic()
    if c.sql("SELECT count(*) FROM metric_heads WHERE grp = 'long'") == "0":
        subprocess.run(["psql", "-1qAtX", "-v", "ON_ERROR_STOP=1", "-h", c.path("pg-socket"), "-U", "det", "-d", "det", "-v", f"experiments={w.experiments}",
                        "-v", f"per={w.per}", "-v", f"big={w.big}", "-v", f"rows={rows}", "-v", f"long={long}", "-v", "config=" + CONFIG,
                        "-v", "model_def=" + model_def(),
                        "-f", os.path.join(HERE, "api_rows.sql")], check=True, stdout=subprocess.DEVNULL)
        c.sql("VACUUM ANALYZE")
        c.stop("master")  # which gives ids out, and knows of none of these
        c.start_master()
    c.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    c.sql("SELECT sum(pg_prewarm(oid)) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace")
    print(f"rows: {time.monotonic() - begin:.0f} s, {c.sql('SELECT pg_size_pretty(pg_database_size(current_database()))')}", file=sys.stderr)


def measure(c, case):
    paths = [case.make() for _ in range(CLIENTS * 64)]
    ask(c, paths, seconds=SECONDS / 2)  # the master's sessions live for days: theirs is the first touch of each page of shared memory
    alone = ask(c, paths, clients=1, seconds=SECONDS / 4)
    before = [cpu_seconds(c.pid(n)) for n in ("master", "pg")]
    r = ask(c, paths)
    cpu = [1e6 * (cpu_seconds(c.pid(n)) - b) / r["requests"] for n, b in zip(("master", "pg"), before)]
    r["size"] = int(r["bytes_per_s"] / r["per_s"])
    print(f"{case.name}: {r['per_s']:.0f}/s p50 {r['p50_ms']:.1f} p95 {r['p95_ms']:.1f} p99 {r['p99_ms']:.1f} ms, alone p50 {alone['p50_ms']:.2f} p95 {alone['p95_ms']:.2f} ms, "
          f"{r['size']} bytes, CPU a request: master {cpu[0]:.0f} PostgreSQL {cpu[1]:.0f} us", file=sys.stderr)
    r["alone_p95_ms"] = alone["p95_ms"]
    return r


def emit(figure, value, unit, peer, peer_value, ratio):
    print(json.dumps({"bench": "api", "figure": figure, "value": value, "unit": unit, "peer": peer, "peer_value": peer_value, "ratio": ratio}))


def emit_worst(figure, ms):
    """The figure of the slowest of cases, in milliseconds by name, and the ten worst on standard error."""
    worst = sorted(ms, key=lambda name: -ms[name])
    print(f"{figure}: {len(ms)} cases, {sum(v > LIMIT_MS for v in ms.values())} over {LIMIT_MS} ms; the worst:", file=sys.stderr)
    for name in worst[:10]:
        print(f"  {ms[name]:9.1f} ms  {name}", file=sys.stderr)
    emit(f"{figure} ({worst[0]})", ms[worst[0]], "ms", "limit", LIMIT_MS, round(LIMIT_MS / ms[worst[0]], 3))


def measure_all(c, cases, figure):
    """Each case while reports come in, then the worst of them; returns the results by name."""
    reports, results, refused = Reports(c, cases[0].w), {}, []
    try:
        for case in cases:
            try:
                results[case.name] = measure(c, case)
            except Refused as e:
                refused.append(f"{case.name}: {e}")
    finally:
        reports.stop()
    if refused:
        sys.exit("api: these are no figures:\n" + "\n".join(refused))
    emit_worst(figure, {name: r["p95_ms"] for name, r in results.items()})
    emit_worst(figure + "_alone", {name: r["alone_p95_ms"] for name, r in results.items()})
    return results


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--small", action="store_true")
    p.add_argument("--keep")
    p.add_argument("--only", default="")
    p.add_argument("--reuse", action="store_true")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    w = libapi.World(925, PER, 500) if o.small else libapi.World(9475, PER, 5000)
    cases = [case for case in libapi.cases(w) if o.only in case.name]
    if o.list or not cases:
        print("\n".join(case.name for case in cases) or f"api: no case has '{o.only}' in its name", file=sys.stderr)
        return 0 if cases else 2
    with Cluster(agents=0, keep=o.keep, master_args=["--reuse-answers", "true" if o.reuse else "false"], pg_args=["shared_buffers=5GB", "max_wal_size=4GB", "wal_level=minimal", "max_wal_senders=0"]) as c:
        c.login()
        load_rows(c, w, 100, 100000 if o.small else 1000000)
        with Queue(c, w):
            results = measure_all(c, cases, "p95_reuse" if o.reuse else "p95")
        if "get_trial" not in results:
            return 0
        nginx = Nginx(results["get_trial"]["size"])
        try:
            served = ask(c, ["/file.json"], nginx.port)
        finally:
            nginx.stop()
    per_s = results["get_trial"]["per_s"]
    emit("requests_per_s", round(per_s), "requests/s", "nginx, a file of the same size", round(served["per_s"]), round(per_s / served["per_s"], 4))
    return 0


if __name__ == "__main__":
    sys.exit(main())

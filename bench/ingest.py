#!/usr/bin/env python3
"""ingest: durable metric points per second through REST from 32 harness-like clients.

usage: bench/run ingest [--seconds N]
Each client is a trial that reports all the time and sends as trials do, with its task's token: one request under way; what
is reported meanwhile goes with the next, by the reporter's limits (harness/loop/report/bundle.h). An answered report is
committed (fsync on). points_per_s counts what charts show: a report has the averages of 10 metrics, 10 points.
batch_values_per_s: each report has besides the 10 metrics of each of 100 batches, 22 KB of JSON that is kept as it came
and that no chart shows; its 1,010 values count. The peers, in the same run and on the same rows: COPY of them, one
session, into a table of the same columns and index; pgbench inserting one row a statement, prepared, at 1, 16 and 32
clients, the best. DET_BENCH_ROUNDS (3) rounds, medians; each round on standard error.
"""
import hashlib
import hmac
import json
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from cluster import Cluster  # noqa: E402

ROUNDS = int(os.environ.get("DET_BENCH_ROUNDS", "3"))
SECONDS = float(sys.argv[sys.argv.index("--seconds") + 1]) if "--seconds" in sys.argv else 5
LOAD = os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-load")
CLIENTS, METRICS = 32, ["loss", "accuracy", "top5", "lr", "grad_norm", "throughput", "entropy", "kl", "aux_loss", "weight_norm"]
SEED = """INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, original_config, searcher_metric)
          VALUES (1, 'j', 1, 'COMPLETED', now(), 'ingest', '{}', '', 'loss');
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time)
          SELECT g, 1, 'r' || g, '1.r' || g, 'RUNNING', 1, '{}', now() FROM generate_series(1, %d) g"""


def body(trial, batches):
    point = lambda: {m: round(random.random(), 7) for m in METRICS}
    metrics = {"avgMetrics": point(), "batchMetrics": [point() for _ in range(batches)]}
    text = json.dumps({"metrics": {"trialId": trial, "trialRunId": 1, "stepsCompleted": 77777777, "metrics": metrics}, "group": "training"})
    return text.replace("77777777", "@@@@@@@@")


def timed_sql(c, *commands):
    begin = time.monotonic()
    for command in commands:
        c.sql(command)
    return time.monotonic() - begin


def copy_rate(c, first):
    """Rows per second of COPY of the rows that the trials from `first` on reported."""
    where = f"trial_id >= {first} AND trial_id < {first + CLIENTS}"
    path = c.path("pg-data", "rows.copy")
    columns = "trial_id, grp, steps, run_id, archived, id, end_time, metrics, batch_metrics"
    c.sql(f"DROP TABLE IF EXISTS copied; CREATE TABLE copied (LIKE metrics INCLUDING ALL); CHECKPOINT")
    c.sql(f"COPY (SELECT {columns} FROM metrics WHERE {where}) TO '{path}'")
    seconds = timed_sql(c, f"COPY copied ({columns}) FROM '{path}'")
    os.unlink(path)
    return int(c.sql("SELECT count(*) FROM copied")) / seconds


def pgbench_rate(c, clients, text):
    metrics = json.loads(text.replace("@@@@@@@@", "1"))["metrics"]["metrics"]
    quote = lambda v: json.dumps(v).replace("'", "''")
    batches = "'" + quote(metrics["batchMetrics"]) + "'" if metrics["batchMetrics"] else "NULL"
    script = c.path("insert.sql")
    with open(script, "w") as f:
        f.write("INSERT INTO copied (trial_id, grp, steps, run_id, end_time, metrics, batch_metrics) VALUES (:client_id, 'training', "
                f"nextval('bench_steps')::integer, 1, now(), '{quote({'avg_metrics': metrics['avgMetrics']})}', {batches});\n")
    c.sql("TRUNCATE copied; CREATE SEQUENCE IF NOT EXISTS bench_steps; CHECKPOINT")
    r = subprocess.run(["pgbench", "-h", c.path("pg-socket"), "-U", "det", "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(int(SECONDS)),
                        "-f", script, "det"], text=True, capture_output=True)
    assert r.returncode == 0, r.stderr[-1000:]
    return next(float(line.split()[2]) for line in r.stdout.splitlines() if line.startswith("tps = "))


def cpu_seconds(pid):
    """CPU time of a process and of its children, ended ones too."""
    ticks = 0
    for p in [pid] + [int(x) for x in open(f"/proc/{pid}/task/{pid}/children").read().split()]:
        try:
            fields = open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            continue  # ended meanwhile: its time is its parent's
        ticks += sum(int(x) for x in fields[11:15 if p == pid else 13])
    return ticks / os.sysconf("SC_CLK_TCK")


def task_token(c, trial):
    """What the trial's task shows, made with the key that the master signs it with."""
    key, epoch, nonce = c.sql("SELECT token_key, l.epoch, l.nonce FROM cluster, lives l ORDER BY l.epoch DESC LIMIT 1").split("|")
    claim = f"A2:{epoch}:{nonce[:8]}:0:1:{trial}:1:1:1.r{trial}.1:1.r{trial}"
    return claim + ":" + hmac.new(key.encode(), claim.encode(), hashlib.sha256).hexdigest()


def rest_rate(c, first, bodies):
    lines = c.path("load.txt")
    with open(lines, "w") as f:
        for i, text in enumerate(bodies):
            path = c.path(f"body-{i}")
            with open(path, "w") as b:
                b.write(text.replace('"trialId": 0', f'"trialId": {first + i}'))
            f.write(f"REPORTS /api/v1/trials/{first + i}/metrics {path} {task_token(c, first + i)}\n")
    c.sql("CHECKPOINT")
    before = [cpu_seconds(c.pid(n)) for n in ("master", "pg")]
    r = subprocess.run([LOAD, str(c.port), str(SECONDS), str(CLIENTS), lines], input=c.token, text=True, capture_output=True, check=True)
    sys.stderr.write(r.stderr)
    r = json.loads(r.stdout)
    used = [cpu_seconds(c.pid(n)) - b for n, b in zip(("master", "pg"), before)]
    r["cpu"] = " ".join(f"{n} {1e6 * u / r['reports']:.0f}" for n, u in zip(("master", "PostgreSQL"), used)) + " us of CPU a report"
    kept = int(c.sql(f"SELECT count(*) FROM metrics WHERE trial_id >= {first} AND trial_id < {first + CLIENTS}"))
    assert r["errors"] == 0 and kept == r["reports"], (r, kept)
    return r


def main():
    rates = {}
    with Cluster(agents=0) as c:
        c.login()
        c.sql(SEED % (CLIENTS * 2 * ROUNDS + 1))
        trial = 1
        for i in range(ROUNDS):
            for kind, batches in (("points_per_s", 0), ("batch_values_per_s", 100)):
                points = len(METRICS) * (batches + 1)
                bodies = [body(0, batches) for _ in range(CLIENTS)]
                load = rest_rate(c, trial, bodies)
                copy = copy_rate(c, trial)
                best = max(pgbench_rate(c, n, bodies[0]) for n in (1, 16, 32))
                trial += CLIENTS
                row = [load["reports"] / load["seconds"] * points, copy * points, best * points]
                print(f"round {i + 1} {kind}: REST {row[0]:.0f} ({load['reports'] / load['requests']:.1f} reports a request, p95 {load['p95_ms']:.1f} ms, {load['cpu']})  COPY {row[1]:.0f}  pgbench {row[2]:.0f}", file=sys.stderr)
                rates.setdefault(kind, []).append(row)
    for kind, rows in rates.items():
        ours, copy, best = (statistics.median(x) for x in zip(*rows))
        for peer, value in (("COPY of the same rows", copy), ("pgbench insert", best)):
            print(json.dumps({"bench": "ingest", "figure": kind, "value": round(ours), "unit": "points/s" if kind == "points_per_s" else "values/s", "peer": peer, "peer_value": round(value),
                              "ratio": round(ours / value, 3)}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""web: what a person waits for on the page, in a headless Chromium (web/test/bench.mjs), from clusters of its own.

usage: bench/run web [list|curves|logs|heap|pages...]
Needs node, a Chromium and `npm ci --ignore-scripts` in web/, which is done where it was not. list: 100,000 experiments, from
the first statements of bench/api_rows.sql; curves: 100 trials of 1,000 reports; logs: a trial of DET_BENCH_LOG_LINES
(10,000,000) lines; heap: a trial that reports while the page looks, an hour of its looks as fast as they go; pages: what one
open page of a running experiment asks, as a hundred ask it, beside 200 requests a second of others (bench-load).
"""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
sys.path.insert(0, HERE)
from api import CONFIG, model_def  # noqa: E402
from cluster import TOP, Cluster  # noqa: E402
from ingest import cpu_seconds  # noqa: E402

LOAD = os.path.join(os.environ.get("DET_BUILD", "build"), "bench", "bench-load")
LINES = int(os.environ.get("DET_BENCH_LOG_LINES", "10000000"))
SECONDS, CLIENTS, PER_S = 10, 8, 200
LIVE = "name: live\nsearcher: {name: single, metric: loss, max_length: 100000000}\n"


def load(c, upto=None, **sizes):
    """The rows of api_rows.sql, up to a statement."""
    with open(os.path.join(HERE, "api_rows.sql")) as f:
        rows = f.read().split(upto)[0] if upto else f.read()
    given = [x for k, v in {**sizes, "config": CONFIG, "model_def": model_def()}.items() for x in ("-v", f"{k}={v}")]
    subprocess.run(["psql", "-1qAtX", "-v", "ON_ERROR_STOP=1", "-h", c.path("pg-socket"), "-U", "det", "-d", "det", *given],
                   input=rows + "\nANALYZE;\n", text=True, check=True, stdout=subprocess.DEVNULL)


def begin(c, *args, **more):
    env = {**os.environ, "DET_TEST_URL": f"http://127.0.0.1:{c.port}", "DET_TEST_TOKEN": c.token,
           "DET_TEST_PASSWORD": open(c.path("admin.password")).read().strip(), "TMPDIR": c.path("tmp"), "HOME": c.path("tmp")}
    return subprocess.Popen(["node", os.path.join(TOP, "web/test/bench.mjs"), *args], env=env, **more)


def node(c, *args):
    p = begin(c, *args)
    if p.wait():
        sys.exit(f"web: {args[0]} ended with {p.returncode}")


def list_of_experiments(c):
    load(c, "CREATE TEMP TABLE made", experiments=100000, per=1)
    node(c, "list")


def curves(c):
    load(c, experiments=1, per=1, big=100, rows=1000, long=1000)
    node(c, "curves", "1")


def logs(c):
    load(c, experiments=1, per=1, big=1, rows=16, long=160)
    t0 = time.monotonic()
    c.sql("DELETE FROM task_logs")
    c.sql(f"""INSERT INTO task_logs (task_id, allocation_id, agent_id, container_id, rank_id, level, stdtype, source, time, log, log_offset)
        SELECT '1.r1', '1.r1.9', 'agent-0', 'container-1', l % 4, 1 + l % 5, 'stdout', 'trial', timestamptz '2026-02-01' + l * interval '10 ms',
               'batch ' || l || E': loss 0.5\\n', l FROM generate_series(1, {LINES}) l""")
    c.sql("VACUUM ANALYZE task_logs")
    print(f"{LINES} lines were made in {time.monotonic() - t0:.0f} s", file=sys.stderr)
    node(c, "logs", "1")


def heap(c):
    node(c, "heap")


def others(c):
    """p95 in ms of others' requests, and what of one core the master takes meanwhile."""
    lines = c.path("requests.txt")
    with open(lines, "w") as f:
        f.writelines(f"GET /api/v1/{p}\n" for p in ("me", "experiments?limit=10") * CLIENTS)
    cpu = cpu_seconds(c.pid("master"))
    r = subprocess.run([LOAD, str(c.port), str(SECONDS), str(CLIENTS), lines, str(PER_S)], input=c.token, text=True, capture_output=True, check=True)
    return json.loads(r.stdout)["p95_ms"], (cpu_seconds(c.pid("master")) - cpu) / SECONDS


def emit(figure, value, unit):
    print(json.dumps({"bench": "web", "figure": figure, "value": round(value, 3), "unit": unit, "peer": None, "peer_value": None, "ratio": None}), flush=True)


def pages(c):
    e = c.api("POST", "/experiments", {"config": LIVE, "unmanaged": True})["experiment"]["id"]
    t = c.api("POST", "/trials", {"experimentId": e, "hparams": {}, "unmanaged": True})["trial"]["id"]
    run = c.api("POST", f"/trials/{t}/start", {"trialId": t})["trialRunId"]
    for n in range(1000):
        c.api("POST", f"/trials/{t}/metrics", {"metrics": {"trialId": t, "trialRunId": run, "stepsCompleted": n + 1,
                                                           "metrics": {"avgMetrics": {"loss": 1 / (n + 1)}}}, "group": "training"})
    p = begin(c, "record", str(e), stdout=subprocess.PIPE, text=True)
    asked = p.communicate()[0]
    if p.returncode:
        sys.exit("web: record failed")
    with open(c.path("asked.json"), "w") as f:
        f.write(asked)
    alone, cpu_alone = others(c)
    p = begin(c, "replay", c.path("asked.json"), preexec_fn=lambda: os.nice(19))
    try:
        time.sleep(SECONDS)  # each page has come by then
        under, cpu = others(c)
    finally:
        p.kill()
        p.wait()
    print(f"others' p95 {alone:.2f} ms alone, {under:.2f} beside the pages", file=sys.stderr)
    emit("pages_100_of_a_core", cpu - cpu_alone, "")
    emit("pages_100_p95_ratio", under / alone, "")


PARTS = {"list": list_of_experiments, "curves": curves, "logs": logs, "heap": heap, "pages": pages}


def main():
    names = sys.argv[1:] or list(PARTS)
    unknown = [n for n in names if n not in PARTS]
    if unknown:
        sys.exit(f"web: no part '{unknown[0]}'; there are: {', '.join(PARTS)}")
    if not os.path.isdir(os.path.join(TOP, "web/node_modules")):
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=os.path.join(TOP, "web"), check=True, stdout=sys.stderr)
    for name in names:
        with Cluster(agents=0, master_args=["--web-dir", os.path.join(TOP, "web/dist")]) as c:
            c.login()
            PARTS[name](c)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Benchmarks: `api` knows every reading route and parameter of the contract; each bench says which packages it needs, and
does not begin without them."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile

TOP = sys.argv[1]
sys.path.insert(0, os.path.join(TOP, "bench"))
import libapi  # noqa: E402


def refuses(doc, what):
    try:
        libapi.cases(WORLD, doc)
    except KeyError as e:
        assert what in str(e), e
        return
    raise AssertionError(f"{what} is new, and bench/libapi.py did not notice")


WORLD = libapi.World(20, 10, 100)


def contract():
    doc = libapi.contract()
    cases = libapi.cases(WORLD, doc)
    names = [c.name for c in cases]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    reading = {m["get"]["operationId"] for m in doc["paths"].values() if "get" in m}
    assert {c.op for c in cases} == reading - set(libapi.LEFT_OUT)
    assert set(libapi.LEFT_OUT) <= reading, set(libapi.LEFT_OUT) - reading
    for c in cases:
        assert "{" not in c.make(), c.make()
    for op, value in (("get_experiments", "SORT_BY_NUM_TRIALS"), ("get_experiment_trials", "SORT_BY_DURATION"),
                      ("get_experiments", "STATE_ERROR"), ("get_experiment_checkpoints", "SORT_BY_SEARCHER_METRIC")):
        assert any(c.op == op and value in c.make() for c in cases), (op, value)
    assert any(c.make() == f"/api/v1/experiments/{WORLD.big_experiment}/validation-history" for c in cases)


def new_ones():
    doc = libapi.contract()
    doc["paths"]["/api/v1/experiments"]["get"]["parameters"].append({"name": "color", "in": "query", "schema": {"type": "string"}})
    refuses(doc, "color")
    doc = libapi.contract()
    doc["paths"]["/api/v1/things/{thingId}"] = {"get": {"operationId": "get_thing", "parameters": [{"name": "thingId", "in": "path"}]}}
    refuses(doc, "thingId")


def bench_run(path, *args):
    return subprocess.run([os.path.join(TOP, "bench", "run"), *args], text=True, capture_output=True, env=dict(os.environ, PATH=path))


def packages():
    for name in bench_run(os.environ["PATH"], "--list").stdout.split():
        with open(os.path.join(TOP, "bench", "packages")) as f:
            assert any(line.startswith(name + ":") for line in f), f"bench/packages: no line for {name}"
    with tempfile.TemporaryDirectory() as d:  # a host without the package, and without apt's archives
        for tool in ("dpkg-query", "apt-get", "sudo"):
            with open(os.path.join(d, tool), "w") as f:
                f.write("#!/bin/sh\nexit 1\n")
            os.chmod(os.path.join(d, tool), 0o755)
        r = bench_run(d + ":" + os.environ["PATH"], "api", "--list")
        assert r.returncode == 1 and "nginx-light" in r.stderr and "does not begin" in r.stderr, (r.returncode, r.stderr)
        assert "get_experiments" not in r.stderr, "it began"


def ratios():
    loader = importlib.machinery.SourceFileLoader("bench_run", os.path.join(TOP, "bench", "run"))
    run = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(run)
    row = lambda unit, value, peer, ratio: {"unit": unit, "value": value, "peer_value": peer, "ratio": ratio}
    assert run.turned_around(row("ms", 5.0, 10.0, 0.5)) and not run.turned_around(row("ms", 5.0, 10.0, 2.0))
    assert run.turned_around(row("images/s", 5.0, 10.0, 2.0)) and not run.turned_around(row("images/s", 5.0, 10.0, 0.5))
    assert not run.turned_around(row("ms", 5.0, None, None)) and not run.turned_around(row("ms", 10.0, 10.1, 0.98))


contract()
new_ones()
packages()
ratios()

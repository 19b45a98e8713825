#!/usr/bin/env python3
"""quickstart: deploy/quickstart from a state directory that is built but holds no cluster, packages present.

`total_s`: until it ends, with the table of its trials. `first_curve_s`: until a curve is on the screen of somebody who
watches its experiment (`det experiment watch` on a terminal, begun as soon as the experiment is there). Medians of
DET_BENCH_ROUNDS (5) after one that builds and does not count."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from libscreen import Screen  # noqa: E402

TOP = os.path.join(HERE, "..")
state = tempfile.mkdtemp(prefix="det-quickstart-")
os.chmod(state, 0o755)
keep = state + ".build"  # down removes the state directory with all that is in it
run = [os.path.join(TOP, "deploy", "quickstart")]
times, curves = [], []


def said(name):
    path = os.path.join(state, name)
    return open(path).read().strip() if os.path.exists(path) else ""


def watch(t0, failed):
    """Until a curve is drawn: in dots of braille, of which U+2800 has none."""
    while not said("experiment"):
        if failed.wait(0.01):
            return
    env = {**os.environ, "DET_MASTER": "http://127.0.0.1:" + said("master.port"), "DET_USER": "admin", "XDG_CONFIG_HOME": os.path.join(state, "config"),
           "DET_PASS_FILE": os.path.join(state, "admin.password")}
    screen = Screen([os.path.join(state, "prefix/bin/det"), "experiment", "watch", said("experiment")], env)
    screen.wait_for(lambda seen: any("\u2800" < ch <= "\u28ff" for ch in seen), "a curve")
    curves.append(time.monotonic() - t0)
    screen.close()


def up(t0):
    failed = threading.Event()
    watcher = threading.Thread(target=watch, args=(t0, failed))
    watcher.start()
    try:
        subprocess.run([*run, "up", "--state", state], check=True, stdout=sys.stderr)
    finally:
        failed.set()
    times.append(time.monotonic() - t0)
    watcher.join()


try:
    for n in range(int(os.environ.get("DET_BENCH_ROUNDS", "5")) + 1):  # the first one builds
        up(time.monotonic())
        print(f"round {n}: {times[-1]:.1f} s, the first curve after {curves[-1]:.1f} s" + ("" if n else " (builds)"), file=sys.stderr)
        os.rename(os.path.join(state, "build"), keep)
        subprocess.run([*run, "down", "--state", state], check=True, stdout=sys.stderr)
        os.makedirs(state, exist_ok=True)
        os.chmod(state, 0o755)
        os.rename(keep, os.path.join(state, "build"))
finally:
    subprocess.run([*run, "down", "--state", state], stdout=sys.stderr)
    shutil.rmtree(state, ignore_errors=True)
    shutil.rmtree(keep, ignore_errors=True)
for figure, took in (("total_s", times), ("first_curve_s", curves)):
    value = round(sorted(took[1:])[len(took[1:]) // 2], 1)
    print(json.dumps({"bench": "quickstart", "figure": figure, "value": value, "unit": "s", "peer": None, "peer_value": None, "ratio": None}))

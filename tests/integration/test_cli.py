#!/usr/bin/env python3
"""det as a person types it: results, exit codes, and what it says about mistakes."""
import csv
import fcntl
import glob
import json
import os
import pty
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import BIN, SLOWER, TOP, Cluster, wait_until  # noqa: E402

DIGITS = os.path.join(TOP, "examples/digits")
CONST = os.path.join(DIGITS, "const.yaml")


def says(r, code, *words):
    assert r.returncode == code, (r.returncode, r.stdout, r.stderr)
    for w in words:
        assert w in r.stdout + r.stderr, f"{w!r} is not in {r.stdout}{r.stderr}"


def python_with_the_package(det):
    """det python: the first python3 that has torch, and `determined` in it; what follows is Python's, not det's."""
    text = "import determined, sys; print(determined.__version__, sys.argv, sys.executable)"
    says(det("python", "-c", text, "--folow"), 0, "0.27.0 ['-c', '--folow']")
    says(det("python", "-c", text, DET_PYTHON_EXECUTABLE="/usr/bin/python3"), 0, "/usr/bin/python3")
    says(det("python", "-c", text, DET_PYTHON_EXECUTABLE="/nonexistent/python3"), 1, "det: /nonexistent/python3: ")
    with tempfile.TemporaryDirectory() as top:
        with open(top + "/python3", "w") as f:
            f.write("#!/bin/sh\nexit 3\n")
        os.chmod(top + "/python3", 0o755)
        torch = subprocess.run(["/usr/bin/python3", "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]).returncode == 0
        says(det("python", "-c", text, PATH=f"{top}:/usr/bin:/bin"), *((0, "/usr/bin/python3") if torch else (3,)))


def test_usage():
    def det(*args, typed=None, stdin=None, **env):
        return subprocess.run([BIN + "/det", *args], text=True, capture_output=True,
                              **({"stdin": stdin} if stdin else {"input": typed}),
                              env={**os.environ, "DET_MASTER": "http://127.0.0.1:9", "DET_PASS": "x", **env})
    python_with_the_package(det)
    says(det(), 2, "experiment", "usage")
    says(det("--help"), 0, "experiment", "checkpoint")
    says(det("--version"), 0, "0.27")
    says(det("version"), 0, "client:\n  version: 0.27.0\nmaster:\n  cluster_id: \"\"\n", "http://127.0.0.1:9")
    says(det("version", "--help"), 0, "usage: det version")
    says(det("version", "of", "det"), 2, "det version takes no arguments")
    says(det("experment", "list"), 2, "did you mean 'experiment'")
    says(det("modle", "list"), 2, "did you mean 'model'")
    says(det("e", "watch", "1", "--csv"), 2, "--csv: watch prints no table")
    says(det("t", "logs", "1", "--level", "LOUD"), 2, "--level LOUD: expected TRACE, DEBUG, INFO")
    says(det("e", "list", "--json", "--csv"), 2, "--json and --csv: give one of them")
    says(det("t", "plot", "1", "--png", "/tmp"), 2, "--png /tmp is a directory: name a file in it")
    says(det("experiment", "lst"), 2, "did you mean 'list'")
    says(det("experiment"), 2, "create", "pause")
    says(det("e", "describe"), 2, "usage is  det experiment describe ID")
    says(det("e", "describe", "one"), 2, "number")
    says(det("e", "fork", "1"), 2, "searcher.source_trial_id=TRIAL")
    says(det("e", "create", "--folow", "x"), 2, "--folow", "--follow")
    says(det("e", "create", "/nonexistent.yaml"), 1, "/nonexistent.yaml")
    for words in (("master", "logs", "--tail", "-1"), ("t", "logs", "1", "--head=0"), ("e", "lc", "1", "--best", "-2")):
        says(det(*words), 2, "expected 1 or more")
    says(det("w", "create", b"caf\xe9"), 2, "argument 3 is not UTF-8")
    says(det("e", "create", CONST, "--project_id", "1O"), 2, "--project_id")
    says(det("e", "create", "-", typed="# long\n" * 700_000), 1, "4194304")
    says(det("e", "create", CONST), 1, "entrypoint model_def:DigitsTrial: no directory with the module model_def was given", "CONFIG DIR")
    ours, theirs = socket.socketpair()  # what cannot be opened again, like another user's pipe
    with ours, theirs:
        ours.sendall(b"name: x\n")
        ours.shutdown(socket.SHUT_WR)
        says(det("e", "create", "-", stdin=theirs), 1, "127.0.0.1:9")  # read, and on to the login
    says(det("e", "list"), 1, "127.0.0.1:9")


def download_elsewhere(c, uuid):
    """On a host that has no such store: through the master, where nobody says --mode direct."""
    def files(where):
        return {f: open(os.path.join(d, f), "rb").read() for d, _, names in os.walk(where) for f in names}

    away = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {c.path("checkpoints")} && exec "$@"', "sh") if os.geteuid() == 0 else ()
    whole = files(c.path("checkpoints", uuid))
    for n, (mode, within) in enumerate(((("--mode", "master"), ()), ((), away), (("--mode", "master"), away))):
        out = c.path(f"elsewhere-{n}")
        says(c.det("checkpoint", "download", uuid, "-o", out, *mode, within=within), 0, out)
        assert files(out) == whole and "state_dict.pth" in whole
    if away:
        refused = c.det("checkpoint", "download", uuid, "-o", c.path("none"), "--mode", "direct", check=False, within=away)
        says(refused, 1, uuid, c.path("checkpoints"), "this host cannot read")
    says(c.det("checkpoint", "download", uuid, "--mode", "both", check=False), 2, "--mode both: say auto, direct or master")


def download_by_meaning(c):
    """The best, the latest, of a trial or an experiment: nobody types a UUID."""
    for words in (("t", "download", "1", "--best"), ("t", "download", "1", "--latest"), ("e", "download", "1"),
                  ("t", "download", "1", "--best", "--sort-by", "accuracy", "--smaller-is-better", "false")):
        out = c.path("by-meaning", words[-1])
        at = c.det(*words, "-o", out).stdout.strip()
        assert at == out or os.path.dirname(at) == out, (words, at)
        about = json.load(open(at + "/metadata.json"))
        assert about["steps_completed"] == 60 and about["hparams"]["global_batch_size"], about
    metric = c.experiment(1)["config"]["searcher"]["metric"]
    c.sql(f"UPDATE trials SET best_validation = jsonb_set(jsonb_set(best_validation, '{{totalBatches}}', '47'), '{{metrics,avgMetrics,{metric}}}', '0.9999') WHERE id = 1")
    told = c.det("t", "download", "1", "--best", "-o", c.path("by-meaning", "told"))
    assert f"no checkpoint ({metric} 0.9999 at batch 47)" in told.stderr and "at batch 60)" in told.stderr, told
    says(c.det("t", "download", "1", check=False), 2, "--best, --latest or --uuid")
    says(c.det("t", "download", "1", "--best", "--sort-by", "accuracy", check=False), 2, "--smaller-is-better true|false")
    says(c.det("e", "download", "1", "--sort-by", "nosuch", "--smaller-is-better", "true", check=False), 1, "validation metric nosuch")
    says(c.det("t", "download", "1", "--uuid", "no such?", check=False), 1, '"no such?" is not a UUID')


def profiled(c):
    """Where the time of trial 1's 60 batches went."""
    says(c.det("t", "profile", "1"), 0, "batches 0 to 59", "records/s in the median batch", "of 60 batches waited", "\ntrain_batch ", "\n  train_batch.backward ",
         "\nvalidate ", "cpu_util_simple")
    rows = list(csv.DictReader(c.det("t", "profile", "1", "--csv").stdout.splitlines()))
    assert [r["TIMES"] for r in rows if r["NAME"] in ("dataloader_next", "samples_per_second")] == ["60"] * 2, rows
    of = {s["name"]: s for s in json.loads(c.det("t", "profile", "1", "--json").stdout)["series"]}
    assert of["train_batch.backward"]["within"] == "train_batch" and 0 < of["train_batch"]["share"] <= 1, of
    says(c.det("t", "profile", "77", check=False), 1, "trial 77 not found")


def test_commands():
    with Cluster(agents=1, slots=2) as c:
        c.det("user", "whoami")
        says(c.det("master", "info"), 0, "version")
        versions = c.det("version").stdout
        assert versions.startswith("client:\n  version: 0.27.0\nmaster:\n  version: 0.27.0\n") and f"  cluster_id: {c.api('GET', '/master')['clusterId']}\n" in versions, versions
        assert json.loads(c.det("version", "--json").stdout)["master_address"] == f"http://127.0.0.1:{c.port}" == versions.split()[-1]
        says(c.det("agent", "list"), 0, "agent-0")
        says(c.det("slot", "list"), 0, "agent-0", "free")
        says(c.det("slot", "disable", "agent-0", "1", "--drain"), 0, "is draining")
        shown = c.det("slot", "list").stdout.splitlines()
        assert len(shown) > 2 and not any("no" in line.split() for line in shown), shown  # no container of its own: disabled once it has none
        says(c.det("slot", "enable", "agent-0", "1"), 0, "enabled")
        says(c.det("slot", "disable", "agent-0", "7", check=False), 1, "no slot 7")
        says(c.det("agent", "disable", check=False), 2, "--all")
        says(c.det("agent", "disable", "--all"), 0, "agent-0 disabled")
        says(c.det("agent", "enable", "--all"), 0, "agent-0 enabled")
        says(c.det("e", "replay", "77", check=False), 1, "experiment 77 not found; det experiment list --all shows all")
        says(c.det("e", "download-model-def", "77", check=False), 1, "experiment 77 not found; det experiment list --all shows all")
        small = ["--config", "searcher.max_length={batches: 60}", "--config", "scheduling_unit=20", "--config", "resources.shm_size=4g",
                 "--config", "profiling.enabled=true"]
        r = c.det("e", "create", CONST, DIGITS, *small, "-f")
        says(r, 0, "Created experiment 1", "warning: resources.shm_size: has no effect: ")
        says(c.det("e", "list"), 0, "COMPLETED")
        says(c.det("e", "describe", "1"), 0, "COMPLETED", "learning_rate")
        assert [e["id"] for e in json.loads(c.det("--json", "e", "describe", "1,1").stdout)] == [1, 1]
        says(c.det("e", "describe", "1,x", check=False), 2, "number such as 1, not 'x'")
        listed = json.loads(c.det("e", "list", "--json").stdout)
        assert [e["id"] for e in listed] == [1]
        says(c.det("e", "wait", "1"), 0)
        says(c.det("e", "list-trials", "1"), 0, "COMPLETED", "* best")
        assert c.det("e", "lt", "1", "--columns", "trial,hparams,accuracy", "--csv").stdout.startswith("TRIAL,HYPERPARAMETERS,accuracy\n1,\"{\"\"")
        says(c.det("e", "lt", "1", "--columns", "lerning_rate", check=False), 2, "'lerning_rate'", "best-at")
        for words in (("e", "describe", "1", "--metrics"), ("t", "describe", "1", "--metrics")):
            says(c.det(*words), 0, "REPORTS", "training", "validation", "accuracy")
        says(c.det("t", "describe", "1", "--limit", "1"), 0, "more reports follow: --offset 1")
        cps = json.loads(c.det("e", "list-checkpoints", "1", "--json").stdout)
        uuid = cps[0]["uuid"]
        says(c.det("e", "lc", "1", "--best", "1"), 0, c.path("checkpoints", ""))
        c.api("POST", f"/checkpoints/{uuid}/metadata", {"checkpoint": {"uuid": uuid, "metadata": {**cps[0]["metadata"], "by": {"whom": "me"}}}})
        says(c.det("checkpoint", "describe", uuid), 0, "state_dict.pth", "learning_rate=", "by.whom=me", "HASH", "xxh128:")
        hashes = json.loads(c.det("checkpoint", "describe", uuid, "--json").stdout)["hashes"]
        stored = json.load(open(c.path("checkpoints", uuid, "metadata.json")))["xxh128"]
        assert hashes == {path: "xxh128:" + digits for path, digits in stored.items()} and "state_dict.pth" in hashes, hashes
        for out in (c.path("download"), tempfile.mkdtemp(dir="/dev/shm")):  # another file system
            c.det("checkpoint", "download", uuid, "-o", out)
            assert open(out + "/state_dict.pth", "rb").read(2) == b"PK"
        shutil.rmtree(out)
        download_elsewhere(c, uuid)
        download_by_meaning(c)
        events = c.det("tensorboard", "start", "1").stdout.split()[-1]
        assert glob.glob(events + "/trial/1/*tfevents*"), events
        says(c.det("tensorboard", "start", "-t", "1"), 0, "trial 1  " + events + "/trial/1", "tensorboard --logdir " + events)
        says(c.det("tensorboard", "start", check=False), 2, "--trial-ids")
        says(c.det("tensorboard", "list", check=False), 2, "det tensorboard start")
        for words in (("agent", "enable", "no such?"), ("slot", "enable", "no such?", "1")):
            says(c.det(*words, check=False), 1, '"no such?" not found')
        says(c.det("checkpoint", "describe", "no such?", check=False), 1, '"no such?" is not a UUID')
        c.logs(1)  # it is whole from here on
        log = c.det("e", "logs", "1").stdout.splitlines()
        assert any(" Queued: " in line for line in log), log
        queued = c.det("e", "logs", "1", "--search-text", "Queued: 1[.]", "--regex", "--source", "master").stdout.splitlines()
        assert len(queued) == 1 and not c.det("e", "logs", "1", "--search-text", "Queued: 1[.]").stdout
        assert any(line.endswith("Trial 1 ended: it trained the 60 batches that its search gives every trial.") for line in log), log
        assert "it trained the 60 batches that its search gives every trial" in c.det("why", "trial:1").stdout
        at = log[0][1:].split("]")[0]
        both = [c.det("t", "logs", "1", which, at).stdout.splitlines() for which in ("--timestamp-before", "--timestamp-after")]
        assert sorted(both[0] + both[1]) == sorted(log) and both[0] and both[1]
        assert not c.det("t", "logs", "1", "--agent-id", "agent-9").stdout
        above = [c.det("t", "logs", "1", "--level", level).stdout.splitlines() for level in ("DEBUG", "info", "WARNING")]
        assert above[0] == above[1] and any(" Queued: " in line for line in above[0]) and not any(" INFO: " in line for line in above[2]), above
        says(c.det("t", "logs", "1", "--timestamp-after", "yesterday", check=False), 1, "yesterday")
        says(c.det("t", "describe", "1"), 0, "validation", "checkpoint")
        says(c.det("t", "plot", "1", "--metric", "loss", "--height", "4"), 0, "loss of trial 1, training", "|", "*")
        says(c.det("t", "plot", "1", "--metric", "loss", "--log"), 0, " batches ")
        says(c.det("t", "plot", "1", "--svg", c.path("curve.svg"), "--png", c.path("curve.png")), 0)
        assert open(c.path("curve.svg")).read().endswith("</svg>\n") and open(c.path("curve.png"), "rb").read(8) == b"\x89PNG\r\n\x1a\n"
        says(c.det("t", "plot", "1", "--metric", "no such", check=False), 1, "'no such'", "--metrics")
        says(c.det("t", "plot", "1", "--group", "zip", check=False), 1, "no report of these trials in group zip has")
        says(c.det("t", "plot", "1", "77", "78", check=False), 1, "trialIds: trials 77, 78 not found")
        rows = list(csv.DictReader(c.det("t", "plot", "1", "--metric", "loss", "--csv").stdout.splitlines()))
        points = json.loads(c.det("t", "plot", "1", "--metric", "loss", "--json").stdout)
        assert [[float(r["BATCHES"]), float(r["VALUE"])] for r in rows] == points[0]["points"] and points[0]["group"] == rows[0]["GROUP"] == "training", (rows, points)
        assert c.det("t", "describe", "1", "--csv").stdout.startswith("BATCHES,") and c.det("e", "describe", "1", "--csv").stdout.startswith("TRIAL,")
        assert "it trained as far as it was asked to" in c.det("t", "timeline", "1").stdout.splitlines()[-1]
        profiled(c)
        says(c.det("e", "create", CONST, DIGITS, "--paused"), 0, "Created experiment 2")
        says(c.det("tensorboard", "start", "2"), 0, "(not there: nothing was written for TensorBoard)", "There is nothing to show (yet)")
        says(c.det("tensorboard", "start", "1", "2"), 0, "nothing was written", "tensorboard --logdir_spec experiment1:")
        says(c.det("e", "wait", "2", check=False), 1, "paused")
        says(c.det("e", "wait", "1", "--polling-interval", "3600"), 0)  # seconds, of which none is waited for what has ended
        for interval in ("0", "0.5", "soon"):
            says(c.det("e", "wait", "1", "--polling-interval", interval, check=False), 2, "--polling-interval")
        says(c.det("e", "activate", "2"), 0)
        wait_until(lambda: c.trials(2) and c.trials(2)[0]["totalBatchesProcessed"] > 0 or c.experiment(2)["state"] == "STATE_COMPLETED", 60, "batches")
        says(c.det("e", "kill", "2"), 0)
        says(c.det("e", "kill", "77", check=False), 1, "77", "not found")
        wait_until(lambda: c.experiment(2)["state"] in ("STATE_CANCELED", "STATE_COMPLETED"), 30, "the end")
        says(c.det("e", "kill", "1", "2"), 0, "experiment 1 has ended before: COMPLETED", "experiment 2 has ended before: C")
        says(c.det("e", "cancel", "1"), 0, "has ended before: COMPLETED")
        says(c.det("t", "kill", "1"), 0, "trial 1 has ended before: COMPLETED")
        says(c.det("e", "archive", "2"), 0)
        assert "2" not in [line.split()[0] for line in c.det("e", "list").stdout.splitlines()[1:]]
        says(c.det("e", "create", CONST, DIGITS, "--config", "searcher.name=nosuch", check=False), 1, "searcher.name")
        says(c.det("e", "list", check=False, env={"DET_PASS_FILE": "", "DET_PASS": "wrong", "XDG_CONFIG_HOME": c.path("other")}), 1, "admin")
        says(c.det("job", "list"), 0)
        says(c.det("rp", "list"), 0, "default", "FAIR_SHARE", "BEST")
        task = c.trials(1)[0]["taskId"]
        assert c.det("task", "logs", task).stdout == c.det("t", "logs", "1").stdout
        for which in ([], ["--tail", "2"]):
            text, found = c.det("t", "logs", "1", "--json", *which).stdout, []
            while text.strip():  # an object for each entry
                entry, end = json.JSONDecoder().raw_decode(text)
                found, text = found + [entry], text[end:].lstrip()
            assert "".join(e["message"] for e in found) == c.det("t", "logs", "1", *which).stdout and all("timestamp" in e for e in found), found
        says(c.det("task", "logs", "nosuch", check=False), 1, "nosuch not found")
        says(c.det("e", "create", CONST, DIGITS, "--config", "resources.slots_per_trial=2", "--paused"), 0, "Created experiment 3")
        c.det("slot", "disable", "agent-0", "1")
        c.det("e", "activate", "3")
        says(c.det("task", "list"), 0, "ALLOCATION", c.trials(3)[0]["taskId"])
        says(c.det("t", "stacks", str(c.trials(3)[0]["id"]), check=False), 1, "does not run now: det why trial:")
        c.det("e", "kill", "3")
        says(c.det("t", "profile", str(c.trials(3)[0]["id"]), check=False), 1, "profiling is off", "--config profiling.enabled=true")
        says(c.det("e", "create", CONST, DIGITS, "--config", "searcher.max_length={batches: 100000000}", "--config", "profiling={enabled: true, end_after_batch: 9}"),
             0, "Created experiment 4")
        trial = wait_until(lambda: [t["id"] for t in c.trials(4) if c.metrics(t["id"])], 60, "a trial that trains")[0]
        says(c.det("t", "stacks", str(trial)), 0, "the stacks of process")
        early = c.det("t", "profile", str(trial), check=False)
        assert "not profiled" not in early.stdout + early.stderr, early
        assert "the first measurements come " in early.stdout + early.stderr or "measured so far" in early.stdout, early
        wait_until(lambda: "measured so far, batches 0 to 9\n" in c.det("t", "profile", str(trial), check=False).stdout, 60, "its measurements")
        c.det("e", "kill", "4")
        says(c.det("t", "stacks", str(trial), check=False), 1)


def on_terminal(c, *words, seen=None, then=None, typed=None, columns=100):
    """What det writes to a terminal of so many columns and 30 rows, until it ends; then() is called, or `typed` is, once `seen` is on it.
    then() may return the next pair of them."""
    screen, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    env = {**c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "TERM": "xterm", "LC_ALL": "C.UTF-8",
           "DET_PASS_FILE": c.path("admin.password"), "XDG_CONFIG_HOME": c.path("config")}
    p = subprocess.Popen(["/usr/bin/setsid", "--ctty", "--wait", BIN + "/det", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    modes = termios.tcgetattr(theirs)
    if not typed:
        os.close(theirs)
    said = b""
    try:
        while select.select([screen], [], [], 120)[0]:
            more = os.read(screen, 65536)
            said += more
            if not more:
                break
            if then and seen.encode() in said:
                after = then()
                seen, then = after if isinstance(after, tuple) else (seen, None)
            if typed and seen.encode() in said:
                os.write(screen, typed)
                p.wait(120)
                assert termios.tcgetattr(theirs) == modes, "the terminal is not as it was"
                typed, _ = None, os.close(theirs)
    except OSError:  # EIO: nobody has it open any more
        pass
    finally:
        os.close(screen)
        p.kill()
        p.wait()
    return said.decode(errors="replace")  # what was seen may end within a character


def watched(c, *words, seen, then):
    """What it writes to a pipe; then() is called once `seen` is in it."""
    env = {**c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"), "XDG_CONFIG_HOME": c.path("config")}
    with subprocess.Popen([BIN + "/det", *words], text=True, stdout=subprocess.PIPE, env=env) as p:
        said = ""
        for line in p.stdout:
            said += line
            if then and seen in said:
                then, _ = None, then()
    assert p.returncode == 0, said
    return said


def test_master_restarted():
    """While people watch and scripts wait: they go on when it is back."""
    with Cluster(agents=1, slots=2) as c:
        holds = paced.Holds(c)
        holds.hold(105)
        assert paced.create(c, CONST, 0, holds, **{"epochs: 12": "batches: 200", "scheduling_unit: 45": "scheduling_unit: 10", "epochs: 2\n": "batches: 20\n"}) == 1
        trial = wait_until(lambda: c.trials(1), 60, "a trial")[0]["id"]
        env = {**c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"), "XDG_CONFIG_HOME": c.path("config")}
        c.det("user", "whoami")  # logged in
        others = [subprocess.Popen([BIN + "/det", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
                  for words in (("e", "wait", "1"), ("t", "watch", str(trial), "--json"), ("t", "logs", "-f", str(trial)))]
        told = [[p.stdout.readline()] for p in others]  # it is there, for each of them
        readers = [threading.Thread(target=said.extend, args=(p.stdout,)) for p, said in zip(others, told)]
        for t in readers:
            t.start()

        def back():
            wait_until(lambda: all("is asked again: " in "".join(said) for said in told), 60, "all to have missed it")
            c.start_master()
            holds.release(105)

        def restart():
            c.stop("master", 9)
            return "the master has not answered for ", back
        screen = on_terminal(c, "e", "watch", "1", seen="trial 1 ", then=restart)
        assert screen.rstrip().endswith("experiment 1 ended COMPLETED"), screen[-2000:]
        for p, t in zip(others, readers):
            t.join(300)
            assert p.wait(60) == 0, told
        assert all("det: the master is back\n" in said for said in told) and f"Trial {trial} ended: it trained the 200 batches" in told[2][-1], told


def test_watch():
    """One screen of what runs; without a terminal lines; no name moves the cursor."""
    with Cluster(agents=1, slots=2) as c:
        evil = "x\x1b[2J\x1b]0;owned\x07"
        small, holds = {"epochs: 12": "batches: 200", "scheduling_unit: 45": "scheduling_unit: 10", "epochs: 2\n": "batches: 20\n"}, paced.Holds(c)
        holds.hold(105)  # until it is watched
        assert paced.create(c, CONST, 0, holds, **small) == 1
        c.api("PATCH", "/experiments/1", {"id": 1, "name": evil})
        screen = on_terminal(c, "e", "watch", "1", seen="trial 1 ", then=lambda: holds.release(105))
        assert "best so far: trial 1, accuracy 0." in screen and "experiment 1 ended COMPLETED" in screen, screen[-3000:]
        assert "trial 1 " in screen and "batch " in screen and "loss " in screen, screen[-3000:]
        assert "owned" in screen and "\x1b]0" not in screen and "\x07" not in screen, screen[:500]
        assert "\x1b]" not in on_terminal(c, "e", "list")
        typed = ["--config", "searcher.max_length={batches: 200}", "--config", "scheduling_unit=10", "--config", "min_validation_period={batches: 20}"]
        screen = on_terminal(c, "e", "create", CONST, DIGITS, *typed, "-f")
        assert "best so far: trial 2, accuracy 0." in screen and "experiment 2 ended COMPLETED" in screen, screen[-3000:]
        screen = on_terminal(c, "e", "create", CONST, DIGITS, "--config", "entrypoint=model_def:Nobody", "--config", "max_restarts=0", "-f")
        assert "experiment 3 ended ERROR" in screen and "Nobody" in screen.split("ended ERROR")[1], screen[-3000:]
        assert "trial 3: " in screen.splitlines()[-1] and "Nobody" in screen.splitlines()[-1], screen[-3000:]
        says(c.det("e", "describe", "3"), 0, "reason       trial 3: ", "Nobody")
        says(c.det("t", "describe", "3"), 0, "  state            ERROR\n  reason           ", "Nobody")
        says(c.det("why", "trial:3"), 0, "ended: ERROR", "\nIts log says: ", "Nobody")
        says(c.det("why", "exp:3"), 0, "ended: ERROR", "\nThe log of trial 3: ", "Nobody")
        says(c.det("e", "watch", "3", check=False), 1, "experiment 3 ended ERROR: trial 3: ", "Nobody")
        says(c.det("t", "watch", "3", check=False), 1, "trial 3 failed: ", "Nobody")
        holds.hold(105)
        assert paced.create(c, CONST, 0, holds, **small) == 4
        for key in (b"xq", b"\x03"):
            screen = on_terminal(c, "e", "watch", "4", "--metric", "loss", seen="training loss", typed=key)
            assert ("experiment 4 goes on; det experiment watch 4 shows it again" in screen) == (key == b"xq") and "(q leaves)" in screen, screen[-3000:]
        assert "no report has" not in screen and "ended" not in screen, screen[-3000:]
        assert "there are loss" in on_terminal(c, "t", "watch", "4", "--metric", "lost", seen="no report has lost yet", typed=b"q")
        lines = watched(c, "e", "watch", "4", "--metric", "lost", seen="no report has lost yet; there are", then=lambda: holds.release(105))
        assert "\x1b" not in lines and "trial 4 " in lines and lines.endswith("experiment 4 ended COMPLETED\n"), lines
        bars = on_terminal(c, "e", "wait", "4")
        assert "experiment 4 COMPLETED 100%, 1 trials\r\n" in bars and "trial    4 " + 24 * "#" + " COMPLETED  accuracy 0." in bars, bars
        assert max(len(line.split("\x1b[K")[-1].rstrip()) for line in on_terminal(c, "e", "wait", "4", columns=50).splitlines()[:2]) <= 49
        says(c.det("t", "watch", "4"), 0, "trial 4 COMPLETED, batch 200  loss 0.", "validation accuracy 0.", "trial 4 ended COMPLETED")
        assert json.loads(c.det("t", "watch", "4", "--json").stdout)["totalBatchesProcessed"] == 200
        assert json.loads(c.det("e", "watch", "4", "--json").stdout.splitlines()[-1])["experiment"]["id"] == 4
        says(c.det("t", "watch", "9", check=False), 1, "not found")
        says(c.det("e", "create", CONST, DIGITS, "--paused"), 0, "Created experiment 5")
        assert "experiment 5 stays paused; " in on_terminal(c, "e", "watch", "5", seen="it goes on by  det experiment activate 5", typed=b"q")
        narrow = [line.rstrip() for line in on_terminal(c, "e", "list-trials", "4", columns=80).splitlines()]
        assert len(narrow) > 1 and max(map(len, narrow)) <= 80 and "RESTARTS" not in narrow[0] and ".." in narrow[1], narrow
        assert "RESTARTS" in c.det("e", "list-trials", "4").stdout
        says(c.det("t", "profile", "2"), 0, "trial 2 of experiment 2: not profiled; by its reports, batches 10 to 200 in ", " batches/s in the median", "profiling.enabled=true")


def test_a_test_run():
    """One batch of one trial, of whatever search the file has; what the file says of it stays in the file."""
    with Cluster(agents=1, slots=1) as c:
        grid = ["--config", "searcher={name: grid, metric: accuracy, smaller_is_better: false, max_length: {batches: 100000}}"]
        says(c.det("e", "create", CONST, DIGITS, *grid, "--test"), 0, "Created experiment 1")
        e = c.experiment(1)
        searcher = e["config"]["searcher"]
        assert (searcher["name"], searcher["metric"], searcher["smaller_is_better"], searcher["max_length"]) == ("single", "accuracy", False, {"batches": 1}), searcher
        assert e["state"] == "STATE_COMPLETED" and [t["totalBatchesProcessed"] for t in c.trials(1)] == [1], e
        says(c.det("e", "create", CONST, DIGITS, "--test", "--config", "entrypoint=model_def:Nobody", check=False), 1, "experiment 2 ended ERROR", "Nobody")
        with open(c.path("list.yaml"), "w") as f:
            f.write("[1, 2]\n")
        says(c.det("e", "create", c.path("list.yaml"), DIGITS, "--test", check=False), 1, "list.yaml")
        says(c.det("e", "create", CONST, DIGITS, "--config", "a.b", check=False), 1, "--config a.b")


def test_edits():
    """Words and labels of an experiment, accounts."""
    with Cluster(agents=0) as c:
        says(c.det("e", "create", CONST, DIGITS, "--paused"), 0, "Created experiment 1")
        for words, labels in ((("add", "1", "y"), '["y"]'), (("remove", "1", "y"), "[]"), (("remove", "1", "none"), "[]")):
            says(c.det("e", "label", *words), 0, f"experiment 1: labels {labels}")
        for words in (("label", "add", "1", "ü b/c?&"), ("label", "add", "1", "x"), ("label", "remove", "1", "x"),
                      ("set", "name", "1", "new ü"), ("set", "description", "1", "what it is")):
            says(c.det("e", *words), 0)
        e = c.experiment(1)
        assert (e["labels"], e["name"], e["description"]) == (["ü b/c?&"], "new ü", "what it is"), e
        says(c.det("e", "label", "ad", "1", "x", check=False), 2, "added or removed")
        says(c.det("e", "set", "name", "1", check=False), 2, "needs a text")
        says(c.det("e", "set", "nme", "1", "x", check=False), 2, "did you mean name")
        says(c.det("user", "create", "ada", "--admin"), 0, "ada")
        assert c.api("GET", "/users/ada/by-username")["user"]["admin"]
        says(c.det("user", "link-with-agent-user", "ada", "--agent-uid", "5", check=False), 2, "--agent-group")
        says(c.det("user", "link-with-agent-user", "ada", "--agent-uid", "5", "--agent-user", "u", "--agent-gid", "6", "--agent-group", "g"), 0)
        assert c.api("GET", "/users/ada/by-username")["user"]["agentUserGroup"] == {
            "agentUid": 5, "agentUser": "u", "agentGid": 6, "agentGroup": "g"}
        says(c.det("user", "activate", "ä b", check=False), 1, "user ", " not found; det user list shows all")


def test_follow_without_a_trial():
    """What is followed may end before it has a trial: a custom search that is killed."""
    with Cluster(agents=0) as c:
        custom = ("--config", "searcher={name: custom, metric: loss, unit: batches}")
        env = {**c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "DET_USER": "admin",
               "DET_PASS_FILE": c.path("admin.password"), "XDG_CONFIG_HOME": c.path("config")}
        f = subprocess.Popen([BIN + "/det", "e", "create", CONST, DIGITS, *custom, "-f"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        assert f.stdout.readline() == "Created experiment 1\n"
        c.det("e", "kill", "1")
        out, err = f.communicate(timeout=60 * SLOWER)
        assert f.returncode == 1 and not out and "ended CANCELED" in err, (f.returncode, out, err)


def test_many_hyperparameters():
    with Cluster(agents=0) as c:
        many = ("--config", "hyperparameters={global_batch_size: 8, " + ", ".join(f"h{i}: {i}" for i in range(300)) + "}")
        says(c.det("e", "create", CONST, DIGITS, *many), 0, "Created experiment 1")
        words = c.det("e", "list-trials", "1").stdout.split()
        assert all(f"h{i}={i}" in words for i in range(300)), words


def test_places():
    """Templates, workspaces, projects, and the experiments that they hold."""
    with Cluster(agents=0) as c:
        says(c.det("template", "ls"), 0, "no templates")
        with open(c.path("base.yaml"), "w") as f:
            f.write("max_restarts: 7\nenvironment: {environment_variables: [A=1]}\n")
        says(c.det("template", "set", "ü base", c.path("base.yaml")), 0, "template ü base set")
        says(c.det("tpl", "create", "ü base", c.path("base.yaml"), check=False), 1, "ü base", "is there already")
        says(c.det("tpl", "list", "-d"), 0, "ü base", '"max_restarts":7')
        assert "max_restarts" not in c.det("tpl", "list").stdout
        assert json.loads(c.det("tpl", "describe", "ü base").stdout)["max_restarts"] == 7
        assert json.loads(c.det("tpl", "d", "ü base", "--json").stdout)["name"] == "ü base"
        says(c.det("tpl", "describe", "none", check=False), 1, 'template "none" not found')
        for text, words in (("a: [", ("base.yaml", "line 2")), ("max_restartz: 1", ("max_restarts",)), ("[1]", ("object",))):
            with open(c.path("base.yaml"), "w") as f:
                f.write(text)
            says(c.det("tpl", "set", "bad", c.path("base.yaml"), check=False), 1, *words)
        says(c.det("tpl", "set", "bad", "/nonexistent.yaml", check=False), 1, "/nonexistent.yaml")
        says(c.det("e", "create", CONST, DIGITS, "--paused", "--template", "ü base"), 0, "Created experiment 1")
        says(c.det("e", "create", CONST, DIGITS, "--template", "none", check=False), 1, 'template "none" not found')
        says(c.det("tpl", "rm", "ü base"), 0, "removed")
        assert json.loads(c.det("tpl", "ls", "--json").stdout) == []

        says(c.det("workspace", "create", "Vision & more"), 0, "Created workspace 2")
        says(c.det("w", "create", "vision & MORE", check=False), 1, "already")
        says(c.det("project", "create", "Vision & more", "digits", "--description", "what it is"), 0, "Created project 2")
        says(c.det("p", "create", "nosuch", "digits", check=False), 1, '"nosuch" not found')
        says(c.det("w", "list"), 0, "Uncategorized", "Vision & more")
        says(c.det("w", "list-projects", "vision & more"), 0, "digits", "what it is")
        says(c.det("w", "describe", "Vision & more"), 0, "workspace 2", "projects     1")
        assert json.loads(c.det("w", "describe", "Vision & more", "--json").stdout)["id"] == 2
        says(c.det("p", "describe", "Vision & more", "digit", check=False), 1, '"digit" not found in workspace "Vision & more"')
        says(c.det("p", "edit", "Vision & more", "digits", check=False), 2, "--new_name", "--description")
        says(c.det("p", "edit", "Vision & more", "digits", "--new_name", "ciphers"), 0, "project ciphers changed")
        renamed = json.loads(c.det("p", "edit", "Vision & more", "ciphers", "--new_name", "digits", "--description", "0 to 9", "--json").stdout)
        assert (renamed["name"], renamed["description"]) == ("digits", "0 to 9"), renamed
        says(c.det("p", "edit", "Vision & more", "digits", "--description", "what it is"), 0, "project digits changed")
        says(c.det("w", "edit", "Vision & more", check=False), 2, "--name")
        says(c.det("w", "edit", "Vision & more", "--name", "Uncategorized", check=False), 1, "already")
        says(c.det("w", "edit", "Vision & more", "--name", "x", "--default-aux-pool", "p", check=False), 2, "resource_pool")
        says(c.det("w", "edit", "vision & more", "--name", "Vision"), 0, "workspace Vision changed")
        says(c.det("w", "edit", "Vision", "--name", "Vision & more"), 0, "changed")
        says(c.det("e", "move", "1", "Vision & more", "digits"), 0, "moved to project digits")
        says(c.det("e", "move", "1", "Vision & more", "none", check=False), 1, '"none" not found')
        says(c.det("p", "describe", "Vision & more", "digits"), 0, "project 2", "what it is", "1, 0 of them active")
        says(c.det("p", "list-experiments", "Vision & more", "digits"), 0, "PAUSED")
        assert [e["id"] for e in json.loads(c.det("p", "list-experiments", "Vision & more", "digits", "--json").stdout)] == [1]
        says(c.det("e", "list", "--json"), 0, '"projectName": "digits"')
        for noun, words in (("project", ("Vision & more", "digits")), ("workspace", ("Vision & more",))):
            says(c.det(noun, "archive", *words), 0, "archived")
            says(c.det(noun, "describe", *words), 0, ", archived")
            says(c.det("e", "create", CONST, DIGITS, "--project_id", "2", check=False), 1, "project 2 is archived")
            says(c.det(noun, "unarchive", *words), 0, "unarchived")
        says(c.det("workspace", "archive", "Uncategorized", check=False), 1, "cannot be archived")
        says(c.det("p", "delete", "Vision & more", "digits", check=False), 1, "--yes")
        says(c.det("p", "delete", "Vision & more", "digits", "--yes", check=False), 1, "holds 1 experiment", "move or delete")
        says(c.det("w", "delete", "Vision & more", "-y", check=False), 1, "holds 1 project")
        says(c.det("e", "move", "1", "Uncategorized", "Uncategorized"), 0, "moved")
        says(c.det("p", "delete", "Vision & more", "digits", "--yes"), 0, "project digits deleted")
        says(c.det("w", "delete", "vision & more", "--yes"), 0, "workspace Vision & more deleted")
        says(c.det("w", "delete", "Vision & more", "--yes", check=False), 1, "not found")
        says(c.det("workspace", "descrbe", "x", check=False), 2, "did you mean 'describe'")


def test_users():
    """admin's first password; `determined` is inactive until it is given one."""
    with Cluster(agents=0) as c:
        env = {**c.env, "DET_MASTER": f"http://127.0.0.1:{c.port}", "XDG_CONFIG_HOME": c.path("config")}
        for k in ("DET_USER", "DET_PASS", "DET_PASS_FILE", "DET_USER_TOKEN"):
            env.pop(k, None)

        def det(*args, typed=""):
            return subprocess.run([BIN + "/det", *args], text=True, capture_output=True, env=env, input=typed)
        password = open(c.path("admin.password")).read().strip()
        says(det("user", "whoami"), 1, "det user login")
        says(det("user", "login", "determined", typed="\n"), 1)
        says(det("user", "login", "admin", typed="wrong\n"), 1, "invalid credentials")
        os.makedirs(c.path("config", "determined"))
        kept = c.path("config", "determined", "auth.json")
        with open(kept, "w") as f:  # not as det writes it
            json.dump({"version": 2, "masters": {env["DET_MASTER"]: {}}}, f)
        says(det("user", "login", "admin", typed=password + "\n"), 0)
        says(det("user", "whoami"), 0, "administrator")
        says(det("user", "change-password", "determined", typed="short\nshort\n"), 1, "8 characters")
        says(det("user", "change-password", "determined", typed="long enough\nlong enough\n"), 0)
        says(det("user", "login", "determined", typed="long enough\n"), 0)
        says(det("user", "whoami"), 0, "determined")
        says(det("user", "change-password", "admin", typed="not allowed\nnot allowed\n"), 1, "administrator")
        env["DET_PASS"] = "long enough"
        says(det("-u", "determined", "user", "login", typed="long enough\n"), 0)
        says(det("user", "login", "admin", typed=password + "\n"), 0)
        says(det("-u", "determined", "user", "logout"), 0)
        tokens = json.load(open(kept))["masters"][env["DET_MASTER"]]
        assert tokens["active_user"] == "admin" and list(tokens["tokens"]) == ["admin"], tokens
        c.login()
        env["DET_USER_TOKEN"] = c.token
        says(det("user", "logout"), 0)
        del env["DET_USER_TOKEN"]
        assert json.load(open(kept))["masters"][env["DET_MASTER"]] == tokens
        says(det("user", "logout"), 0)
        del env["DET_PASS"]
        says(det("user", "whoami"), 1)


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()

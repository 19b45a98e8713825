#!/usr/bin/env python3
"""Checkpoint stores that go away and come back: renaming a store's root stands for its file system being unmounted.

usage: test_stores.py NAME   (a function test_NAME below)
"""
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
from cluster import BIN, ApiError, Cluster, wait_until  # noqa: E402
from gc_exp import aside, checkpoints, config, keep, settled, there  # noqa: E402

MARKER = ".det-store"


class Store:
    """The cluster's store, which can be taken away; an empty directory stays in its place."""

    def __init__(self, c):
        self.root, self.kept = c.path("checkpoints"), c.path("checkpoints-unmounted")

    def unmount(self):
        os.rename(self.root, self.kept)
        os.mkdir(self.root)
        os.chmod(self.root, 0o777)

    def mount(self):
        assert os.listdir(self.root) == [], "something was written to what is no store"
        os.rmdir(self.root)
        os.rename(self.kept, self.root)


def start(c, batches=100000):
    """An experiment of slow batches, without end, that makes a checkpoint every 20 of them; returns its id and its trial's."""
    exp = paced.create(c, json.loads(config(batches=batches)), 50)
    return exp, wait_until(lambda: c.trials(exp), 20, "a trial")[0]["id"]


def why(c, trial):
    return c.api_patiently("GET", f"/trials/{trial}/why")


def completed(c, exp):
    return sorted(s for s, (_, state) in checkpoints(c, exp).items() if state == "COMPLETED")


def goes_on(c, exp, trial, before):
    """It makes checkpoints again; none is lost, no metric archived, no restart used up."""
    wait_until(lambda: completed(c, exp)[-1] > before[-1], 60, "a checkpoint after it")
    now = checkpoints(c, exp)
    assert all(now[s][1] == "COMPLETED" for s in before), (before, now)
    assert c.sql(f"SELECT restarts FROM trials WHERE id = {trial}") == "0"
    assert c.sql(f"SELECT count(*) FROM metrics WHERE trial_id = {trial} AND archived") == "0"


def doctors_say(c, words):
    """Of the store, on this host."""
    agent = ["det-agent", "doctor", "--master", f"http://127.0.0.1:{c.port}", "--token-file", c.path("agent.token"), "--work-dir", c.path("agent-0")]
    master = ["det-master", "doctor", "--db", f"host={c.path('pg-socket')} user=det dbname=det", "--port", "0", "--checkpoint-dir",
              c.path("checkpoints")]
    for program, *args in (agent, master):
        r = subprocess.run([f"{BIN}/{program}", *args], text=True, capture_output=True, timeout=120)
        lines = [x for x in r.stdout.splitlines() if "checkpoint store" in x]
        at = r.stdout.index(lines[0]) if lines else 0
        assert lines and c.path("checkpoints") in lines[0] and words in r.stdout[at:], (program, words, r.stdout, r.stderr)


def marker(c):
    with open(c.path("checkpoints", MARKER)) as f:
        return json.load(f)["id"]


def test_first_use():
    """The first experiment makes the marker, others find it; a root that is not there is made as before."""
    with Cluster() as c:
        root = c.path("new", "store")
        text = config(batches=20, checkpoint_storage={"type": "shared_fs", "host_path": root})
        c.wait(c.create(text, "examples/digits"))
        with open(os.path.join(root, MARKER)) as f:
            first = json.load(f)
        c.wait(c.create(text, "examples/digits"))
        with open(os.path.join(root, MARKER)) as f:
            assert json.load(f) == first
        assert c.sql(f"SELECT id || ' ' || made_on FROM stores WHERE place = '{root}'") == first["id"] + " agent-0"
        seen = c.api("GET", "/agents")["agents"][0]["stores"]
        assert [s["state"] for s in seen if s["place"] == root] == ["PRESENT"], seen


def test_running():
    """Unmounted while a trial trains: it holds at its next checkpoint and goes on when the store is back."""
    with Cluster() as c:
        store = Store(c)
        exp, trial = start(c)
        wait_until(lambda: completed(c, exp), 60, "a checkpoint")
        store.unmount()
        before = completed(c, exp)
        wait_until(lambda: "training holds until it is back" in c.logs(trial), 60, "the trial to hold")
        wait_until(lambda: "holds at its next checkpoint" in why(c, trial)["text"], 30, "the reason")
        said = why(c, trial)["text"]
        assert "agent-0" in said and store.root in said, said
        assert os.listdir(store.root) == []
        store.mount()
        goes_on(c, exp, trial, before)
        assert c.sql(f"SELECT run_id FROM trials WHERE id = {trial}") == "1"


def test_paused():
    """Unmounted while an experiment is paused: activated, it waits with the reason, and goes on where it was."""
    with Cluster() as c:
        store = Store(c)
        exp, trial = start(c)
        wait_until(lambda: completed(c, exp), 60, "a checkpoint")
        c.api("POST", f"/experiments/{exp}/pause")
        wait_until(c.slots_free, 60, "the run to end")
        before = completed(c, exp)
        store.unmount()
        wait_until(lambda: c.api("GET", "/agents")["agents"][0]["stores"][0]["state"] == "ABSENT", 30, "the agent to notice")
        c.api("POST", f"/experiments/{exp}/activate")
        wait_until(lambda: why(c, trial)["reason"] == "STORE", 30, "the reason")
        wait_until(lambda: "Mount it there" in c.logs(trial), 20, "the reason in the log")
        for text in (why(c, trial)["text"], c.det("why", str(exp)).stdout, c.logs(trial)):
            assert "agent-0" in text and store.root in text and "Mount it there" in text, text
        listed = c.det("agent", "list").stdout
        assert "ABSENT" in listed and store.root in listed, listed
        doctors_say(c, "mount it")
        assert c.sql(f"SELECT run_id FROM trials WHERE id = {trial}") == "2" and c.slots_free()
        c.stop("master")  # a new life of the master knows it too
        c.start_master()
        c.wait_agents(1)
        wait_until(lambda: why(c, trial)["reason"] == "STORE", 30, "the reason, again")
        store.mount()
        goes_on(c, exp, trial, before)
        doctors_say(c, "ok    checkpoint store")


def test_collection():
    """Unmounted before a collection: nothing is marked deleted, undeleting waits, and all is done when the store is back."""
    with Cluster() as c:
        store = Store(c)
        exp = c.create(config(**keep(exp=9, best=9, latest=9)), "examples/digits")
        c.wait(exp)
        now = settled(c, exp)
        keys = [now[s][0] for s in sorted(now)]

        def told():
            return int(c.sql("SELECT count(*) FROM task_logs WHERE log LIKE '%store%' AND task_id NOT IN (SELECT task_id FROM trials)"))
        store.unmount()
        c.det("checkpoint", "delete", "--yes", keys[0])
        wait_until(told, 60, "the collection to say what it waits for")
        assert {s for _, s in checkpoints(c, exp).values()} == {"COMPLETED"}
        assert os.listdir(store.root) == []
        store.mount()
        wait_until(lambda: checkpoints(c, exp)[min(now)][1] == "DELETED", 60, "the collection")
        assert aside(c, keys[0]) and all(there(c, k) for k in keys[1:])
        before = told()
        store.unmount()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            back = pool.submit(c.det, "checkpoint", "undelete", keys[0], check=False)
            try:
                wait_until(lambda: told() > before, 60, "the undeletion to say what it waits for")
                assert checkpoints(c, exp)[min(now)][1] == "DELETED" and os.listdir(store.root) == [] and not back.done()
            finally:
                store.mount()
            assert back.result().returncode == 0, back.result()
        assert there(c, keys[0])


def test_two_agents():
    """Of two agents one has another directory at the store's place: runs go to the one that has the store."""
    with Cluster(agents=0) as c:
        c.n_agents = 2
        c.start_agent(0)
        c.wait_agents(1)
        other = c.path("elsewhere")
        os.mkdir(other)
        os.chmod(other, 0o777)
        c.wait(c.create(config(batches=20), "examples/digits"))  # agent-0 makes the store
        c.spawn("agent-1", ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                            f'mount --bind {other} {c.path("checkpoints")} && exec "$@"', "sh", BIN + "/det-agent", "--master",
                            f"http://127.0.0.1:{c.port}", "--token-file", c.path("agent.token"), "--id", "agent-1", "--slots", "4",
                            "--work-dir", c.path("agent-1"), "--task-user", ""])
        c.wait_agents(2)
        exp = c.create(config(batches=20, searcher={"name": "random", "metric": "accuracy", "max_trials": 6, "max_length": {"batches": 20}}),
                       "examples/digits")
        c.wait(exp)
        assert c.sql("SELECT DISTINCT detail FROM trial_timeline WHERE kind = 'placed'") == "agent-0"
        large = c.create(config(batches=20, resources={"slots_per_trial": 4}), "examples/digits")
        trial = wait_until(lambda: c.trials(large), 20, "a trial")[0]["id"]
        wait_until(lambda: why(c, trial)["reason"] == "STORE", 30, "the reason")
        assert "agent-1: " in why(c, trial)["text"] and os.listdir(other) == []
        with open(os.path.join(other, MARKER), "w") as f:  # mounted there at last
            json.dump({"version": 1, "id": marker(c)}, f)
        c.wait(large)


def test_read_only():
    """Mounted read-only, as the kernel does with a disk that fails: a trial that trains holds, one that is to start waits."""
    with Cluster(agents=0) as c:
        root = c.path("checkpoints")
        c.n_agents = 1
        c.spawn("agent-0", ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'mount -t tmpfs -o mode=777,size=512m det {root} && exec "$@"', "sh",
                            BIN + "/det-agent", "--master", f"http://127.0.0.1:{c.port}", "--token-file", c.path("agent.token"), "--id", "agent-0",
                            "--slots", "2", "--work-dir", c.path("agent-0"), "--task-user", ""])
        c.wait_agents(1)

        def remount(how):  # busy while somebody writes there
            return subprocess.run(["nsenter", "-t", str(c.pid("agent-0")), "-m", "mount", "-o", f"remount,{how}", root], capture_output=True).returncode == 0

        exp, trial = start(c)
        wait_until(lambda: completed(c, exp), 60, "a checkpoint")
        wait_until(lambda: remount("ro"), 30, "the disk to fail")
        before = completed(c, exp)
        wait_until(lambda: "training holds until it is back" in c.logs(trial), 60, "the trial to hold")
        assert "mounted read-only" in c.logs(trial)
        other, waits = start(c, batches=20)
        wait_until(lambda: why(c, waits)["reason"] == "STORE", 30, "the reason")
        assert "agent-0" in why(c, waits)["text"] and "read-only" in why(c, waits)["text"], why(c, waits)
        assert "ABSENT" in c.det("agent", "list").stdout and "read-only" in c.det("store", "list").stdout
        assert remount("rw")
        goes_on(c, exp, trial, before)
        c.wait(other)


def test_upgrade():
    """Checkpoints of before there were markers: only the directory that holds them is adopted."""
    with Cluster() as c:
        store = Store(c)
        exp = c.create(config(**keep(exp=9, best=9, latest=9)), "examples/digits")
        c.wait(exp)
        settled(c, exp)
        c.stop("master")
        os.unlink(os.path.join(store.root, MARKER))
        c.sql("UPDATE stores SET id = NULL, known = store_known(place)")
        store.unmount()
        c.start_master()
        c.wait_agents(1)
        exp = c.create(config(batches=20), "examples/digits")
        trial = wait_until(lambda: c.trials(exp), 20, "a trial")[0]["id"]
        wait_until(lambda: why(c, trial)["reason"] == "STORE", 30, "the reason")
        wait_until(lambda: "nor any of the checkpoints" in why(c, trial)["text"], 30, "what the agent says")
        assert os.listdir(store.root) == []
        store.mount()
        c.wait(exp)
        assert c.sql("SELECT id::text FROM stores") == marker(c)


def test_adopt():
    """A store that was made anew on purpose is adopted by an administrator's word."""
    with Cluster() as c:
        store = Store(c)
        c.wait(c.create(config(batches=20), "examples/digits"))
        first = marker(c)
        listed = c.det("store", "list").stdout
        assert first in listed and store.root in listed, listed
        store.unmount()
        exp = c.create(config(batches=20), "examples/digits")
        trial = wait_until(lambda: c.trials(exp), 20, "a trial")[0]["id"]
        wait_until(lambda: why(c, trial)["reason"] == "STORE", 60, "the reason")
        r = c.det("store", "adopt", "/no/such", check=False)
        assert r.returncode == 1 and "/no/such" in r.stderr, r.stderr
        c.det("store", "adopt", store.root)  # not yet: it holds none of what it should
        wait_until(lambda: "nor any of the checkpoints" in why(c, trial)["text"], 30, "the refusal")
        c.det("store", "adopt", "--empty", store.root)
        c.wait(exp)
        assert marker(c) != first and c.sql("SELECT id::text FROM stores") == marker(c)
        try:
            c.api("POST", "/checkpoint-stores/adopt", {"place": 7})
            raise AssertionError("a place that is no text was taken")
        except ApiError as e:
            assert e.status == 400, e


def test_unknown():
    """Checkpoints whose rows a restored database has forgotten: listed, adopted, discarded; what was in quarantine too."""
    with Cluster() as c:
        root = c.path("checkpoints")
        exp = c.create(config(**keep(exp=9, best=9, latest=9)), "examples/digits")
        c.wait(exp)
        now = settled(c, exp)
        trial, (deleted, mine, gone, *_) = c.trials(exp)[0]["id"], [now[s][0] for s in sorted(now)]
        sizes = c.sql(f"SELECT resources FROM checkpoints WHERE uuid = '{mine}'")
        c.det("checkpoint", "delete", "--yes", deleted)
        wait_until(lambda: aside(c, deleted), 60, "the quarantine")
        wait_until(lambda: checkpoints(c, exp)[min(now)][1] == "DELETED", 60, "its row")
        foreign = "0b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"
        shutil.copytree(os.path.join(root, mine), os.path.join(root, foreign))
        with open(os.path.join(root, foreign, "metadata.json"), "w") as f:
            f.write("{}")
        c.sql(f"DELETE FROM checkpoints WHERE uuid IN ('{deleted}', '{mine}', '{gone}')")
        left = unknown(c, root)
        assert {u: (k["trialId"], k["aside"]) for u, k in left.items()} == {
            deleted: (trial, True), mine: (trial, False), gone: (trial, False), foreign: (None, False)}, left
        assert left[mine]["metadata"]["steps_completed"] == sorted(now)[1] and int(left[mine]["bytes"]) > 0, left
        for args, said in (((foreign,), "say whose it shall be"), ((foreign, "77"), "trial 77 not found"),
                           (("1b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f",), "not among those that were left behind"), (("x",), "is not a UUID")):
            r = c.det("checkpoint", "adopt", *args, check=False)
            assert r.returncode == 1 and said in r.stderr, (args, r.stderr)
        c.det("checkpoint", "adopt", mine)
        assert c.sql(f"SELECT resources FROM checkpoints WHERE uuid = '{mine}' AND state = 'COMPLETED' AND trial_id = {trial} AND kept") == sizes
        c.det("checkpoint", "adopt", foreign, str(trial))
        c.det("checkpoint", "discard", "--yes", gone)
        wait_until(lambda: aside(c, gone), 60, "the discarded one to be put aside")
        c.det("checkpoint", "adopt", deleted)
        for uuid in (gone, deleted):
            wait_until(lambda u=uuid: c.sql(f"SELECT gc_step FROM checkpoints WHERE uuid = '{u}'") == "rest", 60, "the quarantine's row")
            c.det("checkpoint", "undelete", uuid)
            assert there(c, uuid)
        assert unknown(c, root) == {}
        c.api("POST", "/checkpoints/gc", {"experimentId": exp})
        assert there(c, mine) and there(c, foreign)
        r = c.det("checkpoint", "unknown", "/no/such", check=False)
        assert r.returncode == 1 and "det store list" in r.stderr, r.stderr


def test_two_clusters():
    """Two clusters on one store: neither lists the other's checkpoints, so neither can adopt or discard them."""
    with Cluster() as one, Cluster() as two:
        root = one.path("checkpoints")
        shared = keep(exp=9, best=9, latest=9)
        shared["checkpoint_storage"].update(type="shared_fs", host_path=root)
        exps = {c: c.create(config(**shared), "examples/digits") for c in (one, two)}
        for c, exp in exps.items():
            c.wait(exp)
        keys = {c: [uuid for uuid, _ in settled(c, exp).values()] for c, exp in exps.items()}
        lost = keys[one][0]
        one.sql(f"DELETE FROM checkpoints WHERE uuid = '{lost}'")
        assert set(unknown(one, root)) == {lost}
        assert unknown(two, root) == {}
        for verb in (("adopt",), ("discard", "--yes")):
            r = two.det("checkpoint", *verb, lost, check=False)
            assert r.returncode == 1 and "not among those that were left behind" in r.stderr, r.stderr
        assert all(there(one, k) for c in keys for k in keys[c])


def unknown(c, root):
    listed = json.loads(c.det("--json", "checkpoint", "unknown", root).stdout)
    assert listed["doneAt"] and listed["place"] == root, listed
    return {k["uuid"]: k for k in listed["checkpoints"]}


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
    print(f"test_stores {sys.argv[1]}: passed")

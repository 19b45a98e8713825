#!/usr/bin/env python3
"""Checkpoint collection with real processes: the policy, the quarantine, its undo, who is protected, and kill -9.

usage: test_gc.py NAME   (a function test_NAME below)
"""
import http.client
import json
import os
import shutil
import sys
import time
import urllib.error
import urllib.request
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, ApiError, Cluster, wait_until  # noqa: E402
from gc_exp import aside, checkpoints, config, keep, run, settled, there  # noqa: E402


def det(c, *argv, code=0, feed=""):
    r = c.det(*argv, check=False, input=feed)
    assert r.returncode == code, (argv, r.returncode, r.stdout, r.stderr)
    return r.stdout, r.stderr


def plain(c, path):
    """GET of a route outside /api/v1."""
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60 * SLOWER)
    conn.request("GET", path, headers={"Authorization": "Bearer " + c.token})
    r = conn.getresponse()
    text = r.read().decode()
    conn.close()
    assert r.status == 200, (r.status, text)
    return json.loads(text)


def left_behind(c, days):
    """What a writer leaves that crashed so many days ago."""
    d = c.path("checkpoints", f".{uuid.uuid4()}.tmp")
    os.mkdir(d)
    open(os.path.join(d, "state_dict.pth"), "wb").close()
    os.utime(d, (time.time() - days * 86400,) * 2)
    return d


def test_policy():
    """An experiment's end leaves what its policy keeps; the rest can be taken back, and goes for good later."""
    with Cluster() as c:
        old, new = left_behind(c, 8), left_behind(c, 6)
        exp = run(c, **keep(latest=1, best=1))
        now = settled(c, exp)
        last = max(now)
        assert len(now) == 6 and sum(s == "COMPLETED" for _, s in now.values()) in (1, 2), now  # the best may be the latest
        assert now[last][1] == "COMPLETED" and there(c, now[last][0])
        gone = [k for k, s in now.values() if s == "DELETED"]
        assert gone and all(aside(c, k) and not there(c, k) for k in gone), now
        wait_until(lambda: not os.path.exists(old), 20, "what a crashed writer left to be swept away")
        assert os.path.exists(new), "what may still be written was swept away"
        back = gone[0]
        out, _ = det(c, "checkpoint", "undelete", back)
        assert out.strip() == back and there(c, back) and not aside(c, back)
        k = c.api("GET", f"/checkpoints/{back}")["checkpoint"]
        assert k["state"] == "STATE_COMPLETED" and "state_dict.pth" in k["resources"], k
        # it stays, whatever the policy says, also after another round of it
        plan = c.api("POST", "/checkpoints/gc", {"experimentId": exp, "dryRun": True})
        assert plan["deletedCount"] == 0 and "quarantine" in [x["why"] for x in plan["checkpoints"] if x["uuid"] == back][0], plan
        # its time is over
        c.sql("UPDATE checkpoints SET gc_until = now() WHERE gc_step = 'rest'")
        c.stop("master")
        c.start_master()
        c.wait_agents(1)
        wait_until(lambda: not any(aside(c, k) for k in gone), 30, "the purge")
        wait_until(lambda: c.sql("SELECT count(*) FROM checkpoints WHERE gc_step IS NOT NULL").strip() == "0", 20, "the journal to end")
        _, text = det(c, "checkpoint", "undelete", gone[1], code=1)
        assert "its files are gone" in text, text


def test_by_hand():
    """rm, delete, dry runs, previews, set gc-policy; wrong uses; all or nothing."""
    with Cluster() as c:
        exp = run(c, **keep(exp=9, best=9, latest=9))
        now = checkpoints(c, exp)
        keys = [now[s][0] for s in sorted(now)]
        assert len(keys) == 6 and all(there(c, k) for k in keys)
        out, err = det(c, "checkpoint", "gc", "--dry-run", "--all")
        assert out.count(" keep ") == 6 and "0 checkpoints" in err, (out, err)
        out, err = det(c, "experiment", "set", "gc-policy", str(exp), "--save-experiment-best", "0", "--save-trial-best", "0",
                       "--save-trial-latest", "5", feed="n\n", code=1)
        assert keys[0] in out and keys[1] not in out and "nothing was changed" in err, (out, err)
        preview = plain(c, f"/experiments/{exp}/preview_gc?save_experiment_best=0&save_trial_best=0&save_trial_latest=5")
        assert [k["UUID"] for k in preview["checkpoints"]] == [keys[0]] and preview["metric_name"] == "accuracy", preview
        assert preview["checkpoints"][0]["StepsCompleted"] == 20 and "accuracy" in preview["checkpoints"][0]["ValidationMetrics"], preview
        det(c, "experiment", "set", "gc-policy", str(exp), "--save-experiment-best", "0", "--save-trial-best", "0", "--save-trial-latest",
            "5", "--yes")
        wait_until(lambda: aside(c, keys[0]), 20, "the new policy")
        # all or none
        det(c, "checkpoint", "delete", "--yes", keys[1], str(uuid.uuid4()), code=1)
        det(c, "checkpoint", "delete", "--yes", "nonsense", code=1)
        assert there(c, keys[1])
        det(c, "checkpoint", "delete", keys[1], code=1, feed="\n")
        assert there(c, keys[1])
        _, err = det(c, "checkpoint", "rm", "--yes", keys[1], code=2)  # it deletes no whole checkpoints
        assert "--glob PATTERN is needed" in err and there(c, keys[1]), err
        det(c, "checkpoint", "rm", "--yes", "--glob", "**/*.json", keys[1])
        wait_until(lambda: checkpoints(c, exp)[40][1] == "PARTIALLY_DELETED", 20, "the cut")
        assert there(c, keys[1]) and not os.path.exists(c.path("checkpoints", keys[1], "metadata.json"))
        det(c, "checkpoint", "delete", "--yes", ",".join(keys[1:3]))
        wait_until(lambda: aside(c, keys[1]) and aside(c, keys[2]), 20, "the deletion by hand")
        assert sorted(s for _, s in settled(c, exp).values()) == ["COMPLETED"] * 3 + ["DELETED"] * 3
        out, _ = det(c, "experiment", "list-checkpoints", str(exp))  # those that can be had first
        assert [line.split()[2] for line in out.splitlines()[1:]] == ["COMPLETED"] * 3 + ["DELETED"] * 3, out
        det(c, "checkpoint", "delete", "--yes", keys[1])  # again: nothing to do
        _, err = det(c, "checkpoint", "undelete", keys[2], keys[3], code=1)
        assert "not deleted" in err and aside(c, keys[2]), err
        # and all of it goes with the experiment
        det(c, "experiment", "delete", "--yes", str(exp))
        wait_until(lambda: not any(there(c, k) or aside(c, k) for k in keys), 30, "the experiment's files to go")


def test_replaced():
    """Another version is laid in the place of det-task while the agent runs: checkpoints are still collected."""
    with Cluster(agents=0) as c:
        programs = c.path("programs")
        os.mkdir(programs)
        for name in ("det-agent", "det-task"):
            shutil.copy2(os.path.join(BIN, name), programs)
        c.env["DET_HARNESS"] = BIN + "/det-harness"
        c.n_agents = 1
        c.spawn("agent-0", [programs + "/det-agent", "--master", f"http://127.0.0.1:{c.port}", "--token-file", c.path("agent.token"),
                            "--id", "agent-0", "--slots", "2", "--work-dir", c.path("agent-0"), "--task-user", ""])
        c.wait_agents(1)
        now = checkpoints(c, run(c, **keep(exp=9, best=9, latest=9)))
        key = now[min(now)][0]
        shutil.copy2(BIN + "/det-task", programs + "/new")
        os.replace(programs + "/new", programs + "/det-task")
        det(c, "checkpoint", "delete", "--yes", key)
        wait_until(lambda: aside(c, key), 30, "the deletion")


def test_protected():
    """What a live trial would resume from, or started from, cannot be deleted; an experiment in use cannot either."""
    with Cluster(slots=1) as c:
        exp = c.create(config(batches=100000), "examples/digits")
        wait_until(lambda: len(checkpoints(c, exp)) >= 2, 60, "two checkpoints")
        c.api("POST", f"/experiments/{exp}/pause", {})
        wait_until(lambda: c.slots_free() == 1, 30, "the pause")
        now = checkpoints(c, exp)
        last, other = now[max(now)][0], now[min(now)][0]
        for body in ({"checkpointUuids": [other, last]}, {"checkpointUuids": [last]}):
            try:
                c.api("DELETE", "/checkpoints", body)
                raise AssertionError("the latest checkpoint of a live trial was deleted")
            except ApiError as e:
                assert e.status == 400 and last in e.text and "live trial would resume" in e.text, e
        c.api("DELETE", "/checkpoints", {"checkpointUuids": [other]})
        wait_until(lambda: not there(c, other), 20, "the other to go")
        c.api("POST", f"/experiments/{exp}/kill", {})
        c.wait(exp, state="STATE_CANCELED")
        heir = c.create(config(batches=100000, searcher={"name": "single", "metric": "accuracy", "smaller_is_better": False,
                                                         "max_length": {"batches": 100000}, "source_checkpoint_uuid": last}),
                        "examples/digits", activate=False)
        for method, path, body in (("DELETE", "/checkpoints", {"checkpointUuids": [last]}), ("DELETE", f"/experiments/{exp}", None)):
            try:
                c.api(method, path, body)
                raise AssertionError(f"{method} {path} took what a live trial starts from")
            except ApiError as e:
                assert e.status == 400 and last in e.text, e
        assert there(c, last)
        c.api("POST", f"/experiments/{heir}/kill", {})
        c.wait(heir, state="STATE_CANCELED")
        c.sql("UPDATE checkpoints SET pinned_until = now() + interval '1 day'")
        until = c.sql(f"SELECT to_char(pinned_until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') FROM checkpoints WHERE uuid = '{last}'").strip()
        try:
            c.api("DELETE", "/checkpoints", {"checkpointUuids": [last]})
            raise AssertionError("what is being read was deleted")
        except ApiError as e:
            assert e.status == 400 and "it is being read" in e.text and f"at {until} UTC at the latest" in e.text, e
        c.sql("UPDATE checkpoints SET pinned_until = NULL")  # of the creation: it ends by itself within a minute
        storage = c.sql("SELECT config->'checkpoint_storage' FROM experiments WHERE id = %s" % exp).strip()
        c.sql(f"UPDATE experiments SET config = jsonb_set(config, '{{checkpoint_storage}}', '{{\"type\": \"s3\"}}') WHERE id = {exp}")
        asked = urllib.request.Request(f"http://127.0.0.1:{c.port}/checkpoints/{last}", headers={"Accept": "application/gzip", "Authorization": f"Bearer {c.token}"})
        try:
            urllib.request.urlopen(asked)
            raise AssertionError("a bucket was read through the master")
        except urllib.error.HTTPError as e:
            assert e.code == 501, e
        wait_until(lambda: c.sql(f"SELECT pinned_until FROM checkpoints WHERE uuid = '{last}'").strip() == "", 20, "its pin to end")
        c.sql(f"UPDATE experiments SET config = jsonb_set(config, '{{checkpoint_storage}}', '{storage}') WHERE id = {exp}")
        c.api("DELETE", "/checkpoints", {"checkpointUuids": [last]})
        wait_until(lambda: aside(c, last), 20, "the last to go")
        try:
            c.create(config(searcher={"name": "single", "metric": "accuracy", "max_length": {"batches": 9}, "source_checkpoint_uuid": last}),
                     "examples/digits")
            raise AssertionError("an experiment started from a deleted checkpoint")
        except ApiError as e:
            assert e.status == 404, e


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
    print(f"test_gc {sys.argv[1]}: passed")

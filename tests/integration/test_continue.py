#!/usr/bin/env python3
"""Experiments that go on after their end. usage: test_continue.py [NAME...]   (functions test_NAME below)"""
import json
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ApiError, Cluster, wait_until  # noqa: E402


def digits(batches):
    return json.dumps({
        "name": "digits", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
        "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
        "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": batches}},
        "scheduling_unit": 10, "reproducibility": {"experiment_seed": 3}})


def command(text, searcher, **over):
    return json.dumps({"name": "command", "entrypoint": ["sh", "-c", text], "max_restarts": 0,
                       "hyperparameters": {"a": {"type": "int", "minval": 1, "maxval": 1000}},
                       "searcher": {"metric": "loss", "max_length": {"batches": 1}, **searcher}, **over})


def refused(c, status, words, exp, override=None):
    body = {"id": exp} if override is None else {"id": exp, "overrideConfig": override}
    try:
        c.api("POST", "/experiments/continue", body)
    except ApiError as e:
        assert e.status == status and words in e.text, (e.status, e.text)
        return
    raise AssertionError(f"experiment {exp} was continued")


def replays(c, exp):
    v = c.api("GET", f"/experiments/{exp}/searcher/replay")
    assert v["equal"], v


def test_single(c):
    """A trial that was complete goes on from its checkpoint, in the same trial, to what it would have been at once."""
    whole = c.create(digits(40), "examples/digits")
    exp = c.create(digits(20), "examples/digits")
    c.wait(exp)
    refused(c, 400, "larger searcher.max_length", exp)
    refused(c, 400, "--config searcher.max_length.batches=40", exp)
    refused(c, 400, "searcher.metric", exp, "searcher: {metric: loss, max_length: {batches: 40}}")
    refused(c, 400, "no_such_key", exp, "no_such_key: 1")
    before = c.trials(exp)[0]
    out = c.det("experiment", "continue", str(exp), "--config", "searcher.max_length.batches=40", "--config", "name=longer").stdout
    assert f"Continued experiment {exp}" in out, out
    e = c.wait(exp)
    assert e["config"]["searcher"]["max_length"] == {"batches": 40} and e["name"] == "longer" and e["progress"] == 1, e
    c.wait(whole)
    after, other = c.trials(exp)[0], c.trials(whole)[0]
    assert len(c.trials(exp)) == 1 and after["id"] == before["id"] and after["taskId"] == before["taskId"]
    assert after["totalBatchesProcessed"] == 40 and after["restarts"] == 0, after
    assert c.metrics(after["id"]) == c.metrics(other["id"])
    assert c.metrics(after["id"], "validation")[-1] == c.metrics(other["id"], "validation")[-1]
    assert c.sql(f"SELECT count(*) FROM metrics WHERE trial_id={after['id']} AND archived") == "0"  # what a start from the beginning would do
    replays(c, exp)


def test_hyperparameters(c):
    """Constants may be changed; what is drawn at random may not. A failed trial begins with the new values."""
    mark = c.path("hyper")
    exp = c.create(command("exit 3", {"name": "single"}), None)
    c.wait(exp, "STATE_ERROR")
    refused(c, 400, "drawn at random", exp, "hyperparameters: {b: {type: double, minval: 0, maxval: 1}}")
    c.api("POST", "/experiments/continue", {"id": exp, "overrideConfig": json.dumps(
        {"entrypoint": ["sh", "-c", f"cat $DET_INFO_DIR/trial.json > {mark}; exit 0"], "hyperparameters": {"z": {"type": "const", "val": 7}}})})
    c.wait(exp)
    t = c.trials(exp)[0]
    assert t["hparams"]["z"] == 7 and t["state"] == "STATE_COMPLETED", t
    assert json.load(open(mark))["hparams"]["z"] == 7
    replays(c, exp)


def asleep(c, exp):
    """Of an experiment's commands those that have looked for the mark and wait."""
    found = []
    for p in c.processes(exp):
        try:
            with open(f"/proc/{p}/cmdline", "rb") as f:
                found += [p] if f.read() == b"sleep\0001000\0" else []
        except OSError:  # gone meanwhile
            pass
    return found


def test_search(c):
    """A search that was killed goes on: the same trials and those it still owed, never more at once, also past a kill -9."""
    mark = c.path("go")
    exp = c.create(command(f"test -e {mark} || sleep 1000; exit 0", {"name": "random", "max_trials": 6, "max_concurrent_trials": 2}), None)
    wait_until(lambda: len(asleep(c, exp)) == 2, 60, "two trials")
    refused(c, 400, "only one that has ended", exp)
    c.api("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    first = [t["id"] for t in c.trials(exp)]
    refused(c, 400, "single", exp, "max_restarts: 3")
    c.api("POST", f"/experiments/{exp}/archive")
    refused(c, 400, "archived", exp)
    c.api("POST", f"/experiments/{exp}/unarchive")
    workspace = c.api("POST", "/workspaces", {"name": "put away"})["workspace"]["id"]
    project = c.api("POST", f"/workspaces/{workspace}/projects", {"name": "of old"})["project"]["id"]
    c.api("POST", f"/experiments/{exp}/move", {"destinationProjectId": project})
    c.api("POST", f"/workspaces/{workspace}/archive")
    refused(c, 400, "project or workspace", exp)
    c.api("POST", f"/workspaces/{workspace}/unarchive")
    c.api("POST", "/experiments/continue", {"id": exp})
    assert [t["id"] for t in c.trials(exp)] == first and len(first) == 2
    wait_until(lambda: len(asleep(c, exp)) == 2, 60, "the same two")
    c.stop("master", signal.SIGKILL)
    open(mark, "w").close()
    c.start_master()
    for t in first:
        c.api_patiently("POST", f"/trials/{t}/kill")
    c.wait(exp, seconds=60)
    trials = c.trials(exp)
    assert len(trials) == 6 and [t["state"] for t in trials].count("STATE_COMPLETED") == 4, trials
    replays(c, exp)
    c.api("POST", "/experiments/continue", {"id": exp})
    c.wait(exp, seconds=60)
    assert [t["state"] for t in c.trials(exp)] == ["STATE_COMPLETED"] * 6
    refused(c, 400, "are complete", exp)
    replays(c, exp)


def test_edited(c):
    """What is changed while somebody continues it is not lost, and nothing that was put away runs."""
    hold = c.path("hold")
    exp = c.create(command(f"while test -e {hold}; do sleep 0.05; done; exit 3", {"name": "single"}), None)
    c.wait(exp, "STATE_ERROR")
    for i in range(12):
        done = {}
        open(hold, "w").close()

        def ask(what, method, path, body):
            try:
                done[what] = c.request(method, path, body)
            except ApiError as e:
                assert e.status == 400, e

        both = [threading.Thread(target=ask, args=a) for a in (
            ("continue", "POST", "/experiments/continue", {"id": exp, "overrideConfig": json.dumps({"description": f"d{i}"})}),
            ("rename", "PATCH", f"/experiments/{exp}", {"name": f"n{i}"}),
            ("archive", "POST", f"/experiments/{exp}/archive", None))]
        for t in both:
            t.start()
        for t in both:
            t.join()
        e = c.experiment(exp)
        assert "rename" in done and e["name"] == e["config"]["name"] == f"n{i}", (e["name"], e["config"]["name"], i, done)
        assert not ("archive" in done and "continue" in done), "an archived experiment runs"
        if "continue" in done:
            assert e["description"] == f"d{i}", e["description"]
        os.unlink(hold)
        c.wait(exp, "STATE_ERROR")
        if c.experiment(exp)["archived"]:
            c.api("POST", f"/experiments/{exp}/unarchive")


def test_refusals(c):
    refused(c, 404, "not found", 99999)
    exp = c.create(command("exit 0", {"name": "custom", "unit": "batches", "max_length": None}), None)
    c.api("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")
    refused(c, 400, "none of single", exp)
    c.api("DELETE", f"/experiments/{exp}")
    wait_until(lambda: not c.sql(f"SELECT 1 FROM experiments WHERE id={exp}"), 30, "the experiment to be deleted")
    refused(c, 404, "not found", exp)


def main():
    names = sys.argv[1:] or [n[5:] for n in globals() if n.startswith("test_")]
    with Cluster(agents=1, slots=4) as c:
        for name in names:
            globals()["test_" + name](c)
            print(f"ok   {name}", flush=True)


if __name__ == "__main__":
    main()

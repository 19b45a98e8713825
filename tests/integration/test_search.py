#!/usr/bin/env python3
"""Searchers in a real cluster. usage: test_search.py NAME   (a function test_NAME below)"""
import json
import os
import signal
import sys
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ApiError, Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402


def config(searcher, **over):
    c = {"name": "t", "entrypoint": "model_def:DigitsTrial", "max_restarts": 2, "scheduling_unit": 5,
         "hyperparameters": {"global_batch_size": 16, "dropout": 0.1,
                             "learning_rate": {"type": "log", "base": 10, "minval": -3, "maxval": -1}},
         "searcher": {"metric": "accuracy", "smaller_is_better": False, **searcher},
         "checkpoint_policy": "none", "reproducibility": {"experiment_seed": 7}}
    c.update(over)
    return json.dumps(c)


def kill_master(c):
    c.stop("master", signal.SIGKILL)
    c.start_master()


def replay(c, exp):
    """The verdict, after it was found equal."""
    r = c.api_patiently("GET", f"/experiments/{exp}/searcher/replay")
    assert r["equal"] and r["difference"] is None and len(r["sha256"]) == 64, r
    return r


def tells_why(c, exp, trials):
    """Each trial has a sentence, the last of its log too; the rungs hold all of them."""
    rungs = c.api("GET", f"/experiments/{exp}/rungs")
    in_first = [t["trialId"] for b in rungs["brackets"] for t in b["rungs"][0]["trials"]]
    assert sorted(in_first) == sorted(t["id"] for t in trials), rungs
    for b in rungs["brackets"]:
        for low, high in zip(b["rungs"], b["rungs"][1:]):
            went = {t["trialId"] for t in low["trials"] if t["state"] == "WENT_ON"}
            assert went == {t["trialId"] for t in high["trials"]} and len(went) == low["wentOn"], b
        metrics = [t["metric"] for t in b["rungs"][0]["trials"]]
        assert metrics == sorted(metrics, reverse=True), b
    ended = {"STOPPED": "the searcher ended it: ", "TOP": "it reached the end of its search: "}
    for t in trials:
        why = c.api("GET", f"/trials/{t['id']}/why")
        assert why["reason"] == "SEARCHER" and why["text"].startswith(ended[why["search"]["state"]]), why
        assert f"rung {why['search']['rung']} of " in why["text"] and not why["waiting"], why
        last = c.det("trial", "logs", str(t["id"]), "--source", "master", "--tail", "1").stdout
        rung = why["text"].partition(")")[0]  # a master that was started again meanwhile says where it stands by then
        assert f"Trial {t['id']} ended: {rung}" in last and "its accuracy of" in last, (last, why)
        assert why["text"] in c.det("why", str(t["id"])).stdout
    assert "WENT ON" in c.det("e", "rungs", str(exp)).stdout
    stopped = {str(t["trialId"]) for b in rungs["brackets"] for r in b["rungs"] for t in r["trials"] if t["state"] == "STOPPED"}
    for words in (("lt", str(exp)), ("describe", str(exp))):
        rows = c.det("e", *words).stdout.splitlines()
        marked = {r.split()[0] for r in rows if r.endswith("stopped by the searcher")}
        best = {r.split()[0] for r in rows if "* best" in r}
        assert marked and marked == stopped - best, (stopped, rows)
    assert "stopped" not in c.det("e", "lt", str(exp), "--json").stdout  # the API's own
    told = c.det("t", "describe", min(stopped)).stdout
    assert "COMPLETED, stopped by the searcher\n  reason           the searcher ended it: in " in told, told
    listed = c.det("e", "rungs", str(exp), "--trials", "--csv").stdout.splitlines()
    assert len(listed) == 1 + sum(r["validated"] for b in rungs["brackets"] for r in b["rungs"]), listed


def halving(searcher, lengths):
    with Cluster(slots=4) as c:
        exp = c.create(config(searcher), "examples/digits")
        wait_until(lambda: any(t["state"] == "STATE_COMPLETED" or t["totalBatchesProcessed"] for t in c.trials(exp)), 60, "some training")
        kill_master(c)
        during = replay(c, exp)
        c.wait(exp, seconds=240)
        trials = c.trials(exp)
        assert len(trials) == searcher["max_trials"] and {t["state"] for t in trials} == {"STATE_COMPLETED"}, trials
        done = sorted(t["totalBatchesProcessed"] for t in trials)
        assert set(done) <= set(lengths) and done[-1] == lengths[-1] or searcher.get("stop_once") is None, done
        tells_why(c, exp, trials)
        after = replay(c, exp)
        assert after["trials"] == len(trials) and after["events"] >= max(during["events"], 2 * len(trials)), (during, after)
        kill_master(c)
        assert replay(c, exp) == after  # finished: from the tables alone
        said = c.det("experiment", "replay", str(exp)).stdout
        assert after["sha256"] in said, said
        c.sql(f"UPDATE search_events SET event = (event::jsonb || '{{\"metric\": 5}}')::json WHERE experiment_id = {exp} AND "
              f"seq = (SELECT min(seq) FROM search_events WHERE experiment_id = {exp} AND event->>'event' = 'validated')")
        r = c.det("experiment", "replay", str(exp), check=False)
        assert r.returncode == 1 and "differs" in r.stderr, r


def test_asha():
    """async_halving, the master killed on the way; its log replays, and a forged one does not."""
    halving({"name": "async_halving", "num_rungs": 3, "divisor": 4, "max_trials": 8, "max_concurrent_trials": 4,
             "max_length": {"batches": 64}}, [4, 16, 64])


def test_adaptive():
    halving({"name": "adaptive_asha", "max_rungs": 3, "divisor": 4, "max_trials": 10, "max_concurrent_trials": 4,
             "mode": "conservative", "stop_once": True, "max_length": {"batches": 32}}, [2, 8, 32])


def test_same_length_twice():
    """Rungs of one batch, one batch and two: a trial is asked for a length it has reached already."""
    with Cluster(slots=2) as c:
        exp = c.create(config({"name": "async_halving", "num_rungs": 3, "divisor": 4, "max_trials": 1, "stop_once": True,
                               "max_length": {"batches": 2}}), "examples/digits")
        c.wait(exp)
        assert [t["totalBatchesProcessed"] for t in c.trials(exp)] == [2]
        assert replay(c, exp)["events"] == 4


class Client(threading.Thread):
    """Three trials, each trained to 4 and then to 8 batches; then the end. Survives the master."""

    def __init__(self, c, exp):
        super().__init__(daemon=True)
        self.c, self.exp, self.closed, self.heard, self.error = c, exp, 0, [], None

    def answer(self, e):
        if "initialOperations" in e:
            ids = [str(uuid.UUID(int=i, version=4)) for i in (1, 2, 3)]
            return [op for i in ids for op in (
                {"createTrial": {"requestId": i, "hyperparams": json.dumps({"global_batch_size": 16, "dropout": 0.2, "learning_rate": 0.01})}},
                {"trialOperation": {"validateAfter": {"requestId": i, "length": "4"}}})] + [{"unheard": {}}]
        if "validationCompleted" in e:
            v = e["validationCompleted"]
            assert 0 <= v["metric"] <= 1
            if v["validateAfterLength"] == "4":
                return [{"trialOperation": {"validateAfter": {"requestId": v["requestId"], "length": "8"}}},
                        {"setSearcherProgress": {"progress": 0.5}}]
            return [{"closeTrial": {"requestId": v["requestId"], "reason": "no better\x1b[2J than \u00e4.\n"}}]
        if "trialClosed" in e:
            self.closed += 1
            return [{"shutDown": {"cancel": False, "failure": False}}] if self.closed == 3 else []
        return []

    def work(self):
        path, known = f"/experiments/{self.exp}", 0
        while self.closed < 3:
            for e in self.c.api_patiently("GET", path + "/searcher_events")["searcherEvents"]:
                if e["id"] <= known:
                    continue
                self.heard.append(e)
                body = {"searcherOperations": self.answer(e), "triggeredByEvent": e}
                try:
                    self.c.api_patiently("POST", path + "/searcher_operations", body)
                except ApiError as err:  # its answer was lost, the operations were not
                    if "waits to be acknowledged" not in err.text:
                        raise
                known = e["id"]

    def run(self):
        try:
            self.work()
        except BaseException as e:
            self.error = e


def test_custom():
    with Cluster(slots=2) as c:
        exp = c.create(config({"name": "custom", "unit": "batches", "anything": {"of": "mine"}}), "examples/digits")
        client = Client(c, exp)
        client.start()
        wait_until(lambda: client.error or any("validationCompleted" in e for e in client.heard), 90, "a validation")
        kill_master(c)
        c.wait(exp, seconds=180)
        client.join(120)
        assert not client.error and not client.is_alive(), client.error
        assert [e["id"] for e in client.heard] == list(range(1, len(client.heard) + 1)), client.heard
        kinds = [k for e in client.heard for k in e if k != "id"]
        assert kinds.count("trialCreated") == 3 and kinds.count("validationCompleted") == 6 and kinds.count("trialClosed") == 3, kinds
        trials = c.trials(exp)
        assert [t["totalBatchesProcessed"] for t in trials] == [8, 8, 8] and trials[0]["hparams"]["dropout"] == 0.2, trials
        for t in trials:
            says, said = c.api("GET", f"/trials/{t['id']}/why"), "the client of its search closed it after 8 batches: no better?[2J than \u00e4"
            assert says["reason"] == "SEARCHER" and says["text"] == said and f"Trial {t['id']} ended: {said}." in c.logs(t["id"]), says
        assert said in c.det("why", f"trial:{t['id']}").stdout and "client of a custom search decides" in c.det("e", "rungs", str(exp)).stdout
        assert c.sql(f"SELECT DISTINCT seed FROM trials WHERE experiment_id = {exp}") == "42"
        replay(c, exp)


def refused(call, status):
    try:
        call()
    except ApiError as e:
        assert e.status == status, e
        return e.text
    raise AssertionError("accepted")


def test_events():
    """The client's routes: states, errors, the long poll."""
    with Cluster(agents=0) as c:
        exp = c.create(config({"name": "custom"}), "examples/digits")
        path = f"/experiments/{exp}"
        assert c.api("GET", path + "/searcher_events") == {"searcherEvents": [{"id": 1, "initialOperations": {}}]}
        ops = path + "/searcher_operations"
        refused(lambda: c.api("POST", ops, {"searcherOperations": [], "triggeredByEvent": {"id": 9}}), 400)
        c.api("POST", ops, {"searcherOperations": [], "triggeredByEvent": {"id": 1}})
        refused(lambda: c.api("POST", ops, {"searcherOperations": [], "triggeredByEvent": {"id": 1}}), 400)
        got = []
        poll = threading.Thread(target=lambda: got.append(c.api("GET", path + "/searcher_events")), daemon=True)
        poll.start()
        rid = str(uuid.UUID(int=5, version=4))
        c.api("POST", ops, {"searcherOperations": [{"createTrial": {"requestId": rid, "hyperparams": "{}"}}, {"closeTrial": {"requestId": rid}}]})
        poll.join(120)
        assert got and got[0]["searcherEvents"][0] == {"id": 2, "trialCreated": {"requestId": rid}}, got
        kinds = [next(k for k in e if k != "id") for e in c.api("GET", path + "/searcher_events")["searcherEvents"]]
        assert kinds == ["trialCreated", "trialClosed"], kinds
        c.api("POST", path + "/pause")
        e = c.api("GET", path + "/searcher_events")["searcherEvents"]
        assert e == [{"id": -1, "experimentInactive": {"experimentState": "STATE_PAUSED"}}], e
        c.api("POST", path + "/kill")
        c.wait(exp, "STATE_CANCELED")
        ended = [{"id": -1, "experimentInactive": {"experimentState": "STATE_CANCELED"}}]
        assert c.api("GET", path + "/searcher_events")["searcherEvents"] == ended
        refused(lambda: c.api("GET", "/experiments/999/searcher_events"), 404)
        other = c.create(config({"name": "single", "max_length": {"batches": 1}}), "examples/digits")
        refused(lambda: c.api("GET", f"/experiments/{other}/searcher_events"), 400)
        c.api("POST", f"/experiments/{other}/kill")
        c.wait(other, "STATE_CANCELED")
        refused(lambda: c.api("GET", f"/experiments/{other}/searcher_events"), 400)
        replay(c, exp)
        refused(lambda: c.api("GET", "/experiments/999/searcher/replay"), 404)


def test_many():
    """3,000 trials at once, the master killed before all were made: every one is made, once."""
    with Cluster(agents=0) as c:
        exp = c.create(config({"name": "random", "max_trials": 3000, "max_concurrent_trials": 0, "max_length": {"batches": 1}}),
                       "examples/digits", activate=False)
        kill_master(c)
        count = lambda: c.sql(f"SELECT count(*), count(DISTINCT request_id) FROM trials WHERE experiment_id = {exp}")
        wait_until(lambda: count() == "3000|3000", 60, "3,000 trials")
        assert replay(c, exp)["trials"] == 3000
        c.api_patiently("POST", f"/experiments/{exp}/kill")
        c.wait(exp, "STATE_CANCELED", seconds=60)
        replay(c, exp)


def test_large_numbers():
    """What PostgreSQL prints without an exponent does not keep the master from starting."""
    with Cluster(agents=0) as c:
        text = json.loads(config({"name": "single", "max_length": {"batches": 1}}))
        text["hyperparameters"]["x"] = 1e25
        exp = c.create(json.dumps(text), "examples/digits", activate=False)
        kill_master(c)
        assert float(c.trials(exp)[0]["hparams"]["x"]) == 1e25
        replay(c, exp)


def test_preview():
    with Cluster(agents=0) as c:
        path = c.path("c.yaml")
        with open(path, "w") as f:
            f.write(config({"name": "async_halving", "num_rungs": 3, "divisor": 4, "max_trials": 32, "max_concurrent_trials": 4,
                            "max_length": {"batches": 64}}))
        out = c.det("preview-search", path).stdout
        assert "32 trials" in out and "4, 16, 64" in out, out
        sim = json.loads(c.det("preview-search", path, "--json").stdout)["simulation"]
        assert sum(t["occurrences"] for t in sim["trials"]) == 32 and sim["seed"] == 7, sim
        assert c.det("preview-search", path).stdout == out
        conf = json.load(open(path))
        assert c.api("POST", "/preview-hp-search", {"config": conf, "seed": 7})["simulation"]["trials"] == sim["trials"]
        plain = Api(c.port, c.token).call("preview_search", conf)  # by the words of old clients: the lengths of each kind of trial
        assert plain["results"] and sum(plain["results"].values()) == 32 and plain["seed"] == 7, plain
        assert set(plain["results"]) == {" ".join(o["length"] for o in t["operations"] if o["type"] == "RUNNABLE_TYPE_TRAIN") for t in sim["trials"]}, plain
        r = c.det("preview-search", path, "--config", "searcher.max_trials=2000000000", check=False)
        assert r.returncode == 1 and "max_trials" in r.stderr, r
        r = c.det("preview-search", path, "--config", "searcher.name=custom", check=False)
        assert r.returncode == 1 and "custom" in r.stderr, r


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
    print("ok", sys.argv[1])

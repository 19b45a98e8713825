#!/usr/bin/env python3
"""The main job with real processes. usage: test_cluster.py NAME   (a function test_NAME below)"""
import hashlib
import json
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import masters  # noqa: E402
import paced  # noqa: E402
import promtext  # noqa: E402
from cluster import TOP, ApiError, Cluster, wait_until  # noqa: E402
from proxy import Proxy  # noqa: E402

MNIST = os.path.join(TOP, "..", "shared", "data", "mnist")


def config(**over):
    """A short digits experiment; keys are replaced at the top level."""
    c = {"name": "t", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
         "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
         "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 300}},
         "scheduling_unit": 50, "reproducibility": {"experiment_seed": 7}}
    c.update(over)
    return json.dumps(c)


def last_state(c, trial):
    cps = [p for p in c.api("GET", f"/trials/{trial}/checkpoints")["checkpoints"] if p["state"] == "STATE_COMPLETED"]
    last = max(cps, key=lambda p: p["metadata"]["steps_completed"])
    return last, open(c.path("checkpoints", last["uuid"], "state_dict.pth"), "rb").read()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def run(c, text, **kw):
    exp = c.create(text, "examples/digits")
    c.wait(exp, **kw)
    return exp, c.trials(exp)


def test_const():
    """examples/digits/const.yaml trains to the promised accuracy and leaves metrics, logs and a checkpoint."""
    with Cluster() as c:
        exp = c.create("examples/digits/const.yaml", "examples/digits")
        e = c.wait(exp)
        assert e["numTrials"] == 1 and e["progress"] == 1, e
        trial = c.trials(exp)[0]
        assert trial["state"] == "STATE_COMPLETED" and trial["bestValidation"]["metrics"]["avgMetrics"]["accuracy"] >= 0.95, trial
        assert c.metrics(trial["id"]) and c.metrics(trial["id"], "validation")
        assert c.logs(trial["id"]).strip()
        cp, state = last_state(c, trial["id"])
        assert state[:2] == b"PK" and cp["resources"]["state_dict.pth"] == str(len(state)), cp
        wait_until(lambda: not c.processes(exp) and c.slots_free(), 10, "nothing left running")
        kinds = c.timeline(trial["id"])
        assert [k for k in kinds if k in ("queued", "placed", "compiled", "first_batch", "validation", "end")][:4] == [
            "queued", "placed", "compiled", "first_batch"] and kinds[-1] == "end", kinds
        assert {"prepared", "running", "ready", "checkpoint", "validation"} <= set(kinds), kinds


def test_grid():
    """The example's grid reaches 97 %; same seed, same bytes, also beside notes that no variable can hold."""
    with Cluster() as c:
        exp = c.create("examples/digits/grid.yaml", "examples/digits")
        c.wait(exp, seconds=200)
        best = max(t["bestValidation"]["metrics"]["avgMetrics"]["accuracy"] for t in c.trials(exp))
        assert best >= 0.97, best
        long = {"hyperparameters": {**json.loads(config())["hyperparameters"], "note": "x" * (140 << 10)}, "data": {"note": "x" * (140 << 10)}}
        a, b = (run(c, config(**over))[1][0]["id"] for over in ({}, long))
        assert sha(last_state(c, a)[1]) == sha(last_state(c, b)[1])
        assert c.metrics(a) == c.metrics(b) and c.metrics(a, "validation") == c.metrics(b, "validation")


def test_each_batch():
    """A trial that reports each of 3,000 batches, and a master that is killed meanwhile: each report is there once. What
    gathered while the master was away came together."""
    with Cluster() as c:
        exp = c.create(config(scheduling_unit=1, searcher={"name": "single", "metric": "accuracy", "smaller_is_better": False,
                                                           "max_length": {"batches": 3000}}), "examples/digits")
        rows = lambda: int(c.sql("SELECT count(*) FROM metrics WHERE grp = 'training'"))
        for some in (300, 1000):
            wait_until(lambda: rows() > some, 60, f"{some} reports")
            c.stop("master", signal.SIGKILL)
            c.start_master()
        c.wait(exp, seconds=200)
        assert c.sql("SELECT count(*), count(DISTINCT steps), min(steps), max(steps) FROM metrics WHERE grp = 'training'") == "3000|3000|1|3000"
        assert c.sql("SELECT summary_metrics#>>'{avg_metrics,loss,count}', progress FROM trials") == "3000|3000"
        # together: a microsecond apart
        assert int(c.sql("SELECT count(*) FROM (SELECT end_time - lag(end_time) OVER (ORDER BY steps) = '1 us' AS next FROM metrics "
                         "WHERE grp = 'training') x WHERE next")) > 100
        assert c.trials(exp)[0]["restarts"] == 0


def test_random():
    with Cluster() as c:
        exp = c.create("examples/digits/random.yaml", "examples/digits")
        c.wait(exp, seconds=200)
        hps = {json.dumps(t["hparams"], sort_keys=True) for t in c.trials(exp)}
        assert len(hps) == len(c.trials(exp)) > 1


def polls(c):
    """How many wait to be told of a pause: the only rank there is, or none."""
    status, _, text = masters.get(c.port, "/metrics")
    return promtext.value(promtext.parse(text), "det_http_polls") if status == 200 else None


def test_pause():
    """Pause and activate in mid-epoch: the bits of an undisturbed run."""
    with Cluster() as c:
        search = {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 3000}}
        text = json.loads(config(searcher=search, scheduling_unit=10))
        whole = paced.create(c, text, 0)
        c.wait(whole)
        (whole,), holds = c.trials(whole), paced.Holds(c)
        holds.hold(45, 1005)  # until it is told to pause
        exp = paced.create(c, text, 0, holds)
        for n in (45, 1005):
            wait_until(lambda: any(t["totalBatchesProcessed"] >= n - 5 for t in c.trials(exp)), 60, "batches")
            before = c.trials(exp)[0]["totalBatchesProcessed"]
            wait_until(lambda: polls(c) == 1, 30, "the rank to ask for word of a pause")
            c.api("POST", f"/experiments/{exp}/pause")
            assert c.experiment(exp)["state"] == "STATE_PAUSED"
            wait_until(lambda: polls(c) == 0, 30, "the rank to be told: it is held, and would not stop for what comes later")
            holds.release(n)
            wait_until(c.slots_free, 30, "free slots")
            c.api("POST", f"/experiments/{exp}/activate")
            wait_until(lambda: c.trials(exp)[0]["totalBatchesProcessed"] > before or c.experiment(exp)["state"] == "STATE_COMPLETED", 60, "more batches")
        c.wait(exp)
        paused = c.trials(exp)[0]
        assert paused["restarts"] == 0
        assert int(paused["taskIds"] is not None) and c.sql(f"SELECT run_id FROM trials WHERE id={paused['id']}") != "1"
        assert sha(last_state(c, whole["id"])[1]) == sha(last_state(c, paused["id"])[1])
        for g in ("training", "validation"):
            assert c.metrics(whole["id"], g)[-1] == c.metrics(paused["id"], g)[-1], g


def close_to(a, b, tolerance):
    for (sa, ma), (sb, mb) in zip(a, b):
        assert sa == sb, (sa, sb)
        va, vb = (m.get("avg_metrics") or m.get("validation_metrics") for m in (ma, mb))
        for k in va:
            assert abs(va[k] - vb[k]) <= tolerance * max(1, abs(va[k])), (sa, k, va[k], vb[k])


def test_two_ranks():
    """slots_per_trial: 2 equals one rank of the same global batch to rounding; on one agent and on two."""
    no_dropout = {"global_batch_size": 32, "learning_rate": 0.05, "dropout": 0.0}
    search = {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 40}}
    base = dict(hyperparameters=no_dropout, searcher=search, scheduling_unit=10)
    with Cluster(agents=1, slots=2) as c:
        _, (one,) = run(c, config(**base))
        exp, (two,) = run(c, config(**base, resources={"slots_per_trial": 2}))
        a, b = c.metrics(one["id"]), c.metrics(two["id"])
        assert len(a) == len(b) == 4
        close_to(a[:1], b[:1], 1e-4)  # later ones differ more: rounding grows with the steps
        assert all(abs(x[1]["avg_metrics"]["loss"] - y[1]["avg_metrics"]["loss"]) < 0.15 for x, y in zip(a, b)), (a, b)
        _, (again,) = run(c, config(**base, resources={"slots_per_trial": 2}))
        assert sha(last_state(c, two["id"])[1]) == sha(last_state(c, again["id"])[1])
        ours = last_state(c, two["id"])[1]
    with Cluster(agents=2, slots=1) as c:
        with socket.socket() as other:  # another program listens where the ranks are told to meet: both hosts meet elsewhere
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = f"C10D_PORT={other.getsockname()[1]}"
            _, (two,) = run(c, config(**base, resources={"slots_per_trial": 2}, environment={"environment_variables": [port]}))
        assert two["restarts"] == 0 and port.replace("=", " ") + " by " in c.logs(two["id"]), (two, c.logs(two["id"]))
        assert sha(ours) == sha(last_state(c, two["id"])[1])


def test_asked_again():
    """A host's connection breaks while its task waits at the rendezvous: it asks again, and the gang of its first run starts."""
    with Cluster(agents=0, slots=1) as c:
        c.login()
        proxy, port = Proxy(("127.0.0.1", c.port)), c.port
        proxy.noted = b"/rendezvous"  # a space or, where a port is taken here, its ports come after
        c.n_agents = 2
        c.start_agent(1)
        c.port = proxy.port
        c.start_agent(0)
        c.port = port
        c.wait_agents(2)
        both = config(resources={"slots_per_trial": 2})
        run(c, both)  # both know the store
        wait_until(c.slots_free, 30, "free slots")  # or the second never starts: a stopped agent tells of no end
        before = proxy.notes
        os.kill(c.pid("agent-1"), signal.SIGSTOP)  # its task is long in coming
        exp = c.create(both, "examples/digits")
        wait_until(lambda: proxy.notes == before + 1, 30, "the first task at the rendezvous")
        for n, end in enumerate((proxy.desert, proxy.cut), 2):  # the master keeps the older connection; it sees its end
            end()
            wait_until(lambda: proxy.notes == before + n, 30, "the question that replaces the older one")
        os.kill(c.pid("agent-1"), signal.SIGCONT)
        c.wait(exp)
        trial = c.trials(exp)[0]
        assert trial["restarts"] == 0 and " run 1, " in c.logs(trial["id"]) and " run 2, " not in c.logs(trial["id"]), c.logs(trial["id"])
        proxy.close()


def test_restart():
    """Master and agent restarted under a running trial: it does not notice."""
    with Cluster() as c:
        search = {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 6000}}
        exp = c.create(config(searcher=search), "examples/digits")
        wait_until(lambda: c.trials(exp) and c.trials(exp)[0]["totalBatchesProcessed"] > 0, 60, "a running trial")
        c.stop("master")
        c.start_master()
        c.stop("agent-0")
        c.start_agent(0)
        c.wait(exp)
        trial = c.trials(exp)[0]
        assert trial["restarts"] == 0 and c.sql(f"SELECT run_id FROM trials WHERE id={trial['id']}") == "1"


def test_life():
    """cancel, kill, archive, delete and their refusals."""
    with Cluster() as c:
        long = {"name": "single", "metric": "accuracy", "max_length": {"batches": 1000000}}
        exp = c.create(config(searcher=long), "examples/digits")
        wait_until(lambda: c.trials(exp) and c.trials(exp)[0]["state"] == "STATE_RUNNING", 60, "a running trial")
        c.api("POST", f"/experiments/{exp}/kill")
        wait_until(lambda: c.experiment(exp)["state"] == "STATE_CANCELED" and c.slots_free(), 10, "the kill")
        wait_until(lambda: not c.processes(exp), 10, "the end of all processes")
        second = c.create(config(searcher=long), "examples/digits")
        wait_until(lambda: c.trials(second) and c.trials(second)[0]["totalBatchesProcessed"] > 0, 60, "batches")
        c.api("POST", f"/experiments/{second}/cancel")
        c.wait(second, "STATE_CANCELED", 60)
        c.api("POST", f"/experiments/{second}/archive")
        try:
            c.api("POST", f"/experiments/{second}/activate")
            raise AssertionError("a finished experiment was activated")
        except ApiError as e:
            assert e.status in (400, 404), e
        kept = [p["uuid"] for p in c.api("GET", f"/experiments/{second}/checkpoints")["checkpoints"]]
        assert kept and all(os.path.isdir(c.path("checkpoints", u)) for u in kept)
        c.api("DELETE", f"/experiments/{second}")

        def deleted():
            try:
                c.api("GET", f"/experiments/{second}")
            except ApiError as e:
                return e.status == 404
        wait_until(deleted, 30, "the deletion")
        assert not any(os.path.isdir(c.path("checkpoints", u)) for u in kept)


def is_harness(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "det-harness"
    except OSError:  # gone meanwhile
        return False


def test_hang():
    """A rank that hangs (here: stopped) is found, named with its stacks, ended and started again by the ordinary rule."""
    with Cluster(slots=1) as c:
        exp = c.create(config(max_restarts=1, stall_timeout=4, searcher={"name": "single", "metric": "accuracy", "smaller_is_better": False,
                                                                         "max_length": {"batches": 1000000}}), "examples/digits")
        trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
        wait_until(lambda: c.metrics(trial), 60, "a batch")
        pid = wait_until(lambda: [p for p in c.processes(exp) if is_harness(p)], 30, "the rank")[0]
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: c.sql(f"SELECT count(*) FROM metrics WHERE trial_id={trial} AND run_id=2") != "0", 60, "the second run's batches")
        assert c.trials(exp)[0]["restarts"] == 1, c.trials(exp)
        said = f"process {pid} is stopped by a signal", (" thread: ", "stacks cannot be read", "reading the stacks took longer than")

        def named():
            log = c.logs(trial)
            return said[0] in log and any(text in log for text in said[1])
        wait_until(named, 60, "its stacks in the log, which is told on while the second run trains")
        kinds = c.timeline(trial)
        assert [k for k in kinds if k in ("stalled", "killed", "restart")] == ["stalled", "killed", "restart"], kinds


def test_impossible():
    """A request that can never fit is refused at submit with the reason."""
    with Cluster(slots=2) as c:
        try:
            c.create(config(resources={"slots_per_trial": 5}), "examples/digits")
            raise AssertionError("accepted")
        except ApiError as e:
            assert "5" in e.text and "slot" in e.text, e.text


def test_no_compiler():
    """A host whose compiler does not start is no failure of the trial's: another one trains it."""
    with Cluster(agents=0, slots=1) as c:
        c.env["DET_CC"], c.n_agents = c.path("nowhere", "cc"), 2
        c.start_agent(0)
        c.wait_agents(1)
        exp = c.create(config(), "examples/digits")
        trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
        wait_until(lambda: "Agent agent-0 could not start trial" in c.logs(trial), 30, "the host to be left out")
        assert c.env.pop("DET_CC") in c.det("why", str(trial)).stdout
        c.start_agent(1)
        c.wait(exp)
        assert c.trials(exp)[0]["restarts"] == 0, c.logs(trial)


def test_no_host():
    """The only host cannot start it, and no restart is left to use up: it ends of that, and what is said of it names the host."""
    with Cluster(agents=0, slots=1) as c:
        c.env["DET_CC"], c.n_agents = c.path("nowhere", "cc"), 1
        c.start_agent(0)
        c.wait_agents(1)
        exp = c.create(config(max_restarts=0), "examples/digits")
        c.wait(exp, "STATE_ERROR", 120)
        trial = c.trials(exp)[0]
        why = f"agent agent-0: the task could not be started: start {c.env['DET_CC']}: No such file or directory ("
        assert trial["restarts"] == 0 and f"cannot be started on any agent that could have it: {why}" in c.logs(trial["id"]), c.logs(trial["id"])
        assert f"its last run, on agent-0: the task could not be started: start {c.env['DET_CC']}" in c.det("why", str(trial["id"])).stdout
        assert why in c.det("why", f"exp:{exp}").stdout and why in c.det("experiment", "describe", str(exp)).stdout
        assert why in c.det("experiment", "wait", str(exp), check=False).stderr


def test_mnist():
    if not os.path.isdir(MNIST):
        print("no MNIST files: skipped")
        sys.exit(77)
    with Cluster() as c:
        text = open(os.path.join(TOP, "examples/mnist/const.yaml")).read()
        exp = c.create(text.replace("/data/mnist", MNIST), "examples/mnist")
        c.wait(exp, seconds=300)
        best = c.trials(exp)[0]["bestValidation"]["metrics"]["avgMetrics"]["accuracy"]
        assert best >= 0.97, best


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()

#!/usr/bin/env python3
"""A trial's TensorBoard files in the checkpoint store: every step once, through pauses and a killed rank; its profile."""
import glob
import http.client
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import paced  # noqa: E402
import tfevents  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402

LENGTH = 6000
CONFIG = json.dumps({
    "name": "tensorboard", "entrypoint": "model_def:DigitsTrial", "max_restarts": 1,
    "hyperparameters": {"global_batch_size": 4, "learning_rate": 0.05, "dropout": 0.1},
    "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": LENGTH}},
    "scheduling_unit": 50, "min_checkpoint_period": {"batches": 1000}, "min_validation_period": {"batches": 3000},
    "reproducibility": {"experiment_seed": 7}})


def kept(c, exp, trial):
    found = glob.glob(c.path("checkpoints", "*", "tensorboard", "experiment", str(exp), "trial", str(trial)))
    assert len(found) <= 1, found
    return found[0] if found else None


def deleted(c, exp, trial):
    """With the experiment its files go."""
    where = kept(c, exp, trial)
    c.api("DELETE", f"/experiments/{exp}")
    wait_until(lambda: not c.sql(f"SELECT 1 FROM experiments WHERE id={exp}"), 60, "the experiment to be deleted")
    assert where and not os.path.exists(os.path.dirname(os.path.dirname(where))), where


def name(pid):
    try:
        return open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        return ""


def batches(c, exp):
    return c.trials(exp)[0]["totalBatchesProcessed"] if c.trials(exp) else 0


def stream(c, path):
    """The answers of a route that streams."""
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    conn.request("GET", "/api/v1" + path, headers={"Authorization": "Bearer " + c.token})
    text = conn.getresponse().read().decode()
    conn.close()
    return [json.loads(line) for line in text.splitlines() if line]


def measurements(c, trial, name, kind):
    """The profiler's values of one series, as the routes give them."""
    q = f"/trials/{trial}/profiler/metrics?labels.name={name}&labels.metricType=PROFILER_METRIC_TYPE_{kind}"
    return [b["result"]["batch"] for b in stream(c, q)]


def profiled(c):
    """`profiling` in the configuration: timings of the batches it names and the load of the host."""
    text = json.loads(CONFIG)
    text.update(profiling={"enabled": True, "begin_on_batch": 20, "end_after_batch": 400}, searcher=dict(text["searcher"], max_length={"batches": 500}))
    exp = c.create(json.dumps(text), "examples/digits")
    c.wait(exp)
    trial = c.trials(exp)[0]["id"]
    series = {x["name"]: x for answer in stream(c, f"/trials/{trial}/profiler/available_series") for x in answer["result"]["labels"]}
    timings = {"dataloader_next", "train_batch", "train_batch.backward", "train_batch.step_optimizer", "average_training_metrics"}
    load = {"cpu_util_simple", "free_memory", "net_throughput_sent", "net_throughput_recv", "disk_iops", "disk_throughput_read", "disk_throughput_write"}
    assert timings | load | {"samples_per_second"} <= set(series), sorted(series)
    assert series["free_memory"]["agentId"] == "agent-0" and series["train_batch"]["metricType"] == "PROFILER_METRIC_TYPE_TIMING", series
    got = measurements(c, trial, "train_batch", "TIMING")
    steps = [s for b in got for s in b["batches"]]
    assert sorted(steps) == list(range(20, 401)), (steps[:3], steps[-3:])
    assert all(0 < v < 60 for b in got for v in b["values"])
    assert all(0 <= v <= 100.5 for b in measurements(c, trial, "cpu_util_simple", "SYSTEM") for v in b["values"])


def main():
    with Cluster() as c:
        # Mostly it waits: however busy the machine is, the strikes come before its end.
        exp = paced.create(c, "\n".join(f"{key}: {json.dumps(value)}" for key, value in json.loads(CONFIG).items()), 3)
        wait_until(lambda: batches(c, exp) > 1100, 120, "a checkpoint")
        trial = c.trials(exp)[0]["id"]
        c.api("POST", f"/experiments/{exp}/pause")
        wait_until(c.slots_free, 30, "free slots")
        assert tfevents.scalars(kept(c, exp, trial))["Determined/loss"][-1][0] >= 1100
        c.api("POST", f"/experiments/{exp}/activate")
        wait_until(lambda: batches(c, exp) > 2200, 120, "batches past the next checkpoint")
        ranks = [p for p in c.processes(exp) if name(p) == "det-harness"]
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        c.wait(exp)
        t = c.trials(exp)[0]
        assert ranks and t["restarts"] == 1, (ranks, t)
        values = tfevents.scalars(kept(c, exp, trial))
        assert [s for s, _ in values["Determined/loss"]] == list(range(LENGTH))
        assert [s for s, _ in values["Determined/val_accuracy"]] == [3000, LENGTH]
        assert [s for s, _ in values["Determined/validation_loss"]] == [3000, LENGTH]
        reported = {int(steps): m["validation_metrics"]["accuracy"] if "validation_metrics" in m else m["avg_metrics"]["accuracy"]
                    for steps, m in c.metrics(trial, "validation")}
        assert all(abs(v - reported[s]) < 1e-6 for s, v in values["Determined/val_accuracy"]), reported
        deleted(c, exp, trial)
        profiled(c)
        wait_until(lambda: not glob.glob(c.path("tmp", "tensorboard-*")), 10, "nothing left on the host")
    print("ok")


if __name__ == "__main__":
    main()

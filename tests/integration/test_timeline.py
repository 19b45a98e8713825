#!/usr/bin/env python3
"""det trial timeline: a trial that is paused, resumed and killed, read while it runs and after the master's kill -9."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ApiError, Cluster, wait_until  # noqa: E402
from gc_exp import checkpoints, config  # noqa: E402


def events(c, trial):
    return c.api_patiently("GET", f"/trials/{trial}/timeline")["events"]


def main():
    with Cluster(slots=1) as c:
        exp = c.create(config(batches=100000), "examples/digits")
        trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
        wait_until(lambda: len(checkpoints(c, exp)) > 1, 60, "checkpoints")
        c.api("POST", f"/experiments/{exp}/pause", {})
        wait_until(c.slots_free, 60, "the pause")
        c.procs["master"].send_signal(signal.SIGKILL)
        c.procs.pop("master").wait()
        c.start_master()
        c.api_patiently("POST", f"/experiments/{exp}/activate", {})
        wait_until(lambda: [e for e in events(c, trial) if e["kind"] == "first_batch" and e["runId"] == 2], 60, "the second run's first batch")
        c.api("POST", f"/experiments/{exp}/kill", {})
        c.wait(exp, state="STATE_CANCELED")
        seen = events(c, trial)
        assert [e["offset"] for e in seen] == sorted(e["offset"] for e in seen) and not any(e["ongoing"] for e in seen), seen
        for run in (1, 2):
            mine = {e["kind"]: e for e in seen if e["runId"] == run}
            for kind in ("queued", "placed", "prepared", "compiled", "first_batch"):
                assert mine[kind]["duration"] >= 0, (kind, mine)
            assert mine["end"]["duration"] is None and mine["placed"]["detail"] == "agent-0" and mine["prepared"]["node"] == 0, mine
        assert [e for e in seen if e["kind"] == "preempted" and e["runId"] == 1 and e["duration"] > 0], seen
        assert [e for e in seen if e["kind"] in ("kill", "killed") and e["runId"] == 2], seen
        assert [e for e in seen if e["kind"] == "checkpointing" and 0 < e["duration"] < 60], seen
        out = c.det("trial", "timeline", str(trial)).stdout
        assert out.splitlines()[0].split()[:4] == ["RUN", "AT", "WHAT", "TOOK"] and "first_batch" in out and "####" in out, out
        assert json.loads(c.det("trial", "timeline", str(trial), "--json").stdout)["trialId"] == trial
        r = c.det("trial", "timeline", "999", check=False)
        assert r.returncode == 1 and "trial 999 not found" in r.stderr, r
        try:
            c.api("GET", "/trials/x/timeline")
            raise AssertionError("an id that is no number")
        except ApiError as e:
            assert e.status == 400
    print("test_timeline: passed")


main()

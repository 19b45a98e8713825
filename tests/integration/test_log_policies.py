#!/usr/bin/env python3
"""Log policies on real lines of real processes: a failure that is final, an agent that is not used again, both through a
master's death; patterns that cannot be. usage: test_log_policies.py [NAME ...]"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import ApiError, Cluster, wait_until  # noqa: E402


def config(entrypoint, pattern, action, **over):
    return json.dumps({"name": "policy", "entrypoint": ["sh", "-c", entrypoint], "max_restarts": 5,
                       "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
                       "log_policies": [{"pattern": pattern, "action": {"type": action}}], **over})


def failed(c, text, seconds=100):
    exp = c.create(text, None)
    c.wait(exp, "STATE_ERROR", seconds)
    trial = c.trials(exp)[0]
    return trial, c.logs(trial["id"])


def agents(c, trial):
    """Where each run printed from."""
    rows = c.sql(f"SELECT agent_id FROM task_logs WHERE task_id=(SELECT task_id FROM trials WHERE id={trial}) AND log LIKE '%on node%' ORDER BY id")
    return rows.split()


def test_cancel(c):
    """What matches is not retried, however soon after the line it dies; what does not match is."""
    text = "echo 'RuntimeError: CUDA out of memory.'; exit 3"
    trial, log = failed(c, config(text, r"(?i)cuda\s+OUT of \w+\.$", "cancel_retries"))
    assert trial["restarts"] == 0, trial
    assert log.count("(log policy cancel_retries)") == 2 and "is not restarted" in log, log
    trial, log = failed(c, config(text, "^CUDA", "cancel_retries", max_restarts=1))
    assert trial["restarts"] == 1 and "log policy" not in log, (trial, log)
    text = "echo '{\"log_policies\": [{\"pattern\": \"bad luck\"}]}'; exit 3"
    trial, log = failed(c, config(text, "bad luck", "cancel_retries", max_restarts=1))
    assert trial["restarts"] == 1 and "log policy" not in log, (trial, log)


def test_exclude(c):
    """The agent that logged it is not used again; a master that dies in between remembers. With no agent left: an error."""
    go = c.path("go")
    text = f'echo "on node"; if [ $DET_TRIAL_RUN_ID = 1 ]; then echo bad GPU; until test -e {go}; do sleep 0.05; done; fi; exit 3'
    exp = c.create(config(text, "bad GPU", "exclude_node", max_restarts=4), None)
    trial = wait_until(lambda: c.trials(exp), 30, "a trial")[0]["id"]
    wait_until(lambda: "(log policy exclude_node)" in c.logs(trial), 30, "the policy to be found")
    c.stop("master", signal.SIGKILL)
    c.start_master()
    c.wait_agents(2)
    open(go, "w").close()
    c.wait(exp, "STATE_ERROR")
    log, used = c.logs(trial), agents(c, trial)  # in this order: the log is then whole
    assert len(used) == 5 and used[0] not in used[1:] and len(set(used[1:])) == 1, (used, log)
    assert log.count("(log policy exclude_node)") == 1, log


def test_none_left(c):
    trial, log = failed(c, config('echo "on node"; echo bad GPU; exit 3', "bad GPU", "exclude_node"))
    used = agents(c, trial["id"])
    assert len(used) == 2 and len(set(used)) == 2 and trial["restarts"] == 2, (used, trial, log)
    assert "cannot run again: without the 2 agents" in log, log


def test_refused(c):
    for pattern, why in (("a(b", "log_policies[0].pattern: a ( that is not closed"), (r"(.)\1", "back references"), ("((a{99}){99}){99}", "too large")):
        try:
            c.create(config("true", pattern, "cancel_retries"), None)
        except ApiError as e:
            assert e.status == 400 and why in e.text, e.text
        else:
            raise AssertionError(f"{pattern} was accepted")


if __name__ == "__main__":
    tests = {k[5:]: v for k, v in sorted(globals().items()) if k.startswith("test_")}
    with Cluster(agents=2, slots=1) as cluster:
        for name in sys.argv[1:] or tests:
            tests[name](cluster)
            wait_until(cluster.slots_free, 30, "free slots")
            print("ok:", name)

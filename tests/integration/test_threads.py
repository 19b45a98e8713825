"""What the daemons and a trial do in threads of their own, all of it at once, for ThreadSanitizer to watch (tests/run tsan).

The master reads new experiments, large ones too, packs and unpacks their files, previews, replays and tells searches, downloads a checkpoint
and continues an experiment, while trials report; the agent looks at the store and sweeps what tasks left; a trial samples its host. Each
answer is the one that was given before, when nothing else was asked. A daemon that ThreadSanitizer ends fails the test by that."""
import base64
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TERMINAL, Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402

TIMES = 6
LARGE = 3 << 20  # bytes of a file; its request is read in a thread that comes after all others
SEARCH = {"name": "async_halving", "num_rungs": 2, "divisor": 2, "max_trials": 4, "max_concurrent_trials": 2, "max_length": {"batches": 40}}


def config(searcher, **over):
    return json.dumps({
        "name": "threads", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0, "scheduling_unit": 10,
        "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1}, "profiling": {"enabled": True},
        "searcher": {"metric": "accuracy", "smaller_is_better": False, **searcher}, "reproducibility": {"experiment_seed": 3}, **over})


def single(batches):
    return config({"name": "single", "max_length": {"batches": batches}})


class WithoutBoxes(Cluster):
    """The agent may make no namespaces of processes: for ThreadSanitizer a vfork() is a fork(), and who is born in one could not tell its id."""

    def spawn(self, name, argv, **kw):
        if name.startswith("agent-"):
            refuse = ["sh", "-c", 'echo 0 >/proc/sys/user/max_pid_namespaces && exec "$@"', "sh"]
            argv = ["unshare", "--user", "--map-root-user", *refuse, *argv]
        return super().spawn(name, argv, **kw)


class Asked:
    """The same question by several at once, TIMES times each, and what was wrong."""

    def __init__(self, c):
        self.c, self.threads, self.wrong = c, [], []

    def ask(self, name, question):
        """question(user) gives the answer, which is to be the first one."""
        first = question(Api(self.c.port, self.c.token))

        def run():
            try:
                for _ in range(TIMES):
                    got = question(Api(self.c.port, self.c.token))
                    if got != first:
                        self.wrong.append((name, first, got))
            except Exception as e:  # pylint: disable=broad-except
                self.wrong.append((name, repr(e)))
        self.threads += [threading.Thread(target=run) for _ in range(2)]

    def all(self):
        for t in self.threads:
            t.start()
        for t in self.threads:
            t.join()
        assert not self.wrong, self.wrong[:3]


def file(name, content):
    return {"path": name, "type": 48, "content": base64.b64encode(content).decode(), "mtime": "0", "mode": 33188, "uid": 0, "gid": 0}


def made(user, content):
    """What is told of an experiment that is not kept."""
    body = {"config": config(SEARCH), "modelDefinition": [file("model_def.c", content)], "validateOnly": True}
    return user.call("create_experiment", body)["config"]


def questions(a, exp, search):
    user = Api(a.c.port, a.c.token)
    (checkpoint,) = user.call("get_experiment_checkpoints", id=exp, limit=1)["checkpoints"]
    conf = json.loads(config(SEARCH))
    a.ask("a file", lambda u: base64.b64decode(u.call("get_model_def_file", {"experimentId": exp, "path": "model_def.c"}, experimentId=exp)["file"]))
    a.ask("the files", lambda u: u.call("get_model_def_tree", experimentId=exp))
    a.ask("a preview", lambda u: u.call("preview_hp_search", {"config": conf, "seed": 7}))
    a.ask("a replay", lambda u: u.call("replay_search", experimentId=search))
    a.ask("the rungs", lambda u: u.call("get_rungs", experimentId=search))
    a.ask("a download", lambda u: len(u.raw("GET", f"/checkpoints/{checkpoint['uuid']}", headers={"Accept": "application/gzip"})[1]))
    a.ask("an experiment", lambda u: made(u, b"small"))
    a.ask("a large one", lambda u: made(u, bytes(LARGE)))


def finished(c, exp):
    """Told at once where a daemon has ended, as ThreadSanitizer ends one."""
    def over():
        ended = [name for name in ("master", "agent-0") if c.procs[name].poll() is not None]
        assert not ended, f"{ended} ended"
        return c.api("GET", f"/experiments/{exp}")["experiment"]["state"] in TERMINAL
    wait_until(over, 240, f"the end of experiment {exp}")
    return c.wait(exp)


def swept(c):
    """Nothing is left of what tasks had."""
    return not [n for n in os.listdir(c.path("agent-0", "tasks")) if not n.startswith(".")]


def main():
    with WithoutBoxes(slots=2) as c:
        exp, search = c.create(single(20), "examples/digits"), c.create(config(SEARCH), "examples/digits")
        finished(c, exp)
        finished(c, search)
        a = Asked(c)
        questions(a, exp, search)
        c.api("POST", "/experiments/continue", {"id": exp, "overrideConfig": json.dumps({"searcher": {"max_length": {"batches": 60}}})})
        a.all()
        e = finished(c, exp)
        (trial,) = c.trials(exp)
        assert trial["totalBatchesProcessed"] == 60 and e["config"]["searcher"]["max_length"] == {"batches": 60}, trial
        sampled = c.sql(f"SELECT DISTINCT labels->>'name' FROM profiler_metrics WHERE trial_id = {trial['id']}").split()
        assert "cpu_util_simple" in sampled, sampled
        wait_until(c.slots_free, 30, "the slots")
        wait_until(lambda: swept(c), 30, "the agent to sweep")
        for name in ("master", "agent-0"):
            c.stop(name)
        assert "ThreadSanitizer" not in open(c.path("master.log")).read() + open(c.path("agent-0.log")).read()
    print("test_threads: passed")


if __name__ == "__main__":
    main()

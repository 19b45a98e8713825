"""Task logs: search by text and regular expression, filters, NUL in a line, many lines in bounded memory, the end of what is followed."""
import contextlib
import json
import os
import subprocess
import sys
import threading
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from cluster import PSQL, SLOWER, Cluster, wait_until  # noqa: E402
from openapi import Api  # noqa: E402

ROWS = """INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, original_config)
          VALUES (1, 'j', 1, 'COMPLETED', now(), 'rows', '{}', '');
          INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, start_time, end_time)
          SELECT g, 1, 'r' || g, '1.r' || g, 'COMPLETED', 1, '{}', now(), now() FROM generate_series(1, 2) g"""
MANY = 200000


def texts(user, trial=1, **query):
    return [line["log"].rstrip("\n") for line in user.call("trial_logs", trialId=trial, **query)]


def search(user):
    line = lambda text, **more: {"task_id": "1.r1", "log": text, **more}
    user.call("post_task_logs", {"logs": [
        line("loss = 0.25", rank_id=0, level="LOG_LEVEL_INFO", timestamp="2026-01-01T00:00:01Z", agent_id="a1", stdtype="stdout", container_id="c0ntainer-long"),
        line("loss = nan", rank_id=1, level="LOG_LEVEL_ERROR", timestamp="2026-01-01T00:00:02Z", agent_id="a2", stdtype="stderr"),
        line("a.b", timestamp="2026-01-01T00:00:03Z", source="master"), line("axb\n", timestamp="2026-01-01T00:00:04Z")]})
    assert texts(user) == ["loss = 0.25", "loss = nan", "a.b", "axb"]
    assert texts(user, searchText="a.b") == ["a.b"]
    assert texts(user, searchText="a.b", enableRegex=True) == ["a.b", "axb"]
    assert texts(user, searchText="^loss = [0-9.]+$", enableRegex=True) == ["loss = 0.25"]
    assert texts(user, searchText="loss", rankIds=[1]) == ["loss = nan"] and texts(user, rankIds=[-1]) == ["a.b", "axb"]
    assert texts(user, levels=["LOG_LEVEL_ERROR"]) == ["loss = nan"] and texts(user, agentIds=["a1"]) == ["loss = 0.25"]
    assert texts(user, stdtypes=["stderr"]) == ["loss = nan"] and texts(user, sources=["master"]) == ["a.b"]
    assert texts(user, timestampAfter="2026-01-01T00:00:02Z") == ["a.b", "axb"]
    assert texts(user, timestampBefore="2026-01-01T00:00:02Z", orderBy="ORDER_BY_DESC") == ["loss = nan", "loss = 0.25"]
    ids = [int(line["id"]) for line in user.call("trial_logs", trialId=1)]
    assert texts(user, beyondId=ids[1], limit=1) == ["a.b"] and texts(user, beyondId=ids[1], limit=1, orderBy="ORDER_BY_DESC") == ["loss = 0.25"]
    assert texts(user, beyondId=ids[3]) == texts(user, beyondId=ids[0], orderBy="ORDER_BY_DESC") == []
    assert texts(user, beyondId=ids[0], searchText="a.b") == ["a.b"]
    user.refused(400, "beyondId must not be negative", "trial_logs", trialId=1, beyondId=-1)
    said = user.refused(400, "regular expression", "trial_logs", trialId=1, searchText="a(", enableRegex=True)
    assert "parentheses" in said and "SELECT" not in said and "SQLSTATE" not in said, said
    first = user.call("trial_logs", trialId=1, limit=1)[0]
    assert first["message"] == "[2026-01-01T00:00:01.000000Z] c0ntaine [rank=0] || INFO: loss = 0.25\n", first["message"]
    assert first["trialId"] == 1 and "taskId" not in first and first["level"] == "LOG_LEVEL_INFO" and first["rankId"] == 0
    bare = user.call("task_logs", taskId="1.r1", searchText="axb")[0]
    assert bare["message"] == "[2026-01-01T00:00:04.000000Z]          || axb\n" and bare["taskId"] == "1.r1" and "rankId" not in bare


def nul(user):
    user.call("post_task_logs", {"logs": [{"task_id": "1.r1", "log": "before"}, {"task_id": "1.r1", "log": "a\0b"}, {"task_id": "1.r1", "log": "after"}]})
    assert texts(user)[-3:] == ["before", "a\ufffdb", "after"]


def many(c, user):
    def rss():
        with open(f"/proc/{c.pid('master')}/statm") as f:
            return int(f.read().split()[1]) * 4096
    c.sql(f"INSERT INTO task_logs (task_id, level, time, log) SELECT '1.r2', 3, now(), repeat('x', 100) || g FROM generate_series(1, {MANY}) g")
    before, n = rss(), 0
    conn, r = user.open("GET", "/api/v1/trials/2/logs")
    for line in r:
        n += 1
        assert line.startswith(b'{"result":')
    conn.close()
    assert n == MANY, n
    if not os.environ.get("DET_SANITIZED"):  # whose allocator keeps what was freed
        assert rss() - before < 32 << 20, (before, rss())
    assert texts(user, 2, searchText="x77777$", enableRegex=True) == ["x" * 100 + "77777"]


def endless(user):
    """A search that would take for ever ends with what to do about it, and holds nobody up meanwhile."""
    user.call("post_task_logs", {"logs": [{"task_id": "1.r1", "log": "a" * 2001}]})
    answers = []
    slow = threading.Thread(target=lambda: answers.append(list(Api(user.port, user.token).open(
        "GET", "/api/v1/trials/1/logs?" + urllib.parse.urlencode({"enableRegex": "true", "searchText": r"^(a*)(a*)(a*)(a*)\1\2\3\4$"}))[1])))
    slow.start()
    assert texts(user)[-1] == "a" * 2001
    slow.join(120 * SLOWER)
    end = json.loads(answers[0][-1])["error"]
    assert end["httpCode"] == 504 and "simpler searchText" in end["message"], end
    assert texts(user, searchText="^a+$", enableRegex=True) == ["a" * 2001]


CONFIG = """{name: followed, entrypoint: model_def:T, resources: {slots_per_trial: 1},
            searcher: {name: single, metric: loss, max_length: {batches: 1}}}"""


def last_lines(c, user):
    """Whoever follows a log sees its end, though the master knows it before it is written."""
    exp = c.create(CONFIG, None)
    trial = wait_until(lambda: c.trials(exp), 60, "a trial")[0]
    lines, began = [], threading.Event()

    def follow():
        for line in Api(c.port, c.token).open("GET", f"/api/v1/trials/{trial['id']}/logs?follow=true")[1]:
            lines.append(json.loads(line)["result"]["log"].rstrip("\n"))
            began.set()
    follower = threading.Thread(target=follow)
    follower.start()
    assert began.wait(60 * SLOWER)
    with held(c, "trials"):
        killer = threading.Thread(target=lambda: c.api_patiently("POST", f"/experiments/{exp}/kill"))
        killer.start()
        wait_until(lambda: c.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0", 60, "the commit to wait")
        user.call("post_task_logs", {"logs": [{"task_id": trial["taskId"], "log": "one more"}]})  # which wakes who follows
    killer.join(60 * SLOWER)
    follower.join(60 * SLOWER)
    assert not follower.is_alive() and lines == texts(user, trial["id"]) and "one more" in lines[:-1], (lines, texts(user, trial["id"]))


@contextlib.contextmanager
def held(c, table):
    """Nobody writes to it meanwhile."""
    with subprocess.Popen([PSQL, "-qAtX", "-h", c.path("pg-socket"), "-U", "det", "-d", "det"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:
        psql.stdin.write(f"BEGIN; LOCK TABLE {table} IN EXCLUSIVE MODE;\nSELECT 'held';\n")
        psql.stdin.flush()
        assert psql.stdout.readline().strip() == "held"
        yield
        psql.stdin.close()


def main():
    with Cluster(agents=0) as c:
        c.login()
        c.sql(ROWS)
        user = Api(c.port, c.token)
        search(user)
        nul(user)
        many(c, user)
        endless(user)
    with Cluster(agents=0) as c:
        c.login()
        last_lines(c, Api(c.port, c.token))
    print("test_logs: passed")


if __name__ == "__main__":
    main()

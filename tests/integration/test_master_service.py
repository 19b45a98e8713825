"""det-master as a service: its figures and health, its own log over REST and as JSON lines."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from masters import Frozen  # noqa: E402
from openapi import Api  # noqa: E402
import promtext  # noqa: E402

CONFIG = """
name: figures
entrypoint: model_def:T
hyperparameters: {}
searcher: {name: random, metric: loss, max_trials: 3, max_length: {batches: 10}}
"""


class Follower(threading.Thread):
    """Collects the lines of a stream until the master ends it."""
    def __init__(self, api, path):
        super().__init__(daemon=True)
        self.lines, self.api, self.path = [], api, path
        self.start()

    def run(self):
        conn, r = self.api.open("GET", self.path)
        for line in r:
            self.lines.append(json.loads(line)["result"])
        conn.close()


def own_log(c, admin):
    """All, the last ones, a piece, and following: ids count up and stay."""
    def entries_of(**which):
        return [x["logEntry"] for x in admin.call("master_logs", **which)]

    def views():
        """Those of one moment: nothing was logged meanwhile."""
        found = [entries_of(), entries_of(offset=-1), entries_of(offset=-1000000), entries_of(offset=1, limit=1)]
        return found if entries_of() == found[0] else None
    entries, last, whole, second = wait_until(views, 20, "a log that stays as it is")
    assert [e["id"] - entries[0]["id"] for e in entries] == list(range(len(entries))), entries
    assert any("ready: http" in e["message"] and e["level"] == "LOG_LEVEL_INFO" for e in entries), entries
    assert last == entries[-1:] and whole == entries and second == entries[1:2]
    assert admin.call("master_logs", offset=1000000) == []
    admin.refused(400, "exclude", "master_logs", limit=1, follow=True)
    admin.refused(400, "negative", "master_logs", limit=-1)
    Api(c.port).refused(401, "", "master_logs")
    follower = Follower(admin, "/api/v1/master/logs?follow=true&offset=-1")
    wait_until(lambda: follower.lines, 20, "the follower's first line")
    c.start_agent(0)
    c.wait_agents(1)
    wait_until(lambda: any("agent=agent-0" in x["logEntry"]["message"] for x in follower.lines), 20, "the agent's line at the follower")
    assert "ready: http" in c.det("master", "logs").stdout
    assert len(c.det("master", "logs", "--tail", "1").stdout.splitlines()) == 1
    return follower


def goes_on(admin, follower):
    """The next leadership's lines are others: whoever goes on by id takes none of them for one it has seen."""
    seen = [x["logEntry"]["id"] for x in follower.lines]
    new = [x["logEntry"]["id"] for x in admin.call("master_logs")]
    assert new and min(new) > max(seen), (min(new), max(seen))


def json_lines(c):
    """The same log as JSON: each line an object, what it is about as members."""
    c.stop("agent-0")
    c.stop("master")
    with open(c.path("master.log")) as f:
        text_lines = len(f.readlines())
    c.master_args = ["--log-format", "json"]
    c.start_master()
    c.start_agent(0)

    def records():
        with open(c.path("master.log")) as f:
            return [json.loads(line) for line in f.readlines()[text_lines:] if line.endswith("\n")]
    wait_until(lambda: any(r.get("agent") == "agent-0" and r["component"] == "agents" for r in records()), 30, "the agent's record")
    assert all({"time", "level", "program", "component", "message"} <= set(r) for r in records()), records()
    assert any(r["message"].startswith("ready:") for r in records())


def scrape(c):
    status, data, r = Api(c.port).raw("GET", "/metrics")
    assert status == 200 and r.getheader("Content-Type").startswith("text/plain; version=0.0.4"), r.getheaders()
    return promtext.parse(data.decode())


def plain(c, path):
    status, data, _ = Api(c.port).raw("GET", path)
    return status, json.loads(data)


def figures(c, admin):
    """What happens shows: agents, slots, the queue, an experiment's trials, requests, commits, rows."""
    def now(name, **labels):
        return promtext.value(scrape(c), name, **labels)
    assert now("det_leader") == 1 and now("det_db_up") == 1 and now("det_epoch") >= 1
    assert now("process_resident_memory_bytes") > 1e6 and now("process_open_fds") > 5
    assert now("det_agents", link="up") == 0 and now("det_slots") == 0
    agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
    wait_until(lambda: now("det_agents", link="up") == 1, 20, "the agent in the figures")
    assert now("det_slots", state="free") == 2 and now("det_http_streams") == 1
    before = now("det_commits_total")
    exp = admin.call("create_experiment", {"config": CONFIG, "activate": True})["experiment"]["id"]
    orders = [agent.next("start") for _ in range(2)]
    agent.run(orders[0])
    wait_until(lambda: now("det_allocations", state="RUNNING") == 1, 20, "a running allocation")
    assert now("det_queue_length") == 1 and now("det_queue_oldest_seconds") > 0 and now("det_slots", state="used") == 2
    assert now("det_experiments", state="ACTIVE") == 1 and now("det_trials", state="ACTIVE") == 3
    assert now("det_pool_jobs", pool="default", state="scheduled") == 1

    def commits():  # one is timed when it is known to be on disk, a moment after it is counted
        total, timed = (promtext.value(shown, name) for shown in [scrape(c)] for name in ("det_commits_total", "det_commit_seconds_count"))
        return before < total <= timed
    wait_until(commits, 20, "the commits to be counted and timed")
    assert now("det_container_starts_total") == 2 and now("det_queue_wait_seconds_count") == 2
    env = orders[0]["task"]["env"]
    task = Api(c.port, alloc=orders[0]["task"]["token"])
    task.call("post_task_logs", {"logs": [{"task_id": orders[0]["task"]["task_id"], "log": "a\n"}] * 3})
    task.call("post_training_metrics", {"trialId": int(env["DET_TRIAL_ID"]), "trialRunId": 1, "stepsCompleted": 1,
                                        "metrics": {"avgMetrics": {"loss": 1}}}, trialId=env["DET_TRIAL_ID"])
    assert now("det_log_lines_total") == 3 and now("det_metric_reports_total") == 1
    admin.refused(404, "", "get_trial", trialId=999)
    Api(c.port).raw("GET", "/nothing")
    assert now("det_http_requests_total", **{"class": "trials", "status": "404"}) == 1
    assert now("det_http_requests_total", **{"class": "none", "status": "404"}) == 1
    assert now("det_http_requests_total", **{"class": "agent"}) >= 2
    admin.call("kill_experiment", id=exp)
    for _ in orders:
        agent.exit(agent.next("signal"), "killed")
    wait_until(lambda: now("det_experiments") == 0, 20, "the end in the figures")
    assert now("det_allocation_ends_total") >= 2
    agent.close()
    wait_until(lambda: now("det_agents", link="lost") == 1, 40, "the lost link in the figures")


def health(c):
    """Alive whatever happens; ready only with PostgreSQL."""
    assert plain(c, "/healthz") == (200, {"status": "ok"})
    assert plain(c, "/readyz") == (200, {"status": "ready"})
    c.stop("pg", signal.SIGINT)
    wait_until(lambda: plain(c, "/readyz")[0] == 503, 20, "the outage")
    assert "PostgreSQL" in plain(c, "/readyz")[1]["message"] and plain(c, "/healthz")[0] == 200
    assert promtext.value(scrape(c), "det_db_up") == 0
    c.start_pg()
    wait_until(lambda: plain(c, "/readyz")[0] == 200, 30, "the recovery")


def manager(c):
    """What systemd is told: a standby is ready too; then serving; then stopping."""
    path = c.path("notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(60 * SLOWER)
        log = open(c.path("second.log"), "wb")
        second = subprocess.Popen([BIN + "/det-master", "--port", "0", "--db", f"host={c.path('pg-socket')} user=det dbname=det"],
                                  env={**os.environ, "NOTIFY_SOCKET": path}, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            said = [s.recv(1000)]
            assert said == [b"READY=1\nSTATUS=standing by"], said
            c.stop("master")
            while not said[-1].endswith(b"serving"):
                said.append(s.recv(1000))
            second.terminate()
            while not said[-1].startswith(b"STOPPING"):
                said.append(s.recv(1000))
            assert second.wait(30 * SLOWER) == 0
        finally:
            second.kill()
            second.wait()
            log.close()
    c.start_master()


def abandoned(api, path):
    """A request whose answer may never come."""
    try:
        api.raw("GET", path)
    except (OSError, http.client.HTTPException):
        pass


def stopping(c, admin):
    """SIGTERM answers who waits, ends streams and exits 0."""
    streams = lambda n, what: wait_until(lambda: promtext.value(scrape(c), "det_http_streams") == n, 20, what)  # noqa: E731
    c.stop("agent-0")  # what it ran would poll, and be in the middle of a commit, when PostgreSQL hangs
    streams(0, "the end of the links of before")
    agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip(), "agent-s")
    exp = admin.call("create_experiment", {"config": CONFIG, "activate": True})["experiment"]["id"]
    order = agent.next("start")
    agent.run(order)
    task, answers = Api(c.port, alloc=order["task"]["token"]), []
    poll = threading.Thread(target=lambda: answers.append(task.raw("GET", f"/api/v1/allocations/{order['alloc']}/signals/preemption?timeout_seconds=300")))
    poll.start()
    wait_until(lambda: promtext.value(scrape(c), "det_http_polls") == 1, 20, "the long poll")
    follower = Follower(admin, f"/api/v1/trials/{order['task']['env']['DET_TRIAL_ID']}/logs?follow=true")
    streams(2, "the follower's stream")
    master = c.procs["master"]
    c.stop("master", seconds=30)
    assert master.returncode == 0, master.returncode
    poll.join(120)
    follower.join(120)
    agent.thread.join(120)
    assert answers and answers[0][0] == 503 and answers[0][2].getheader("Retry-After"), answers
    assert not follower.is_alive() and not agent.thread.is_alive(), "a stream outlived the master"
    c.start_master()
    stopping_at_a_commit(c, task, order)
    Api(c.port, c.token).call("kill_experiment", id=exp)
    stopping_by_force(c)


def stopping_at_a_commit(c, task, order):
    """A rank waits at the rendezvous, what it told the core waits for its commit: both are answered, then it ends."""
    place = f"/api/v1/allocations/{order['alloc']}/resources/{order['container']}/rendezvous"
    with Frozen(c):
        older = []
        first = threading.Thread(target=lambda: older.append(task.raw("GET", place)), daemon=True)
        first.start()
        wait_until(lambda: promtext.value(scrape(c), "det_http_polls") == 1, 20, "a rank at the rendezvous")
        # its connection breaks, and it asks again: the older question is replaced, the newer one waits
        threading.Thread(target=abandoned, args=(task, place), daemon=True).start()
        first.join(20 * SLOWER)
        assert older and older[0][0] == 400 and b"asked again" in json.dumps(older[0][1], default=str).encode(), older
        assert promtext.value(scrape(c), "det_http_polls") == 1
        master = c.procs["master"]
        master.terminate()
        assert master.wait(30 * SLOWER) == 0
    c.procs.pop("master")
    c.start_master()


def stopping_by_force(c):
    """A second SIGTERM does not wait for what hangs."""
    admin = Api(c.port, c.token)
    with Frozen(c):
        threading.Thread(target=abandoned, args=(admin, "/api/v1/experiments"), daemon=True).start()
        wait_until(lambda: promtext.value(scrape(c), "det_http_requests_open") >= 2, 20, "a request that hangs")
        master = c.procs["master"]
        lines = open(c.path("master.log")).read().count("stopping")
        master.terminate()
        wait_until(lambda: open(c.path("master.log")).read().count("stopping") > lines, 20, "the stop to begin")
        master.terminate()
        assert master.wait(20 * SLOWER) in (-signal.SIGTERM, 0)
    c.procs.pop("master")
    c.start_master()


def main():
    with Cluster(agents=0) as c:
        c.login()
        admin = Api(c.port, c.token)
        figures(c, admin)
        health(c)
        follower = own_log(c, admin)
        json_lines(c)
        follower.join(120)
        goes_on(admin, follower)
        manager(c)
        stopping(c, Api(c.port, c.token))
        assert not follower.is_alive(), "the follower outlived the master"
    print("test_master_service: passed")


main()

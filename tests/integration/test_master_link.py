"""The agent link against a stand-in for the agent: hello, orders, repeats, gaps, twins, the life of one trial."""
import asyncio
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import masters  # noqa: E402
import promtext  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from herd import Agent  # noqa: E402

CONFIG = """
name: link
entrypoint: model_def:T
searcher: {name: single, metric: loss, max_length: {batches: 10}}
resources: {slots_per_trial: 1}
max_restarts: 1
"""


class FakeAgent:
    def __init__(self, c, name="fake", slots=2):
        self.c, self.name, self.boot, self.seq, self.slots = c, name, str(uuid.uuid4()), 0, slots
        self.orders, self.conn, self.tasks = [], None, []

    def headers(self):
        return {"Authorization": "Bearer " + open(self.c.path("agent.token")).read().strip()}

    def post(self, events, headers=None, **more):
        conn = http.client.HTTPConnection("127.0.0.1", self.c.port, timeout=60)
        conn.request("POST", f"/agent/v1/{self.name}/events", json.dumps({"boot": self.boot, "protocol": 1, "events": events, **more}),
                     self.headers() if headers is None else headers)
        r = conn.getresponse()
        text = r.read().decode()
        conn.close()
        return r.status, text

    def event(self, **fields):
        self.seq += 1
        return dict(fields, seq=self.seq)

    def say(self, **fields):
        status, text = self.post([self.event(**fields)])
        assert status == 200 and json.loads(text)["ack"] == self.seq, (status, text)

    def hello(self):
        self.say(type="hello", version="0.27.0", pool="", addr="127.0.0.1",
                 slots=[{"id": i, "type": "cpu", "brand": "fake", "uuid": f"u{i}"} for i in range(self.slots)], tasks=self.tasks)

    def listen(self):
        self.conn = http.client.HTTPConnection("127.0.0.1", self.c.port, timeout=60)
        self.conn.request("GET", f"/agent/v1/{self.name}/orders?boot={self.boot}&after=0", headers=self.headers())
        self.stream = self.conn.getresponse()
        assert self.stream.status == 200, self.stream.read()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.stream:
                self.orders.append(json.loads(line))
        except Exception:  # the connection was closed under the reader
            pass

    def order(self, kind):
        return wait_until(lambda: next((o for o in self.orders if o["order"] == kind), None), 20, f"order {kind}")


def handshake(c):
    a = FakeAgent(c)
    assert a.post([], {})[0] == 401
    assert a.post([], {"Authorization": "Bearer wrong"})[0] == 401
    assert a.post([{"seq": 1, "type": 7}])[0] == 400
    assert a.post([{"seq": 1, "type": "hello", "slots": 5}])[0] == 400
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    conn.request("GET", f"/agent/v1/fake/orders?boot={a.boot}&after=0", headers=a.headers())
    assert conn.getresponse().status == 409
    conn.close()
    a.hello()
    a.listen()
    a.order("heartbeat")
    newer = a.event(type="weather", of=["rain"])  # it is acknowledged, once and for all
    for _ in range(2):
        status, text = a.post([newer])
        assert status == 200 and json.loads(text)["ack"] == newer["seq"], text
    status, text = a.post([{"seq": a.seq + 5, "type": "state", "alloc": "x", "container": "y", "state": "running"}])
    assert status == 409, text
    twin = FakeAgent(c)
    twin.seq = 0
    assert twin.post([twin.event(type="hello", version="", pool="", addr="", slots=[], tasks=[])])[0] == 409
    wait_until(lambda: len(c.api("GET", "/agents")["agents"]) == 1, 10, "the agent in the list")
    return a


def late(c):
    """What a process sent that another has followed takes nothing from that one, whenever it comes."""
    starts = [FakeAgent(c, "again", slots=0) for _ in range(3)]
    for a in starts:
        a.hello()
    for gone in starts[:2]:
        for tell in ({"type": "hello", "version": "", "pool": "", "addr": "", "slots": [], "tasks": []}, {"type": "state", "alloc": "x", "container": "y", "state": "running"}):
            status, text = gone.post([gone.event(**tell)])
            assert status == 409 and "another start of agent again has followed this one" in text, (status, text)
        assert gone.post([])[0] == 409
    starts[2].listen()
    starts[2].order("heartbeat")


def clock(c, a):
    """An agent's clock that is not ours is said once, shown while it lasts, and known to be over."""
    def beat(least_s, most_s):
        status, text = a.post([], clock={"least_us": least_s * 1000000, "most_us": most_s * 1000000})
        assert status == 200, text
        times = json.loads(text)["clock"]
        assert 0 < times["got_us"] <= times["answered_us"], text
        return c.api("GET", f"/agents/{a.name}")["agent"]["clockAheadSeconds"]

    def said(words):
        with open(c.path("master.log")) as f:
            return f.read().count(words)
    assert a.post([], clock={"least_us": 2, "most_us": 1})[0] == 400
    assert a.post([], clock={"least_us": "1", "most_us": 1})[0] == 400
    assert beat(-1, 1) == 0 and beat(-500, 500) == 0
    assert beat(172799, 172801) == 172800 and beat(172799, 172801) == 172800
    assert said("its clock is 172800.0 s ahead of ours") == 1
    assert "fake: its clock is 172800.0 s ahead of the master's" in c.det("agent", "list").stderr
    assert beat(-60, -60) == -60 and beat(-200, 100) == -50 and said("behind ours") == 0
    assert beat(0, 0) == 0 and said("its clock agrees with ours") == 1
    assert c.det("agent", "list").stderr == ""


def gpus(c, a):
    """What a host says of its GPUs beside its beat is shown of the slots and in /metrics; what it does not know is not."""
    for bad in ({}, [7], [{}], [{"slot": 4000}], [{"slot": 0, "util_percent": 101}]):
        assert a.post([], gpus=bad)[0] == 400, bad
    figures = {"slot": 1, "util_percent": 42, "mem_used": 2 << 30, "mem_total": 80 << 30, "temp_c": 55, "power_mw": 312500, "sm_mhz": 1980,
               "idle_s": 0}
    assert a.post([], gpus=[figures, {"slot": 7, "util_percent": 1}])[0] == 200
    slots = c.api("GET", f"/agents/{a.name}")["agent"]["slots"]
    assert "gpu" not in slots[f"/agents/{a.name}/slots/0"], slots
    assert slots[f"/agents/{a.name}/slots/1"]["gpu"] == {
        "utilizationPercent": 42, "memoryUsedBytes": 2 << 30, "memoryTotalBytes": 80 << 30, "temperatureCelsius": 55, "powerWatts": 312.5,
        "smClockMhz": 1980, "idleSeconds": 0}, slots
    assert "42 %, 2.0 of 80.0 GiB" in c.det("slot", "list").stdout
    text = masters.get(c.port, "/metrics", timeout=60)[2]
    families = promtext.parse(text)
    assert promtext.value(families, "det_gpu_power_watts", agent=a.name, slot="1") == 312.5, text
    assert promtext.value(families, "det_gpu_utilization_percent", agent=a.name, slot="1") == 42, text


def one_trial(c, a):
    """Start order, rendezvous, reports, fence, exit."""
    exp = c.create(CONFIG, None)
    start = a.order("start")
    task = start["task"]
    assert task["token"] and task["run_id"] == 1 and len(task["slots"]) == 1, task
    assert task["env"]["DET_SESSION_TOKEN"] == task["token"] and task["env"]["DET_CLUSTER_ID"]
    assert task["entrypoint"] == "model_def:T" and task["stall_timeout_ms"] == 600000 and "context" in task
    ids = {"alloc": start["alloc"], "container": start["container"]}
    a.say(type="state", state="starting", **ids)
    trial = c.trials(exp)[0]["id"]
    assert a.post([], clock={"least_us": 172799 * 1000000, "most_us": 172801 * 1000000})[0] == 200
    a.say(type="state", state="running", marks=[{"kind": "code", "at_us": int((time.time() + 172800) * 1e6), "duration_us": 1000, "detail": ""}], **ids)
    assert a.post([], clock={"least_us": 0, "most_us": 0})[0] == 200
    times = c.sql(f"SELECT kind, extract(epoch FROM now()) - at_us / 1e6 FROM trial_timeline WHERE trial_id = {trial}").split()
    assert [t.split("|")[0] for t in times].count("code") == 1 and all(abs(float(t.split("|")[1])) < 300 for t in times), times
    wait_until(lambda: c.trials(exp)[0]["state"] == "STATE_RUNNING", 10, "RUNNING")
    assert a.post([], gpus=[{"slot": i, "idle_s": 599 if i != task["slots"][0] else 725} for i in range(2)])[0] == 200
    said = c.api("GET", f"/trials/{trial}/why")["text"]
    assert said.endswith(f"; the GPU of slot {task['slots'][0]} of agent fake has had no work for 12 min (used less than 5 %)"), said
    assert f"fake: the GPU of slot {task['slots'][0]} has had no work for 12 min; {start['alloc']} has it" in c.det("agent", "list").stderr
    h = {"Grpc-Metadata-x-allocation-token": "Bearer " + task["token"]}

    def call(method, path, body=None):
        return c.request(method, path, body, auth=False, headers=h)
    rdv = call("GET", f"/allocations/{ids['alloc']}/resources/{ids['container']}/rendezvous")["rendezvousInfo"]
    assert rdv == {"addresses": ["127.0.0.1"], "rank": 0, "slots": [1]}, rdv
    assert call("GET", f"/allocations/{ids['alloc']}/signals/preemption?timeout_seconds=0") == {"preempt": False}
    assert call("GET", f"/trials/{trial}/searcher/operation")["op"]["validateAfter"]["length"] == "10"
    waiter = {}
    t = threading.Thread(target=lambda: waiter.update(call("GET", f"/allocations/{ids['alloc']}/signals/preemption?timeout_seconds=30")))
    t.start()
    c.api("POST", f"/experiments/{exp}/pause")
    t.join(120)
    assert waiter == {"preempt": True}, waiter
    call("POST", f"/allocations/{ids['alloc']}/signals/ack_preemption", {})
    a.say(type="exit", exit={"reason": "exited", "code": 0, "signal": 0, "rank": -1, "text": ""}, **ids)
    wait_until(lambda: c.experiment(exp)["state"] == "STATE_PAUSED" and c.slots_free(), 10, "PAUSED, slots free")
    return exp, trial, task


def ask(c, method, path, h, body=None):
    """The status and the answer; (0, None): none came."""
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    try:
        conn.request(method, "/api/v1" + path, None if body is None else json.dumps(body), h)
        r = conn.getresponse()
        return r.status, json.loads(r.read())
    except OSError:
        return 0, None
    finally:
        conn.close()


def complete_while_locked(c, trial, h):
    """What is not committed is not told: a master that died now would know nothing of it."""
    psql = subprocess.Popen(["psql", "-qAtX", "-h", c.path("pg-socket"), "-U", "det", "-d", "det"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    psql.stdin.write("BEGIN; LOCK TABLE trials IN EXCLUSIVE MODE;\nSELECT 'held';\n")
    psql.stdin.flush()
    assert psql.stdout.readline().strip() == "held"
    done = {"op": {"length": 10}, "searcherMetric": 0.5}
    path = f"/trials/{trial}/searcher"
    t = threading.Thread(target=lambda: ask(c, "POST", path + "/completed_operation", h, done))
    t.start()
    wait_until(lambda: c.sql("SELECT count(*) FROM pg_locks WHERE NOT granted").strip() != "0", 30, "the commit to wait")
    status, op = ask(c, "GET", path + "/operation", h)
    assert status in (0, 503) or (status == 200 and not op["completed"]), (status, op)
    psql.stdin.close()
    psql.stdout.close()
    psql.wait(60)
    t.join(120)
    wait_until(lambda: ask(c, "POST", path + "/completed_operation", h, done)[0] == 200, 30, "the operation to be taken")
    wait_until(lambda: (ask(c, "GET", path + "/operation", h)[1] or {}).get("completed"), 30, "the operation to be over")


def master_restart(c, a, exp, trial, old_task):
    """The run after a pause goes on while the master is killed; the old run's token writes nothing."""
    a.orders.clear()
    c.api("POST", f"/experiments/{exp}/activate")
    start = a.order("start")
    assert start["task"]["run_id"] == 2
    ids = {"alloc": start["alloc"], "container": start["container"]}
    a.say(type="state", state="running", **ids)
    c.stop("master", signal.SIGKILL)
    c.start_master()
    a.tasks = [dict(ids, state="running")]
    a.orders.clear()
    a.hello()
    a.listen()
    a.order("heartbeat")
    wait_until(lambda: c.trials(exp)[0]["state"] == "STATE_RUNNING", 10, "RUNNING again")
    assert not [o for o in a.orders if o["order"] != "heartbeat"], a.orders
    body = {"group": "training", "metrics": {"trialId": trial, "trialRunId": 1, "stepsCompleted": 5, "metrics": {"avgMetrics": {"loss": 1}}}}
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    conn.request("POST", f"/api/v1/trials/{trial}/metrics", json.dumps(body), {"Grpc-Metadata-x-allocation-token": "Bearer " + old_task["token"]})
    assert conn.getresponse().status == 409
    conn.close()
    h = {"Grpc-Metadata-x-allocation-token": "Bearer " + start["task"]["token"]}
    body["metrics"]["trialRunId"] = 2
    c.request("POST", f"/trials/{trial}/metrics", body, auth=False, headers=h)
    complete_while_locked(c, trial, h)
    a.say(type="exit", exit={"reason": "exited", "code": 0, "signal": 0, "rank": -1, "text": ""}, **ids)
    c.wait(exp, "STATE_COMPLETED", 20)
    assert c.slots_free()


def kill(c, a):
    a.orders.clear()
    a.tasks = []
    exp = c.create(CONFIG, None)
    start = a.order("start")
    ids = {"alloc": start["alloc"], "container": start["container"]}
    a.say(type="state", state="running", **ids)
    c.api("POST", f"/experiments/{exp}/kill")
    kill = a.order("signal")  # with what an agent that never had it needs to answer
    assert (kill["alloc"], kill["container"]) == (ids["alloc"], ids["container"])
    a.say(type="exit", exit={"reason": "killed", "code": 0, "signal": 9, "rank": -1, "text": ""}, **ids)
    c.wait(exp, "STATE_CANCELED", 20)


def outage(c, a):
    """PostgreSQL away in the middle of a run: events wait with the agent, nothing is lost or doubled, no slot leaks."""
    a.orders.clear()
    exp = c.create(CONFIG, None)
    start = a.order("start")
    ids = {"alloc": start["alloc"], "container": start["container"]}
    trial = c.trials(exp)[0]["id"]
    assert a.post([], clock={"least_us": 172799 * 1000000, "most_us": 172801 * 1000000})[0] == 200
    a.say(type="state", state="running", marks=[{"kind": "code", "at_us": int((time.time() + 172800) * 1e6), "duration_us": 1000, "detail": ""}], **ids)
    assert a.post([], clock={"least_us": 0, "most_us": 0})[0] == 200
    times = c.sql(f"SELECT kind, extract(epoch FROM now()) - at_us / 1e6 FROM trial_timeline WHERE trial_id = {trial}").split()
    assert [t.split("|")[0] for t in times].count("code") == 1 and all(abs(float(t.split("|")[1])) < 300 for t in times), times
    h = {"Grpc-Metadata-x-allocation-token": "Bearer " + start["task"]["token"]}
    c.stop("pg", signal.SIGINT)
    report = {"group": "training", "metrics": {"trialId": trial, "trialRunId": 1, "stepsCompleted": 10, "metrics": {"avgMetrics": {"loss": 2}}}}
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    conn.request("POST", f"/api/v1/trials/{trial}/metrics", json.dumps(report), h)
    r = conn.getresponse()
    assert r.status == 503 and r.headers["Retry-After"], r.status
    r.read()
    conn.request("POST", f"/api/v1/trials/{trial}/metrics/batch", json.dumps({"reports": [report, report]}), h)
    r = conn.getresponse()  # of all of them, so that who reports goes to another master
    assert r.status == 503 and r.headers["Retry-After"], (r.status, r.read())
    conn.close()
    done = a.event(type="exit", exit={"reason": "exited", "code": 1, "signal": 0, "rank": 0, "text": "boom"}, **ids)
    wait_until(lambda: a.post([done])[0] == 503, 10, "503 for the event")
    beats = len(a.orders)
    wait_until(lambda: len(a.orders) > beats, 10, "a heartbeat during the outage")
    a.orders.clear()
    c.start_pg()
    wait_until(lambda: a.post([done])[0] == 200, 20, "the event to be taken")
    assert a.post([done])[0] == 200  # a repeat changes nothing
    again = a.order("start")
    assert again["task"]["run_id"] == 2 and len([o for o in a.orders if o["order"] == "start"]) == 1
    assert c.trials(exp)[0]["restarts"] == 1
    ids = {"alloc": again["alloc"], "container": again["container"]}
    a.say(type="exit", exit={"reason": "exited", "code": 1, "signal": 0, "rank": 0, "text": "boom"}, **ids)
    c.wait(exp, "STATE_ERROR", 20)
    assert c.slots_free()


def lost(c, a):
    """A link that ends is noticed at once, though nothing was being sent."""
    a.conn.sock.shutdown(2)
    a.conn.close()
    wait_until(lambda: not c.api("GET", "/agents")["agents"][0]["enabled"], 10, "the agent to be away")
    a.hello()
    a.listen()
    wait_until(lambda: c.api("GET", "/agents")["agents"][0]["enabled"], 10, "the agent to be back")


SEARCH = """
name: slow
entrypoint: model_def:T
searcher: {name: random, metric: loss, max_trials: 120, max_concurrent_trials: 120, max_length: {batches: 10}}
resources: {slots_per_trial: 1}
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
"""


class SlowAgent(FakeAgent):
    """Its line carries a few megabytes a second at most."""

    def listen(self):
        s = self.conn = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        s.connect(("127.0.0.1", self.c.port))
        head = "".join(f"{k}: {v}\r\n" for k, v in self.headers().items())
        s.sendall(f"GET /agent/v1/{self.name}/orders?boot={self.boot}&after=0 HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        self.got, self.ended = bytearray(), False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while data := self.conn.recv(1 << 15):
                self.got += data
                time.sleep(0.01)  # the line's speed
        except OSError:
            pass
        self.ended = True

    def starts(self):
        return len(set(re.findall(rb'"seq":(\d+),"order":"start"', self.got)))


def slow_line(c):
    """Ten megabytes of orders take several beats to arrive: that is no agent that does not read."""
    a = SlowAgent(c, "slow", 120)
    a.hello()
    a.listen()
    with tempfile.TemporaryDirectory() as d:
        open(os.path.join(d, "model_def.py"), "w").write("T = 1\n")
        open(os.path.join(d, "blob"), "wb").write(random.Random(1).randbytes(60 << 10))
        c.create(SEARCH, d)
    wait_until(lambda: a.ended or a.starts() >= 118, 60, "all starts")
    assert not a.ended
    assert "the link is gone agent=slow" not in open(c.path("master.log")).read()
    a.conn.shutdown(2)


class SlowPost:
    """Stands for a herd agent's connection: while an answer is awaited, one more event comes up."""

    def __init__(self, agent):
        self.agent, self.taken = agent, []

    async def call(self, method, path, body):
        self.taken += [e["seq"] for e in json.loads(json.dumps(body["events"]))]
        if len(self.taken) < 3:
            self.agent.tell("state")
        return 200, b""


async def herd_sends_all():
    """The herd's agents leave no event out, or the master refuses all that follow."""
    agent = Agent(types.SimpleNamespace(token="", host="", port=0), "herd-0", {})
    agent.post = SlowPost(agent)
    agent.tell("state")
    while agent.unsent:
        await agent.send()
    assert agent.post.taken == [1, 2, 3], agent.post.taken


def main():
    asyncio.run(herd_sends_all())
    with Cluster(agents=0) as c:
        a = handshake(c)
        print("ok handshake", flush=True)
        clock(c, a)
        print("ok clock", flush=True)
        gpus(c, a)
        print("ok gpus", flush=True)
        master_restart(c, a, *one_trial(c, a))
        print("ok one_trial, master_restart", flush=True)
        kill(c, a)
        print("ok kill", flush=True)
        outage(c, a)
        print("ok outage", flush=True)
        lost(c, a)
        print("ok lost", flush=True)
        slow_line(c)
        print("ok slow_line", flush=True)
        late(c)
        print("ok late", flush=True)


main()

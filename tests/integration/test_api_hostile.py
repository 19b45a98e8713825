"""What a hostile or broken client may send: refused with a reason, and nobody else's work is held up or lost."""
import base64
import gzip
import hashlib
import io
import json
import os
import re
import socket
import sys
import tarfile
import threading
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import SLOWER, Cluster, wait_until  # noqa: E402
from fake_agent import FakeAgent  # noqa: E402
from openapi import Api  # noqa: E402
import promtext  # noqa: E402

LARGER = 4 if os.environ.get("DET_SANITIZED") else 1  # what is freed is kept for a while
CONFIG = """
name: hostile
entrypoint: model_def:T
hyperparameters: {lr: 0.25}
searcher: {name: single, metric: loss, max_length: {batches: 200}}
resources: {slots_per_trial: 1}
"""


class Run:
    """An experiment whose one trial runs on the stand-in agent."""
    def __init__(self, c, user, agent):
        self.exp = user.call("create_experiment", {"config": CONFIG, "activate": True, "modelDefinition": []})["experiment"]["id"]
        self.order = agent.next("start")
        agent.run(self.order)
        self.alloc, self.task = self.order["alloc"], self.order["task"]["task_id"]
        self.trial = int(self.order["task"]["env"]["DET_TRIAL_ID"])
        self.api = Api(c.port, alloc=self.order["task"]["token"])

    def checkpoint(self, steps):
        key = str(uuid.uuid4())
        self.api.call("post_checkpoint", {"uuid": key, "taskId": self.task, "allocationId": self.alloc, "resources": {"a": "1"},
                                          "metadata": {"steps_completed": steps}})
        return key


def foreign(one, other):
    """The token of one task writes nothing of another's."""
    key = other.checkpoint(1)
    metrics = {"metrics": {"trialId": other.trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 1}}}, "group": "training"}
    one.api.refused(403, "", "post_metrics", metrics, trialId=other.trial)
    one.api.refused(400, "trialId", "post_metrics", metrics, trialId=one.trial)
    one.api.refused(403, "", "get_checkpoint", checkpointUuid=key)
    one.api.refused(404, "", "patch_checkpoints", {"checkpoints": [{"uuid": key, "resources": {"resources": {}}}]})
    one.api.refused(409, "", "post_checkpoint", {"uuid": key, "resources": {}, "metadata": {"steps_completed": 1}})
    one.api.refused(403, "", "post_task_logs", {"logs": [{"task_id": one.task, "allocation_id": other.alloc, "log": "x"}]})
    forged = one.order["task"]["token"].replace(f":{one.trial}:", f":{other.trial}:")
    Api(one.api.port, alloc=forged).refused(401, "", "get_me")


def values(user, run):
    """Values no row or reader can hold."""
    for weight in ("NaN", "Infinity", "-Infinity", -1, 0):
        user.refused(400, "resources.weight", "patch_experiment", {"resources": {"weight": weight}}, experiment__id=run.exp)
    user.call("patch_experiment", {"resources": {"weight": 2.5}}, experiment__id=run.exp)
    long = "".join(chr(0x4E00 + i * 7919 % 20000) for i in range(9000))  # no compression makes it short
    run.api.refused(400, "", "post_task_logs", {"logs": [{"task_id": run.task, "stdtype": long, "offset": "1", "log": "x"}]})
    run.api.refused(400, "", "post_accelerators", {"acceleratorData": {"containerId": long}}, allocationId=run.alloc)
    labels = {"trialId": run.trial, "name": "cpu"}
    for bad in ({"values": [{"x": 1}]}, {"values": ["high"]}, {"batches": ["z"]}, {"timestamps": [5]}, {"timestamps": ["late"]}):
        run.api.refused(400, "batches[0]." + list(bad)[0], "post_profiler_metrics", {"batches": [{**bad, "labels": labels}]})
    run.api.call("post_profiler_metrics", {"batches": [{"values": ["NaN", 1], "batches": [1, 2], "timestamps": ["2024-01-01T00:00:00Z"], "labels": labels}]})


def unsent(c, s, seen):
    """True once the bytes that the master has to send to this socket stay the same for 20 looks. Ports alone tell nothing: connections to other
    masters, ended ones too, may have come from the same port. A long table that changes while it is read may lack the row: that is no look."""
    ends = [f"0100007F:{port:04X}" for port in (c.port, s.getsockname()[1])]
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f if line.split()[1:3] == ends]
    seen += [max(int(row[4].split(":")[0], 16) for row in rows)] if rows else []
    return len(seen) >= 20 and seen[-1] > 0 and len(set(seen[-20:])) == 1


def stop_with_stuck_reader(c, run):
    """A follower that reads nothing delays the master's end by the grace of 3 s at most."""
    with socket.create_connection(("127.0.0.1", c.port)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        for _ in range(20):
            run.api.call("post_task_logs", {"logs": [{"task_id": run.task, "log": "y" * 400000}]})
        s.sendall(f"GET /api/v1/trials/{run.trial}/logs?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {c.token}\r\n\r\n".encode())
        assert s.recv(16).startswith(b"HTTP/1.1 200")
        seen = []
        wait_until(lambda: unsent(c, s, seen), 20, "a full socket")
        began = time.monotonic()
        master = c.procs["master"]
        c.stop("master")
        assert master.returncode == 0 and time.monotonic() - began < 6 * SLOWER, (master.returncode, time.monotonic() - began)


def collect_after_crash(c, user, run, agent):
    """The master died after an experiment's end and before its collection: the next start makes up for it."""
    old, last = run.checkpoint(10), run.checkpoint(20)
    user.call("kill_experiment", id=run.exp)
    agent.exit(run.order, reason="killed")
    wait_until(lambda: user.call("get_experiment", experimentId=run.exp)["experiment"]["state"] == "STATE_CANCELED", 20, "the end")
    agent.close()
    stop_with_stuck_reader(c, run)
    c.sql(f"DELETE FROM allocations WHERE kind = 'CHECKPOINT_GC' AND experiment_id = {run.exp}")  # as if never asked for
    c.start_master()
    agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip(), "agent-y")
    order = agent.orders.get(timeout=120)
    while order["order"] != "start" or order["task"].get("gc") is None:
        order = agent.orders.get(timeout=120)
    assert order["task"]["gc"]["uuids"] == [old], (order["task"]["gc"], old, last)
    agent.close()


def resident_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def strangers(c, user):
    """The bodies of those who may not send any are read, so that their answer reaches them, but not kept."""
    before, half = resident_kb(c.procs["master"].pid), b"x" * (20 << 20)
    socks = []
    for auth in ("Bearer " + "0" * 64, "Bearer A1:1:1:1:1:a:b:" + "0" * 64, "Bearer v2.public.made-up"):
        s = socket.create_connection(("127.0.0.1", c.port))
        s.settimeout(60 * SLOWER)
        head = f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\nContent-Length: {2 * len(half)}\r\n\r\n"
        s.sendall(head.encode() + half)
        socks.append(s)
    user.call("get_me")
    grown = resident_kb(c.procs["master"].pid) - before
    assert grown < 20 << 10, f"the master keeps {grown} kB for three strangers"
    for s in socks:
        s.sendall(half)
        assert s.recv(12) == b"HTTP/1.1 401", "of somebody unknown"
        s.close()
    s = socket.create_connection(("127.0.0.1", c.port))  # and one whose body comes in pieces, on a kept connection
    s.settimeout(60 * SLOWER)
    for token, status in (("0" * 64, b"401"), (c.token, b"400"), (c.token, b"400")):
        s.sendall(f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n".encode())
        s.sendall(b"0\r\n\r\n")
        answer = s.recv(65536)
        assert answer.startswith(b"HTTP/1.1 " + status), answer
    s.close()
    assert "refused an unknown token at '/api/v1/experiments' from 127.0.0.1" in open(c.path("master.log")).read()


def send_until_cut(s, piece, most):
    """How many bytes went before the peer ended it. It has to say so: a sender who is not told finds out after 102 s."""
    for sent in range(0, most, len(piece)):
        try:
            s.sendall(piece)
        except (ConnectionResetError, BrokenPipeError):
            return sent
    return most


def endless(c, user):
    """Who asks first whether to send, or announces more than anybody may, is refused at once; an endless body is cut."""
    made_up = "POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + "0" * 64 + "\r\n"
    unknown = "POST /api/v1/nowhere HTTP/1.1\r\nHost: x\r\n"
    for head, length, more, status in ((made_up, 1000, "Expect: 100-continue\r\n", b"401"), (made_up, 10 << 30, "", b"413"),
                                       (unknown, 1000, "Expect: 100-continue\r\n", b"404"), (unknown, 10 << 30, "", b"404")):
        with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
            s.sendall(f"{head}{more}Content-Length: {length}\r\n\r\n".encode())
            answer = rest(s)  # to the end of the connection: it does not stay, as its body never came
            assert answer.startswith(b"HTTP/1.1 " + status), answer
    with socket.create_connection(("127.0.0.1", c.port), timeout=30 * SLOWER) as s:
        s.sendall(f"{made_up}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent = send_until_cut(s, b"100000\r\n" + b"x" * (1 << 20) + b"\r\n", 1 << 30)
        assert 90 << 20 < sent < 200 << 20, sent
    user.call("get_me")


def log_in(c, name, password):
    """The status of one attempt, and after how many seconds the next one may come."""
    with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
        body = json.dumps({"username": name, "password": password})
        s.sendall(f"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        head = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    after = re.search(r"Retry-After: (\d+)", head)
    return int(head.split()[1]), int(after[1]) if after else None


def guessers(c, user):
    """Who guesses is told when to come back, known name or not; others of the same address log in, and the log names both."""
    for name in ("admin", "nobody"):
        begun, answers = time.monotonic(), []
        while not answers or answers[-1][0] == 401:
            answers.append(log_in(c, name, f"guess {len(answers)}"))
        most = 10 + (time.monotonic() - begun) // 6 + 1  # one more every 6 s: a slow machine gets some of them
        assert answers[:10] == [(401, None)] * 10 and len(answers) - 1 <= most, answers
        assert answers[-1][0] == 429 and 1 <= answers[-1][1] <= 6, answers
    user.call("post_user", {"user": {"username": "ada", "active": True}, "password": "ada's own", "isHashed": False})
    for _ in range(15):  # to be right is not counted
        assert log_in(c, "ada", "ada's own")[0] == 200
    user.call("post_user", {"user": {"username": "gone", "active": False}})
    assert log_in(c, "gone", "x")[0] == 401, "told that somebody has the name"
    for _ in range(15):  # but for one that everybody knows, which costs no look at a password
        assert log_in(c, "determined", "")[0] == 403
    log = open(c.path("master.log")).read()
    assert log.count("refused a log-in as 'nobody' from 127.0.0.1") == len(answers) - 1, log[-3000:]


def stop_halfway(c):
    """Connections of senders who stop in the middle of a request: one hung up half, the others say nothing."""
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    kept = [socket.create_connection(("127.0.0.1", c.port)) for _ in range(3)]
    for s, text in zip(kept, (head + b"{", head + b"{", b"POST /api/v1/au")):
        s.settimeout(60 * SLOWER)
        s.sendall(text)
    kept[0].shutdown(socket.SHUT_WR)
    return kept


def given_up(kept):
    """They are, after a while in which much else is done."""
    for s in kept:
        assert s.recv(1000) == b"", "an answer to half a request"
        s.close()


def too_long(c, user):
    """One byte above the most that any route takes: said before it is read, and nothing of it is kept."""
    size = (96 << 20) + 1
    with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
        s.sendall(f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {c.token}\r\nContent-Length: {size}\r\n\r\n".encode())
        piece = b" " * (1 << 20)
        for _ in range(96):
            s.sendall(piece)
        s.sendall(b" ")
        answer = s.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ") and b"too large" in answer, answer[:200]


def packed(c, user):
    """A body that is said to be packed is refused as such, and not unpacked: a small one could stand for a very large one."""
    bomb = gzip.compress(b" " * (64 << 20))
    before = resident_kb(c.procs["master"].pid)
    for coding, status in (("gzip", b"415"), ("deflate, gzip", b"415"), ("identity", b"400")):
        with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
            s.sendall(f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {c.token}\r\nContent-Encoding: {coding}\r\n"
                      f"Content-Length: {len(bomb)}\r\n\r\n".encode() + bomb)
            answer = s.recv(65536)
        assert answer.startswith(b"HTTP/1.1 " + status) and (status == b"400" or b"without Content-Encoding" in answer), answer
    assert resident_kb(c.procs["master"].pid) - before < LARGER * (20 << 10)


def budget(c, user):
    """Bodies of those who may send them have a budget over all connections: one too many is told to come back, the others stay."""
    before, piece, n = resident_kb(c.procs["master"].pid), b" " * (1 << 20), 90
    socks = [socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) for _ in range(6)]
    for s in socks:
        s.sendall(f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {c.token}\r\nContent-Length: {n << 20}\r\n\r\n".encode())
    for _ in range(n - 1):  # but for its last piece each body is there
        for s in socks:
            s.sendall(piece)
    user.call("get_me")
    grown = resident_kb(c.procs["master"].pid) - before
    assert grown < LARGER * (450 << 10), f"the master keeps {grown} kB for six bodies"
    for s in socks:  # of all, before any is answered: who says nothing for 15 s is cut, and a slow master takes that long for five
        s.sendall(piece)
    answers = [s.recv(65536) for s in socks]
    for s in socks:
        s.close()
    assert {a[9:12] for a in answers} == {b"400", b"503"}, answers
    assert all(b"Retry-After" in a and b"large requests" in a for a in answers if a[9:12] == b"503"), answers
    user.call("get_me")


def given_back(c, user):
    """What a small text stood for is freed to the system, not kept for the next one."""
    before = resident_kb(c.procs["master"].pid)
    for _ in range(3):
        user.refused(400, "", "create_experiment", {"config": "a: 1", "modelDefinition": [0] * 2000000})
    if not os.environ.get("DET_SANITIZED"):  # its allocator keeps what is freed
        wait_until(lambda: resident_kb(c.procs["master"].pid) - before < 30 << 10, 20, "the memory of three refused requests")


def downloads(c, user):
    """Of model definitions that nobody takes the master holds no more than a part each; whoever takes one gets all of it."""
    text = os.urandom(8 << 20)
    exp = user.call("create_experiment", {"config": CONFIG.replace("model_def:T", "cat noise"), "activate": False, "modelDefinition": [
        {"path": "noise", "type": 48, "content": base64.b64encode(text).decode(), "mode": 0o644, "mtime": 1}]})["experiment"]["id"]
    before, socks = resident_kb(c.procs["master"].pid), []
    for i in range(12):
        s = socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.sendall(f"GET /{('', 'api/v1/')[i % 2]}experiments/{exp}/model_def HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {c.token}\r\n\r\n".encode())
        assert s.recv(12) == b"HTTP/1.1 200"
        socks.append(s)
    grown = resident_kb(c.procs["master"].pid) - before
    assert grown < LARGER * (40 << 10), f"the master keeps {grown} kB for twelve downloads of 8 MB"
    tgz = user.call("download_model_def", experimentId=exp)
    with tarfile.open(fileobj=io.BytesIO(tgz)) as tar:
        assert tar.extractfile("noise").read() == text
    assert base64.b64decode(user.call("get_model_def", experimentId=exp)["b64Tgz"]) == tgz
    for s in socks:
        s.close()
    user.refused(404, "", "get_model_def", experimentId=0)


def answer_to(c, method, path, body, token=None):
    """Status and text of the answer to one request of raw bytes."""
    with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
        who = f"Authorization: Bearer {token}\r\n" if token else ""
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{who}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return int(text[9:12]), text


def limits(c):
    """Strangers may send a few kilobytes, which is all that a log-in takes."""
    for path in ("/api/v1/auth/login", "/login", "/api/v1/auth/link/exchange"):
        status, text = answer_to(c, "POST", path, json.dumps({"username": "ada", "password": "x" * 4096}).encode())
        assert status == 413 and "4096 bytes are the most here" in text, text
    assert answer_to(c, "POST", "/api/v1/auth/login", json.dumps({"username": "ada", "password": "x" * 3900}).encode())[0] == 401


def bundles(c, run, other):
    """Reports that came together: whether they are plain, or spelled so that they are not, nothing else differs."""
    def bundle(reports, first, odd):
        """first: of the steps. odd: the first group in a spelling that only the parser reads."""
        texts = [json.dumps({"group": group, "metrics": {"metrics": metrics, "stepsCompleted": first + i, "trialId": trial, "trialRunId": of_run}})
                 for i, (group, trial, of_run, metrics) in enumerate(reports)]
        texts[0] = texts[0].replace('"bundle', '"\\u0062undle') if odd else texts[0]
        body = f'{{"reports": [{", ".join(texts)}]}}'.encode()
        status, text = answer_to(c, "POST", f"/api/v1/trials/{run.trial}/metrics/batch", body, run.order["task"]["token"])
        assert status == 200, text
        return [(x["index"], x["status"], x["message"].replace(str(first), "")) for x in json.loads(text.split("\r\n\r\n", 1)[1])["refused"]]

    def kept(first):
        return c.sql("SELECT grp, steps - %d, run_id, metrics::text, batch_metrics::text FROM metrics WHERE trial_id = %d AND steps BETWEEN %d AND %d "
                     "ORDER BY steps" % (first, run.trial, first, first + 999))

    values = {"loss": 0.25, "lr": 1e-05, "n": 12, "f32": 0.12345678955316544, "whole": 1e22}
    reports = [("bundle", run.trial, 1, {"avgMetrics": {**values, "n": i}, "batchMetrics": [{"a": i + 0.5}, {"a": 2}] if i % 2 else None}) for i in range(40)]
    reports[7] = ("bundle", other.trial, *reports[7][2:])
    reports[9] = ("bundle", run.trial, 2, reports[9][3])
    answers = [bundle(reports, first, odd) for first, odd in ((5000, False), (6000, True))]
    assert answers[0] == answers[1] and [x[:2] for x in answers[0]] == [(7, 400), (9, 409)], answers
    assert "is not the path's" in answers[0][0][2] and "invalid run id" in answers[0][1][2], answers
    assert kept(5000) == kept(6000) and kept(5000).count("\n") == 37, kept(5000)
    for bad, reason in ((reports[0][:3] + ({"avgMetrics": {"epoch": "x"}},), "epoch"), (("a.b", *reports[0][1:]), "group: "),
                        (reports[0][:3] + ({"avgMetrics": 1},), "avgMetrics: expected an object")):
        (index, status, message), = bundle([reports[0], bad], 7000, False)
        assert (index, status) == (1, 400) and reason in message, message


def cookies(c):
    """Whose cookies leave no room for an answer is told so, whatever room there is."""
    for n in [*range(2600, 5600, 200), *range(5600, 5800, 10), 6200, 8000]:
        with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
            s.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nCookie: a=" + b"x" * n + b"\r\n\r\n")
            answer = b"".join(iter(lambda: s.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 431 "), (n, answer)
        assert n > 5700 or b"the request's line and headers have" in answer, (n, answer)


def large(c, user, run):
    """What is large is read in a thread: it is taken, or refused, as what is small is; and it stands for no more than one request may hold."""
    token, trial, many = run.order["task"]["token"], run.trial, 20000
    batches = ",".join(f'{{"loss":{i}}}' for i in range(many))
    report = f'{{"trialId":{trial},"trialRunId":1,"stepsCompleted":7,"metrics":{{"avgMetrics":{{"loss":0.5%s}},"batchMetrics":[{batches}]}}}}'
    path = f"/api/v1/trials/{trial}/training_metrics"
    assert answer_to(c, "POST", path, (report % "").encode(), token)[0] == 200
    assert c.sql(f"SELECT jsonb_array_length(batch_metrics::jsonb) FROM metrics WHERE trial_id = {trial} AND steps = 7").strip() == str(many)
    status, text = answer_to(c, "POST", path, (report % "}").encode(), token)
    assert status == 400 and "body: " in text, text
    status, text = answer_to(c, "POST", path, (report % (',"all":[' + "1," * (1 << 20) + "1]")).encode(), token)
    assert status == 413 and "beside its batchMetrics" in text, text
    status, text = answer_to(c, "POST", f"/api/v1/trials/{trial}/metrics/batch", b"{" + b" " * (256 << 10) + b"}", token)
    assert status == 413 and "262144 bytes" in text, text
    one = {"task_id": run.task, "log": "of many"}
    run.api.call("post_task_logs", {"logs": [{**one, "log": "a long line " + "x" * 200000}]})
    run.api.refused(413, "10000 lines", "post_task_logs", {"logs": [one] * 10001})
    run.api.refused(413, "4194304 bytes", "post_task_logs", {"logs": [{**one, "log": "x" * (4 << 20)}]})
    text = json.dumps({"batches": [{}] * 60000, "x": 1})[:-1]
    status, text = answer_to(c, "POST", "/api/v1/trials/profiler/metrics", text.encode(), token)
    assert status == 400 and "body: " in text, text
    search = {"searcherOperations": [0] * 100}
    user.refused(400, "", "post_searcher_operations", search, experimentId=run.exp)
    log = open(c.path("master.log")).read()
    assert log.count("is passed over") == 10 and "90 more searcherOperations are passed over" in log, log[-3000:]
    user.refused(413, "10000 are the most", "post_searcher_operations", {"searcherOperations": [0] * 100000}, experimentId=run.exp)


def follow(c, trial, token, ended=False):
    """A stream of log lines; ended: None where the token is good for nothing any more."""
    s = socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER)
    s.sendall(f"GET /api/v1/trials/{trial}/logs?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    status = s.recv(12)
    assert status == b"HTTP/1.1 200" or (ended and status == b"HTTP/1.1 401"), status
    return s if status.endswith(b"200") else s.close()


def rest(s):
    """What a stream has until its connection ends."""
    with s:
        return b"".join(iter(lambda: s.recv(65536), b""))


def status_of(c, token):
    with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
        s.sendall(f"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode())
        return int(s.recv(12)[9:])


def polls(c):
    return promtext.value(promtext.parse(Api(c.port).raw("GET", "/metrics")[1].decode()), "det_http_polls")


def poll(c, exp, token):
    """Asks for the events of a custom search that has none."""
    s = socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER)
    s.sendall(f"GET /api/v1/experiments/{exp}/searcher_events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode())
    return s


def logged_out(c, run, exp):
    """Who logs out gets nothing more of what she has asked for before; what another session of hers has asked for goes on."""
    one, other = (Api(c.port).call("login", {"username": "eve", "password": "eve's own", "isHashed": False})["token"] for _ in range(2))
    stream, stays, before = follow(c, run.trial, one), follow(c, run.trial, other), polls(c)
    waiting = poll(c, exp, one)
    wait_until(lambda: polls(c) > before, 20, "the poll")
    Api(c.port, one).call("logout")
    assert not rest(stream).endswith(b"0\r\n\r\n"), "the stream seems whole"
    answer = rest(waiting)
    assert answer.startswith(b"HTTP/1.1 401"), answer
    assert status_of(c, one) == 401 and status_of(c, other) == 200
    run.api.call("post_task_logs", {"logs": [{"task_id": run.task, "log": "told to the other"}]})
    said = b""
    while b"told to the other" not in said:
        more = stays.recv(65536)
        assert more, "the stream of her other session ended"
        said += more
    stays.close()


def shown_out(c, user, run):
    """Whose session or token an administrator ends gets nothing from then on: no answer to what comes after it, though look-ups of that
    session are under way all the time, no more of what is being streamed, and nothing of what a poll waits for; others' streams and polls
    stay."""
    eve = user.call("post_user", {"user": {"username": "eve", "active": True}, "password": "eve's own", "isHashed": False})["user"]["id"]
    other = user.call("post_user", {"user": {"username": "oscar", "active": True}, "password": "his own", "isHashed": False})["user"]["id"]
    done = threading.Event()

    def forget():
        while not done.is_set():  # each change of a user lets all sessions be looked up again
            Api(c.port, c.token).call("patch_user", {"displayName": f"O {time.monotonic()}"}, userId=other)
    search = {"config": CONFIG.replace("name: single, metric: loss, max_length: {batches: 200}", "name: custom, metric: loss"), "modelDefinition": []}
    exp = user.call("create_experiment", {**search, "activate": True})["experiment"]["id"]
    user.call("post_searcher_operations", {"searcherOperations": [], "triggeredByEvent": {"id": 1}}, experimentId=exp)
    asked_s, stays, waits = time.monotonic(), follow(c, run.trial, c.token), poll(c, exp, c.token)
    wait_until(lambda: polls(c) == 1, 20, "the poll that stays")
    thread = threading.Thread(target=forget)
    thread.start()
    try:
        for i in range(5):
            token = Api(c.port).call("login", {"username": "eve", "password": "eve's own", "isHashed": False})["token"]
            stream, late, ended = follow(c, run.trial, token), [], threading.Event()

            def ask():
                while not late:
                    after = ended.is_set()
                    status = status_of(c, token)
                    late.extend([status] if after else [])
            asking = [threading.Thread(target=ask) for _ in range(4)]
            for t in asking:
                t.start()
            before, waiting = polls(c), poll(c, exp, token)
            if i:  # else it may be on its way
                wait_until(lambda: polls(c) > before, 20, "the poll")
            user.call("patch_user", {"active": False}, userId=eve)
            ended.set()
            for t in asking:
                t.join()
            assert set(late) <= {401, 403}, late
            assert not rest(stream).endswith(b"0\r\n\r\n"), "the stream seems whole"
            answer = rest(waiting)
            assert answer.startswith(b"HTTP/1.1 401"), answer
            user.call("patch_user", {"active": True}, userId=eve)
            assert status_of(c, token) == 401
    finally:
        done.set()
        thread.join()
    api = Api(c.port, Api(c.port).call("login", {"username": "eve", "password": "eve's own", "isHashed": False})["token"])
    made = api.call("post_token", {"userId": eve, "lifespan": "1h", "description": ""})
    stream = follow(c, run.trial, made["token"])
    user.call("patch_token", {"setRevoked": True}, tokenId=made["tokenInfo"]["id"])
    rest(stream)
    assert status_of(c, made["token"]) == 401
    logged_out(c, run, exp)
    user.call("kill_experiment", id=exp)
    answer = rest(waits)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    if time.monotonic() - asked_s < 60:  # after a minute a poll is answered in any case
        assert b"experimentInactive" in answer, answer
    run.api.call("post_task_logs", {"logs": [{"task_id": run.task, "log": "still told"}]})
    said = b""
    while b"still told" not in said:
        more = stays.recv(65536)
        assert more, "the stream of somebody else ended"
        said += more
    stays.close()


def timed_out(c, user, run):
    """What a token has asked for ends with its time; what others have asked for goes on."""
    eve = next(u["id"] for u in user.call("get_users")["users"] if u["username"] == "eve")
    search = CONFIG.replace("name: single, metric: loss, max_length: {batches: 200}", "name: custom, metric: loss")
    exp = user.call("create_experiment", {"config": search, "modelDefinition": [], "activate": True})["experiment"]["id"]
    user.call("post_searcher_operations", {"searcherOperations": [], "triggeredByEvent": {"id": 1}}, experimentId=exp)
    stays, api = follow(c, run.trial, c.token), Api(c.port, Api(c.port).call("login", {"username": "eve", "password": "eve's own", "isHashed": False})["token"])
    for left_s in (3, 12, 48, 192):  # a slow machine needs more of it to ask at all
        made = api.call("post_token", {"userId": eve, "lifespan": "1h", "description": ""})
        c.sql(f"UPDATE access_tokens SET expires_at = now() + interval '{left_s} seconds' WHERE token_sha256 = '{hashlib.sha256(made['token'].encode()).hexdigest()}'")
        before = polls(c)
        stream, waiting = follow(c, run.trial, made["token"], ended=True), poll(c, exp, made["token"])
        wait_until(lambda: polls(c) > before or status_of(c, made["token"]) == 401, 20, "the poll, or the end of its right")
        if stream and status_of(c, made["token"]) == 200:
            break
    assert not rest(stream).endswith(b"0\r\n\r\n"), "the stream seems whole"
    answer = rest(waiting)
    assert answer.startswith(b"HTTP/1.1 401"), answer
    run.api.call("post_task_logs", {"logs": [{"task_id": run.task, "log": "told to who stays"}]})
    said = b""
    while b"told to who stays" not in said:
        more = stays.recv(65536)
        assert more, "the stream of a session that goes on ended"
        said += more
    stays.close()
    user.call("kill_experiment", id=exp)


def stacks(c, user, run):
    """Where a trial is may be asked now and then, as each time stops it for a moment; who asks without end takes nobody else's turn."""
    begun, status, n = time.monotonic(), 200, 0
    while status == 200:
        status, text = answer_to(c, "POST", f"/api/v1/trials/{run.trial}/stacks", b"", c.token)
        n += status == 200
    most = 10 + (time.monotonic() - begun) // 6 + 1  # one more every 6 s: a slow machine gets some of them
    assert status == 429 and 10 <= n <= most and 1 <= int(re.search(r"Retry-After: (\d+)", text)[1]) <= 7, (n, text)
    user.call("post_user", {"user": {"username": "olga", "active": True, "admin": True}, "password": "olga's own", "isHashed": False})
    token = Api(c.port).call("login", {"username": "olga", "password": "olga's own", "isHashed": False})["token"]
    status, text = answer_to(c, "POST", f"/api/v1/trials/{run.trial}/stacks", b"", token)
    assert status == 200, text


def flood(c, user):
    """Refusals are logged, but no faster than a disk bears, and the number of those left out is said."""
    def lines():
        with open(c.path("master.log")) as f:
            return [line for line in f if "refused " in line]
    before = len(lines())
    with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
        for _ in range(1000):
            s.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + b"0" * 64 + b"\r\n\r\n")
            assert s.recv(65536).startswith(b"HTTP/1.1 401")
    assert len(lines()) - before < 300, len(lines()) - before

    def told():
        status_of(c, "0" * 64)
        return any("more refusals before" in line for line in lines()[before:])
    wait_until(told, 20, "the number of lines left out")


def main():
    with Cluster(agents=0) as c:
        c.login()
        user = Api(c.port, c.token)
        agent = FakeAgent(c.port, open(c.path("agent.token")).read().strip())
        one, other = Run(c, user, agent), Run(c, user, agent)
        foreign(one, other)
        values(user, one)
        one.api.refused(400, "length", "post_completed_operation", {"op": {"length": 7}, "searcherMetric": 1}, trialId=one.trial)
        assert "malformed" not in open(c.path("master.log")).read()
        kept = stop_halfway(c)
        too_long(c, user)
        strangers(c, user)
        endless(c, user)
        guessers(c, user)
        limits(c)
        bundles(c, one, other)
        cookies(c)
        large(c, user, one)
        downloads(c, user)
        packed(c, user)
        budget(c, user)
        given_back(c, user)
        shown_out(c, user, one)
        timed_out(c, user, one)
        stacks(c, user, one)
        flood(c, user)
        given_up(kept)
        collect_after_crash(c, user, one, agent)
    print("test_api_hostile: passed")


main()

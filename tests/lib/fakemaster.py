"""A stand-in for det-master's side of the agent link and of what det-task calls, in this process.

    m = FakeMaster(); m.start(alloc, spec); m.wait_exit(alloc)
"""
import base64
import gzip
import http.server
import io
import json
import os
import subprocess
import tarfile
import tempfile
import threading
import time
import uuid

from cluster import BIN, HANG_S, SLOWER

TOKEN = "agent-token"


def context(files):
    """base64 of a tar.gz of {path: text}."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as z, tarfile.open(fileobj=z, mode="w") as t:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(text.encode()), 0o755
            t.addfile(info, io.BytesIO(text.encode()))
    return base64.b64encode(out.getvalue()).decode()


class FakeMaster:
    def __init__(self):
        self.lock = threading.Condition()
        self.events, self.orders, self.logs, self.requests = [], [], [], []
        self.boot, self.seen, self.stream_id, self.seq = None, 0, 0, 0
        self.contexts, self.refuse = {}, False
        self.rendezvous = 0  # a status to refuse it with
        self.met = {"addresses": ["127.0.0.1"], "rank": 0, "slots": [1]}  # what it tells, as an older one: of no ports
        self.times = {}
        self.report_s = 0  # what it takes for each report of progress
        self.report_refusals = 0  # how many of them are refused
        self.ahead_s = 0  # of our clock
        self.clock = None  # what the agent said last of its own
        self.serve(0)

    def serve(self, port):
        master = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_POST(self):
                master.handle(self, json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"))

            do_PATCH = do_POST

            def do_GET(self):
                master.handle(self, None)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # a peer that was killed

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            self.stream_id += 1
            self.lock.notify_all()

    def handle(self, h, body):
        path = h.path.split("?")[0]
        if self.refuse:
            return self.answer(h, {"error": {"error": "away"}}, 503)
        if path.startswith("/agent/v1/"):
            if h.headers.get("Authorization") != "Bearer " + TOKEN:
                return self.answer(h, {"message": "wrong token"}, 401)
            if path.endswith("/stores"):
                return self.answer(h, {"stores": [], "clock": self.now()})
            return self.take_events(h, body) if path.endswith("/events") else self.stream(h)
        with self.lock:
            self.requests.append((h.command, h.path, body, dict(h.headers)))
            self.lock.notify_all()
        if path == "/api/v1/task/logs":
            with self.lock:
                def key(x):
                    return x["container_id"], x.get("rank_id"), x.get("stdtype"), x["offset"]
                have = {key(x) for x in self.logs}
                self.logs += [x for x in body["logs"] if key(x) not in have]
                self.lock.notify_all()
        if path.endswith("/context_directory"):
            return self.answer(h, {"b64Tgz": self.contexts[path.split("/")[4]]})
        if path.endswith("/rendezvous"):
            if self.rendezvous:
                return self.answer(h, {"error": {"code": 5, "reason": "Refused", "error": "the allocation is over"}}, self.rendezvous)
            return self.answer(h, {"rendezvousInfo": self.met})
        if path.endswith("/progress"):
            time.sleep(self.report_s)
            if self.report_refusals:
                self.report_refusals -= 1
                return self.answer(h, {"error": {"code": 3, "reason": "Refused", "error": "x is no progress"}}, 400)
        return self.answer(h, {})

    @staticmethod
    def answer(h, body, status=200):
        data = json.dumps(body).encode()
        h.send_response(status)
        h.send_header("Content-Length", str(len(data)))
        h.end_headers()
        h.wfile.write(data)

    def now(self):
        now_us = time.time_ns() // 1000 + self.ahead_s * 1000000
        return {"got_us": now_us, "answered_us": now_us}

    def take_events(self, h, body):
        clock = self.now()
        with self.lock:
            self.clock = body.get("clock")
            if body["boot"] != self.boot:
                self.boot, self.seen = body["boot"], 0
            for e in body["events"]:
                if e["seq"] <= self.seen:
                    continue
                self.seen = e["seq"]
                self.events.append(e)
                self.times[(e["type"], e.get("alloc"), e.get("state"))] = time.monotonic()
                if e["type"] == "hello":
                    self.stream_id += 1
                    self.orders = []
            ack = self.seen
            self.lock.notify_all()
        self.answer(h, {"ack": ack, "clock": clock})

    def stream(self, h):
        with self.lock:
            self.stream_id += 1
            mine = self.stream_id
            self.lock.notify_all()
        h.send_response(200)
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        at = 0

        def line(o):
            data = json.dumps(o).encode() + b"\n"
            h.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            h.wfile.flush()
        try:
            line({"order": "heartbeat"})
            while True:
                with self.lock:
                    if not self.lock.wait_for(lambda: self.stream_id != mine or len(self.orders) > at, 2):
                        out = [{"order": "heartbeat"}]
                    elif self.stream_id != mine:
                        break
                    else:
                        out, at = self.orders[at:], len(self.orders)
                for o in out:
                    line(o)
        except OSError:
            pass
        h.close_connection = True

    # -- what tests say and see ----------------------------------------------------------------
    def order(self, **o):
        with self.lock:
            self.seq += 1
            self.orders.append({"seq": self.seq, **o})
            self.lock.notify_all()

    def start(self, alloc, entrypoint, files=None, container=None, env=None, slots=(0,), **more):
        container = container or str(uuid.uuid4())
        task = {"task_id": alloc.rsplit(".", 1)[0], "kind": "TRIAL", "run_id": 1, "slots": list(slots), "node": 0, "nodes": 1,
                "slot_counts": [len(slots)], "entrypoint": entrypoint, "token": "alloc-token", "user": None, "stall_timeout_ms": 0,
                "env": {"DET_EXPERIMENT_ID": "1", "DET_TRIAL_ID": "1", "DET_EXPERIMENT_CONFIG": "{}", "DET_HPARAMS": "{}", **(env or {})},
                "context": context(files or {}), **more}
        if task["context"] is None:
            del task["context"]
        self.times[("order", alloc, None)] = time.monotonic()
        self.order(order="start", alloc=alloc, container=container, task=task)
        return container

    def kill(self, alloc):
        self.times[("kill", alloc, None)] = time.monotonic()
        self.order(order="signal", alloc=alloc, signal="KILL")

    def wait(self, condition, what, seconds=20):
        with self.lock:
            if not self.lock.wait_for(condition, max(seconds * SLOWER, HANG_S)):
                raise AssertionError(f"waited for {what}; events {self.events[-5:]}; log {[x['log'] for x in self.logs[-10:]]}")
            return condition()

    def event(self, kind, alloc, state=None):
        return next((e for e in self.events if e["type"] == kind and e.get("alloc") == alloc and state in (None, e.get("state"))), None)

    def wait_exit(self, alloc, seconds=20):
        return self.wait(lambda: self.event("exit", alloc), f"the exit of {alloc}", seconds)["exit"]

    def wait_running(self, alloc):
        return self.wait(lambda: self.event("state", alloc, "running"), f"{alloc} running")

    def wait_connected(self, hellos=1):
        self.wait(lambda: sum(e["type"] == "hello" for e in self.events) >= hellos and self.stream_id > hellos, "the agent")

    def wait_marks(self, alloc):
        """Kind -> mark of a task that has ended, in the order they were told."""
        self.wait_exit(alloc)
        with self.lock:
            return {k["kind"]: k for e in self.events if e.get("alloc") == alloc for k in e.get("marks", [])}

    def text(self):
        with self.lock:
            return "".join(x["log"] for x in self.logs)

    def wait_log(self, needle, seconds=20):
        return self.wait(lambda: next((x for x in self.logs if needle in x["log"]), None), f"'{needle}' in the log", seconds)


class Agent:
    """One det-agent in a temporary directory; with start=False, run() starts it."""

    def __init__(self, master, slots=2, env=None, args=(), start=True):
        self.master, self.slots, self.args = master, slots, list(args)
        self.dir = tempfile.mkdtemp(prefix="det-agent-test-")
        self.env = dict(os.environ, **(env or {}))
        with open(self.path("token"), "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(self.path("token"), 0o600)
        self.proc = None
        if start:
            self.run()

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def run(self):
        with open(self.path("agent.log"), "ab") as log:
            self.proc = subprocess.Popen([BIN + "/det-agent", "--master", f"http://127.0.0.1:{self.master.port}", "--token-file", self.path("token"),
                                          "--id", "a1", "--slots", str(self.slots), "--work-dir", self.path("work"), "--task-user", "", *self.args],
                                         env=self.env, stderr=log, stdin=subprocess.DEVNULL)

    def kill(self, sig=9):
        self.proc.send_signal(sig)
        self.proc.wait(HANG_S)

    def close(self, show=False):
        if self.proc and self.proc.poll() is None:
            self.kill()
        subprocess.run([BIN + "/det-agent", "--work-dir", self.path("work"), "--end-tasks"], env=self.env, timeout=60 * SLOWER)
        if show:
            print(open(self.path("agent.log")).read()[-3000:])
        subprocess.run(["rm", "-rf", self.dir])

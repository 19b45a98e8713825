"""An agent that runs nothing: it speaks proto/agent.md, takes orders, and reports what the test says."""
import http.client
import json
import queue
import threading
import uuid

from cluster import SLOWER


class FakeAgent:
    def __init__(self, port, token, name="agent-x", slots=2, pool=""):
        self.port, self.token, self.name, self.pool = port, token, name, pool
        self.boot, self.seq, self.tasks = str(uuid.uuid4()), 0, {}
        self.slots = [{"id": i, "type": "cpu", "brand": "test", "uuid": f"{name}-{i}"} for i in range(slots)]
        self.orders, self.closing = queue.Queue(), False
        self.hello()
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60 * SLOWER)
        self.conn.request("GET", f"/agent/v1/{name}/orders?boot={self.boot}&after=0", headers=self.headers())
        self.stream = self.conn.getresponse()
        assert self.stream.status == 200, self.stream.read()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def headers(self):
        return {"Authorization": "Bearer " + self.token}

    def hello(self):
        self.event(type="hello", version="0.27.0", pool=self.pool, addr="127.0.0.1", slots=self.slots, tasks=[])

    def event(self, **e):
        self.seq += 1
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOWER)
        conn.request("POST", f"/agent/v1/{self.name}/events",
                     json.dumps({"boot": self.boot, "protocol": 1, "events": [{"seq": self.seq, **e}]}), self.headers())
        r = conn.getresponse()
        data = r.read()
        conn.close()
        assert r.status == 200, (r.status, data)

    def listen(self):
        try:
            for line in self.stream:
                order = json.loads(line)
                if order["order"] == "start":
                    self.tasks[order["alloc"]] = order["container"]
                if order["order"] != "heartbeat":
                    self.orders.put(order)
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass

    def next(self, kind, seconds=20):
        """The next order; it must be of this kind."""
        order = self.orders.get(timeout=seconds * SLOWER)
        assert order["order"] == kind, order
        return order

    def run(self, order):
        for state in ("starting", "running"):
            self.event(type="state", alloc=order["alloc"], container=order["container"], state=state)

    def exit(self, order, reason="exited", code=0):
        self.event(type="exit", alloc=order["alloc"], container=self.tasks[order["alloc"]],
                   exit={"reason": reason, "code": code, "signal": 0, "rank": 0 if code else -1, "text": ""})

    def close(self):
        self.closing = True
        self.conn.sock and self.conn.sock.close()
        self.conn.close()

#!/usr/bin/env python3
"""Any number of agents that run nothing, in one process and on one loop: for scale, memory and failover.

usage: herd.py --port PORT --token-file FILE [--agents N] [--slots K] [--polls] [--run-ms MS] [--host H]
Each agent speaks proto/agent.md as det-agent does: a connection for events, a connection for the orders, hello anew
after a lost link (0.2 to 1 s later). What it is told to start it reports running; it ends on a kill, or after MS. With
--polls each running task holds a preemption long poll of 60 s open on a connection of its own, as a rank does.
Once a second, when something changed, one JSON line on standard output: {"agents": connected, "tasks": running,
"polls": open, "hellos": sent, "exits": told}. Ends with its standard input, or by a signal.

    with Herd(cluster, agents=1000, slots=8, polls=True) as h:
        h.wait(agents=1000)      # deadline 60 s; h.state is the last line
"""
import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import threading
import time
import uuid

POLL_S = 60


class Http:
    """One kept-alive connection; requests in turn."""

    def __init__(self, o, headers):
        self.o, self.head, self.r, self.w = o, "".join(f"{k}: {v}\r\n" for k, v in headers.items()), None, None

    async def ask(self, method, path, body=None):
        """Status and the reader, whose body is the caller's to read (length None: chunked)."""
        if not self.w:
            self.r, self.w = await asyncio.open_connection(self.o.host, self.o.port, limit=1 << 20)
        data = b"" if body is None else json.dumps(body).encode()
        self.w.write(f"{method} {path} HTTP/1.1\r\nHost: herd\r\n{self.head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        head = await self.r.readuntil(b"\r\n\r\n")
        length = next((int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")), None)
        return int(head.split(b" ", 2)[1]), length

    async def call(self, method, path, body=None):
        status, length = await self.ask(method, path, body)
        return status, await self.r.readexactly(length or 0)

    def close(self):
        if self.w:
            self.w.close()
        self.r = self.w = None


LOST = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError, ValueError)


class Agent:
    def __init__(self, o, name, count):
        self.o, self.name, self.count = o, name, count
        self.boot, self.seq, self.tasks, self.unsent = str(uuid.uuid4()), 0, {}, []
        self.kick, self.up = asyncio.Event(), False
        auth = {"Authorization": "Bearer " + o.token}
        self.post, self.stream = Http(o, auth), Http(o, auth)

    def tell(self, kind, **e):
        self.seq += 1
        self.unsent.append({"seq": self.seq, "type": kind, **e})
        self.kick.set()

    def hello(self):
        """Tells all that runs. Hellos that were not taken say the same from now on: a number left out would be a gap, and refused."""
        slots = [{"id": i, "type": "cpu", "brand": "", "uuid": ""} for i in range(self.o.slots)]
        tasks = [{"alloc": a, "container": t["container"], "state": "running"} for a, t in self.tasks.items()]
        for e in self.unsent:
            if e["type"] == "hello":
                e["tasks"] = tasks
        self.count["hellos"] += 1
        self.tell("hello", version="0.27.0", pool="", addr="127.0.0.1", slots=slots, tasks=tasks)

    async def send(self):
        events = self.unsent[:500]
        status, _ = await self.post.call("POST", f"/agent/v1/{self.name}/events", {"boot": self.boot, "protocol": 1, "events": events})
        if status != 200:
            raise ValueError(status)
        del self.unsent[:len(events)]  # more may have come meanwhile

    async def sender(self):
        while True:
            await self.kick.wait()
            self.kick.clear()
            while self.unsent:
                await self.send()

    async def orders(self):
        status, _ = await self.stream.ask("GET", f"/agent/v1/{self.name}/orders?boot={self.boot}&after=0")
        if status != 200:
            raise ValueError(status)
        self.up = True
        self.count["agents"] += 1
        text = b""
        while True:
            size = int(await asyncio.wait_for(self.stream.r.readline(), 10) or b"x", 16)
            text += (await self.stream.r.readexactly(size + 2))[:-2]
            if size == 0:
                raise ValueError("the stream ended")
            *lines, text = text.split(b"\n")
            for line in lines:
                if b'"heartbeat"' not in line:
                    self.obey(json.loads(line))

    def obey(self, order):
        alloc = order["alloc"]
        if order["order"] == "start" and alloc not in self.tasks:
            t = self.tasks[alloc] = {"container": order["container"], "token": order["task"]["token"]}
            self.count["tasks"] += 1
            self.tell("state", alloc=alloc, container=t["container"], state="running")
            if self.o.polls:
                t["poll"] = asyncio.ensure_future(self.poll(alloc, t["token"]))
            if self.o.run_ms:
                asyncio.get_running_loop().call_later(self.o.run_ms / 1000, self.end, alloc, "exited")
        elif order["order"] == "signal":
            self.end(alloc, "killed")

    def end(self, alloc, reason):
        t = self.tasks.pop(alloc, None)
        if not t:
            return
        if "poll" in t:
            t["poll"].cancel()
        self.count["tasks"] -= 1
        self.count["exits"] += 1
        self.tell("exit", alloc=alloc, container=t["container"], exit={"reason": reason, "code": 0, "signal": 0, "rank": -1, "text": ""})

    async def poll(self, alloc, token):
        http = Http(self.o, {"Grpc-Metadata-x-allocation-token": "Bearer " + token})
        try:
            await asyncio.sleep(random.random() * self.o.spread_s)
            while True:
                self.count["polls"] += 1
                try:
                    status, body = await http.call("GET", f"/api/v1/allocations/{alloc}/signals/preemption?timeoutSeconds={POLL_S}")
                    if status == 404 or b"true" in body:
                        return
                except LOST:
                    http.close()
                    await asyncio.sleep(random.uniform(0.5, 2))
                finally:
                    self.count["polls"] -= 1
        finally:
            http.close()

    async def live(self):
        await asyncio.sleep(random.random() * self.o.spread_s)
        while True:
            parts = []
            try:
                self.hello()
                while self.unsent:
                    await self.send()
                parts = [asyncio.ensure_future(self.orders()), asyncio.ensure_future(self.sender())]
                await asyncio.gather(*parts)
            except LOST:
                pass
            for p in parts:
                p.cancel()
            self.count["agents"] -= self.up
            self.up = False
            self.post.close()
            self.stream.close()
            await asyncio.sleep(random.uniform(0.2, 1))


async def run(o):
    count, last = {"agents": 0, "tasks": 0, "polls": 0, "hellos": 0, "exits": 0}, None
    everyone = [asyncio.ensure_future(Agent(o, f"herd-{i}", count).live()) for i in range(o.agents)]
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(done.set)), daemon=True).start()
    while not done.is_set():
        if count != last:
            last = dict(count)
            print(json.dumps(last), flush=True)
        try:
            await asyncio.wait_for(done.wait(), 0.2)
        except asyncio.TimeoutError:
            pass
    for e in everyone:
        e.cancel()


class Herd:
    """The program beside a tests/lib cluster.Cluster (its port and agent token), as a context."""

    def __init__(self, cluster, agents=100, slots=1, polls=False, run_ms=0):
        self.state = {}
        self.argv = [sys.executable, os.path.abspath(__file__), "--port", str(cluster.port), "--token-file", cluster.path("agent.token"), "--agents",
                     str(agents), "--slots", str(slots), "--run-ms", str(run_ms)] + ["--polls"] * polls

    def __enter__(self):
        self.proc = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def read(self):
        for line in self.proc.stdout:
            self.state = json.loads(line)

    def wait(self, seconds=60, **wanted):
        """Until each count named is at least what is wanted; seconds that took."""
        begun = time.monotonic()
        while any(self.state.get(k, 0) < v for k, v in wanted.items()):
            assert self.proc.poll() is None, "the herd ended"
            assert time.monotonic() - begun < seconds, f"waited {seconds} s for {wanted}: {self.state}"
            time.sleep(0.02)
        return time.monotonic() - begun

    def __exit__(self, *_):
        self.proc.stdin.close()
        try:
            self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--token-file", required=True)
    p.add_argument("--agents", type=int, default=100)
    p.add_argument("--slots", type=int, default=1)
    p.add_argument("--polls", action="store_true")
    p.add_argument("--run-ms", type=int, default=0)
    p.add_argument("--spread-s", type=float, default=0.5)
    o = p.parse_args()
    o.token = open(o.token_file).read().strip()
    try:
        asyncio.run(run(o))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()

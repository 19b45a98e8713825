"""A client that never stops and keeps count of what was acknowledged: creates experiments that do not start.

Each name is sent until the master says yes, so afterwards every acknowledged one must be there exactly once. A name
whose master was killed in between (`once` False) may be there twice: nobody said no, nobody said yes. A 503 without
Retry-After says that the outcome is not known: such a name is not sent again, and may be there or not.
"""
import http.client
import json
import threading
import time

CONFIG = "name: {}\nentrypoint: ['true']\nsearcher: {{name: single, metric: x, max_length: {{batches: 1}}}}\nmax_restarts: 0\n"


class Clerk:
    def __init__(self, c, prefix="ack", ports=None):
        self.c, self.prefix, self.ports = c, prefix, ports
        self.acked, self.tried, self.refused, self.broken, self.slowest_s = [], 0, 0, 0, 0
        self.stopping, self.unknown, self.wrong = False, 0, ""

    def __enter__(self):
        if not self.c.token:
            self.c.login()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping = True
        self.thread.join(60)

    def work(self):
        while not self.stopping:
            name = f"{self.prefix}-{self.tried}"
            self.tried += 1
            while not self.stopping and not self.ask(name):
                time.sleep(0.05)

    def ask(self, name):
        begun = time.monotonic()
        port = self.ports[self.broken % len(self.ports)] if self.ports else self.c.port
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            body = {"config": CONFIG.format(name), "modelDefinition": [], "activate": False}
            conn.request("POST", "/api/v1/experiments", json.dumps(body), {"Authorization": "Bearer " + self.c.token})
            r = conn.getresponse()
            text = r.read()
            if r.status == 200:
                self.acked.append(name)
                return True
            if r.status != 503:
                self.wrong = f"{name}: {r.status} {text}"
            self.refused += 1
            if r.status == 503 and not r.headers["Retry-After"]:
                self.unknown += 1
                return True
        except (OSError, http.client.HTTPException):
            self.broken += 1
        finally:
            conn.close()
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
        return False

    def __str__(self):
        return f"{self.tried} tried, {len(self.acked)} acknowledged, {self.refused} refused, {self.unknown} unknown, {self.broken} broken, {self.wrong or 'nothing wrong'}"

    def counts(self):
        """Name -> how many experiments have it."""
        rows = self.c.sql(f"SELECT name, count(*) FROM experiments WHERE name LIKE '{self.prefix}-%' GROUP BY name")
        return {r.split("|")[0]: int(r.split("|")[1]) for r in rows.splitlines()}

    def verdict(self, once):
        """What is wrong, as text; '' when every acknowledged one is there (once: exactly once)."""
        there = self.counts()
        lost = [n for n in self.acked if n not in there]
        twice = [n for n, k in there.items() if k > 1] if once else []
        return "; ".join(filter(None, [self.wrong and f"answered neither 200 nor 503: {self.wrong}", f"acknowledged and lost: {lost[:5]}" if lost else "", f"there twice: {twice[:5]}" if twice else ""]))

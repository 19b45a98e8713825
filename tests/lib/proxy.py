"""A TCP proxy that misbehaves on demand: cuts at a byte or a pattern, stalls one way or both, slows down.

    p = Proxy(("127.0.0.1", 5432))            # or a UNIX socket's path
    ... connect to 127.0.0.1:p.port ...
    p.stall("up"); p.flow()                   # bytes of that way wait (as under packet loss), then arrive
    p.cut()                                   # every connection ends now
    p.desert()                                # for the client; the server is not told, as where a host vanishes
    p.cut_on("up", b"COMMIT")                 # the next pattern is passed on, then nothing comes back, and it ends
    p.cut_after("down", 1000)                 # so many bytes from now on, counted over all connections
    p.delay_s, p.bytes_per_s = 0.2, 10000     # of each way
    p.mend()                                  # as if nothing had been
    p.close()

"up" is from the client to the server. Ways that are cut end as by a reset: unsent bytes are dropped.
"""
import re
import socket
import struct
import threading
import time

WAYS = ("up", "down")
PREPARE = re.compile(rb"P....(d\d+)\0([^\0]*)", re.S)  # the message Parse of PostgreSQL


class Pipe:
    """One connection: two threads that pass bytes on."""

    def __init__(self, proxy, client, server):
        self.p, self.ends, self.dead = proxy, {"up": (client, server), "down": (server, client)}, False
        self.prepared = {}  # statements of PostgreSQL on it: name -> text
        self.deserted = False  # the server's end stays open
        self.muted = False  # nothing goes down any more: it is about to be cut
        for way in WAYS:
            threading.Thread(target=self.pump, args=(way,), daemon=True).start()

    def use_of(self, text):
        names = [n for n, t in self.prepared.items() if text in t]
        return re.compile(b"|".join([re.escape(text)] + [b"\\0" + n + b"\\0" for n in names]), re.S)

    def pump(self, way):
        source, sink = self.ends[way]
        try:
            while True:
                self.p.gate(way, self)
                data = source.recv(16384)
                if not data:
                    break
                self.p.pace(data)
                self.p.gate(way, self)
                data, then_cut = self.p.judge(way, self, data)
                if data and not (way == "down" and self.muted):
                    sink.sendall(data)
                if then_cut:
                    time.sleep(self.p.linger_s)  # the server gets to act on what it was sent
                    self.cut()
        except OSError:
            pass
        self.cut()

    def cut(self):
        self.dead = True
        for s in self.ends["up"][:1 if self.deserted else 2]:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
        self.p.forget(self)


class Proxy:
    def __init__(self, target, port=0):
        self.target, self.delay_s, self.bytes_per_s, self.linger_s, self.cuts = target, 0, 0, 0.05, 0
        self.lock = threading.Lock()
        self.noted, self.notes = None, 0  # bytes, and how many pieces of the way up had them
        self.left = []  # the server's ends of deserted connections
        self.stalled, self.pipes, self.rule, self.refuses, self.closed = set(), set(), None, False, False
        self.changed = threading.Condition(self.lock)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
                if self.refuses:
                    client.close()
                    continue
                unix = isinstance(self.target, str)
                server = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
                server.connect(self.target)
            except OSError:
                continue
            with self.lock:
                self.pipes.add(Pipe(self, client, server))

    def forget(self, pipe):
        with self.lock:
            self.pipes.discard(pipe)

    # -- what the pumps ask ---------------------------------------------------------------------
    def gate(self, way, pipe):
        with self.changed:
            while way in self.stalled and not pipe.dead and not self.closed:
                self.changed.wait(0.2)

    def pace(self, data):
        if self.delay_s or self.bytes_per_s:
            time.sleep(self.delay_s + (len(data) / self.bytes_per_s if self.bytes_per_s else 0))

    def judge(self, way, pipe, data):
        """What of data goes on, and whether the connection ends then."""
        with self.lock:
            rule = self.rule
            if way == "up":
                self.notes += self.noted is not None and self.noted in data
                pipe.prepared.update(PREPARE.findall(data))
            if not rule or rule["way"] != way:
                return data, False
            if "left" in rule:
                rule["left"] -= len(data)
                if rule["left"] > 0:
                    return data, False
                data = data[:len(data) + rule["left"]]
            else:
                found = (rule["pattern"] or pipe.use_of(rule["text"])).search(data)
                if not found:
                    return data, False
                data = data[:found.start()] if rule["before"] else data
                pipe.muted = rule["mute"]
            self.rule, self.cuts = None, self.cuts + 1
            return data, True

    # -- what a test says -----------------------------------------------------------------------
    def stall(self, *ways):
        with self.changed:
            self.stalled = set(ways or WAYS)

    def flow(self):
        with self.changed:
            self.stalled = set()
            self.changed.notify_all()

    def mend(self):
        """A good network again."""
        self.delay_s = self.bytes_per_s = 0
        with self.lock:
            self.rule = None
        self.flow()

    def cut(self):
        with self.lock:
            pipes = list(self.pipes)
        for p in pipes:
            p.cut()

    def desert(self):
        with self.lock:
            pipes = list(self.pipes)
        for p in pipes:
            p.deserted = True
            p.cut()
        self.left += [p.ends["up"][1] for p in pipes]

    def cut_after(self, way, n):
        with self.lock:
            self.rule = {"way": way, "left": max(n, 1)}

    def cut_on(self, way, pattern, before=False, mute=True):
        """pattern: bytes, or a compiled expression. before: the pattern itself no longer arrives. mute: from the pattern
        on nothing comes back down."""
        if isinstance(pattern, bytes):
            pattern = re.compile(re.escape(pattern), re.S)
        with self.lock:
            self.rule = {"way": way, "pattern": pattern, "before": before, "mute": mute}

    def cut_before(self, text):
        """At the next statement of PostgreSQL that holds text: where it is prepared, or used by its name."""
        with self.lock:
            self.rule = {"way": "up", "pattern": None, "text": text, "before": True, "mute": True}

    def armed(self):
        with self.lock:
            return self.rule is not None

    def close(self):
        self.closed = True
        self.listener.close()
        self.flow()
        self.cut()
        for s in self.left:
            s.close()

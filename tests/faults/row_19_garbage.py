#!/usr/bin/env python3
"""Row 19: garbage bytes, truncated frames, half-valid messages, duplicate agent ids, other protocols.

None of it ends the master or disturbs the trial of an honest agent; what is refused is refused with a reason. The
decoders themselves have fuzz targets (tests/fuzz); here the bytes come over the wire, from a seed.
"""
import http.client
import json
import os
import socket
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster  # noqa: E402
from faults import Row  # noqa: E402
from masters import get  # noqa: E402
from training import Training  # noqa: E402


def send(c, data, more=True):
    """Raw bytes, then the end of the connection; what came back."""
    s = socket.create_connection(("127.0.0.1", c.port), timeout=20)
    try:
        s.sendall(data)
        if not more:
            return b""
        s.shutdown(socket.SHUT_WR)
        s.settimeout(0.2)
        return s.recv(65536)
    except OSError:
        return b""
    finally:
        s.close()


def post(c, agent, body):
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=30)
    token = open(c.path("agent.token")).read().strip()
    conn.request("POST", f"/agent/v1/{agent}/events", body, {"Authorization": "Bearer " + token})
    r = conn.getresponse()
    text = r.read().decode(errors="replace")
    conn.close()
    return r.status, text


def events(boot, *list_, protocol=2):
    return json.dumps({"boot": boot, "protocol": protocol, "events": [dict(e, seq=i + 1) for i, e in enumerate(list_)]})


HELLO = {"type": "hello", "version": "0", "pool": "", "addr": "127.0.0.1", "slots": [], "tasks": []}


def garbage(row, c):
    for _ in range(60):
        send(c, row.rng.randbytes(row.rng.choice([1, 10, 1000, 100000])), row.rng.random() < 0.5)
    row.fault("garbage")


def truncated(row, c):
    """A whole request cut at a random byte, and with a random byte changed."""
    body = events(str(uuid.uuid4()), HELLO).encode()
    token = open(c.path("agent.token")).read().strip().encode()
    whole = b"POST /agent/v1/mangled/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(60):
        send(c, whole[:row.rng.randrange(len(whole))], row.rng.random() < 0.5)
        at = row.rng.randrange(len(whole))
        send(c, whole[:at] + row.rng.randbytes(1) + whole[at + 1:], row.rng.random() < 0.5)
    row.fault("truncated and mangled requests")


def mutated(row, c):
    """JSON that parses and says something else."""
    odd = [None, True, -1, 1e308, "x" * 100000, [], {}, [[]], "\u0000", "../..", 2 ** 63]
    for _ in range(150):
        e = dict(HELLO)
        e[row.rng.choice(list(e))] = row.rng.choice(odd)
        status, text = post(c, "mutant", events(str(uuid.uuid4()), e))
        row.check(status in (200, 400, 409, 413), f"a mutated hello got {status} {text[:200]}")
    row.fault("mutated messages")


def twins(row, c):
    status, text = post(c, "agent-0", events(str(uuid.uuid4()), HELLO))
    row.check(status == 409 and "agent-0" in text, f"a twin of a live agent got {status} {text}")
    row.fault("duplicate id")


def versions(row, c):
    for protocol, want in ((0, 426), (1, 200), (2, 200), (3, 426), (99, 426)):
        status, text = post(c, f"v{protocol}", events(str(uuid.uuid4()), HELLO, protocol=protocol))
        row.check(status == want, f"protocol {protocol} got {status}, not {want}: {text}")
        row.check(want == 200 or "upgrade the" in text, f"protocol {protocol}: no advice: {text}")
    for protocol, want in (("0", 426), ("1", 401), ("3", 426), ("x", 426)):
        conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=30)
        conn.request("GET", "/api/v1/me", headers={"Det-Protocol": protocol, "Authorization": "Bearer nonsense"})
        status = conn.getresponse().status
        row.check(status == want, f"Det-Protocol {protocol} got {status}, not {want}")
        conn.close()
    row.fault("other protocols")


def run_round(row, c):
    t = Training(c, row)
    for strike in (garbage, truncated, mutated, twins, versions):
        strike(row, c)
        row.check(get(c.port, "/api/v1/me", c.token, timeout=30)[0] == 200 and c.procs["master"].poll() is None, f"{strike.__name__}: the master does not serve")
    t.end()


def main():
    row = Row(19, __doc__, rounds=1, rounds_all=20)
    with Cluster(agents=1, slots=1) as c:
        for n in row.numbers():
            row.attempt(n, run_round, row, c)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

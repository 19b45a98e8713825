#!/usr/bin/env python3
"""Row 6: half-open TCP, slow readers, a slow-loris, and 10,000 idle sockets (as many as this user may open).

The master serves on while they last, new connections too, its descriptors stay bounded, and it gets rid of who keeps it
waiting: half a request after 30 s, a connection that never asked after 20 s (http_peer.h).
"""
import os
import resource
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from masters import get  # noqa: E402

IDLE = 10000
POST = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"


def connect(c):
    s = socket.create_connection(("127.0.0.1", c.port), timeout=20)
    return s


def fds(c):
    return len(os.listdir(f"/proc/{c.pid('master')}/fd"))


def still_serves(row, c, what):
    status = get(c.port, "/api/v1/me", c.token, timeout=20)[0]
    row.check(status == 200, f"{what}: a new connection got {status}")
    row.check(len(c.api("GET", "/agents")["agents"]) == 1 and c.api("GET", "/agents")["agents"][0]["enabled"], f"{what}: the agent's link was lost")


def is_closed(s):
    """The server ended it (whatever it said before)."""
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def idle(row, c):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    n = min(IDLE, hard - 200)
    if n < IDLE:
        print(f"row 06: only {n} sockets: the limit of descriptors is {hard}", flush=True)
    before, socks = fds(c), [connect(c) for _ in range(n)]
    row.fault(f"{n} idle sockets")
    still_serves(row, c, "idle sockets")
    wait_until(lambda: sum(map(is_closed, socks[:50])) == 50, 60, "idle sockets to be closed")
    for s in socks:
        s.close()
    wait_until(lambda: fds(c) <= before + 20, 60, "the descriptors to be given back")


def half(row, c):
    """Half requests of every kind, each byte some time apart, and ends that said no goodbye."""
    slow = [connect(c) for _ in range(50)]
    for i, s in enumerate(slow):
        s.sendall([b"GET /api/v1/me HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", POST + b"{", POST][i % 4])
    shut = [connect(c) for _ in range(10)]
    for s in shut:
        s.sendall(POST + b"{")
        s.shutdown(socket.SHUT_WR)
    row.fault("slow-loris, half-closed bodies")
    still_serves(row, c, "half requests")
    begun = time.monotonic()

    def all_gone():
        for s in slow:
            try:
                s.send(b"x")
            except OSError:
                pass
        return all(map(is_closed, slow + shut))
    wait_until(all_gone, 90, "half requests to be given up")
    print(f"row 06: half requests given up after {time.monotonic() - begun:.0f} s", flush=True)


def slow_readers(row, c):
    """Clients that ask for much and read nothing."""
    socks = []
    for _ in range(100):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.settimeout(20)
        s.connect(("127.0.0.1", c.port))
        s.sendall(b"".join(b"GET /api/v1/experiments?limit=-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.token.encode() + b"\r\n\r\n" for _ in range(20)))
        socks.append(s)
    row.fault("slow readers")
    still_serves(row, c, "slow readers")
    for s in socks:
        s.close()


def run_round(row, c):
    with ThreadPoolExecutor(1) as pool:  # both last half a minute: beside each other
        halves = pool.submit(half, row, c)
        slow_readers(row, c)
        idle(row, c)
        halves.result()
    still_serves(row, c, "afterwards")


def main():
    row = Row(6, __doc__, rounds=1, rounds_all=10)
    with Cluster(agents=1, slots=1) as c:
        for i in range(20):
            c.create(f"name: e{i}\nentrypoint: ['true']\nsearcher: {{name: single, metric: x, max_length: {{batches: 1}}}}\n", None, activate=False)
        for n in row.numbers():
            row.attempt(n, run_round, row, c)
    return row.finish()


if __name__ == "__main__":
    sys.exit(main())

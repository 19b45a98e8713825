"""The promise of the audit log: what was answered with success is in it, whenever the master dies and its sessions with PostgreSQL end."""
import http.client
import json
import os
import random
import signal
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import people  # noqa: E402
from cluster import Cluster, wait_until  # noqa: E402
from openapi import Api, Failed  # noqa: E402
from walk import CONFIG, log_in  # noqa: E402

ROUNDS, WRITERS, FEWEST = 6, 4, 25
GONE = (OSError, http.client.HTTPException)


class Writer(threading.Thread):
    """Changes one thing after the other; `done` has (operation, path, word that its line names) of each that succeeded."""

    def __init__(self, c, name, exp):
        super().__init__(daemon=True)
        self.port, self.name, self.exp = c.port, name, exp
        self.who, self.done, self.failed, self.over = log_in(c.port, "ann"), [], None, threading.Event()

    def change(self, word):
        log = f"/api/v1/experiments/{self.exp}/labels/{word}"
        new = {"config": CONFIG, "modelDefinition": [], "activate": False}
        for op, path, body, params in (
                ("put_experiment_label", log, None, {"experimentId": self.exp, "label": word}),
                ("patch_experiment", word, {"name": word}, {"experiment__id": self.exp}),
                ("create_experiment", None, new, {}),
                ("post_template", f"/api/v1/templates/{word}", {"config": {"description": word}}, {"template__name": word}),
                ("post_workspace", word, {"name": word}, {}),
                ("login", None, {"username": "ann", "password": "ann's own"}, {})):
            self.who.call(op, body, **params)
            self.done.append((op, path))

    def run(self):
        n = 0
        while not self.over.is_set():
            n += 1
            try:
                self.change(f"{self.name}-{n}")
            except Failed as e:
                if e.status != 503:  # the outcome of which nobody claims to know
                    self.failed = e
                    return
            except GONE:
                pass


def strike(c, writers, round_):
    """The master killed in the midst of it, or all its sessions with PostgreSQL ended."""
    before = [len(w.done) for w in writers]
    wait_until(lambda: all(w.failed or len(w.done) >= n + FEWEST for w, n in zip(writers, before)), 60, "writes")
    threading.Event().wait(random.random() / 50)  # whenever: the moment is what varies
    if round_ % 2:
        c.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'det'")
    else:
        c.stop("master", signal.SIGKILL)
        c.start_master()


def lines_of(c, op):
    return int(c.sql(f"SELECT count(*) FROM audit WHERE username = 'ann' AND operation = '{op}'"))


def missing(c, writers, before):
    """Of what succeeded that which has no line."""
    rows = [line.split("|") for line in c.sql("SELECT operation, path, coalesce(detail->>'name', '') FROM audit WHERE username = 'ann'").splitlines()]
    there = {(op, path) for op, path, _ in rows} | {(op, name) for op, _, name in rows}
    lost = [d for w in writers for d in w.done if d[1] and d not in there]
    for op in ("create_experiment", "login"):
        done, lines = sum(d[0] == op for w in writers for d in w.done), lines_of(c, op) - before[op]
        if lines < done:
            lost.append((op, f"{done - lines} of {done}"))
    return lost


def main():
    with Cluster(agents=0) as c:
        c.login()
        people.add(c, "ann")
        exp = log_in(c.port, "ann").call("create_experiment", {"config": CONFIG, "modelDefinition": [], "activate": False})["experiment"]["id"]
        writers = [Writer(c, f"w{i}", exp) for i in range(WRITERS)]
        before = {op: lines_of(c, op) for op in ("create_experiment", "login")}
        for w in writers:
            w.start()
        for round_ in range(ROUNDS):
            strike(c, writers, round_)
        for w in writers:
            w.over.set()
        for w in writers:
            w.join(120)
            assert not w.is_alive() and not w.failed, (w.name, w.failed)
        lost = missing(c, writers, before)
        assert not lost, f"{len(lost)} of {sum(len(w.done) for w in writers)} are not in the audit log: {lost[:5]}"
        print(f"test_audit: passed, {sum(len(w.done) for w in writers)} writes, {ROUNDS} strikes")


main()

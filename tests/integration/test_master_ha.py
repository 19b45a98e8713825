"""Two masters, one database: who leads, when a leader is replaced, and when it must not be."""
import http.client
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from clerk import CONFIG  # noqa: E402
from cluster import ApiError, Cluster, wait_until  # noqa: E402
from faults import hold  # noqa: E402
from masters import Frozen, Session, ended, epoch, get, leader_of, serves, start_standby, wait_serving  # noqa: E402

# A read that asks PostgreSQL each time: a list of experiments is given again for two seconds, also while nobody answers.
LOOKED_UP = "/api/v1/workspaces"
LEADER_SESSIONS = "SELECT pid FROM pg_locks WHERE locktype='advisory' AND objid=4919001 AND mode='ShareLock'"


def standby_says(c, port):
    """A standby is alive, not ready, and names the leader; it never serves."""
    wait_until(lambda: f":{c.port}" in leader_of(port)[2], 10, "the standby to name the leader")
    status, retry, text = leader_of(port)
    assert status == 503 and retry and "stands by" in text, (status, retry, text)
    assert get(port, "/healthz")[0] == 200 and get(port, "/readyz")[0] == 503
    assert get(port, "/agent/v1/a/orders?boot=x&after=0")[0] == 503


def ended_while_busy(c):
    """The leader's sessions are ended while it gets no processor: not for as long as a leader may be silent."""
    with Session(c, "SELECT 1") as session:  # that no program's start makes the outage longer
        os.kill(c.pid("master"), signal.SIGSTOP)
        try:
            session.ask(f"SELECT pg_terminate_backend(pid, 20000) FROM ({LEADER_SESSIONS}) s")  # until they have ended
            hold(1)  # the outage itself: for a leader that is dead a third is enough
        finally:
            os.kill(c.pid("master"), signal.SIGCONT)
    wait_until(lambda: serves(c, c.port), 20, "the leader to serve again")


def leader_keeps(c, port):
    """Sessions ended at random, a restart of PostgreSQL, and one that hangs, cost nobody the leadership."""
    before = epoch(c)
    until = time.monotonic() + 7
    while time.monotonic() < until:  # faster than its beats, for longer than it may be silent
        c.sql(f"SELECT pg_terminate_backend(pid) FROM ({LEADER_SESSIONS}) s")
        wait_until(lambda: serves(c, c.port), 20, "the leader to serve again")
    ended_while_busy(c)
    c.stop("pg", signal.SIGINT)
    c.start_pg()
    wait_until(lambda: serves(c, c.port), 20, "the leader after the restart")
    assert epoch(c) == before and ended(c, "master") is None and ended(c, "standby") is None


class Asked(threading.Thread):
    """A POST under way; status, headers and text when it is answered."""

    def __init__(self, c, path, body):
        super().__init__(daemon=True)
        self.c, self.path, self.body, self.answer = c, path, body, None
        self.sent = threading.Event()
        self.start()
        assert self.sent.wait(60), "the request could not be sent"

    def run(self):
        conn = http.client.HTTPConnection("127.0.0.1", self.c.port, timeout=60)
        conn.request("POST", "/api/v1" + self.path, json.dumps(self.body), {"Authorization": "Bearer " + self.c.token})
        self.sent.set()
        r = conn.getresponse()
        self.answer = r.status, r.headers, r.read().decode()
        conn.close()


def says_unknown(asked):
    """A write that was under way is answered in bounded time, and the answer claims nothing."""
    asked.join(120)
    status, headers, text = asked.answer
    assert status == 503 and "not known" in text and not headers["Retry-After"], asked.answer


def writer_of(c):
    """The backend that writes: of the leader's two, the one that does not beat. None while that cannot be told."""
    pids = c.sql(f"SELECT pid FROM pg_stat_activity JOIN ({LEADER_SESSIONS}) s USING (pid) WHERE query NOT LIKE 'UPDATE leader%'").split()
    return int(pids[0]) if len(pids) == 1 else None


def pg_hangs(c, port):
    """While PostgreSQL hangs (stopped, not gone) the master says 503 at once, and goes on when it goes on."""
    before = epoch(c)
    writer = wait_until(lambda: writer_of(c), 20, "the leader's two sessions, one of them at its beat")
    os.kill(writer, signal.SIGSTOP)  # first, so that the write is under way when all hangs
    write = Asked(c, "/users", {"user": {"username": "written-while-it-hung", "active": True}})
    for _ in range(10):
        assert get(c.port, LOOKED_UP, c.token)[0] == 200
    with Frozen(c):
        assert get(c.port, LOOKED_UP, c.token, timeout=20)[0] == 503, "a read from before the hang was noticed"
        wait_until(lambda: get(c.port, LOOKED_UP, c.token, timeout=2)[0] == 503, 30, "503")
        begun = time.monotonic()
        for _ in range(20):
            assert get(c.port, LOOKED_UP, c.token)[0] == 503
        assert time.monotonic() - begun < 20, "refusals must not wait for PostgreSQL"
        wait_until(lambda: time.monotonic() - begun > 8, 60, "longer than a leader may be silent")
        says_unknown(write)
    wait_until(lambda: serves(c, c.port), 30, "the leader to serve again")
    wait_until(lambda: c.sql("SELECT count(*) FROM users WHERE username = 'written-while-it-hung'") == "1", 20, "the commit that was in flight")
    assert epoch(c) == before and ended(c, "master") is None and ended(c, "standby") is None


def table_is_locked(c, port):
    """What waits for a lock that somebody holds is answered in bounded time, and written once the lock is gone."""
    def creation(name):
        return {"config": CONFIG.format(name), "modelDefinition": [], "activate": False}
    c.api("POST", "/experiments", creation("first"))  # the next one reads nothing
    with Session(c, "BEGIN; LOCK TABLE experiments IN ACCESS EXCLUSIVE MODE"):
        write = Asked(c, "/experiments", creation("written-late"))
        wait_until(lambda: get(c.port, "/readyz")[0] == 503, 30, "the commit to be late")
        begun = time.monotonic()
        while time.monotonic() - begun < 5:  # it is tried again every 2 s
            assert get(c.port, "/readyz")[0] == 503, "ready although what was asked cannot be written"
        says_unknown(write)
    wait_until(lambda: get(c.port, "/readyz")[0] == 200, 20, "the commit")
    assert c.sql("SELECT count(*) FROM experiments WHERE name = 'written-late'") == "1"


def killed(c, port):
    """kill -9 of the leader: the standby serves, soon."""
    c.stop("master", signal.SIGKILL)
    print(f"   serving after {wait_serving(c, port):.2f} s", flush=True)
    old, c.port = c.port, port
    assert c.api("GET", "/me")["user"]["username"] == "admin"
    return start_standby(c, "master", old)


def stopped(c, port):
    """SIGSTOP of the leader: replaced; awake again it writes nothing and ends."""
    before, old = epoch(c), c.port
    p = c.procs["standby"]
    p.send_signal(signal.SIGSTOP)
    print(f"   serving after {wait_serving(c, port):.2f} s", flush=True)
    c.port = port
    assert epoch(c) == before + 1
    rows = c.sql("SELECT count(*) FROM users")
    p.send_signal(signal.SIGCONT)
    body = {"user": {"username": "late", "active": True}}
    c.port = old
    try:
        c.request("POST", "/users", body)
        raise AssertionError("the old leader took a write")
    except (ApiError, OSError, http.client.HTTPException):
        pass
    c.port = port
    wait_until(lambda: p.poll() is not None, 20, "the old leader to end")
    assert p.returncode == 3 and c.sql("SELECT count(*) FROM users") == rows, p.returncode
    assert epoch(c) == before + 1
    c.procs.pop("standby")


def trial(c, port):
    """A trial runs through the death of one leader and the stop of the next, and notices neither."""
    first, second = c.port, port
    c.more_masters = [f"http://127.0.0.1:{second}"]
    c.start_agent()
    c.n_agents = 1
    c.wait_agents(1)
    exp = c.create("examples/digits/const.yaml", "examples/digits", **{"epochs: 12": "epochs: 100000"})

    def steps():
        return c.trials(exp)[0]["totalBatchesProcessed"]
    wait_until(lambda: steps() > 0, 60, "the trial to train")
    ranks = c.processes(exp)
    assert ranks
    c.stop("master", signal.SIGKILL)
    c.port = second
    at = wait_until(steps, 30, "the standby to serve")
    wait_until(lambda: steps() > at, 30, "reports to arrive at the new leader")
    start_standby(c, "master", first)
    c.procs["standby"].send_signal(signal.SIGSTOP)
    c.port = first
    wait_serving(c, first)
    at = steps()
    wait_until(lambda: steps() > at, 60, "reports to arrive at the third leader")
    c.procs["standby"].send_signal(signal.SIGCONT)
    assert c.procs.pop("standby").wait(60) == 3
    assert set(c.processes(exp)) == set(ranks), "the same processes run on"
    r = c.det("-m", f"127.0.0.1:{second},127.0.0.1:{first}", "e", "kill", str(exp))
    assert r.returncode == 0
    c.wait(exp, "STATE_CANCELED")
    assert c.trials(exp)[0]["restarts"] == 0
    wait_until(c.slots_free, 20, "free slots")
    return start_standby(c, "standby", second)


def main():
    with Cluster(agents=0) as c:
        c.login()
        port = start_standby(c)
        if sys.argv[1:2] == ["--leader-keeps"]:  # alone and many times, beside other work
            for n in range(int(sys.argv[2])):
                leader_keeps(c, port)
                print(f"ok leader_keeps {n + 1}", flush=True)
            return
        for test in (standby_says, leader_keeps, pg_hangs, table_is_locked):
            test(c, port)
            print(f"ok {test.__name__}", flush=True)
        port = trial(c, port)
        print("ok trial", flush=True)
        port = killed(c, port)
        print("ok killed", flush=True)
        stopped(c, port)
        print("ok stopped", flush=True)


main()

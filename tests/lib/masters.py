"""Several masters of one cluster: standbys on ports of their own, who leads, and how long a change takes."""
import contextlib
import http.client
import json
import os
import signal
import subprocess
import time

from cluster import BIN, PSQL, wait_until
from ports import free_port


def get(port, path, token=None, timeout=15):
    """(status, headers, text); status 0 when nobody answers."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        conn.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        r = conn.getresponse()
        return r.status, r.headers, r.read().decode()
    except (OSError, http.client.HTTPException):
        return 0, {}, ""
    finally:
        conn.close()


def start_standby(c, name="standby", port=0, db=None):
    """Starts another master of the cluster c; returns its port as soon as it answers that it stands by."""
    port = port or free_port()
    c.spawn(name, [BIN + "/det-master", "--host", "127.0.0.1", "--port", str(port), "--db", db or f"host={c.path('pg-socket')} user=det dbname=det",
                   "--ready-file", c.path(name + ".ready"), "--checkpoint-dir", c.path("checkpoints"), *c.master_args])
    wait_until(lambda: get(port, "/healthz")[0] == 200, 30, f"{name} to stand by")
    return port


def serves(c, port):
    """Whether the master at port reads and writes: a login is both."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        password = open(c.path("admin.password")).read().strip()
        conn.request("POST", "/api/v1/auth/login", json.dumps({"username": "admin", "password": password}))
        return conn.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        conn.close()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


class Frozen:
    """Every process of PostgreSQL stopped, for the length of a with block."""

    def __init__(self, c):
        self.pids = [c.pid("pg")]

    def __enter__(self):
        self.signal(signal.SIGSTOP)  # first, so that no child is added
        self.pids += children(self.pids[0])
        self.signal(signal.SIGSTOP)

    def __exit__(self, *_):
        self.signal(signal.SIGCONT)

    def signal(self, number):
        for p in self.pids:
            try:
                os.kill(p, number)
            except ProcessLookupError:  # a backend whose client has gone ends as soon as it wakes
                pass


class Session:
    """A psql that holds something until it is closed."""

    def __init__(self, c, sql):
        self.p = subprocess.Popen([PSQL, "-qAtX", "-h", c.path("pg-socket"), "-U", "det", "-d", "det"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.held = self.ask(sql)

    def ask(self, sql):
        """Returns when it is done; false: psql has ended, maybe before it read this."""
        with contextlib.suppress(BrokenPipeError):
            self.p.stdin.write(sql + ";\nSELECT 'done';\n")
            self.p.stdin.flush()
        return any(line == "done\n" for line in self.p.stdout)

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.p.stdin.close()
        self.p.stdout.close()
        self.p.wait(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def wait_serving(c, port, seconds=30):
    """Seconds until the master at port serves."""
    begun = time.monotonic()
    wait_until(lambda: serves(c, port), seconds, f"the master at port {port} to serve")
    return time.monotonic() - begun


def epoch(c):
    return int(c.sql("SELECT epoch FROM cluster"))


def leader_of(port):
    """What a standby says of the leader."""
    status, headers, text = get(port, "/api/v1/me")
    return status, headers.get("Retry-After"), json.loads(text)["error"]["error"] if text else ""


def ended(c, name):
    """The exit status of a daemon of c that has ended, else None."""
    return c.procs[name].poll()


def dump(c):
    """The path of a dump of the cluster's database as it is now."""
    path = c.path("dump.sql")
    subprocess.run(["pg_dump", "-h", c.path("pg-socket"), "-U", "det", "-f", path, "det"], check=True)
    return path


def restore(c, path, db="det"):
    """Puts a dump in the place of the database, which nobody may use meanwhile."""
    c.sql(f"DROP DATABASE IF EXISTS {db} WITH (FORCE)", "postgres")
    c.sql(f"CREATE DATABASE {db}", "postgres")
    subprocess.run([PSQL, "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", c.path("pg-socket"), "-U", "det", "-d", db, "-f", path],
                   check=True, stdout=subprocess.DEVNULL)


def new_life(c, db="det"):
    """The administrator's word that this database is the one."""
    subprocess.run([BIN + "/det-master", "new-life", "--db", f"host={c.path('pg-socket')} user=det dbname={db}"], check=True,
                   stdout=subprocess.DEVNULL)

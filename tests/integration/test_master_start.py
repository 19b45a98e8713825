"""det-master alone: first start, sessions over a restart, standby, a newer schema, an orderly end, an outage of PostgreSQL."""
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, ApiError, Cluster, wait_until  # noqa: E402


def status_of(c, method, path, body=None, **kw):
    try:
        c.request(method, path, body, **kw)
        return 200
    except ApiError as e:
        return e.status


def plain(c, path):
    conn = http.client.HTTPConnection("127.0.0.1", c.port, timeout=60)
    conn.request("GET", path)
    r = conn.getresponse()
    text = r.read().decode()
    conn.close()
    return r.status, text


def first_start(c):
    for name in ("admin.password", "agent.token"):
        mode = os.stat(c.path(name)).st_mode
        assert stat.S_IMODE(mode) == 0o600, f"{name}: {oct(mode)}"
    status, text = plain(c, "/info")
    info = json.loads(text)
    assert status == 200 and info["version"] and info["cluster_id"] and info["master_id"], text
    c.login()
    assert c.api("GET", "/me")["user"]["username"] == "admin"
    assert status_of(c, "GET", "/me", auth=False) == 401
    assert status_of(c, "GET", "/me", auth=False, headers={"Authorization": "Bearer nonsense"}) == 401
    assert status_of(c, "POST", "/auth/login", {"username": "admin", "password": "", "isHashed": True}, auth=False) == 401
    assert status_of(c, "POST", "/auth/login", {"username": "nobody", "password": "x"}, auth=False) == 401
    assert status_of(c, "POST", "/auth/login", {"username": "determined", "password": "", "isHashed": True}, auth=False) == 403
    assert status_of(c, "GET", "/no/such/route") == 404
    assert status_of(c, "DELETE", "/me") == 405


def restart_keeps(c):
    """Sessions, identity and the admin's password outlive the process, also one that was killed."""
    cluster_id = json.loads(plain(c, "/info")[1])["cluster_id"]
    password = open(c.path("admin.password")).read()
    c.stop("master", signal.SIGKILL)
    c.start_master()
    assert c.api("GET", "/me")["user"]["username"] == "admin"
    assert json.loads(plain(c, "/info")[1])["cluster_id"] == cluster_id
    assert open(c.path("admin.password")).read() == password


def standby(c):
    """A second master waits, and takes over when the first is gone."""
    first_port = c.port
    ready = c.path("second.ready")
    c.spawn("second", [BIN + "/det-master", "--host", "127.0.0.1", "--port", "0", "--port-file", c.path("second.port"),
                       "--db", f"host={c.path('pg-socket')} user=det dbname=det", "--ready-file", ready])
    wait_until(lambda: "standing by" in open(c.path("second.log")).read(), 20, "the standby")
    assert not os.path.exists(ready)
    assert c.api("GET", "/me")["user"]["username"] == "admin"
    c.stop("master", signal.SIGKILL)
    wait_until(lambda: os.path.exists(ready), 20, "the takeover")
    c.port = int(open(c.path("second.port")).read())
    assert c.api("GET", "/me")["user"]["username"] == "admin"
    c.stop("second")
    c.port = first_port
    c.start_master()


def orderly_end(c):
    """SIGTERM with a silent connection, an idle one and a stream open: ends at once with status 0."""
    idle = socket.create_connection(("127.0.0.1", c.port))
    half = socket.create_connection(("127.0.0.1", c.port))
    half.sendall(b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    p = c.procs["master"]
    p.send_signal(signal.SIGTERM)
    assert p.wait(60) == 0, p.returncode
    idle.close()
    half.close()
    c.procs.pop("master")
    c.start_master()


def outage(c):
    """While PostgreSQL is away: 503 for what needs it, then everything as before by itself."""
    c.stop("pg", signal.SIGINT)
    wait_until(lambda: status_of(c, "GET", "/experiments") == 503, 20, "503")
    assert plain(c, "/info")[0] == 200
    c.start_pg()
    wait_until(lambda: status_of(c, "GET", "/experiments") == 200, 20, "the database to be back")
    assert c.procs["master"].poll() is None


def refusals(c):
    """Wrong options and a database of a newer program: a clear word and a status, no half start."""
    def run(*args):
        return subprocess.run([BIN + "/det-master", *args], text=True, capture_output=True, timeout=60)
    r = run("--porrt", "1")
    assert r.returncode == 2 and "port" in r.stderr, r.stderr
    r = run("--db", "host=/nonexistent user=det", "--port", "0")
    assert r.returncode == 1 and "PostgreSQL" in r.stderr, r.stderr
    with open(c.path("bad.yaml"), "w") as f:
        f.write("port: many\n")
    r = run("--config", c.path("bad.yaml"))
    assert r.returncode == 2 and "port" in r.stderr, r.stderr
    with open(c.path("good.yaml"), "w") as f:
        f.write("port: 1234\nresource_manager:\n  scheduler: {type: priority}\nstall_timeout: 7\n")
    r = run("--config", c.path("good.yaml"), "--print-config")
    conf = json.loads(r.stdout)
    assert conf["port"] == 1234 and conf["stall_timeout"] == 7 and conf["resource_manager"]["scheduler"]["type"] == "priority"
    c.sql("INSERT INTO schema_version (version) VALUES (9999)")
    r = run("--db", f"host={c.path('pg-socket')} user=det dbname=det", "--port", "0")
    assert r.returncode == 1 and "9999" in r.stderr, r.stderr
    c.sql("DELETE FROM schema_version WHERE version = 9999")


def main():
    with Cluster(agents=0) as c:
        for test in (first_start, restart_keeps, standby, orderly_end, outage, refusals):
            test(c)
            print(f"ok {test.__name__}", flush=True)
        c.stop("master")


main()

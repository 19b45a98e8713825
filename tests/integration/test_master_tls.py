"""HTTPS: det-master with a certificate of its own; the command line, the agent and the task's ranks check it."""
import hashlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, ApiError, Cluster, wait_until  # noqa: E402


class TlsCluster(Cluster):
    """A cluster whose master speaks HTTPS only."""
    def start_pg(self):
        super().start_pg()
        if not os.path.exists(self.path("master.crt")):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=det",
                            "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", self.path("master.key"), "-out", self.path("master.crt")],
                           check=True, stderr=subprocess.DEVNULL)
            self.master_args += ["--tls-cert", self.path("master.crt"), "--tls-key", self.path("master.key")]

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60 * SLOWER, context=ssl.create_default_context(cafile=self.path("master.crt")))

    def request(self, method, path, body=None, auth=True, headers=None):
        conn = self.connect()
        try:
            h = {"Authorization": "Bearer " + self.token} if auth and self.token else {}
            conn.request(method, "/api/v1" + path, None if body is None else json.dumps(body), {**h, **(headers or {})})
            r = conn.getresponse()
            text = r.read().decode()
            if r.status != 200:
                raise ApiError(r.status, text)
            return json.loads(text)
        finally:
            conn.close()

    def start_agent(self, i=0, cert="master.crt", **kw):
        name = f"agent-{i}"
        self.spawn(name, [BIN + "/det-agent", "--master", f"https://127.0.0.1:{self.port}", "--token-file", self.path("agent.token"), "--id", name,
                          "--slots", "2", "--work-dir", self.path(name), "--task-user", "", "--cert-file", self.path(cert)])

    def det(self, *args, cert="master.crt", check=True, env=None, **kw):
        more = {"DET_MASTER": f"https://127.0.0.1:{self.port}", **({"DET_MASTER_CERT_FILE": cert if cert == "noverify" else self.path(cert)} if cert else {})}
        return super().det(*args, check=check, env={**more, **(env or {})}, **kw)


def clients(c):
    """The right certificate, none, another's, no check, and plain HTTP at the same port."""
    assert "version" in c.det("master", "info").stdout
    assert "version" in c.det("master", "info", cert="noverify").stdout
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=other",
                    "-keyout", c.path("other.key"), "-out", c.path("other.crt")], check=True, stderr=subprocess.DEVNULL)
    for cert in (None, "other.crt"):
        r = c.det("master", "info", cert=cert, check=False)
        assert r.returncode == 1 and "certificate" in r.stderr.lower(), (cert, r.stderr)
    assert "version" in c.det("master", "info", env={"DET_MASTER": f"https://localhost:{c.port}"}).stdout
    with socket.create_connection(("127.0.0.1", c.port), timeout=60 * SLOWER) as s:
        s.sendall(b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            assert not s.recv(1000).startswith(b"HTTP/1.1 200"), "plain HTTP was answered"
        except ConnectionResetError:
            pass


def bodies_and_streams(c):
    """What is large goes in, what lasts comes out."""
    try:
        c.request("POST", "/experiments", {"config": "a: [", "modelDefinition": [], "notes": "x" * (10 << 20)})
        raise AssertionError("a broken configuration was taken")
    except ApiError as e:
        assert e.status == 400, e
    conn, lines = c.connect(), []
    conn.request("GET", "/api/v1/master/logs?follow=true", headers={"Authorization": "Bearer " + c.token})
    r = conn.getresponse()
    thread = threading.Thread(target=lambda: [lines.append(json.loads(x)["result"]["logEntry"]["message"]) for x in r], daemon=True)
    thread.start()
    wait_until(lambda: any("ready: https://" in x for x in lines), 20, "the first lines")
    c.start_agent(0)
    c.wait_agents(1)
    wait_until(lambda: any("agent=agent-0" in x for x in lines), 20, "the agent's line in the stream")
    return thread


def whole_trial(c):
    exp = c.create("examples/digits/const.yaml", "examples/digits", **{"epochs: 12": "epochs: 1"})
    c.wait(exp, seconds=180)
    trial = c.trials(exp)[0]["id"]
    assert c.metrics(trial, "validation"), "no validation came through"
    shown = c.det("trial", "logs", str(trial)).stdout
    assert shown, "no log"


def refusals(c):
    def run(*args):
        return subprocess.run([BIN + "/det-master", "--db", f"host={c.path('pg-socket')} user=det dbname=det", "--port", "0", *args],
                              text=True, capture_output=True, timeout=60 * SLOWER)
    r = run("--tls-cert", c.path("master.crt"))
    assert r.returncode == 2 and "security.tls.key: missing" in r.stderr, r.stderr
    r = run("--tls-cert", "/nonexistent.crt", "--tls-key", c.path("master.key"))
    assert r.returncode == 1 and "security.tls.cert" in r.stderr and "/nonexistent.crt" in r.stderr, r.stderr
    r = run("--tls-cert", c.path("master.crt"), "--tls-key", c.path("other.key"))
    assert r.returncode == 1 and "belong together" in r.stderr, r.stderr
    r = subprocess.run([BIN + "/det-master", "doctor", "--port", "0", "--tls-cert", "/nonexistent.crt", "--tls-key", c.path("master.key")],
                       text=True, capture_output=True, timeout=60 * SLOWER)
    assert r.returncode == 1 and "security.tls.cert" in r.stdout and "put the file there" in r.stdout, r.stdout


class OwnCluster(TlsCluster):
    """The same with a certificate that the cluster's own authority issues."""
    def start_pg(self):
        Cluster.start_pg(self)
        self.master_args = ["--tls-own", "--tls-authority-file", self.path("master.crt")]


def told(c):
    """What the master says its authority is, at each of its starts."""
    return [line.split()[-1] for line in open(c.path("master.log")) if "certificate authority is" in line]


def fingerprint(c):
    r = subprocess.run(["openssl", "x509", "-in", c.path("master.crt"), "-outform", "DER"], capture_output=True, check=True)
    return "SHA256:" + hashlib.sha256(r.stdout).hexdigest()


def own_authority(c):
    """One authority for good, a new certificate at each start: who trusts the former checks the latter, whatever the name."""
    c.login()
    assert told(c) == [fingerprint(c)]
    before = ssl.get_server_certificate(("127.0.0.1", c.port))
    trusted = open(c.path("master.crt")).read()
    for host in ("127.0.0.1", "localhost", socket.gethostname()):
        context = ssl.create_default_context(cafile=c.path("master.crt"))
        with socket.create_connection(("127.0.0.1", c.port)) as s, context.wrap_socket(s, server_hostname=host):
            pass
    context = ssl.create_default_context(cafile=c.path("master.crt"))
    try:
        with socket.create_connection(("127.0.0.1", c.port)) as s, context.wrap_socket(s, server_hostname="example.org"):
            raise AssertionError("the certificate is for any name")
    except ssl.SSLCertVerificationError:
        pass
    c.start_agent(0)
    c.wait_agents(1)
    c.stop("master")
    c.start_master()
    assert open(c.path("master.crt")).read() == trusted and len(set(told(c))) == 1
    assert ssl.get_server_certificate(("127.0.0.1", c.port)) != before, "the certificate is the old one"
    assert "version" in c.det("master", "info").stdout
    c.wait_agents(1)
    assert "PRIVATE" not in c.det("master", "config").stdout + open(c.path("master.log")).read()


def cookie(c, conn):
    password = open(c.path("admin.password")).read().strip()
    conn.request("POST", "/api/v1/auth/login?cookie=true", json.dumps({"username": "admin", "password": password}))
    return conn.getresponse().headers["Set-Cookie"]


def in_the_clear(c):
    """Plain HTTP over a network needs to be asked for, and is complained about."""
    args = [BIN + "/det-master", "--db", f"host={c.path('pg-socket')} user=det dbname=det", "--port", "0", "--host", "0.0.0.0"]
    r = subprocess.run(args, text=True, capture_output=True, timeout=60 * SLOWER)
    assert r.returncode == 1 and "--tls-own" in r.stderr and "--insecure" in r.stderr, r.stderr
    c.spawn("open", [*args, "--insecure", "--port-file", c.path("open.port")])
    wait_until(lambda: "passwords and tokens travel in the clear" in open(c.path("open.log")).read(), 20, "the warning")
    c.stop("open")
    r = subprocess.run([*args, "--tls-own", "--tls-cert", "a", "--tls-key", "b"], text=True, capture_output=True, timeout=60 * SLOWER)
    assert r.returncode == 2 and "security.tls.own" in r.stderr, r.stderr


def main():
    with OwnCluster(agents=0) as c:
        own_authority(c)
        assert "; Secure" in cookie(c, c.connect())
        in_the_clear(c)
    with TlsCluster(agents=0) as c:
        c.login()
        clients(c)
        thread = bodies_and_streams(c)
        whole_trial(c)
        refusals(c)
        master = c.procs["master"]
        c.stop("master")
        thread.join(120)
        assert master.returncode == 0 and not thread.is_alive(), "the stream outlived the master"
    print("test_master_tls: passed")


main()

"""HTTPS: det-master with a certificate of its own; the command line, the agent and the task's ranks check it, and the command line asks whom to trust."""
import contextlib
import hashlib
import http.client
import json
import os
import pty
import socket
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, ApiError, wait_until  # noqa: E402
from tls_cluster import OwnCluster, TlsCluster, make_certificate  # noqa: E402


def clients(c):
    """The right certificate, none, another's, no check, and plain HTTP at the same port."""
    assert "version" in c.det("master", "info").stdout
    assert "version" in c.det("master", "info", cert="noverify").stdout
    make_certificate(c, "other")
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


def follow_log(c):
    """The messages of the master's log so far and from now on, and the thread that reads them until the stream ends."""
    conn, lines = c.connect(), []
    conn.request("GET", "/api/v1/master/logs?follow=true", headers={"Authorization": "Bearer " + c.token})
    r = conn.getresponse()
    thread = threading.Thread(target=lambda: [lines.append(json.loads(x)["result"]["logEntry"]["message"]) for x in r], daemon=True)
    thread.start()
    wait_until(lambda: any("ready: https://" in x for x in lines), 20, "the first lines")
    return thread, lines


def bodies_and_streams(c):
    """What is large goes in, what lasts comes out."""
    try:
        c.request("POST", "/experiments", {"config": "a: [", "modelDefinition": [], "notes": "x" * (10 << 20)})
        raise AssertionError("a broken configuration was taken")
    except ApiError as e:
        assert e.status == 400, e
    conn = c.connect()
    conn.request("GET", "/api/v1/me?" + "x" * 5500, headers={"Authorization": "Bearer " + c.token})
    r = conn.getresponse()
    assert r.status == 431 and b"5120 is the most" in r.read()
    thread, lines = follow_log(c)
    c.start_agent(0)
    c.wait_agents(1)
    wait_until(lambda: any("agent=agent-0" in x for x in lines), 20, "the agent's line in the stream")
    return thread, lines


def whole_trial(c):
    exp = c.create("examples/digits/const.yaml", "examples/digits", **{"epochs: 12": "epochs: 1"})
    c.wait(exp, seconds=180)
    trial = c.trials(exp)[0]["id"]
    assert c.metrics(trial, "validation"), "no validation came through"
    wait_until(lambda: c.det("trial", "logs", str(trial)).stdout, 20, "a log")


def certificate(c):
    return ssl.get_server_certificate(("127.0.0.1", c.port))


def renewed_files(c, lines):
    """A certificate and key that take the place of the files are shown without a restart, once they belong together; the stream goes on."""
    make_certificate(c, "next", "subjectAltName=IP:127.0.0.1,DNS:localhost")
    before, now = certificate(c), fingerprint(c, "next.crt")
    os.rename(c.path("next.key"), c.path("master.key"))
    wait_until(lambda: any("shows the certificate of before: security.tls.cert and .key must be PEM and belong together" in x for x in lines), 20, "the complaint")
    assert certificate(c) == before
    os.rename(c.path("next.crt"), c.path("master.crt"))
    wait_until(lambda: any("the certificate's authority is " + now in x for x in lines), 20, "the new certificate")
    assert certificate(c) == open(c.path("master.crt")).read() != before
    assert "version" in c.det("master", "info").stdout


def hung_files(c):
    """A file system that hangs holds up neither requests nor the master's end. Returns what it hangs at."""
    conn = c.connect()  # which reads the file, too
    os.remove(c.path("master.crt"))
    os.mkfifo(c.path("master.crt"))

    def at_it():
        with contextlib.suppress(OSError):  # nobody reads there yet
            return os.fdopen(os.open(c.path("master.crt"), os.O_WRONLY | os.O_NONBLOCK), "wb")
    pipe = wait_until(at_it, 20, "the master's look at its certificate")
    conn.request("GET", "/api/v1/me", headers={"Authorization": "Bearer " + c.token})
    assert conn.getresponse().status == 200
    return pipe


def renewed_own(c):
    """The cluster's own certificate is a new one after a while, while the master runs; the stream goes on, and so does the authority."""
    with open(c.path("renewal.yaml"), "w") as f:
        f.write("security: {tls: {own_renewal: 1}}")
    c.stop("master")
    c.master_args += ["--config", c.path("renewal.yaml")]
    c.start_master()
    c.login()
    before, (_, lines), authority = certificate(c), follow_log(c), told(c)[-1]
    wait_until(lambda: certificate(c) != before and any("certificate is renewed" in x for x in lines), 20, "a new certificate")
    assert "version" in c.det("master", "info").stdout and told(c)[-1] == authority


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
    open(c.path("empty.pem"), "w").close()
    for cert, key, word in (("empty.pem", "master.key", "security.tls.cert"), ("master.crt", "empty.pem", "security.tls.key")):
        r = run("--tls-cert", c.path(cert), "--tls-key", c.path(key), "--host", "0.0.0.0")
        assert r.returncode == 1 and word in r.stderr and "empty.pem is empty" in r.stderr, r.stderr
    r = subprocess.run([BIN + "/det-master", "doctor", "--port", "0", "--tls-cert", "/nonexistent.crt", "--tls-key", c.path("master.key")],
                       text=True, capture_output=True, timeout=60 * SLOWER)
    assert r.returncode == 1 and "security.tls.cert" in r.stdout and "put the file there" in r.stdout, r.stdout


def told(c):
    """What the master says its authority is, at each of its starts."""
    return [line.split()[-1] for line in open(c.path("master.log")) if "authority is" in line]


def fingerprint(c, cert="master.crt"):
    r = subprocess.run(["openssl", "x509", "-in", c.path(cert), "-outform", "DER"], capture_output=True, check=True)
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


class Person:
    """Somebody with a configuration folder of her own, to whom no authority is known."""
    def __init__(self, c, name):
        self.c, self.home = c, c.path(name)
        self.certs = os.path.join(self.home, "determined", "certs.json")
        self.password = open(c.path("admin.password")).read()

    def det(self, *args, port=None, **kw):
        return self.c.det(*args, cert=None, check=False, env={"XDG_CONFIG_HOME": self.home, "DET_MASTER": self.url(port)}, **kw)

    def login(self, fingerprint, port=None):
        return self.det("user", "login", "admin", "--fingerprint", fingerprint, port=port, input=self.password)

    def at_terminal(self, answer, *args, port=None):
        master, slave = pty.openpty()
        try:
            os.write(master, answer.encode() + b"\n")
            return self.det(*args, port=port, stdin=slave)
        finally:
            os.close(master)
            os.close(slave)

    def url(self, port=None):
        return f"https://127.0.0.1:{port or self.c.port}"

    def kept(self):
        return json.load(open(self.certs)) if os.path.exists(self.certs) else {}


def first_use(c):
    """Nobody is believed without being asked for, and who was believed needs no asking."""
    she, he, now = Person(c, "hers"), Person(c, "his"), fingerprint(c)
    assert told(c)[-1] == now
    for args in (("master", "info"), ("agent", "list")):
        r = she.det(*args)
        assert r.returncode == 1 and f"--fingerprint {now}" in r.stderr and "DET_MASTER_CERT_FILE" in r.stderr, r.stderr
    r = she.at_terminal("n", "master", "info")
    assert r.returncode == 1 and now in r.stderr and "is not trusted" in r.stderr, r.stderr
    r = she.login("sha256:" + "0" * 64)
    assert r.returncode == 1 and "IS NOT WHO YOU SAID" in r.stderr and now in r.stderr, r.stderr
    r = she.login("sha256:1")
    assert r.returncode == 1 and "64 hexadecimal digits" in r.stderr, r.stderr
    assert she.kept() == {}, "somebody was kept whom nobody trusted"
    r = she.at_terminal("y", "master", "info")
    assert r.returncode == 0 and now in r.stderr and "version" in r.stdout, r.stderr
    assert she.kept() == {she.url(): open(c.path("master.crt")).read()} and os.stat(she.certs).st_mode & 0o7777 == 0o600
    assert he.login(now.lower()).returncode == 0 and he.kept() == she.kept()
    for person in (she, he):
        r = person.det("master", "info")
        assert r.returncode == 0 and "fingerprint" not in r.stderr.lower(), r.stderr
    r = he.det("agent", "list")
    assert r.returncode == 0, r.stderr
    return he


class Impostor:
    """Speaks TLS with this certificate, and keeps all that it is told."""
    def __init__(self, cert, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.heard, self.calls = self.listener.getsockname()[1], b"", 0
        self.thread = threading.Thread(target=self.serve)

    def serve(self):
        while True:
            s, _ = self.listener.accept()
            with s:
                self.calls += 1
                try:
                    with self.context.wrap_socket(s, server_side=True) as tls:
                        said = tls.recv(10000)
                except OSError:
                    continue
                if said == b"end":
                    return
                self.heard += said

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with socket.create_connection(("127.0.0.1", self.port)) as s, ssl._create_unverified_context().wrap_socket(s) as tls:
            tls.sendall(b"end")
        self.thread.join()
        self.listener.close()


def in_the_middle(c):
    """Who has another authority is named as one, who sends the right one along did not get its certificate from it: neither hears a word."""
    chain = c.path("stolen.crt")
    make_certificate(c, "other", "subjectAltName=IP:127.0.0.1")
    with open(chain, "w") as f:
        f.write(open(c.path("other.crt")).read() + open(c.path("master.crt")).read())
    with Impostor(c.path("other.crt"), c.path("other.key")) as another, Impostor(chain, c.path("other.key")) as thief:
        ports = (another.port, thief.port)
        known, stranger = Person(c, "known"), Person(c, "stranger")
        os.makedirs(os.path.dirname(known.certs))
        with open(known.certs, "w") as f:
            json.dump({known.url(p): open(c.path("master.crt")).read() for p in ports}, f)
        before = known.kept()
        for r in (known.det("agent", "list", port=another.port), known.at_terminal("y", "agent", "list", port=another.port)):
            assert r.returncode == 1 and "HAS CHANGED" in r.stderr and fingerprint(c) in r.stderr and fingerprint(c, "other.crt") in r.stderr, r.stderr
        r = known.det("agent", "list", port=thief.port)
        assert r.returncode == 1 and "not issued by it" in r.stderr, r.stderr
        for r in (stranger.login(fingerprint(c), port=thief.port), stranger.at_terminal("y", "agent", "list", port=thief.port)):
            assert r.returncode == 1 and "not issued by it" in r.stderr, r.stderr
        r = stranger.login(fingerprint(c), port=another.port)
        assert r.returncode == 1 and "IS NOT WHO YOU SAID" in r.stderr, r.stderr
        assert known.kept() == before and stranger.kept() == {}
        assert another.calls and thief.calls and not another.heard + thief.heard, (another.heard, thief.heard)


def another_authority(c, he):
    """It is refused, whoever asks, until somebody says that it is the right one."""
    before = fingerprint(c)
    c.stop("master")
    c.sql("DELETE FROM authority")
    c.start_master()
    now = fingerprint(c)
    assert now != before
    for r in (he.det("master", "info"), he.at_terminal("y", "master", "info")):
        assert r.returncode == 1 and "HAS CHANGED" in r.stderr and before in r.stderr and f"--fingerprint {now}" in r.stderr and he.certs in r.stderr, r.stderr
    assert he.login(before).returncode == 1
    assert he.login(now).returncode == 0
    assert he.det("master", "info").returncode == 0 and he.kept() == {he.url(): open(c.path("master.crt")).read()}


def issue(c, name, authority):
    """A server's certificate by this authority's key, with the authority's own after it."""
    openssl = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout", c.path(name + ".key")]
    request = subprocess.run(openssl, check=True, capture_output=True).stdout
    with open(c.path(name + ".ext"), "w") as f:
        f.write("subjectAltName=IP:127.0.0.1")
    subprocess.run(["openssl", "x509", "-req", "-days", "2", "-CA", c.path(authority + ".crt"), "-CAkey", c.path(authority + ".key"), "-CAcreateserial",
                    "-extfile", c.path(name + ".ext"), "-out", c.path(name + ".crt")], input=request, check=True, stderr=subprocess.DEVNULL)
    with open(c.path(name + ".crt"), "a") as f:
        f.write(open(c.path(authority + ".crt")).read())


def keep(person, port, pem):
    with open(person.certs, "w") as f:
        json.dump({person.url(port): pem}, f)


def rotated_authority(c, he):
    """Who trusts the authority of before goes over to the one that it vouches for, quietly; to no other, and never back."""
    for end, column in (("crt", "certificate"), ("key", "key")):
        with open(c.path("former." + end), "w") as f:
            f.write(c.sql(f"SELECT {column} FROM authority") + "\n")
    former, before = open(c.path("master.crt")).read(), fingerprint(c)
    c.det("master", "rotate-authority")
    new, now, stranger = open(c.path("master.crt")).read(), fingerprint(c), Person(c, "later")
    assert now != before and told(c)[-1] == now
    vouch = c.sql("SELECT vouch FROM authority_former") + "\n"
    r = stranger.at_terminal("y", "master", "info")
    assert r.returncode == 0 and now in r.stderr and stranger.kept() == {stranger.url(): new}, r.stderr
    assert Person(c, "warned").login(before).returncode == 0
    issue(c, "thief", "former")
    make_certificate(c, "rogue", "subjectAltName=IP:127.0.0.1")
    with open(c.path("thief-along.crt"), "w") as f:
        f.write(open(c.path("thief.crt")).read() + vouch + open(c.path("rogue.crt")).read())
    with open(c.path("rogue-along.crt"), "w") as f:
        f.write(open(c.path("rogue.crt")).read() + vouch + former + new)
    with open(c.path("rogue-alone.crt"), "w") as f:
        f.write(open(c.path("rogue.crt")).read() + vouch + open(c.path("rogue.crt")).read())
    with Impostor(c.path("thief.crt"), c.path("thief.key")) as old, Impostor(c.path("rogue-along.crt"), c.path("rogue.key")) as rogue, \
            Impostor(c.path("rogue-alone.crt"), c.path("rogue.key")) as alone, Impostor(c.path("thief-along.crt"), c.path("thief.key")) as along:
        for port, kept, word in ((old.port, new, "HAS CHANGED"), (alone.port, former, "HAS CHANGED"), (alone.port, new, "HAS CHANGED"),
                                 (rogue.port, former, "not issued by it"), (rogue.port, new, "not issued by it"), (along.port, former, None)):
            keep(stranger, port, kept)
            r = stranger.det("agent", "list", port=port)
            assert r.returncode == 1 and (not word or word in r.stderr) and stranger.kept() == {stranger.url(port): kept}, (word, r.stderr)
        assert not old.heard + rogue.heard + alone.heard, (old.heard, rogue.heard, alone.heard)
    r = he.det("master", "info")
    assert r.returncode == 0 and "CHANGED" not in r.stderr and "vouches" in r.stderr and now in r.stderr and he.kept() == {he.url(): new}, r.stderr
    r = he.det("master", "info")
    assert r.returncode == 0 and r.stderr == "", r.stderr


def unwritten_authority(c, he):
    """Where the authority's file cannot be written, the new one is shown, here and after a restart, and the log complains; once it can, it is."""
    path, kept = c.path("master.crt"), c.path("kept.crt")
    os.rename(path, kept)
    os.mkdir(path)
    c.det("master", "rotate-authority", cert="kept.crt")
    with open(c.path("now.crt"), "w") as f:
        f.write(c.sql("SELECT certificate FROM authority") + "\n")
    for restarted in (False, True):
        assert told(c)[-1] == fingerprint(c, "now.crt") != fingerprint(c, "kept.crt")
        assert open(c.path("master.log")).read().count("security.tls.authority_file does not have the present authority") == 1 + restarted
        r = he.det("master", "info")
        assert r.returncode == 0 and he.kept() == {he.url(): open(c.path("now.crt")).read()}, r.stderr
        if restarted:
            os.rmdir(path)
        c.stop("master")
        c.start_master()
    assert open(path).read() == open(c.path("now.crt")).read()


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
        in_the_middle(c)
        he = first_use(c)
        another_authority(c, he)
        rotated_authority(c, he)
        unwritten_authority(c, he)
        renewed_own(c)
    with TlsCluster(agents=0) as c:
        c.login()
        clients(c)
        first_use(c)
        thread, lines = bodies_and_streams(c)
        whole_trial(c)
        refusals(c)
        renewed_files(c, lines)
        pipe = hung_files(c)
        master = c.procs["master"]
        c.stop("master")
        pipe.close()
        thread.join(120)
        assert master.returncode == 0 and not thread.is_alive(), "the stream outlived the master"
    print("test_master_tls: passed")


main()

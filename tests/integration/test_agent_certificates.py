"""Agents with certificates of their own: joining by a token, what is refused, renewal and a new authority under a running trial, revoking, and other masters."""
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, wait_until  # noqa: E402
from ports import free_port  # noqa: E402
from tls_cluster import OwnCluster, make_certificate  # noqa: E402


def token(c, *args):
    return c.det("agent", "join-token", *args).stdout.strip()


def command(c, name, *args, work=None):
    return [BIN + "/det-agent", "--master", f"https://127.0.0.1:{c.port}", "--id", name, "--slots", "2", "--work-dir", c.path(work or name),
            "--task-user", "", *args]


def start(c, name, *args):
    return c.spawn(name, command(c, name, *args))


def fails(c, name, *args, work="elsewhere"):
    """What an agent says that ends instead of joining."""
    r = subprocess.run(command(c, name, *args, work=work), text=True, capture_output=True, timeout=60 * SLOWER)
    assert r.returncode == 1, (r.returncode, r.stderr)
    return r.stderr


def identity(c, name):
    return json.load(open(c.path(name, "identity.json")))


def shows(c, name, who):
    """Certificate and key of an identity as files; who: what they are called."""
    one = identity(c, name)
    for end, text in (("crt", one["certificate"]), ("key", one["key"])):
        with open(c.path(f"{who}.{end}"), "w") as f:
            f.write(text)
    return who


def ask(c, path, who=None, shared=False, body=None, port=None):
    """Status and text of an answer to whoever shows this certificate, or the token of all agents."""
    context = ssl.create_default_context(cafile=c.path("master.crt"))
    if who:
        context.load_cert_chain(c.path(who + ".crt"), c.path(who + ".key"))
    conn = http.client.HTTPSConnection("127.0.0.1", port or c.port, timeout=60 * SLOWER, context=context)
    headers = {"Authorization": "Bearer " + open(c.path("agent.token")).read().strip()} if shared else {}
    try:
        conn.request("GET" if body is None else "POST", path, body, headers)
        r = conn.getresponse()
        return r.status, r.read().decode()
    finally:
        conn.close()


def here(c, name):
    return any(a["id"] == name and a["enabled"] for a in c.api("GET", "/agents")["agents"])


def log(c, name):
    return open(c.path(name + ".log"), errors="replace").read()


def joins(c):
    """With the token alone: it names the authority too. The key stays on the host, the token nowhere."""
    first, c.n_agents = token(c), 1
    start(c, "agent-0", "--join-token", first)
    wait_until(lambda: here(c, "agent-0"), 20, "the agent that joined")
    assert os.stat(c.path("agent-0", "identity.json")).st_mode & 0o7777 == 0o600
    assert open(c.path("agent-0", "authority.pem")).read() == open(c.path("master.crt")).read()
    rows = c.sql("SELECT t::text FROM agent_join_tokens t UNION ALL SELECT t::text FROM agent_certificates t")
    assert "agent-0" in rows and first.split("-")[1] not in rows and "PRIVATE" not in rows
    assert first.split("-")[1] not in log(c, "agent-0") + log(c, "master")
    return first


def refused_tokens(c, used):
    prefix, secret, print_ = used.split("-")
    said = fails(c, "agent-1", "--join-token", used)
    assert "has been used" in said and "det agent revoke" in said and "det agent join-token" in said, said
    said = fails(c, "agent-1", "--join-token", f"{prefix}-{'0' * 64}-{print_}")
    assert "does not know this join token" in said, said
    said = fails(c, "agent-1", "--join-token", f"{prefix}-{secret}-{'0' * 64}")
    assert "IS NOT THE MASTER" in said and "nothing was sent" in said, said
    said = fails(c, "agent-1", "--join-token", "secret")
    assert "no join token" in said and "secret" not in said.replace("--join-token", ""), said
    late = token(c, "--minutes", "1")
    c.sql("UPDATE agent_join_tokens SET expires_at = now() WHERE used_by IS NULL")
    said = fails(c, "agent-1", "--join-token", late)
    assert "has expired" in said, said
    said = fails(c, "agent-1", "--join-token", token(c, "agent-9"))
    assert "another name" in said, said
    said = fails(c, "agent-0", "--join-token", token(c))
    assert "joined already" in said and "det agent join-token NAME" in said, said
    said = fails(c, "agent-1")
    assert "--join-token" in said and "--token-file" in said, said
    assert c.sql("SELECT count(*) FROM agent_identities") == "1"
    body = json.dumps({"token": secret, "request": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"})
    for bad in ("", "[]", "{}", '{"token": 1, "request": 2}', body, "x" * 20000):
        assert ask(c, "/agent/v1/agent-1/join", body=bad)[0] in (400, 413), bad
    r = c.det("agent", "join-token", "no name", check=False)
    assert r.returncode == 1 and "agentId" in r.stderr, r.stderr
    r = c.det("agent", "revoke", "agent-9", check=False)
    assert r.returncode == 1 and "not found" in r.stderr, r.stderr


def only_for_its_name(c):
    shows(c, "agent-0", "mine")
    assert ask(c, "/agent/v1/stores", "mine")[0] == 200
    status, text = ask(c, "/agent/v1/agent-1/events", "mine", body="{}")
    assert status == 403 and "agent agent-0's" in text, text
    status, text = ask(c, "/agent/v1/agent-1/orders?boot=x&after=0", "mine")
    assert status == 403, text
    assert ask(c, "/api/v1/me", "mine")[0] == 401
    make_certificate(c, "stranger")
    status, text = ask(c, "/agent/v1/agent-0/events", "stranger", body="{}")
    assert status == 401 and "does not know the certificate" in text, text
    status, text = ask(c, "/agent/v1/agent-0/events", shared=True, body="{}")
    assert status == 401 and "a certificate of its own" in text, text
    status, text = ask(c, "/agent/v1/agent-5/events", shared=True, body="{}")
    assert status == 400, text  # the token of all is good for another name; what it sends is not


def renewed_under_a_trial(c):
    exp = c.create("examples/digits/const.yaml", "examples/digits", **{"epochs: 12": "epochs: 100000"})
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    wait_until(lambda: c.metrics(trial, "training"), 60, "its first report")
    before, runs = identity(c, "agent-0"), c.sql("SELECT run_id FROM trials")
    os.kill(c.pid("agent-0"), signal.SIGHUP)
    wait_until(lambda: "this agent has a new certificate" in log(c, "agent-0"), 20, "a new certificate")
    after = identity(c, "agent-0")
    assert after["key"] != before["key"] and after["certificate"] != before["certificate"]
    steps = len(c.metrics(trial, "training"))
    wait_until(lambda: len(c.metrics(trial, "training")) > steps, 60, "a report after the renewal")
    rotated(c, trial)
    assert c.sql("SELECT run_id FROM trials") == runs and "link to the master is down" not in log(c, "agent-0")
    return exp, runs


def trusted(c, name="agent-0"):
    return open(c.path(name, "authority.pem")).read()


def master_crt(c):
    return open(c.path("master.crt")).read()


def rotated(c, trial):
    """A new authority: streams and the trial go on, who trusts the one of before finds the master, its key is no more, and the agent follows."""
    before, made_before, conn = master_crt(c), token(c), c.connect()
    with open(c.path("before.crt"), "w") as f:
        f.write(before)
    conn.request("GET", "/api/v1/master/logs?follow=true", headers={"Authorization": "Bearer " + c.token})
    stream = conn.getresponse()
    shown = c.det("master", "rotate-authority").stdout
    now = master_crt(c)
    assert now != before and trusted(c) == before and shown.count("SHA256:") == 2, shown
    assert any(b"was rotated by admin" in line for line in stream), "the stream ended"
    conn.close()
    steps = len(c.metrics(trial, "training"))
    wait_until(lambda: len(c.metrics(trial, "training")) > steps, 60, "a report after the rotation")
    for who in ("master.crt", "before.crt"):
        assert "version" in c.det("master", "info", cert=who).stdout
    kept = c.sql("SELECT f::text FROM authority_former f")
    assert kept.count("BEGIN CERTIFICATE") == 2 and "PRIVATE" not in kept
    assert c.sql("SELECT count(*) FROM authority WHERE certificate = (SELECT certificate FROM authority_former)") == "0"
    os.kill(c.pid("agent-0"), signal.SIGHUP)
    wait_until(lambda: trusted(c) == now, 20, "the agent to follow")
    start(c, "agent-1", "--join-token", made_before)
    wait_until(lambda: here(c, "agent-1"), 20, "the agent with a token of before the rotation")
    c.stop("agent-1")
    assert trusted(c, "agent-1") == before
    said = len(log(c, "agent-1"))
    start(c, "agent-1")
    wait_until(lambda: "connected to the master" in log(c, "agent-1")[said:], 30, "the agent that trusts the former authority")
    c.stop("agent-1")
    make_certificate(c, "rogue")
    with open(c.path("agent-1", "authority.pem"), "w") as f:
        f.write(open(c.path("rogue.crt")).read())
    start(c, "agent-1")
    wait_until(lambda: "certificate is not trusted" in log(c, "agent-1"), 20, "the agent that knows another authority")
    c.stop("agent-1")


def master_restarts(c, exp, runs):
    c.stop("master")
    c.start_master()
    c.login()
    wait_until(lambda: here(c, "agent-0"), 30, "the agent at the restarted master")
    assert c.sql("SELECT run_id FROM trials") == runs
    c.api("POST", f"/experiments/{exp}/kill")
    c.wait(exp, "STATE_CANCELED")


def agent_restarts(c):
    """It needs no token any more, and one that it has used does no harm."""
    c.stop("agent-0")
    before = log(c, "agent-0").count("connected to the master")
    start(c, "agent-0")
    wait_until(lambda: log(c, "agent-0").count("connected to the master") > before, 30, "the agent with its certificate alone")
    r = subprocess.run([*command(c, "agent-0"), "doctor"], text=True, capture_output=True, timeout=60 * SLOWER)
    assert "certificate of its own" in r.stdout and "the master knows it" in r.stdout, r.stdout


def patient(c):
    """Under a manager that restarts it an agent with a bad token stays, tries again with growing pauses, and says why once."""
    late, path = token(c), c.path("notify")
    c.sql("UPDATE agent_join_tokens SET expires_at = now() WHERE used_by IS NULL")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(60 * SLOWER)
        p = subprocess.Popen(command(c, "agent-3", "--join-token", late), env={**c.env, "NOTIFY_SOCKET": path}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=open(c.path("agent-3.log"), "wb"))
        try:
            pauses = [re.search(rb"^EXTEND_TIMEOUT_USEC=.*\nSTATUS=.* in (\d+) s$", s.recv(1000)) for _ in range(3)]
            assert [int(x[1]) for x in pauses] == [1, 2, 4] and p.poll() is None, pauses
            assert log(c, "agent-3").count("has expired") == 1, log(c, "agent-3")
            c.sql("UPDATE agent_join_tokens SET expires_at = now() + interval '1 hour' WHERE used_by IS NULL")
            said = b""
            while b"READY=1" not in said:
                said = s.recv(1000)
            p.terminate()
            assert p.wait(60 * SLOWER) == 0
        finally:
            p.kill()
            p.wait()


def listed(c, name):
    """Its certificate, and what `det agent list` says of it."""
    (one,) = [x for x in c.api("GET", "/agents")["certificates"] if x["agentId"] == name]
    (line,) = [x for x in c.det("agent", "list").stdout.splitlines() if x.startswith(name + " ")]
    return one["state"], one.get("expiry"), line


def lasts(c, name):
    """Until when, as the database has it."""
    return c.sql(f"SELECT max(until_at) AT TIME ZONE 'UTC' FROM agent_certificates WHERE agent_id = '{name}'").replace(" ", "T")


def shown(c):
    """Who has a certificate, whether here or not, until when; who has none."""
    one = c.api("GET", "/agents/agent-0")["agent"]["certificate"]
    state, expiry, line = listed(c, "agent-0")
    until = lasts(c, "agent-0")
    assert one == {"agentId": "agent-0", "state": "GOOD", "expiry": expiry} and expiry.startswith(until) and "until" in line, (one, until, line)
    state, _, line = listed(c, "agent-1")
    assert state == "GOOD" and "until" in line, line
    c.det("agent", "revoke", "agent-1")
    state, _, line = listed(c, "agent-1")
    assert state == "REVOKED" and "revoked" in line, line
    c.spawn("agent-7", [*command(c, "agent-7"), "--token-file", c.path("agent.token"), "--cert-file", c.path("master.crt")])
    wait_until(lambda: here(c, "agent-7"), 30, "an agent with the token of all")
    assert c.api("GET", "/agents/agent-7")["agent"]["certificate"] is None
    assert [x.split()[-1] for x in c.det("agent", "list").stdout.splitlines() if x.startswith("agent-7 ")] == ["none"]
    c.stop("agent-7")


def revoked(c):
    shows(c, "agent-0", "old")
    c.det("agent", "revoke", "agent-0")
    assert not here(c, "agent-0"), "its link outlived the answer"
    wait_until(lambda: "agent-0 was revoked" in log(c, "agent-0"), 20, "the reason in the agent's log")
    c.env["DET_SECURITY_AGENTS_CERTIFICATES_ONLY"] = "true"
    for restarted in (False, True):
        for who, shared in (("old", False), (None, True)):
            status, text = ask(c, "/agent/v1/agent-0/events", who, shared, body="{}")
            assert status == 401 and "was revoked" in text and "det agent join-token agent-0" in text, (restarted, who, text)
        if not restarted:
            c.stop("master")
            c.sql("UPDATE agent_certificates SET until_at = until_at + interval '1 day' WHERE agent_id = 'agent-0'")
            c.start_master()
            c.login()
    assert listed(c, "agent-0")[1].startswith(lasts(c, "agent-0"))
    status, text = ask(c, "/agent/v1/agent-5/events", shared=True, body="{}")
    assert status == 401 and "certificates_only" in text, text
    c.stop("agent-0")
    start(c, "agent-0", "--join-token", token(c, "agent-0"))
    wait_until(lambda: here(c, "agent-0"), 30, "the agent that joined anew")
    assert listed(c, "agent-0")[1].startswith(lasts(c, "agent-0"))
    status, text = ask(c, "/agent/v1/agent-0/events", "old", body="{}")
    assert status == 401 and "does not know the certificate" in text, text


def at_another_master(c):
    """A standby shows the authority that the leader has, at once or when it can read it, admits nobody, and refuses whom the leader revoked
    when it leads."""
    port = free_port()
    shows(c, "agent-0", "now")
    c.spawn("standby", [BIN + "/det-master", "--host", "127.0.0.1", "--port", str(port), "--db", f"host={c.path('pg-socket')} user=det dbname=det",
                        "--checkpoint-dir", c.path("checkpoints"), *c.master_args])
    wait_until(lambda: "standing by" in log(c, "standby"), 30, "the standby")
    assert ask(c, "/agent/v1/stores", "now")[0] == 200 and ask(c, "/agent/v1/stores", "now", port=port)[0] == 503
    c.sql("ALTER DATABASE det ALLOW_CONNECTIONS false", db="template1")
    c.det("master", "rotate-authority")
    wait_until(lambda: "still shows the one of before" in log(c, "standby"), 20, "the standby that cannot read the authority")
    c.sql("ALTER DATABASE det ALLOW_CONNECTIONS true", db="template1")

    def shows_it():
        try:
            return ask(c, "/healthz", port=port)[0] == 200
        except ssl.SSLCertVerificationError:
            return False
    with open(c.path("now.pem"), "w") as f:
        f.write(c.sql("SELECT certificate FROM authority"))
    assert open(c.path("now.pem")).read().strip() == master_crt(c).strip()
    wait_until(shows_it, 20, "the standby to show the new authority")
    c.det("agent", "revoke", "agent-0")
    assert ask(c, "/agent/v1/stores", "now")[0] == 401 and ask(c, "/agent/v1/stores", "now", port=port)[0] == 503
    c.stop("master", signal.SIGKILL)
    wait_until(lambda: ask(c, "/readyz", port=port)[0] == 200, 30, "the standby to lead")
    status, text = ask(c, "/agent/v1/agent-0/events", "now", body="{}", port=port)
    assert status == 401 and "was revoked" in text, text
    c.port = port
    c.login()


def audited(c):
    entries = c.api("GET", "/master/audit?limit=1000")["entries"]
    told = {(e["operation"], e["username"], e["status"]) for e in entries}
    for one in (("post_join_token", "admin", 200), ("revoke_agent", "admin", 200), ("rotate_authority", "admin", 200), ("agent_join", "agent agent-0", 200),
                ("agent_certificate", "agent agent-0", 200)):
        assert one in told, (one, told)


def main():
    with OwnCluster(agents=0) as c:
        c.login()
        refused_tokens(c, joins(c))
        only_for_its_name(c)
        master_restarts(c, *renewed_under_a_trial(c))
        agent_restarts(c)
        patient(c)
        shown(c)
        revoked(c)
        at_another_master(c)
        audited(c)
    print("test_agent_certificates: passed")


if __name__ == "__main__":
    main()

"""det-master doctor, det-agent doctor: each thing that can be wrong is found, named, and told how to mend. The units are sound."""
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, TOP, Cluster, wait_until  # noqa: E402


def doctor(program, *args, env=None, limit=None, status=None):
    """(lines by what was checked, exit status)"""
    pre = ["prlimit", f"--nofile={limit}"] if limit else []
    r = subprocess.run([*pre, f"{BIN}/{program}", "doctor", *args], text=True, capture_output=True, timeout=120,
                       env={**os.environ, **(env or {})})
    lines = dict(re.findall(r"^((?:ok|warn|FAIL) +.{22}) (.*(?:\n      -> .*)?)$", r.stdout, re.M))
    found = {k[6:].strip(): (k[:5].strip(), v) for k, v in lines.items()}
    assert found or r.returncode == 2, r.stdout + r.stderr
    if status is not None:
        assert r.returncode == status, f"{program} {args}: {r.returncode}\n{r.stdout}{r.stderr}"
    return found


def says(found, what, how, words, advice=""):
    assert what in found, (what, found)
    got, text = found[what]
    assert got == how and words in text, f"{what}: {got} {text!r}; wanted {how} {words!r}"
    assert (" -> " in text) == (how != "ok") and advice in text, text


def good(c, db):
    found = doctor("det-master", "--db", db, "--port", "0", "--checkpoint-dir", c.path("checkpoints"),
                   "--agent-token-file", c.path("agent.token"), status=0)
    assert all(how != "FAIL" for how, _ in found.values()), found
    says(found, "settings", "ok", "valid")
    says(found, "database", "ok", "PostgreSQL")
    assert "another master leads" in found["database"][1]
    says(found, "database schema", "ok", "of")
    says(found, "database clock", "ok", "ms")
    says(found, "checkpoint storage", "ok", c.path("checkpoints"))


def database(c, db):
    found = doctor("det-master", "--db", "host=/nonexistent user=det", "--port", "0", status=1)
    says(found, "database", "FAIL", "/nonexistent", "start PostgreSQL")
    found = doctor("det-master", "--db", db.replace("dbname=det", "dbname=nosuch"), "--port", "0", status=1)
    says(found, "database", "FAIL", "nosuch", "make the user and the database")
    found = doctor("det-master", "--db", db.replace("user=det", "user=nobody2"), "--port", "0", status=1)
    says(found, "database", "FAIL", "nobody2")
    c.sql("INSERT INTO schema_version (version) VALUES (9999)")
    found = doctor("det-master", "--db", db, "--port", "0", status=1)
    says(found, "database schema", "FAIL", "9999", "newer det-master")
    c.sql("DELETE FROM schema_version WHERE version = 9999")
    number = c.sql("SELECT max(number) FROM functions_laid")
    c.sql("UPDATE functions_laid SET number = 9999")
    found = doctor("det-master", "--db", db, "--port", "0", status=1)
    says(found, "database schema", "FAIL", "9999", "newer det-master")
    c.sql(f"UPDATE functions_laid SET number = {number}")
    c.sql("CREATE ROLE poor LOGIN")
    c.sql("CREATE DATABASE empty", "postgres")
    c.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC", "empty")
    found = doctor("det-master", "--db", db.replace("user=det dbname=det", "user=poor dbname=empty"), "--port", "0", status=1)
    says(found, "database rights", "FAIL", "may not make tables", "GRANT CREATE")
    found = doctor("det-master", "--db", db.replace("dbname=det", "dbname=empty"), "--port", "0", status=0)
    says(found, "database schema", "ok", "version 0 of")
    says(found, "database durability", "ok", "wait for the disk")
    found = doctor("det-master", "--db", db + " options='-c synchronous_commit=local'", "--port", "0", status=0)
    says(found, "database durability", "ok", "is local; det-master's own sessions set it to on")
    c.sql("ALTER SYSTEM SET full_page_writes = off")
    c.sql("SELECT pg_reload_conf()")
    wait_until(lambda: c.sql("SHOW full_page_writes") == "off", 30, "PostgreSQL to read its settings")
    found = doctor("det-master", "--db", db, "--port", "0", status=0)
    says(found, "database durability", "warn", "a crash of its host", "fsync = on")
    c.sql("ALTER SYSTEM RESET full_page_writes")
    c.sql("SELECT pg_reload_conf()")


def host(c, db):
    with socket.create_server(("127.0.0.1", 0)) as s:
        found = doctor("det-master", "--db", db, "--port", str(s.getsockname()[1]), status=1)
        says(found, "port", "FAIL", "in use", "ss -ltnp")
    found = doctor("det-master", "--db", db, "--host", "192.0.2.1", "--port", "0", status=1)
    says(found, "port", "FAIL", "192.0.2.1", "an address of this machine")
    found = doctor("det-master", "--db", db, "--host", "no such host", "--port", "0", status=1)
    says(found, "host", "FAIL", "no such host")
    found = doctor("det-master", "--db", db, "--port", "0", "--port-file", "/nonexistent/dir/port", "--ready-file", "/proc/ready", status=1)
    says(found, "port_file", "FAIL", "No such file", "make the directory")
    assert found["ready_file"][0] == "FAIL" or os.getuid() == 0
    found = doctor("det-master", "--db", db, "--port", "0", limit=256, status=1)
    says(found, "open files", "FAIL", "256", "LimitNOFILE")
    found = doctor("det-master", "--db", db, "--port", "0", limit="256:8192", status=0)
    says(found, "open files", "ok", "8192")  # a login's soft limit: the daemon raises it
    found = doctor("det-master", "--db", db, "--port", "0", "--checkpoint-dir", "/nonexistent/ckpt", status=0)
    says(found, "checkpoint storage", "warn", "/nonexistent/ckpt", "mount it")
    says(doctor("det-master", "--db", db, "--port", "0", status=0), "checkpoint storage", "warn", "none", "--checkpoint-dir")
    assert doctor("det-master", "--db", db, "--port", "0", status=0)["clock"][0] in ("ok", "warn")
    bad = c.path("bad.yaml")
    with open(bad, "w") as f:
        f.write("prt: 1\n")
    r = subprocess.run([BIN + "/det-master", "doctor", "--config", bad], text=True, capture_output=True, timeout=300)
    assert r.returncode == 2 and "line 1: prt" in r.stderr, r.stderr


def agent(c, db):
    url, token = f"http://127.0.0.1:{c.port}", c.path("agent.token")
    work = c.path("doctor-work")
    os.makedirs(work, exist_ok=True)
    args = ["--master", url, "--token-file", token, "--work-dir", work, "--task-user", ""]
    found = doctor("det-agent", *args, "--slots", "2", status=0)
    for what, words in (("master", "0.27.0"), ("token", "knows it"), ("token file", token), ("det-task", "beside"), ("det-harness", "beside"),
                        ("slots", "2 CPU"), ("work directory", work), ("task user", "")):
        says(found, what, "ok", words)
    assert {"cgroup v2", "C compiler", "Python with torch", "stacks of hung tasks", "clock", "open files"} <= set(found), found
    found = doctor("det-agent", *args, "--master", "http://127.0.0.1:1", status=1)
    says(found, "master", "FAIL", "127.0.0.1:1", "start det-master")
    wrong = c.path("wrong.token")
    with open(wrong, "w") as f:
        f.write("nonsense\n")
    os.chmod(wrong, 0o644)
    found = doctor("det-agent", *args, "--token-file", wrong, status=1)
    says(found, "token", "FAIL", "does not know it", "this very master")
    says(found, "token file", "warn", "read by others", "chmod 600")
    found = doctor("det-agent", *args, "--token-file", "/nonexistent/token", status=1)
    says(found, "token file", "FAIL", "/nonexistent/token", "copy the file")
    found = doctor("det-agent", *args, "--work-dir", "/nonexistent/work", status=1)
    says(found, "work directory", "FAIL", "/nonexistent/work", "make the directory")
    if os.getuid() == 0:  # the file of /etc/det that tasks need, closed to their account
        pem, open_work = c.path("doctor.pem"), ["--task-user", "nobody", "--cert-file", c.path("doctor.pem")]
        open(pem, "w").close()
        os.chmod(pem, 0o600)
        found = doctor("det-agent", *args, *open_work, status=1)
        says(found, "certificate", "FAIL", "nobody cannot read", "chmod o+r")
        readable = "/etc/passwd"
        found = doctor("det-agent", *args, "--task-user", "nobody", "--cert-file", readable, status=None)
        says(found, "certificate", "ok", "nobody can read")
    found = doctor("det-agent", *args, "--slots", "many", status=1)
    says(found, "slots", "FAIL", "many", "correct --slots")
    programs = c.path("programs")
    os.makedirs(programs)
    os.symlink("/bin/false", programs + "/python3")  # without torch, as a python3 of one's own before the system's
    found = doctor("det-agent", *args, env={"PATH": programs, "DET_CC": ""}, status=0)
    says(found, "C compiler", "warn", "none", "gcc")
    says(found, "stacks of hung tasks", "warn", "neither", "gdb")
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0:
        says(found, "Python with torch", "ok", "/usr/bin/python3")  # what a trial would get
    else:
        says(found, "Python with torch", "warn", "none", "python3-torch")
    found = doctor("det-agent", *args, env={"DET_PYTHON_EXECUTABLE": "/bin/false", "DET_CC": "/nonexistent/cc"}, status=0)
    says(found, "C compiler", "warn", "none", "gcc")
    says(found, "Python with torch", "warn", "/bin/false has no torch", "python3-torch")
    found = doctor("det-agent", *args, limit=256, status=1)
    says(found, "open files", "FAIL", "256")
    if os.getuid() == 0:
        found = doctor("det-agent", *args[:-1], "nosuchuser", status=1)
        says(found, "task user", "FAIL", "nosuchuser", "useradd")
        closed = c.path("closed", "work")
        os.makedirs(closed)
        os.chmod(c.path("closed"), 0o750)
        found = doctor("det-agent", *args[:-1], "nobody", "--work-dir", closed, status=1)
        says(found, "task user", "FAIL", "nobody may not pass through " + closed, "chmod o+x")
        says(found, "kept apart", "warn", "--task-user 'nobody'", "one account")
        each = args[:-2]
        found = doctor("det-agent", *each, status=0)
        says(found, "task uids", "ok", "1900000000-1999999999")
        says(found, "task user", "ok", "uid of its own")
        says(found, "master for tasks", "ok", "gets its answer")
        found = doctor("det-agent", *each, "--work-dir", closed, status=1)
        says(found, "task user", "FAIL", "may not pass through " + closed, "chmod o+x")
        found = doctor("det-agent", *each, "--task-uids", "60000-70000", status=1)
        says(found, "task uids", "FAIL", "nobody:", "--task-uids")


def alone(c, db):
    """The det-task that is missing beside a copy of the agent."""
    lonely = c.path("lonely")
    os.makedirs(lonely, exist_ok=True)
    shutil.copy2(BIN + "/det-agent", lonely)
    r = subprocess.run([lonely + "/det-agent", "doctor", "--master", f"http://127.0.0.1:{c.port}", "--token-file", c.path("agent.token"),
                        "--work-dir", lonely, "--task-user", "", "--slots", "1"], text=True, capture_output=True, timeout=120)
    assert r.returncode == 1 and re.search(r"^FAIL +det-task +not beside", r.stdout, re.M), r.stdout + r.stderr


def units(c, db):
    """systemd's own reading of the units, with the programs where this build has them."""
    # Both may be of one host: a directory of the master's own above the agent's would shut the tasks' users out.
    dirs = [re.search("^StateDirectory=(.*)$", open(os.path.join(TOP, "deploy", "systemd", f"det-{n}.service")).read(), re.M)[1]
            for n in ("agent", "master")]
    assert dirs == ["det/agent", "det/master"], dirs
    if not shutil.which("systemd-analyze"):
        print("   units: skipped, there is no systemd-analyze")
        return
    with tempfile.TemporaryDirectory() as d:
        for name in ("det-master.service", "det-agent.service"):
            text = open(os.path.join(TOP, "deploy", "systemd", name)).read().replace("/usr/bin/det-", BIN + "/det-")
            assert "StartLimitIntervalSec=0" in text.split("[Service]")[0], "five quick failures would end " + name
            with open(os.path.join(d, name), "w") as f:
                f.write(re.sub(r"(User|Group)=det-master", rf"\1={pwd.getpwuid(os.getuid()).pw_name}", text))
            os.chmod(os.path.join(d, name), 0o644)  # whatever the umask, which coverage sets to 0
        r = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *(os.path.join(d, n) for n in sorted(os.listdir(d)))],
                           text=True, capture_output=True, timeout=300)
        ours = [x for x in (r.stdout + r.stderr).splitlines() if "det-" in x and "postgresql" not in x]
        assert not ours, ours


def main():
    with Cluster(agents=0, pg_args=["fsync=on"]) as c:
        db = f"host={c.path('pg-socket')} user=det dbname=det"
        for test in (good, database, host, agent, alone, units):
            test(c, db)
            print(f"ok {test.__name__}", flush=True)
        c.stop("master", signal.SIGTERM)


main()

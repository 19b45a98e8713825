#!/usr/bin/env python3
"""usage: test_agent_refused.py DET_AGENT    what an agent cannot begin with: it ends at once, and says which option, or which file, and what is wrong

No agent gets as far as to ask its master."""
import os
import subprocess
import sys
import tempfile

AGENT = os.path.abspath(sys.argv[1])
MASTER = "http://127.0.0.1:9"
bad = []


def agent(work, *args, **env):
    return subprocess.run([AGENT, *args], text=True, capture_output=True, timeout=120, cwd=work,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **env})


def file(work, name, text, mode=0o600):
    path = os.path.join(work, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def rows(work):
    """(arguments, environment, exit status, what is said)"""
    token, empty, plain = file(work, "token", "x" * 32), file(work, "empty", " \n"), file(work, "plain", "no folder")
    whole = ("--master", MASTER, "--token-file", token, "--work-dir", os.path.join(work, "agent"), "--task-user", "")
    yield (), {}, 2, "--master is missing: give the master's URL"
    yield ("--master", "ftp://host"), {}, 2, "--master"
    yield (*whole, "start"), {}, 2, "'start' is no option"
    yield (*whole, "--no-such-option"), {}, 2, "no-such-option"
    yield (*whole, "--id", "a b"), {}, 2, "--id a b: letters, digits"
    yield (*whole, "--id", "a" * 65), {}, 2, "at most 64"
    yield (*whole, "--pool", "p" * 129), {}, 2, "--pool (DET_AGENT_POOL) has 129 bytes; the name of a pool has at most 128"
    yield (*whole, "--log-mib", "-1"), {}, 2, "--log-mib"
    yield whole, {"DET_AGENT_LOG_MIB": "many"}, 2, "--log-mib (DET_AGENT_LOG_MIB)"
    yield (*whole, "--slot-memory-mib", "1"), {}, 2, "--slot-memory-mib"
    yield whole, {"DET_AGENT_SLOT_MEMORY_MIB": "all"}, 2, "--slot-memory-mib (DET_AGENT_SLOT_MEMORY_MIB)"
    yield (*whole, "--slot-pids", "1"), {}, 2, "--slot-pids"
    yield (*whole, "--task-uids", "9-1"), {}, 2, "--task-uids"
    yield whole, {"DET_AGENT_TASK_UIDS": "x"}, 2, "--task-uids (DET_AGENT_TASK_UIDS)"
    yield (*whole, "--cert-file", "/nonexistent/ca.pem"), {}, 2, "--cert-file /nonexistent/ca.pem: No such file or directory"
    yield (*whole, "--log-level", "loud"), {}, 2, "loud"
    yield (*whole, "--slots", "many"), {}, 1, "--slots"
    yield (*whole, "--token-file", empty), {}, 1, f"--token-file {empty} is empty"
    yield (*whole, "--token-file", "/nonexistent/token"), {}, 1, "--token-file"
    yield (*whole, "--work-dir", plain), {}, 1, "--work-dir"
    yield (*whole, "--join-token", "secret"), {}, 1, "--join-token: this is no join token"
    yield (*whole, "--join-token", f"detjoin-{'a' * 64}-{'b' * 64}"), {}, 1, f"--join-token is for a master at https://, and --master is {MASTER}"
    yield ("--end-tasks", "--work-dir", os.path.join(work, "never")), {}, 0, ""
    yield ("--version",), {}, 0, ""


with tempfile.TemporaryDirectory(prefix="det-agent-refused-") as folder:
    for args, env, status, words in rows(folder):
        r = agent(folder, *args, **env)
        if r.returncode != status or words not in r.stderr:
            bad.append(f"det-agent {' '.join(args)} {env}: {r.returncode} {r.stderr!r}, not {status} {words!r}")
print("\n".join(bad))
sys.exit(bool(bad))

#!/usr/bin/env python3
"""deploy/quickstart: up after being killed halfway, status, a second up, down leaves nothing.

That it builds is what tests/documents/run tries on a fresh Debian, and this with DET_TEST_LONG; else it lays what the tests have installed.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, TOP, processes_with, wait_until  # noqa: E402

if os.environ.get("DET_SANITIZED"):
    print("quickstart builds by itself: once is enough; skipped")
    sys.exit(77)

# Where people have it: below /tmp no task would see it, each has its own.
state = os.path.join(tempfile.mkdtemp(prefix="det-qs-", dir="/var/lib" if os.getuid() == 0 else os.path.expanduser("~")), "state")
os.chmod(os.path.dirname(state), 0o755)

MESON = f"""#!/bin/sh
case $1 in
setup) mkdir -p "$2" && echo "$5" >"$2/prefix" && touch "$2/build.ninja" ;;
install) prefix=$(cat "$3/prefix") && mkdir -p "$prefix" && cp -au {os.path.dirname(BIN)}/. "$prefix" ;;
esac
"""


def builders():
    """The environment in which what quickstart builds with lays what is installed already."""
    if os.environ.get("DET_TEST_LONG"):
        return dict(os.environ)
    where = os.path.join(os.path.dirname(state), "builders")
    os.mkdir(where)
    for name, text in ("meson", MESON), ("ninja", "#!/bin/sh\n"):
        with open(os.path.join(where, name), "w") as f:
            f.write(text)
        os.chmod(f.name, 0o755)
    return {**os.environ, "PATH": where + ":" + os.environ["PATH"]}


env = builders()


def quickstart(command, code=0):
    r = subprocess.run([os.path.join(TOP, "deploy/quickstart"), command, "--state", state], text=True, capture_output=True, cwd="/", timeout=900, env=env)
    assert r.returncode == code, (command, r.returncode, r.stdout, r.stderr)
    return r.stdout + r.stderr


def left(what=state):
    """Processes that mention the state directory."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if what in open(f"/proc/{p}/cmdline").read() and int(p) != os.getpid():
                found.append(p)
        except OSError:
            pass
    return found


def thief():
    """What a trial on that cluster gets at of its secrets: its log."""
    port = open(state + "/master.port").read().strip()
    as_admin = dict(os.environ, DET_MASTER="http://127.0.0.1:" + port, DET_USER="admin", DET_PASS_FILE=state + "/admin.password",
                    XDG_CONFIG_HOME=state + "/config")
    with tempfile.TemporaryDirectory() as d:
        shutil.copy(os.path.join(TOP, "tests/integration/thief.py"), d)
        with open(os.path.join(d, "thief.yaml"), "w") as f:
            f.write("name: thief\nentrypoint: python3 thief.py\nmax_restarts: 0\nresources: {slots_per_trial: 0}\n"
                    "environment: {environment_variables: [STATE=" + state + "]}\n"
                    "searcher: {name: single, metric: loss, max_length: {batches: 1}}\n")
        det = [state + "/prefix/bin/det"]
        out = subprocess.run([*det, "experiment", "create", d + "/thief.yaml", d], env=as_admin, text=True, capture_output=True, timeout=60, check=True).stdout
    exp = re.search(r"Created experiment (\d+)", out).group(1)
    subprocess.run([*det, "experiment", "wait", exp], env=as_admin, capture_output=True, timeout=60, check=True)
    return subprocess.run([*det, "experiment", "logs", exp], env=as_admin, text=True, capture_output=True, timeout=60, check=True).stdout


try:
    assert "not running" in quickstart("status")
    assert "nothing is there" in quickstart("down")
    assert "is not known" in quickstart("upp", 2)
    first = subprocess.Popen([os.path.join(TOP, "deploy/quickstart"), "--state", state], cwd="/", start_new_session=True, env=env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: os.path.exists(state + "/pg-data") or first.poll() is not None, 600, "PostgreSQL's directory")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    out = quickstart("up")
    best = max(float(x) for x in re.findall(r"COMPLETED.* (0\.\d+) +\d+ +(?:[\d.]+ s|\d+m \d+s)", out))
    assert best >= 0.97, out
    assert re.search(r"%s/checkpoints/[0-9a-f-]{36}" % re.escape(state), out), out
    page, token = re.search(r"the page is at +(http://127.0.0.1:\d+/)\?t=(\S+)", out).groups()
    assert "<script" in urllib.request.urlopen(page, timeout=30).read().decode() and len(token) > 20
    assert ("export PYTHONPATH=" + state + "/prefix/lib/det/python${PYTHONPATH:+:$PYTHONPATH}\n" in out) == os.path.isdir(state + "/prefix/lib/det/python/determined"), out
    assert page in quickstart("status")
    assert "master: running" in quickstart("status")
    assert "Created experiment" not in quickstart("up")
    assert os.stat(state + "/admin.password").st_mode & 0o777 == 0o600
    log = thief()
    assert "tried=all" in log and log.count("=kept") > 9 and "LOST" not in log, log
    secrets = [open(state + "/" + name).read().strip() for name in ("admin.password", "agent.token")]
    for name in set(re.findall(r"readable (\S+)", log)) - {"admin.password", "agent.token"}:  # these two are empty there
        with open(os.path.join(state, name), errors="replace") as f:
            text = f.read()
        assert not [s for s in secrets if s in text], name
    # an up that is interrupted while it trains, and a down right behind it, which leaves nothing
    os.unlink(state + "/experiment")
    second = subprocess.Popen([os.path.join(TOP, "deploy/quickstart"), "--state", state], cwd="/", start_new_session=True, env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: left(state + "/agent/tasks/") or second.poll() is not None, 600, "a task")
    assert second.poll() is None
    second.kill()  # its children live on
    second.wait()
    assert "all ended" in quickstart("down")
    assert not os.path.exists(state)
    assert not left(), left()
    wait_until(lambda: not processes_with("DET_CLUSTER_ID", state), 10, "its tasks to be gone")
finally:
    if os.path.exists(state):
        subprocess.run([os.path.join(TOP, "deploy/quickstart"), "down", "--state", state], capture_output=True)
    shutil.rmtree(os.path.dirname(state), ignore_errors=True)

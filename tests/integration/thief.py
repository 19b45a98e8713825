"""A trial on the quickstart's cluster, of test_quickstart.py: reads its secrets. STATE is the quickstart's folder. Prints NAME=kept
or NAME=LOST, and tried=all."""
import glob
import os
import socket

state = os.environ["STATE"]
files = ["admin.password", "agent.token", "pg-data/PG_VERSION", "pg-data/postgresql.conf", "pg-socket", "config", "config/det"]


def attempt(name, what, *args):
    try:
        got = what(*args)
    except OSError as e:
        print(f"{name}=kept ({e.strerror})", flush=True)
    else:
        print(f"{name}={'LOST' if got else 'kept'}", flush=True)


def read(path):
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as f:
        return f.read(100)


def connect(address):
    s = socket.socket(socket.AF_UNIX)
    s.connect(address)
    return True


def environments():
    """Of the daemons and of others' tasks: what can be read is this task's own."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        with open(path, "rb") as f:
            found += [path] if b"DET_TRIAL_ID=" + os.environ["DET_TRIAL_ID"].encode() + b"\0" not in f.read() else []
    return found


def readable():
    """What of the quickstart's files can be read, and is neither a program nor this task's."""
    own = os.path.realpath(os.path.dirname(os.environ["DET_WORKDIR"]))
    for folder, names, found in os.walk(state):
        names[:] = [n for n in names if os.path.join(folder, n) not in (state + "/prefix", state + "/build", state + "/checkpoints", own)]
        yield from (os.path.join(folder, n) for n in found if os.access(os.path.join(folder, n), os.R_OK))


for name in files:
    attempt(name.replace("/", "_"), read, os.path.join(state, name))
attempt("postgres", connect, os.path.join(state, "pg-socket", ".s.PGSQL.5432"))
attempt("postgres_file", read, os.path.join(state, "pg-socket", ".s.PGSQL.5432.lock"))
attempt("agent_socket", lambda: [connect(p) for p in glob.glob(os.path.join(state, "agent", "tasks", "*", "sock"))])
attempt("environments", environments)
for path in sorted(readable()):
    print(f"readable {os.path.relpath(path, state)}", flush=True)
print("tried=all", flush=True)

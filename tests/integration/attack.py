"""The attacker's trial of test_isolation.py: tries all that its neighbour's author would mind. Prints NAME=kept for what was
refused and NAME=LOST for what was not. VICTIM: JSON of what it found out about its neighbour, which is more than it could."""
import ctypes
import glob
import json
import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request

victim = json.loads(os.environ["VICTIM"])
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206


def attempt(name, what, *args):
    """what() does harm, or returns what it got hold of; nothing and an error are a defence."""
    try:
        got = what(*args)
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"{name}=kept ({type(e).__name__} {e})", flush=True)
    else:
        print(f"{name}={'LOST ' + repr(got)[:200] if got else 'kept'}", flush=True)


def read(path):
    with open(path, "rb") as f:
        return f.read(4096)


def write(path):
    with open(path, "ab") as f:
        f.write(b"x")
    return "written"


def others_of(name):
    """Processes whose /proc file can be read and is not this task's own."""
    found = []
    for path in set(glob.glob(f"/proc/[0-9]*/{name}")) - {f"/proc/{os.getpid()}/{name}"}:
        try:
            text = read(path)
        except OSError:
            continue
        if victim["alloc"].encode() in text or victim["word"].encode() in text:
            found.append(path)
    return found


def ptrace(request, pid):
    if libc.ptrace(request, pid, None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return "attached"


def connect(address):
    s = socket.socket(socket.AF_UNIX)
    s.connect(address)
    return "connected"


def api(method, path, body=None):
    r = urllib.request.Request(os.environ["DET_MASTER"] + "/api/v1" + path, method=method, data=json.dumps(body or {}).encode(),
                               headers={"Grpc-Metadata-x-allocation-token": "Bearer " + os.environ["DET_SESSION_TOKEN"],
                                        "Authorization": "Bearer " + os.environ["DET_SESSION_TOKEN"]})
    return urllib.request.urlopen(r, timeout=20).status


def shell(command):
    return subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True, timeout=120).stdout.strip()


# -- its processes ------------------------------------------------------------------------------------
attempt("environ", others_of, "environ")
attempt("cmdline", others_of, "cmdline")
for i, pid in enumerate(victim["pids"]):
    attempt(f"signal{i}", lambda pid: os.kill(pid, 0) or "found", pid)
    attempt(f"attach{i}", ptrace, PTRACE_ATTACH, pid)
    attempt(f"memory{i}", read, f"/proc/{pid}/mem")
attempt("init_signal", lambda: os.kill(1, signal.SIGKILL))  # where it may be sent it does nothing, or all would end here
attempt("init_seize", ptrace, PTRACE_SEIZE, 1)
attempt("init_environ", read, "/proc/1/environ")
attempt("init_root", os.listdir, "/proc/1/root/")
attempt("init_mounts", shell, "nsenter --target 1 --mount true && echo entered")
attempt("parent", lambda: os.getppid())
# -- its files ----------------------------------------------------------------------------------------
for name in ("spec.json", "log.spool", "task.log", "state.json", "work/secret", "info/trial.json", "run/progress.0", "run/reports.0", "tmp"):
    attempt("file_" + name.replace("/", "_"), read, os.path.join(victim["dir"], name))
attempt("its_socket", connect, os.path.join(victim["dir"], "sock"))
own = os.path.dirname(os.environ["DET_WORKDIR"])
attempt("own_socket", connect, os.path.join(own, "sock"))
attempt("own_spec", read, os.path.join(own, "spec.json"))
attempt("own_spool", write, os.path.join(own, "log.spool"))
attempt("neighbours", lambda: [n for n in os.listdir(os.path.dirname(own)) if n != os.path.basename(own)])
attempt("cache_read", os.listdir, victim["cache"])
attempt("cache_write", write, os.path.join(victim["cache"], "x.so"))
attempt("cache_squat", lambda: os.makedirs(victim["squat"]) or "made")
attempt("cache_move", lambda: os.rename(victim["cache"], victim["cache"] + ".gone") or "moved")
attempt("checkpoint_write", write, os.path.join(victim["checkpoint"], "metadata.json"))
attempt("checkpoint_remove", lambda: os.unlink(os.path.join(victim["checkpoint"], "metadata.json")) or "removed")
attempt("checkpoint_move", lambda: os.rename(victim["checkpoint"], victim["checkpoint"] + ".gone") or "moved")
attempt("store_marker", lambda: os.unlink(os.path.join(os.path.dirname(victim["checkpoint"]), ".det-store")) or "removed")
# -- the cluster's secrets ----------------------------------------------------------------------------
for i, path in enumerate(victim["secrets"]):
    attempt(f"secret{i}", read, path)
attempt("postgres", connect, victim["postgres"])
for i, command in enumerate(["umount /tmp && ls -A /tmp", "umount -l /proc && ls -A /proc", "umount -R " + os.path.dirname(own)]):
    attempt(f"uncover{i}", shell, "unshare --user --map-root-user --mount sh -c '" + command + "'")
attempt("root_by_sudo", shell, "sudo -n id -u; su -c 'id -u' </dev/null")
attempt("device", read, "/dev/mem")
# -- what listens -------------------------------------------------------------------------------------
for name in shell("sed -n 's/.* @/@/p' /proc/net/unix").split():
    if name.startswith("@det"):
        attempt("abstract_" + name.replace("=", "_"), connect, "\0" + name[1:])
# -- its trial, by the API ----------------------------------------------------------------------------
trial, exp = victim["trial"], victim["exp"]
attempt("api_kill", api, "POST", f"/experiments/{exp}/kill")
attempt("api_pause", api, "POST", f"/experiments/{exp}/pause")
attempt("api_report", api, "POST", f"/trials/{trial}/validation_metrics",
        {"trialId": trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 0}}})
attempt("api_operation", api, "POST", f"/trials/{trial}/searcher/completed_operation",
        {"op": {"length": "1"}, "searcherMetric": 0})
attempt("api_exit", api, "POST", f"/trials/{trial}/early_exit", {"reason": "EXITED_REASON_INVALID_HP"})
attempt("api_checkpoints", api, "DELETE", "/checkpoints", {"checkpointUuids": [os.path.basename(victim["checkpoint"])]})
attempt("api_context", api, "GET", f"/tasks/{victim['alloc'].rsplit('.', 1)[0]}/context_directory")
# -- all that it can signal, at last ------------------------------------------------------------------
attempt("everybody", lambda: os.kill(-1, signal.SIGKILL))
print("tried=all", flush=True)

#!/usr/bin/env python3
"""Row 21: collection killed at each of its steps, pins, purges and undos that meet, deletion against resumption.

A checkpoint is deleted, taken back and purged; at each step the collecting process (by a failpoint) or the master is
killed. Afterwards the journal must have ended: files and rows agree, what was taken back has its very bytes, and no
other checkpoint was touched (I6).
"""
import http.client
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, ApiError, Cluster, wait_until  # noqa: E402
from faults import Row  # noqa: E402
from gc_exp import aside, checkpoints, config, digest, keep, run, there  # noqa: E402

# what is asked of the collecting process -> where it is killed
STEPS = {"delete": ("gc.before_delete", "quarantine.before_rename", "quarantine.before_fsync", "gc.before_tell"),
         "undelete": ("gc.before_delete", "quarantine.before_rename", "quarantine.before_fsync", "gc.before_tell"),
         "purge": ("gc.before_delete", "storage.before_hide", "quarantine.before_remove", "gc.before_tell")}
MASTER = ("driver.before_commit", "driver.after_commit", "driver.before_perform", "driver.after_perform")


def restart(c, name, failpoint=None):
    c.stop(name)
    c.env.pop("DET_FAILPOINTS", None)
    if failpoint:
        c.env["DET_FAILPOINTS"] = failpoint
    try:
        c.start_master() if name == "master" else c.start_agent(0)
    except AssertionError:  # it may strike on the way
        if not failpoint or c.procs[name].poll() != -signal.SIGKILL:
            raise
    finally:
        c.env.pop("DET_FAILPOINTS", None)
    if failpoint and name == "master":
        return  # it may be gone before it is asked
    wait_until(lambda: [a for a in c.api_patiently("GET", "/agents")["agents"] if a["enabled"]], 60, "the agent")


def ask(c, what, key):
    """Puts a step into the journal. The master may be killed by it: then the request is simply made again."""
    if what == "purge":
        c.sql(f"UPDATE checkpoints SET gc_until = now() WHERE uuid = '{key}' AND gc_step = 'rest'")
        return
    method, path = ("DELETE", "/checkpoints") if what == "delete" else ("POST", "/checkpoints/undelete")
    try:
        c.api(method, path, {"checkpointUuids": [key]})
    except (OSError, http.client.HTTPException, ApiError):
        pass


def done(c, what, key):
    state = c.sql(f"SELECT state || coalesce(gc_step, '-') FROM checkpoints WHERE uuid = '{key}'")
    if what == "delete":
        return state == "DELETEDrest" and aside(c, key) and not there(c, key)
    if what == "undelete":
        return state == "COMPLETED-" and there(c, key) and not aside(c, key)
    return state == "DELETED-" and not there(c, key) and not aside(c, key)


def died(c):
    """A collecting process was killed: the task log says so."""
    return int(c.sql("SELECT count(*) FROM allocations WHERE kind = 'CHECKPOINT_GC' AND state = 'TERMINATED' AND status_code <> 0"))


def round_of(row, c, what, key, failpoint):
    before = died(c)
    in_master = failpoint in MASTER
    if in_master:
        restart(c, "master", f"{failpoint}=crash@{row.rng.randint(4, 12)}")
    else:
        restart(c, "agent-0", failpoint + "=crash@1")
    ask(c, what, key)
    if in_master:
        wait_until(lambda: c.procs["master"].poll() is not None or done(c, what, key), 40, f"{what}: the master's end or the deed")
        struck = c.procs["master"].poll() is not None
    else:
        if what == "purge":
            restart(c, "master")  # looks at once for what is over
        wait_until(lambda: died(c) > before, 40, f"{what}: a collecting process killed at {failpoint}")
        struck = True
        restart(c, "agent-0")
    if struck:
        row.fault(f"{what}: killed at {failpoint}")
    restart(c, "master")
    if not done(c, what, key):
        ask(c, what, key)  # a killed master may not have heard of it; else this changes nothing
        restart(c, "master") if what == "purge" else None
    wait_until(lambda: done(c, what, key), 60, f"{what} to be done after a kill at {failpoint}")


def walk(row, c, exp, key, points):
    """Delete, take back, delete, purge: each with its kill."""
    others = {k: digest(c, k) for k, s in checkpoints(c, exp).values() if k != key and s == "COMPLETED"}
    bytes_before = digest(c, key)
    round_of(row, c, "delete", key, points[0])
    round_of(row, c, "undelete", key, points[1])
    row.check(digest(c, key) == bytes_before, f"checkpoint {key} came back with other bytes")
    round_of(row, c, "delete", key, points[0])
    round_of(row, c, "purge", key, points[2])
    for k, d in others.items():
        row.check(digest(c, k) == d, f"checkpoint {k} was touched")


def meet(row, c, exp):
    """A purge and an undo at the same time: the checkpoint is back whole, or gone and the undo refused."""
    key = next(k for k, s in checkpoints(c, exp).values() if s == "COMPLETED")
    before, said = digest(c, key), []
    ask(c, "delete", key)
    wait_until(lambda: done(c, "delete", key), 40, "the deletion")

    def undo():
        try:
            c.api("POST", "/checkpoints/undelete", {"checkpointUuids": [key]})
            said.append(True)
        except ApiError:
            said.append(False)

    t = threading.Thread(target=undo)
    t.start()
    ask(c, "purge", key)
    t.join()
    row.fault("an undo met a purge")
    restart(c, "master")
    wait_until(lambda: done(c, "undelete" if said[0] else "purge", key), 60, f"the one that won (undo: {said[0]})")
    row.check(not said[0] or digest(c, key) == before, f"checkpoint {key} came back with other bytes")


def resume(row, c, rounds):
    """Deleting the latest while its trial is paused and activated: always refused, and the trial goes on from it."""
    exp = c.create(config(batches=100000), "examples/digits")
    trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
    for _ in range(rounds):
        seen = len(checkpoints(c, exp))
        wait_until(lambda: len(checkpoints(c, exp)) > seen, 60, "another checkpoint")
        c.api("POST", f"/experiments/{exp}/pause", {})
        wait_until(c.slots_free, 60, "the pause")
        now = checkpoints(c, exp)
        t = threading.Thread(target=lambda: c.api("POST", f"/experiments/{exp}/activate", {}))
        t.start()
        for steps in sorted(now):
            try:
                c.api("DELETE", "/checkpoints", {"checkpointUuids": [now[steps][0]]})
                row.check(steps != max(now), f"the latest checkpoint of the live trial {trial} was deleted")
            except ApiError as e:
                row.check(e.status == 400, f"deletion answered {e}")
        t.join()
        row.fault("deletions during a resumption")
        row.check(there(c, now[max(now)][0]), "the latest checkpoint's files are gone")
    c.api("POST", f"/experiments/{exp}/kill", {})
    c.wait(exp, state="STATE_CANCELED")
    row.check(c.trials(exp)[0]["restarts"] == 0, "the trial was restarted: it could not resume")


def main():
    row = Row(21, __doc__, rounds=2, rounds_all=12)
    with open(os.path.join(BIN, "det-task"), "rb") as f:
        if b"quarantine.before_rename" not in f.read():
            row.skip("the build has no failpoints (-Dfailpoints=true)")
    with Cluster(slots=1) as c:
        c.login()
        for n in row.numbers():
            pick = [row.rng.choice(STEPS[w] + MASTER) for w in ("delete", "undelete", "purge")]
            if row.all:
                pick = [(STEPS[w] + MASTER)[n % 8] for w in ("delete", "undelete", "purge")]
            exp = run(c, **keep(latest=9))
            row.attempt(n, walk, row, c, exp, sorted(k for k, _ in checkpoints(c, exp).values())[n % 6], pick)
        row.attempt(row.wanted, meet, row, c, exp)
        row.attempt(row.wanted + 1, resume, row, c, 10 if row.all else 2)
    sys.exit(row.finish())


main()

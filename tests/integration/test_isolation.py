#!/usr/bin/env python3
"""People's tasks on one host are kept apart. usage: test_isolation.py NAME   (a function test_NAME below)"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import people  # noqa: E402
from cluster import BIN, SLOWER, Cluster, alive, processes_with, wait_until  # noqa: E402
from gc_exp import config, settled  # noqa: E402

FIRST = 1900000000  # of the agents' default range, and the group that all share


def command(c, entrypoint, state="STATE_COMPLETED", files=None, **over):
    """What a command of no slots prints: {name: text} of its lines "name=text", and its whole log."""
    text = json.dumps({"name": "command", "entrypoint": entrypoint, "max_restarts": 0, "resources": {"slots_per_trial": 0},
                       "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}, **over})
    exp = c.create(text, files)
    c.wait(exp, state, 60)
    log = c.logs(c.trials(exp)[0]["id"])
    said = [line.split("|| ", 1)[-1] for line in log.splitlines()]
    return dict(line.split("=", 1) for line in said if "=" in line), log


def digits(c, **over):
    exp = c.create(config(batches=40, **over), "examples/digits")
    c.wait(exp)
    return exp, [uuid for uuid, state in settled(c, exp).values() if state == "COMPLETED"]


def last_state(c, exp):
    uuid = max(settled(c, exp).items())[1][0]
    with open(c.path("checkpoints", uuid, "state_dict.pth"), "rb") as f:
        return f.read()


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def store(c):
    """As an administrator makes it: whoever runs tasks may add to it, and take away what is their own."""
    os.chown(c.path("checkpoints"), 0, FIRST)
    os.chmod(c.path("checkpoints"), 0o3775)


def test_uids():
    """Each user's tasks have a uid of their own, made of the user's number; all share a group."""
    with Cluster(slots=1, apart=True) as c:
        ids = people.add(c, "ann", "bob")
        look = "echo uid=$(id -u); echo gid=$(id -g); echo groups=$(id -G); echo name=$USER; touch x; echo mine=$(stat -c %u x); touch $HOME/y && echo home=good"
        for name, number in ids.items():
            with people.acting(c, name):
                said, log = command(c, look)
            uid = str(FIRST + number)
            assert said["uid"] == said["mine"] == uid and said["gid"] == said["groups"] == str(FIRST), log
            assert said["name"] == f"det{number}" and said["home"] == "good", log
        c.api("PATCH", f"/users/{ids['bob']}", {"agentUserGroup": {"agentUid": 65534, "agentUser": "nobody", "agentGid": 65534, "agentGroup": "nogroup"}})
        with people.acting(c, "bob"):
            said, log = command(c, look)
        assert said["uid"] == "65534" and said["gid"] == "65534" and said["groups"] == f"65534 {FIRST}" and said["name"] == "nobody", log
        c.api("PATCH", f"/users/{ids['bob']}", {"agentUserGroup": {"agentUid": FIRST + ids["ann"], "agentUser": "x", "agentGid": 1, "agentGroup": "x"}})
        with people.acting(c, "bob"):
            exp = c.create(json.dumps({"name": "command", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}), None)
        wait_until(lambda: c.trials(exp) and "another user's" in c.logs(c.trials(exp)[0]["id"]), 30, "the agent to refuse another user's uid")
        c.api("POST", f"/experiments/{exp}/kill", {})


def test_privileges():
    """A task has no capability and no way to one."""
    with Cluster(slots=1, apart=True) as c:
        people.add(c, "ann")
        with people.acting(c, "ann"):
            said, log = command(c, "sed -n 's/:[[:space:]]*/=/p' /proc/self/status")
        assert said["NoNewPrivs"] == "1", log
        assert all(int(said["Cap" + kind], 16) == 0 for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")), log


SLEEPER = {"name": "sleeper", "entrypoint": "echo asleep; exec sleep 1001", "max_restarts": 0, "resources": {"slots_per_trial": 0},
           "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}


def sleeper(c, name):
    """A task of somebody's that runs; its experiment and the host's ids of its processes."""
    with people.acting(c, name):
        exp = c.create(json.dumps(SLEEPER), None)
        wait_until(lambda: c.trials(exp) and "asleep" in c.logs(c.trials(exp)[0]["id"]), 30, "the sleeper")
    return exp, processes_with(f"DET_EXPERIMENT_ID={exp}\0", c.path("agent-0"))


def test_namespaces():
    """A task sees its own processes and temporary files only, and what it leaves there goes with it; det-task's death ends it."""
    with Cluster(slots=1, apart=True) as c:
        people.add(c, "ann", "bob")
        exp, victims = sleeper(c, "bob")
        look = ("for p in /proc/[0-9]*; do echo process=$(tr '\\0' ' ' <$p/cmdline); done | sort -u; echo first=$(cat /proc/1/comm);"
                "touch /tmp/left /var/tmp/left /dev/shm/left; echo shm=$(ls /dev/shm); echo tmp=$(ls /tmp | grep -v ^det-test); echo tmpdir=${TMPDIR:-none}; echo tasks=$(ls ../..);"
                "echo info=$(ls /run/determined/info | head -1); echo here=$(pwd -P)")
        with people.acting(c, "ann"):
            said, log = command(c, look)
        assert "sleep 1001" not in log and said["first"] == "det-init", log
        assert said["shm"] == said["tmp"] == "left" and said["info"], log
        assert said["tmpdir"] == "none", "the agent's, which lies below /tmp, is not there"
        assert said["here"].startswith(c.path("agent-0", "tasks")) and said["tasks"] in said["here"], log
        assert not any(os.path.exists(d + "/left") for d in ("/tmp", "/var/tmp", "/dev/shm"))
        assert all(alive(p) for p in victims)
        spaces = {os.readlink(f"/proc/{p}/ns/{kind}") for p in victims for kind in ("pid", "mnt", "ipc")}
        assert not spaces & {os.readlink(f"/proc/self/ns/{kind}") for kind in ("pid", "mnt", "ipc")}
        _, log = command(c, "cat /tmp/nowhere/train.csv", "STATE_ERROR")
        assert "Of the line above: a task has a /tmp of its own" in log and "code 1; a task has a /tmp of its own" in log, log
        c.wait(denied := program(c, "open('/root/train.csv')", max_restarts=0), "STATE_ERROR", 60)
        reason = c.det("experiment", "describe", str(denied)).stdout
        said, log = command(c, "test -e /root/data || echo there=no", data={"train": {"dir": "/root/data"}, "tmp": "/tmp", "none": "/nonexistent/x"})
        unread = "data.train.dir: /root/data cannot be read: this task runs as the account det1 (uid 1900000001), which may not enter /root; to its code"
        is_late = "gave no answer within 1 s" in log  # on a machine that is slow
        assert said["there"] == "no" and (is_late or 0 < log.find(unread) < log.find("there=no") and log.count("cannot be read") == 1), log
        closed = c.create(json.dumps({**SLEEPER, "environment": {"python": "/root/bin/python3"}}), None)
        closed_to = "/root/bin/python3: this trial runs as the account of uid 1900000001, which may not enter /root"
        wait_until(lambda: closed_to in c.logs(c.trials(closed)[0]["id"]), 60, "an interpreter that its account cannot reach")
        c.api("POST", f"/experiments/{closed}/kill")
        assert "PermissionError" in reason and "run as the account det1 (uid 1900000001), which must be able to read" in reason, reason
        task = next(int(p) for p in os.listdir("/proc") if p.isdigit() and command_line(p).startswith(b"det-task\0" + c.path("agent-0").encode()))
        os.kill(task, signal.SIGKILL)
        wait_until(lambda: not any(alive(p) for p in victims), 10, "the end of the task's processes with their det-task")
        c.api("POST", f"/experiments/{exp}/kill", {})
        c.wait(exp, "STATE_CANCELED", 60)


BOMB = """import os, time
for n in range(1000):  # the test's own limit
    try:
        if os.fork() == 0:
            time.sleep(1001)
    except OSError as e:
        break
print(f"forks={n}", flush=True)
time.sleep(1001)
"""


def program(c, text, **over):
    """A trial in Python, as a command of no slots."""
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "run.py"), "w") as f:
            f.write(text)
        return c.create(json.dumps({**SLEEPER, "name": "program", "entrypoint": ["python3", "run.py"], **over}), d)


def test_bomb():
    """Whoever forks without end comes to a limit of their own; others' tasks have room, and a kill ends all of it."""
    with Cluster(slots=2, apart=True, agent_args=["--slot-pids", "64"]) as c:
        people.add(c, "ann", "bob")
        _, victims = sleeper(c, "bob")
        with people.acting(c, "ann"):
            exp = program(c, BOMB)
        trial = wait_until(lambda: c.trials(exp), 30, "the trial")[0]["id"]
        forks = wait_until(lambda: [line for line in c.logs(trial).splitlines() if "forks=" in line], 60, "the bomb's last fork")
        assert 20 <= int(forks[0].split("forks=")[1]) < 128, forks  # of a task, or where no cgroup counts them of two slots' person
        with people.acting(c, "bob"):
            said, log = command(c, "for i in $(seq 30); do sleep 1001 & done; echo room=$i")
        assert said["room"] == "30", log
        c.api("POST", f"/experiments/{exp}/kill", {})
        wait_until(lambda: not c.processes(exp), 10, "the end of the bomb")
        assert all(alive(p) for p in victims)
        for word in ("x", "-1", "15", "4194305"):
            r = subprocess.run([BIN + "/det-agent", "--master", "http://127.0.0.1:1", "--token-file", "/dev/null", "--slot-pids", word], capture_output=True, text=True)
            assert r.returncode == 2 and "--slot-pids" in r.stderr, r


HUNGRY = """import os
print("group=" + next(line.split("::")[1].strip() for line in open("/proc/self/cgroup") if line.startswith("0::")), flush=True)
kept = []
if os.fork() > 0:
    os.wait()
    print("outlived its child", flush=True)
for n in range(300):  # the test's own limit
    kept.append(b"x" * (1 << 20))
print("had them all", flush=True)
"""


def test_memory():
    """A task that passes its memory limit ends as a whole, says why, and uses a restart up; another's does not notice."""
    with Cluster(slots=1, apart=True) as c:
        with open(c.path("agent-0.log")) as f:
            if "host's memory" in f.read():
                with Cluster(agents=0) as d:
                    r = subprocess.run([BIN + "/det-agent", "--master", f"http://127.0.0.1:{d.port}", "--token-file", d.path("agent.token"), "--work-dir",
                                        d.path("agent-0"), "--slot-memory-mib", "64"], capture_output=True, text=True, timeout=60 * SLOWER)
                assert r.returncode == 1 and "--slot-memory-mib 64: no task's memory can be limited on this host" in r.stderr, r
                print("skip: this host has no cgroup v2 that limits memory")
                return
    with Cluster(slots=1, apart=True, agent_args=["--slot-memory-mib", "64"]) as c:
        people.add(c, "ann", "bob")
        _, victims = sleeper(c, "bob")
        with people.acting(c, "ann"):
            exp = program(c, HUNGRY, max_restarts=1)
            c.wait(exp, "STATE_ERROR", 120)
            trial = c.trials(exp)[0]
            log, why = c.logs(trial["id"]), c.det("why", str(trial["id"])).stdout
        assert trial["restarts"] == 1 and "outlived its child" not in log and "had them all" not in log, (trial, log)
        for text in (log, why):
            assert "past its limit of 64 MiB" in text, text
        assert all(alive(p) for p in victims)
        groups = {line.split("group=")[1] for line in log.splitlines() if "group=" in line}
        assert len(groups) == 2 and not any(os.path.exists("/sys/fs/cgroup" + g) for g in groups), groups


def attack(c, exp, victims, kept, owner=None):
    """What attack.py is told: who does not run on this cluster finds out less."""
    trial = c.trials(exp)[0]["id"]
    alloc = c.api("GET", f"/trials/{trial}")["trial"]["taskId"] + ".1"
    found = next(d for d in os.listdir(c.path("agent-0", "tasks")) if d.startswith(alloc))
    with open(f"/proc/{victims[0]}/environ", "rb") as f:
        uid = os.fstat(f.fileno()).st_uid
    return {"exp": exp, "trial": trial, "alloc": found, "pids": victims, "word": "sleep 1001".replace(" ", chr(0)),
            "dir": c.path("agent-0", "tasks", found), "cache": c.path("cache", f"user-{owner}" if owner else "models", f"models-{uid}" if owner else f"{uid}"),
            "squat": c.path("cache", f"user-{owner + 1}" if owner else "models", f"models-{uid + 1}" if owner else f"{uid + 1}"), "checkpoint": c.path("checkpoints", kept),
            "secrets": [c.path("admin.password"), c.path("agent.token"), c.path("agent-0.token"), c.path("pg-data", "PG_VERSION")],
            "postgres": c.path("pg-socket", ".s.PGSQL.5432")}


def test_attack():
    """One person's trial gets at nothing of another's, nor at the cluster's own secrets: attack.py tries."""
    with Cluster(slots=1, apart=True) as c, tempfile.TemporaryDirectory() as d:
        store(c)
        os.chmod(c.path("cache"), 0o1777)  # as an agent makes its own
        ids = people.add(c, "ann", "bob")
        with people.acting(c, "bob"):
            _, kept = digits(c)
        exp, victims = sleeper(c, "bob")
        assert os.listdir(c.path("cache", "models", str(FIRST + ids["bob"]))), "what bob's trial compiled lies elsewhere"
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "attack.py"), d)
        with people.acting(c, "ann"):
            said, log = command(c, ["python3", "attack.py"], files=d,
                                environment={"environment_variables": ["VICTIM=" + json.dumps(attack(c, exp, victims, kept[0]))]})
        assert said.get("tried") == "all" and len(said) > 50, log
        assert not [line for line in log.splitlines() if "LOST" in line], "\n".join(line for line in log.splitlines() if "LOST" in line)
        assert all(alive(p) for p in victims)
        c.api("POST", f"/experiments/{exp}/kill", {})
        c.wait(exp, "STATE_CANCELED", 60)


def test_ports():
    """A stranger on the host talks to the ports of a trial's ranks: they go on, to the same bits."""
    with Cluster(slots=2, apart=True) as c, tempfile.TemporaryDirectory() as d:
        store(c)
        people.add(c, "ann", "bob")
        ranks = {"resources": {"slots_per_trial": 2}}
        with people.acting(c, "bob"):
            alone, _ = digits(c, **ranks)
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "attack_ports.py"), d)
        with people.acting(c, "ann"):
            text = json.dumps({"name": "ports", "entrypoint": ["python3", "attack_ports.py"], "max_restarts": 0,
                               "resources": {"slots_per_trial": 0},
                               "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}})
            attacker = c.create(text, d)
        wait_until(lambda: c.trials(attacker) and "begun=yes" in c.logs(c.trials(attacker)[0]["id"]), 60, "the stranger")
        with people.acting(c, "bob"):
            among, _ = digits(c, **ranks)
        c.wait(attacker, "STATE_COMPLETED", 90)
        log = c.logs(c.trials(attacker)[0]["id"])
        said = dict(line.split("|| ", 1)[-1].split("=", 1) for line in log.splitlines() if "=" in line.split("|| ", 1)[-1])
        assert said.get("tried") == "all" and int(said["ports"]) > 0 and int(said["tries"]) > 50, log
        assert c.trials(among)[0]["restarts"] == 0, c.logs(c.trials(among)[0]["id"])
        assert last_state(c, among) == last_state(c, alone), "other bits than alone"


def test_not_root():
    """The same where the agent is not root: namespaces keep tasks apart, but what the account may do to the store all may."""
    shared = {"checkpoint_write", "checkpoint_remove", "checkpoint_move", "store_marker"}
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="det-test-") as d, tempfile.TemporaryDirectory() as context:
        hide = ":".join(os.path.join(d, name) for name in ("pg-socket", "pg-data", "admin.password"))
        with Cluster(slots=1, apart=True, agent_uid=FIRST + 1, keep=d, agent_args=["--hide", hide]) as c:
            ids = people.add(c, "ann", "bob")
            with people.acting(c, "bob"):
                _, kept = digits(c)
            exp, victims = sleeper(c, "bob")
            told = attack(c, exp, victims, kept[0], ids["bob"])
            assert os.path.isdir(told["cache"]) and os.path.isdir(told["dir"]), told
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "attack.py"), context)
            with people.acting(c, "ann"):
                said, log = command(c, ["python3", "attack.py"], files=context, environment={"environment_variables": ["VICTIM=" + json.dumps(told)]})
            lost = {line.split("|| ")[1] for line in log.splitlines() if "=LOST" in line}
            assert said.get("tried") == "all" and {line.split("=")[0] for line in lost} <= shared, lost
            assert all(alive(p) for p in victims)
            with open(c.path("agent-0.log")) as f:
                assert "not root: tasks do not see each other, but all can" in f.read()
            c.api("POST", f"/experiments/{exp}/kill", {})
            c.wait(exp, "STATE_CANCELED", 60)


def test_shared():
    """Checkpoints are their owner's; others read and continue them, each one's are collected, and TensorBoard's files have room."""
    with Cluster(slots=1, apart=True) as c:
        store(c)
        ids = people.add(c, "ann", "bob")
        with people.acting(c, "ann"):
            of_ann, kept = digits(c)
            _, to_go_on = digits(c)
        assert kept and all(os.stat(c.path("checkpoints", k)).st_uid == FIRST + ids["ann"] for k in kept)
        assert os.stat(c.path("checkpoints", kept[0])).st_gid == FIRST
        marker = os.stat(c.path("checkpoints", ".det-store"))
        assert marker.st_uid == 0, "who came first could take the marker away, and with it the store of all"
        with people.acting(c, "bob"):
            of_bob, more = digits(c, searcher={"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 80},
                                               "source_checkpoint_uuid": to_go_on[-1]})
        assert more and all(os.stat(c.path("checkpoints", k)).st_uid == FIRST + ids["bob"] for k in more)
        place = c.path("checkpoints", c.api("GET", "/master")["clusterId"], "tensorboard", "experiment")
        for exp, name in ((of_ann, "ann"), (of_bob, "bob")):
            files = [os.path.join(d, f) for d, _, names in os.walk(os.path.join(place, str(exp))) for f in names]
            assert files and all(os.stat(f).st_uid == FIRST + ids[name] for f in files), (name, files)
        for exp, name, keys in ((of_bob, "bob", more), (of_ann, "ann", kept)):
            with people.acting(c, name):
                c.api("DELETE", f"/experiments/{exp}")
            wait_until(lambda: not any(os.path.exists(c.path("checkpoints", k)) for k in keys), 30, f"{name}'s checkpoints to be deleted")
            wait_until(lambda: not os.path.exists(os.path.join(place, str(exp))), 30, f"{name}'s TensorBoard files to be deleted")


def test_new_store():
    """A store that a user's first trial makes is for all: nobody of them can take it away from the others."""
    with Cluster(slots=1, apart=True) as c:
        ids = people.add(c, "ann", "bob")
        os.makedirs(c.path("scratch"))
        os.chmod(c.path("scratch"), 0o1777)
        where = {"checkpoint_storage": {"type": "shared_fs", "host_path": c.path("scratch"), "storage_path": "store"}}
        for name in ids:
            with people.acting(c, name):
                _, keys = digits(c, **where)
            assert keys and all(os.stat(c.path("scratch", "store", k)).st_uid == FIRST + ids[name] for k in keys)
        made = os.stat(c.path("scratch", "store"))
        assert (made.st_uid, made.st_gid, made.st_mode & 0o7777) == (0, FIRST, 0o3775), made
        assert os.stat(c.path("scratch", "store", ".det-store")).st_uid == 0


if __name__ == "__main__":
    if os.getuid() != 0:
        print("skip: it takes root")
    for test in sys.argv[1:] if os.getuid() == 0 else []:
        globals()["test_" + test]()
        print(f"ok   {test}", flush=True)

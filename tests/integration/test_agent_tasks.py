#!/usr/bin/env python3
"""det-agent and det-task with real processes, under a stand-in for the master."""
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, KILL_MAX_S, alive, processes_with, wait_until  # noqa: E402
from fakemaster import Agent, FakeMaster, context  # noqa: E402
from wheels import Index, wheel  # noqa: E402

# Hides in every way: new session, double fork, no environment, holds standard output, ignores SIGTERM.
HIDER = r"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def hide(n):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if n == 0:
                os.execve("/bin/sleep", ["hider-" + os.environ["DET_CONTAINER_ID"], "1000"], {})
            time.sleep(1000)
        os._exit(0)
for i in range(3):
    hide(i)
print("hidden", flush=True)
time.sleep(1000)
"""


def left(container):
    return processes_with(f"DET_CONTAINER_ID={container}") + [
        int(p) for p in os.listdir("/proc") if p.isdigit() and cmdline(p).startswith(f"hider-{container}\0".encode())]


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


def task_pid(alloc):
    for p in os.listdir("/proc"):
        if p.isdigit():
            c = cmdline(p)
            if c.startswith(b"det-task\0") and c.rstrip(b"\0").endswith(b"/" + alloc.encode()):
                return int(p)
    return 0


def server(a):
    """Id of the process that forks this agent's det-tasks, or 0."""
    with open(f"/proc/{a.proc.pid}/task/{a.proc.pid}/children") as f:
        return next((int(p) for p in f.read().split() if cmdline(p).startswith(b"det-task\0--serve\0")), 0)


def gone(container):
    wait_until(lambda: not left(container), 5, "an empty process tree")


def dropped(a, alloc):
    wait_until(lambda: not os.path.exists(a.path("work", "tasks", alloc)), 10, "the task's directory to go")


def test_command(m, a):
    files = {"train.sh": 'echo "hello $RANK $DET_TRIAL_ID"; echo "[rank=3] WARNING: odd" >&2; printf "a\\rb"; env | grep -c DET_USER_TOKEN; exit 3\n'}
    c = m.start("1.cmd.1", "sh train.sh", files, env={"DET_TRIAL_ID": "77"})
    e = m.wait_exit("1.cmd.1")
    assert e["reason"] == "exited" and e["code"] == 3 and "exited with code 3" in e["text"], e
    assert m.wait_log("hello  77")["stdtype"] == "stdout"
    odd = m.wait_log("odd")
    assert odd["rank_id"] == 3 and odd["level"] == "LOG_LEVEL_WARNING" and odd["log"] == "odd\n" and odd["stdtype"] == "stderr", odd
    m.wait_log("b0")
    assert [x["log"] for x in m.logs if x["log"] in ("a\n", "b0\n")] == ["a\n", "b0\n"], m.logs
    assert all(x["task_id"] == "1.cmd" and x["allocation_id"] == "1.cmd.1" and x["container_id"] == c and x["agent_id"] == "a1" for x in m.logs)
    gone(c)
    dropped(a, "1.cmd.1")


def test_where_the_master_is(m, a):
    """As the agent was told, a task is told in full: it may run elsewhere, and knows none of our defaults."""
    a.kill(15)
    open(a.path("master.pem"), "w").close()
    there = os.getcwd()
    os.chdir(a.dir)
    try:
        a.args = ["--master", f"127.0.0.1:{m.port}", "--cert-file", "master.pem"]
        a.run()
    finally:
        os.chdir(there)
    m.wait_connected(2)
    m.start("1.where.1", ["sh", "-c", "echo $DET_MASTER $DET_MASTER_ADDR $DET_MASTER_PORT $DET_MASTER_CERT_FILE"])
    m.wait_exit("1.where.1")
    m.wait_log(f"http://127.0.0.1:{m.port} 127.0.0.1 {m.port} {os.path.realpath(a.path('master.pem'))}")
    a.kill(15)
    a.args = ["--master", f"http://[::1]:{m.port}"]
    a.run()
    wait_until(lambda: "agent a1 at ::1:" in open(a.path("agent.log")).read(), 10, "the address towards such a master")


def test_a_certificate_that_the_account_cannot_read(m, a):
    """Its ranks could say nothing to the master: the start fails with the reason, which the agent's log has too."""
    if os.geteuid() != 0:
        return
    a.kill(15)
    pem = a.path("master.pem")
    open(pem, "w").close()
    os.chmod(a.dir, 0o755)
    a.args = ["--cert-file", pem, "--task-user", "nobody"]
    os.chmod(pem, 0o600)
    a.run()
    m.wait_connected(2)
    m.start("1.closed.1", ["sh", "-c", "echo began"])
    e = m.wait_exit("1.closed.1")
    assert e["reason"] == "start_failed" and f"nobody, whom the task runs as, cannot read the master's certificate {pem}" in e["text"], e
    assert "cannot read the master's certificate" in open(a.path("agent.log")).read() and "began" not in m.text()
    os.chmod(pem, 0o644)
    m.start("1.open.1", ["sh", "-c", "echo began"])
    e = m.wait_exit("1.open.1")
    assert e["reason"] == "exited" and e["code"] == 0, e


def test_clocks_that_differ(m, a):
    """The agent tells its hello's master how far its clock is ahead, without waiting for a beat; its doctor warns."""
    def told():
        return m.clock and m.clock["least_us"] <= -m.ahead_s * 1000000 <= m.clock["most_us"]
    args = [BIN + "/det-agent", "doctor", "--master", f"http://127.0.0.1:{m.port}", "--token-file", a.path("token"), "--slots", "1",
            "--work-dir", a.path("work"), "--task-user", ""]
    for ahead_s, says in ((0, r"ok +master's clock +as ours"), (172800, r"warn +master's clock +ours is 17\d{4}\.\d s behind it"),
                          (-172800, r"warn +master's clock +ours is 17\d{4}\.\d s ahead of it\n +-> synchronise both")):
        a.kill(15)
        m.ahead_s, m.clock = ahead_s, None
        a.run()
        m.wait(told, f"the agent's clock beside one that is {ahead_s} s ahead")
        out = subprocess.run(args, text=True, capture_output=True, timeout=120).stdout
        assert re.search(says, out), out


def test_start_is_quick(m, a):
    times = []
    for i in range(5):
        alloc = f"1.quick{i}.1"
        c = m.start(alloc, ["/bin/sh", "-c", "read x y < /proc/uptime; echo up $x"])
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        m.wait_exit(alloc)
        line = m.wait(lambda: next((x for x in m.logs if x["container_id"] == c and x["log"].startswith("up ")), None), "its line")
        times.append(float(line["log"].split()[1]) - began)
    print("start order to first line, ms:", [round(t * 1000) for t in times])


def test_ranks_and_first_failure(m, a):
    harness = a.path("det-harness")
    with open(harness, "w") as f:
        f.write('#!/bin/sh\necho "$1 $RANK $WORLD_SIZE $LOCAL_RANK $DET_SLOT_IDS $DET_CHIEF_IP"\n'
                '[ $RANK = 0 ] && { : >said; exec sleep 1000; }\n'
                'while [ ! -e said ]; do sleep 0.01; done\nexit 7\n')  # rank 1 fails once rank 0 has spoken
    os.chmod(harness, 0o755)
    c = m.start("1.ranks.1", "model_def:T", {"model_def.c": ""}, slots=(0, 1))
    e = m.wait_exit("1.ranks.1")
    assert e == {"reason": "exited", "code": 7, "signal": 0, "rank": 1, "text": "rank 1 exited with code 7"}, e
    m.wait_log("model_def:T 0 2 0 [0,1] 127.0.0.1")
    assert m.wait_log("model_def:T 1 2 1")["rank_id"] == 1
    gone(c)


def test_openmp_waits(m, a):
    """Its threads spin shortly, then sleep, unless the user has it otherwise."""
    hellos = sum(e["type"] == "hello" for e in m.events)
    a.env.pop("OMP_WAIT_POLICY", None)  # the agent's own would go before
    a.kill()
    a.run()
    m.wait_connected(hellos + 1)
    for n, (env, said) in enumerate((({}, "passive 10000."), ({"OMP_WAIT_POLICY": "active"}, "active ."))):
        m.start(f"{n + 1}.omp.1", ["sh", "-c", "echo $OMP_WAIT_POLICY $GOMP_SPINCOUNT."], env=env)
        m.wait_log(said)
        m.wait_exit(f"{n + 1}.omp.1")


def test_signal_death(m, a):
    m.start("1.sig.1", ["sh", "-c", "kill -SEGV $$"])
    e = m.wait_exit("1.sig.1")
    assert e["signal"] == 11 and e["reason"] == "exited" and "signal 11" in e["text"], e


def test_kill_whole_tree(m, a):
    c = m.start("1.kill.1", ["python3", "hide.py"], {"hide.py": HIDER})
    m.wait_log("hidden")
    wait_until(lambda: len(left(c)) >= 4, 10, "the hiders")
    m.kill("1.kill.1")
    e = m.wait_exit("1.kill.1")
    took = m.times[("exit", "1.kill.1", None)] - m.times[("kill", "1.kill.1", None)]
    assert e["reason"] == "killed" and not left(c), (e, left(c))
    print("kill to exit, ms:", round(took * 1000))
    assert took < KILL_MAX_S, took
    dropped(a, "1.kill.1")


def test_leftovers_end_with_the_command(m, a):
    c = m.start("1.left.1", ["sh", "-c", "setsid sleep 1000 & echo started"])
    e = m.wait_exit("1.left.1")
    assert e["reason"] == "exited" and e["code"] == 0, e
    assert not left(c)


def test_agent_killed_and_back(m, a):
    c = m.start("1.adopt.1", ["sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 5"])
    m.wait_log("one")
    m.wait(lambda: any("/rendezvous" in r[1] and r[3].get("Grpc-Metadata-x-allocation-token") == "Bearer alloc-token" for r in list(m.requests)),
           "its arrival")
    hellos = sum(e["type"] == "hello" for e in m.events)
    a.kill(signal.SIGKILL)
    assert len(processes_with(f"DET_CONTAINER_ID={c}")) >= 1
    a.run()
    m.wait_connected(hellos + 1)
    hello = [e for e in m.events if e["type"] == "hello"][-1]
    assert [t["alloc"] for t in hello["tasks"]] == ["1.adopt.1"] and hello["tasks"][0]["state"] == "running", hello
    open(a.path("work", "tasks", "1.adopt.1", "work", "go"), "w").close()
    e = m.wait_exit("1.adopt.1")
    assert e["code"] == 5, e
    m.wait_log("two")
    dropped(a, "1.adopt.1")


def test_ends_while_the_agent_is_away(m, a):
    begins = ("import os, struct, time\nnow = time.monotonic_ns() // 10**6\n"  # as a harness tells of its first batch
              "open(os.environ['DET_PROGRESS_FILE'], 'r+b').write(struct.pack('<QQqIIqq', 0x31474f5250544544, 1, now, 1, 7, now, now))\n")
    m.start("1.away.1", ["sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.02; done; python3 begins.py; echo bye; exit 6"], {"begins.py": begins})
    m.wait_log("up")
    a.kill(signal.SIGTERM)
    open(a.path("work", "tasks", "1.away.1", "work", "go"), "w").close()
    wait_until(lambda: not task_pid("1.away.1"), 10, "det-task to end")
    m.wait_log("bye")
    a.run()
    m.wait_connected(2)
    tasks = [e for e in m.events if e["type"] == "hello"][-1]["tasks"]
    assert [(t["alloc"], t["state"], t["exit"]["code"]) for t in tasks] == [("1.away.1", "ended", 6)], tasks
    assert [k["kind"] for k in tasks[0]["marks"]] == ["prepared", "compiled", "first_batch"], tasks
    assert m.wait_exit("1.away.1")["code"] == 6


def test_det_task_killed(m, a):
    c = m.start("1.lost.1", ["python3", "hide.py"], {"hide.py": HIDER.replace('{}', 'dict(os.environ)')})
    m.wait_log("hidden")
    os.kill(task_pid("1.lost.1"), signal.SIGKILL)
    e = m.wait_exit("1.lost.1")
    assert e["reason"] == "lost" and not left(c), (e, left(c))
    dropped(a, "1.lost.1")


def test_server_killed(m, a):
    m.start("1.serve.1", ["sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.02; done; exit 3"])
    m.wait_log("up")
    old = wait_until(lambda: server(a), 10, "the server")
    assert task_pid("1.serve.1") != old, old
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not alive(old), 10, "the server to end")
    m.start("1.serve.2", "exit 4", slots=(1,))
    assert m.wait_exit("1.serve.2")["code"] == 4
    new = server(a)
    assert new not in (0, old), "replaced"
    a.kill(signal.SIGKILL)
    wait_until(lambda: not alive(new), 10, "the server to end with its agent")
    assert alive(task_pid("1.serve.1")), "and no task with it"
    a.run()
    open(a.path("work", "tasks", "1.serve.1", "work", "go"), "w").close()
    assert m.wait_exit("1.serve.1")["code"] == 3


def test_server_killed_with_orders(m, a):
    """What a start and a kill ask for is done by the next server; neither trial is lost."""
    m.start("1.first.1", "exit 0")
    m.wait_exit("1.first.1")
    old = wait_until(lambda: server(a), 10, "the server")
    os.kill(old, signal.SIGSTOP)
    m.start("1.late.1", "exit 4", slots=(0,))
    m.start("1.late.2", "sleep 600", slots=(1,))
    wait_until(lambda: "started allocation=1.late.2" in open(a.path("agent.log")).read(), 10, "both orders at the server")
    m.kill("1.late.2")
    os.kill(old, signal.SIGKILL)
    assert m.wait_exit("1.late.1")["code"] == 4
    assert m.wait_exit("1.late.2")["reason"] == "killed"


def test_master_away(m, a):
    m.start("1.out.1", ["sh", "-c", "echo first; while [ ! -e go ]; do sleep 0.02; done; i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 4"])
    m.wait_log("first")
    m.refuse = True
    with m.lock:
        m.stream_id += 1
        m.lock.notify_all()
    open(a.path("work", "tasks", "1.out.1", "work", "go"), "w").close()
    wait_until(lambda: os.path.exists(a.path("work", "tasks", "1.out.1", "state.json")), 30, "the exit on disk")
    m.refuse = False
    assert m.wait_exit("1.out.1")["code"] == 4
    m.wait_log("line 2999")
    got = [x["log"] for x in m.logs if x["allocation_id"] == "1.out.1" and x["log"].startswith("line ")]
    assert got == [f"line {i}\n" for i in range(3000)], got[:5]


def test_stall(m, a):
    sign = ('import os, struct, time\nf = open(os.environ["DET_PROGRESS_FILE"], "r+b")\n'
            'f.write(struct.pack("<QQqI", 0x31474f5250544544, 4, time.monotonic_ns() // 10**6, 1)); f.flush()\n')
    hang = "import determined, threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\ndef hang():\n    threading.Event().wait()\n" + sign + "hang()\n"
    m.start("1.stall.1", ["python3", "hang.py"], {"hang.py": hang}, stall_timeout_ms=1500)
    e = m.wait_exit("1.stall.1")
    assert e["reason"] == "stalled" and "last batch 4" in e["text"], e
    m.wait_log("last batch 4")
    m.wait_log('hang.py", line 3 in hang')
    said = [x["log"] for x in m.logs if x["allocation_id"] == "1.stall.1"]
    own, whole = (next(i for i, x in enumerate(said) if text in x) for text in (" is at hang.py, line 3, in hang", "(most recent call first)"))
    assert own < whole, said  # the user's own line first, before all threads
    assert re.search(r"process \d+ is sleeping", e["text"]), e
    if shutil.which("gdb") or shutil.which("eu-stack"):
        m.wait_log(" thread: ")
        m.wait_log("the stacks of process")
    else:
        m.wait_log("neither gdb nor eu-stack")
    marks = m.wait_marks("1.stall.1")
    assert list(marks) == ["prepared", "stalled", "killed"] and marks["stalled"]["duration_us"] >= 1500000, marks
    m.start("1.nostall.1", ["sh", "-c", "sleep 1.2"], stall_timeout_ms=300)
    assert m.wait_exit("1.nostall.1")["reason"] == "exited"


def test_stacks(m, a):
    """Whoever asks sees where the ranks are, and they go on; what has no ranks says so."""
    wait = "import determined, os, time, threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\ndef waits():\n    while not os.path.exists('go'):\n        time.sleep(0.02)\nprint('begins', flush=True)\nwaits()\nos._exit(7)\n"
    box = m.start("1.look.1", ["python3", "wait.py"], {"wait.py": wait}, env={"DET_PROGRESS_FILE": "x"})
    m.wait_log("begins")
    for n in (1, 2):
        m.order(order="stacks", alloc="1.look.1", container=box)
        m.wait(lambda: sum("end here" in x["log"] for x in m.logs if x["allocation_id"] == "1.look.1") >= n, "the end of the stacks")
    m.wait_log(" is at wait.py, line 4, in waits")
    said = [x["log"] for x in m.logs if x["allocation_id"] == "1.look.1"]
    native, end = (next(i for i, x in enumerate(said) if text in x) for text in ("the stacks of process", "agent a1 end here"))
    assert native < end, said
    first = next(i for i, x in enumerate(said) if "(most recent call first)" in x)
    assert 'wait.py", line 4 in waits' in said[first + 1], said  # the main thread's own lines come before those of others
    m.order(order="stacks", alloc="1.look.1", container="another")
    open(a.path("work", "tasks", "1.look.1", "work", "go"), "w").close()
    assert m.wait_exit("1.look.1")["code"] == 7


def test_own_run_determined(m, a):
    """A root agent's tasks each see a /run/determined of their own, and the host none of it."""
    may = os.geteuid() == 0 and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0
    for n in (1, 2):
        m.start(f"1.run.{n}", ["sh", "-c", "echo dir $(ls -d /run/determined/*); grep -o '1[.]run[.][0-9]' /run/determined/info/cluster.json; "
                               "cat $DET_INFO_DIR/cluster.json >/dev/null && echo both; cat /run/determined/workdir/f; until [ -e go ]; do sleep .05; done"],
                {"f": f"mine {n}\n"}, slots=(n - 1,))
    for n in (1, 2):
        m.wait(lambda: any(x["allocation_id"] == f"1.run.{n}" and x["log"] == "both\n" for x in m.logs), "both tasks")
    assert not os.path.exists("/run/determined/info"), os.listdir("/run/determined")
    for n in (1, 2):
        open(a.path("work", "tasks", f"1.run.{n}", "work", "go"), "w").close()
        assert m.wait_exit(f"1.run.{n}")["code"] == 0
        m.wait_log(f"mine {n}") if may else None
    said = {n: [x["log"] for x in m.logs if x["allocation_id"] == f"1.run.{n}" and x.get("stdtype") == "stdout"] for n in (1, 2)}
    for n in (1, 2):
        assert (f"1.run.{n}\n" in said[n]) == may and f"1.run.{3 - n}\n" not in said[n], said
    if not may:
        print("     no privilege to mount: only DET_INFO_DIR was tested")


def test_twin_clusters(m, a):
    """Two clusters of one host may have tasks of one name: ids follow from configuration and seed."""
    other = FakeMaster()
    beside = Agent(other)
    try:
        other.wait_connected()
        loop = ["sh", "-c", "until [ -e go ]; do sleep .05; done; echo lived on"]
        for master in (m, other):
            master.start("1.twin.1", loop, container="11111111-2222-3333-4444-555555555555")
            master.wait_running("1.twin.1")
        m.kill("1.twin.1")
        assert m.wait_exit("1.twin.1")["reason"] == "killed"
        open(beside.path("work", "tasks", "1.twin.1", "work", "go"), "w").close()
        assert other.wait_exit("1.twin.1")["reason"] == "exited" and "lived on" in other.wait_log("lived on")["log"]
    finally:
        beside.close()
        other.stop()


def test_accelerators(m, a):
    """What a task runs on is told once, unless it is over at once."""
    box = m.start("1.acc.1", ["sh", "-c", "until [ -e go ]; do sleep .05; done"], slots=(0, 1))

    def told():
        return [r[2]["acceleratorData"] for r in m.requests if r[1].endswith("/allocations/1.acc.1/acceleratorData")]
    m.wait(told, "acceleratorData")
    open(a.path("work", "tasks", "1.acc.1", "work", "go"), "w").close()
    m.wait_exit("1.acc.1")
    assert told() == [{"containerId": box, "allocationId": "1.acc.1", "nodeName": "a1", "taskId": "1.acc", "acceleratorType": "cpu",
                       "acceleratorUuids": []}], told()


def test_stopped_rank(m, a):
    """SIGSTOP is a hang like any other, and it is named."""
    m.start("1.stop.1", ["python3", "-c", "import os, struct, time\n"
            "f = open(os.environ['DET_PROGRESS_FILE'], 'r+b')\nn = 0\nprint('pid', os.getpid(), flush=True)\n"
            "while True:\n    f.seek(0); f.write(struct.pack('<QQqI', 0x31474f5250544544, n, time.monotonic_ns() // 10**6, 1)); f.flush()\n"
            "    n += 1; time.sleep(.01)\n"], stall_timeout_ms=3000)
    m.wait_log("pid ")
    [pid] = processes_with("DET_ALLOCATION_ID=1.stop.1\0", a.dir)
    os.kill(pid, signal.SIGSTOP)
    e = m.wait_exit("1.stop.1", 40)
    assert e["reason"] == "stalled" and f"process {pid} is stopped by a signal" in e["text"], e
    assert not alive(pid)
    # a debugger that hangs, or reads for too long, delays a kill by nothing
    m.start("1.stop.2", ["python3", "-c", "import os, signal\nopen(os.environ['DET_PROGRESS_FILE'], 'r+b').write("
            "(0x31474f5250544544).to_bytes(8, 'little') + bytes(20))\nos.kill(os.getpid(), signal.SIGSTOP)\n"], stall_timeout_ms=300)
    m.wait_running("1.stop.2")
    m.kill("1.stop.2")
    assert m.wait_exit("1.stop.2", 10)["reason"] in ("killed", "stalled")


def test_hook(m, a):
    m.start("1.hook.1", ["sh", "-c", "echo got $FROM_HOOK"], {"startup-hook.sh": "export FROM_HOOK='a b'\n"})
    assert m.wait_exit("1.hook.1")["code"] == 0
    m.wait_log("got a b")
    m.start("1.copy.1", ["sh", "-c", "touch new; echo left: $(ls $DET_MODEL_DIR) here: $(ls)"], {"code.txt": "x"})
    assert m.wait_exit("1.copy.1")["code"] == 0
    m.wait_log("left: code.txt here: code.txt new")
    m.start("1.badhook.1", ["sh", "-c", "echo never"], {"startup-hook.sh": "false\n"})
    e = m.wait_exit("1.badhook.1")
    assert e["code"] == 1 and "startup-hook.sh" in e["text"], e
    assert "never" not in m.text()


SAYS = '#!/bin/sh\necho "$0 was given $*"\n'  # stands for an interpreter
LOOP = "was given -m determined.exec.harness model_def:T"


def test_python_of_the_configuration(m, a):
    files = {"model_def.py": "", "env/bin/python3": SAYS, "odd": SAYS, "shim/python3": '#!/bin/sh\nexec "$DET_WORKDIR/env/bin/python3" "$@"\n'}

    def good(alloc, entrypoint, interpreter, says, hook=None):
        m.start(alloc, entrypoint, {**files, **({"startup-hook.sh": hook} if hook else {})}, python={"interpreter": interpreter})
        e = m.wait_exit(alloc)
        assert e["code"] == 0 and e["reason"] == "exited", e
        m.wait_log(says)
    good("1.folder.1", "model_def:T", "env", "/work/env/bin/python3 " + LOOP)
    good("1.shim.1", "model_def:T", "shim/python3", "/work/env/bin/python3 " + LOOP)
    good("1.odd.1", "python x.py && python3 y.py", "./odd", "odd was given y.py")  # in commands both names are it
    m.wait_log("odd was given x.py")
    good("1.link.1", "model_def:T", "late", "/work/late/bin/python3 " + LOOP, "mkdir late; ln -s $PWD/env/bin late/bin\n")  # a hook may make it
    for interpreter, says in (("/nowhere/python3", "there is no /nowhere/python3"), ("python0", "there is no python0, neither on PATH nor in the model definition"),
                              ("shim", "shim is a folder without bin/python3"), ("model_def.py/", "there is no model_def.py/")):
        alloc = f"1.no{len(m.orders)}.1"
        m.start(alloc, "model_def:T", files, python={"interpreter": interpreter})
        e = m.wait_exit(alloc)
        assert e["reason"] == "absent" and e["text"].startswith("environment.python, on agent a1: " + says), e
        m.wait_log(e["text"])
    m.start("1.nohook.1", "model_def:T", {**files, "startup-hook.sh": "true\n"}, python={"interpreter": "/nowhere/python3"})
    assert m.wait_exit("1.nohook.1")["reason"] == "start_failed"  # a hook may make it another time
    m.start("1.noanswer.1", "model_def:T", files, python={"interpreter": "/" + 300 * "n"})
    assert m.wait_exit("1.noanswer.1")["reason"] == "start_failed"  # nobody can tell what is there


def test_python_of_the_hook(m, a):
    files = {"model_def.py": "", "env/bin/python3": SAYS, "other/python3": SAYS}
    m.start("1.path.1", "model_def:T", {**files, "startup-hook.sh": "export PATH=$PWD/env/bin:$PATH\n"})
    assert m.wait_exit("1.path.1")["code"] == 0
    m.wait_log("/work/env/bin/python3 " + LOOP)
    m.start("1.last.1", "model_def:T", {**files, "startup-hook.sh": "export PATH=$PWD/other:$PATH\n"}, python={"interpreter": "env"})
    assert m.wait_exit("1.last.1")["code"] == 0
    m.wait_log("/work/other/python3 " + LOOP)
    m.start("1.name.1", "model_def:T", {**files, "startup-hook.sh": "export DET_PYTHON_EXECUTABLE=$PWD/env/bin/python3\n"})
    assert m.wait_exit("1.name.1")["code"] == 0
    m.wait_log("1.name.1/work/env/bin/python3 " + LOOP)
    m.start("1.venv.1", "python3 -c 'import sys; print(sys.prefix, sys.prefix != sys.base_prefix)'; echo $DET_PYTHON_EXECUTABLE",
            {"startup-hook.sh": "python3 -m venv --without-pip mine\n. mine/bin/activate\n"})
    assert m.wait_exit("1.venv.1", 60)["code"] == 0
    m.wait_log("/work/mine True")
    m.wait_log("/work/mine/bin/python3")


def test_python_requirements(m, a):
    """One environment of a list, made once also by two tasks at the same moment, after one that was killed over it."""
    index = Index(wheel("Greet", "1.0", {"greet.py": "def main():\n    import sys\n    print('hello from', sys.prefix)\n"}, ["greet = greet:main"]),
                  wheel("extra", "2.0", {"extra.py": ""}))
    python = {"interpreter": "/usr/bin/python3", "requirements": ["greet==1.0"], "index_url": index.url}
    try:
        os.symlink(a.dir, a.path("work", "cache", f"python-{os.geteuid()}"))
        m.start("1.bad.1", "true", python=python)
        e = m.wait_exit("1.bad.1", 60)
        assert e["reason"] == "start_failed" and "environment.python, on agent a1: " in e["text"] and "is no folder of this user's alone" in e["text"], e
        os.unlink(a.path("work", "cache", f"python-{os.geteuid()}"))
        index.hold.clear()
        m.start("1.cut.1", "true", python=python)
        wait_until(lambda: index.asked, 60, "a question to the index")
        m.kill("1.cut.1")
        assert m.wait_exit("1.cut.1")["reason"] == "killed"
        for slot, alloc in enumerate(("1.req.1", "1.same.1")):
            m.start(alloc, "greet; python3 -c 'import greet, sys; print(sys.executable)'", slots=(slot,), python=python)
        m.wait_log("Another task makes the same environment", 60)
        index.hold.set()
        for alloc in ("1.req.1", "1.same.1"):
            assert m.wait_exit(alloc, 60)["code"] == 0
            m.wait_log(f"hello from {a.path('work', 'tasks', alloc)}/run/venv")  # a script of the list's, in the task's own environment
            m.wait_log(f"{alloc}/run/venv/bin/python3")
        assert index.downloads() == ["Greet-1.0-py3-none-any.whl"], index.asked
        hook = f"pip install --no-cache-dir --index-url {index.url} extra\n"  # goes into the task's own
        m.start("1.more.1", "python3 -c 'import greet, extra; print(\"both of them\")'", {"startup-hook.sh": hook}, python=python)
        assert m.wait_exit("1.more.1", 60)["code"] == 0
        m.wait_log("both of them")
        m.start("1.less.1", "python3 -c 'import greet, extra'", python=python)
        assert m.wait_exit("1.less.1", 60)["code"] == 1
        m.wait_log("No module named 'extra'")
        kept = [f for d in os.listdir(a.path("work", "cache")) for f in os.listdir(a.path("work", "cache", d)) if not f.endswith(".lock")]
        assert len(kept) == 1 and not kept[0].startswith("new-"), kept
    finally:
        index.hold.set()
        index.close()


def test_python_environment_removed(m, a):
    """By another task, between the end of what made it and the lock: it is made again, a few times."""
    lies = """#!/bin/sh
if [ -e again ]; then mkdir -p "$7/bin" && cp "$0" "$7/bin/python3" && $MADE; fi
touch again made.lock
echo "{\\"lock\\": \\"$PWD/made.lock\\", \\"made\\": \\"$PWD/made\\"}" >&3
"""
    python = {"interpreter": "env", "requirements": ["greet"]}
    m.start("1.again.1", "true", {"env/bin/python3": lies}, python=python, env={"MADE": "mkdir made"})
    assert m.wait_exit("1.again.1")["code"] == 0
    m.wait_log("Python's environment is made again: " + a.path("work", "tasks", "1.again.1", "work", "made") + " was removed by another task")
    m.start("1.never.1", "true", {"env/bin/python3": lies}, python=python, env={"MADE": "true"})
    e = m.wait_exit("1.never.1")
    assert e["reason"] == "start_failed" and e["text"].endswith("made was removed by another task"), e


def test_python_requirements_of_an_account(m, a):
    """Whoever takes the name of another's folder in the cache keeps them from nothing."""
    if os.geteuid() != 0:
        return
    index, nobody = Index(wheel("greet", "1.0", {"greet.py": ""})), pwd.getpwnam("nobody").pw_uid
    python = {"interpreter": "/usr/bin/python3", "requirements": ["greet==1.0"], "index_url": index.url}
    folder = a.path("work", "cache", "python")
    try:
        a.kill(15)
        os.chmod(a.dir, 0o755)
        a.args = ["--task-user", "nobody"]
        a.run()
        m.wait_connected(2)
        os.mkdir(a.path("work", "cache", f"python-{nobody}"))
        for alloc in ("1.first.1", "1.second.1"):
            m.start(alloc, "python3 -c 'import greet'", python=python)
            assert m.wait_exit(alloc, 60)["code"] == 0
        assert len(index.downloads()) == 1 and os.stat(folder).st_uid == 0
        made = os.stat(os.path.join(folder, str(nobody)))
        assert (made.st_uid, made.st_mode & 0o777) == (nobody, 0o700), made
        os.chown(folder, nobody, -1)  # as one may find it who was there before the agent
        m.start("1.alone.1", "python3 -c 'import greet'", python=python)
        assert m.wait_exit("1.alone.1", 60)["code"] == 0
        m.wait_log(f"made for it alone, not kept: {folder} is no folder of root's alone")
        assert len(index.downloads()) == 2
    finally:
        index.close()


def test_fetched_context_and_info(m, a):
    m.contexts["1.fetch"] = context({"sub/x.txt": "from afar\n"})
    m.start("1.fetch.1", "cat sub/x.txt; cat $DET_INFO_DIR/cluster.json; echo; cat $DET_INFO_DIR/trial.json $DET_INFO_DIR/rendezvous.json $DET_INFO_DIR/resources.json",
            context=None, env={"DET_HPARAMS": '{"lr": 0.5}'})
    assert m.wait_exit("1.fetch.1")["code"] == 0
    m.wait_log("from afar")
    info = json.loads(m.wait_log("master_url")["log"])
    assert info["allocation_id"] == "1.fetch.1" and info["slot_ids"] == [0] and info["session_token"] == "alloc-token", info
    for text in ('"lr":0.5', '"container_addrs":["127.0.0.1"]'):  # the exit may be told before the last lines
        m.wait_log(text)


def test_bad_starts(m, a):
    m.start("1.nocmd.1", ["no-such-program"])
    e = m.wait_exit("1.nocmd.1")
    assert e["code"] == 127 and "no-such-program" in e["text"], e
    m.start("1.noslot.1", "true", slots=(9,))
    e = m.wait_exit("1.noslot.1")
    assert e["reason"] == "start_failed" and "slot 9" in e["text"], e
    m.start("1.badctx.1", "true", context="%%%")
    assert m.wait_exit("1.badctx.1")["reason"] == "start_failed"
    m.order(order="start", alloc="1.badspec.1", container="c-1", task={"slots": 1})
    e = m.wait_exit("1.badspec.1")
    assert e["reason"] == "start_failed" and "task_id" in e["text"], e
    m.order(order="signal", alloc="1.never.1", signal="KILL")
    assert m.wait_exit("1.never.1")["reason"] == "lost"


def test_refused_rendezvous(m, a):
    """An allocation that the master knows no more (404), or whose run is over (409), ends at once."""
    for i, status in enumerate((404, 409)):
        m.rendezvous = status
        alloc = f"1.over{i}.1"
        c = m.start(alloc, ["sh", "-c", "trap '' TERM; setsid sleep 1000 & sleep 1000"])
        e = m.wait_exit(alloc, 5)
        assert e["reason"] == "start_failed" and "rendezvous" in e["text"] and "is over" in e["text"], e
        gone(c)
        dropped(a, alloc)


def test_ports_of_a_gang(m, a):
    """All hosts have the ports of the answer, so that of rank 0 has those that were given where its master tells the others of none."""
    def started(alloc, node, **told):
        m.met = {"addresses": ["127.0.0.1", "127.0.0.1"], "rank": node, "slots": [1, 1], **told}
        m.start(alloc, ["sh", "-c", f"echo {alloc} meets at $C10D_PORT"], env={"C10D_PORT": str(port)}, node=node, nodes=2, slot_counts=[1, 1])
        assert m.wait_exit(alloc)["code"] == 0
        return m.wait_log(f"{alloc} meets at ")["log"].split()[-1]

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert started("1.older.1", 0) == str(port)
        m.wait_log("Ports stay as they were given")
        assert started("1.first.1", 0, ports="C10D_PORT:41003") == started("1.second.1", 1, ports="C10D_PORT:41003") == "41003"


def test_start_waits_for_the_old_task(m, a):
    """Slots that were given away while the agent was out of reach: the new task starts when the old one is gone."""
    stubborn = "trap '' TERM; echo on; while :; do sleep 0.05; done"
    old = m.start("1.old.1", ["sh", "-c", stubborn], slots=(0, 1))
    m.wait_log("on")
    os.kill(task_pid("1.old.1"), signal.SIGSTOP)  # it takes its time to die
    m.kill("1.old.1")
    m.start("1.new.1", ["sh", "-c", "echo new began"], slots=(1,))
    m.wait(lambda: m.event("state", "1.new.1", "starting"), "the new start to be taken")
    began = m.event("exit", "1.new.1") or os.path.exists(a.path("work", "tasks", "1.new.1"))
    late = m.event("exit", "1.old.1")  # of a machine that stood still for 6 s meanwhile: the agent has ended the stopped one itself
    assert late or not began
    if old_task := task_pid("1.old.1"):
        os.kill(old_task, signal.SIGCONT)
    assert m.wait_exit("1.old.1")["reason"] in (("lost",) if late else ("killed", "lost")) and m.wait_exit("1.new.1")["code"] == 0
    assert m.times[("exit", "1.old.1", None)] <= m.times[("state", "1.new.1", "running")]
    gone(old)


def spooling(n, then):
    """Python code of a rank: leaves n reports unsent."""
    return ("import os, struct, sys, time\np = b''.join(x.encode() + b'\\0' for x in ('1.1', 'POST', '/api/v1/trials/1/progress', '{\"x\":1}'))\n"
            "T = [0]*256\nfor i in range(256):\n c = i\n for _ in range(8): c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)\n T[i] = c\n"
            "c = 0xffffffff\nfor b in p: c = T[(c ^ b) & 255] ^ (c >> 8)\n"
            "f = open(os.environ['DET_REPORT_SPOOL'], 'wb')\n"
            f"f.write(b'DETSPOL1' + struct.pack('<Q', 16) + (struct.pack('<II', len(p), c ^ 0xffffffff) + p) * {n}); f.close()\n" + then)


def reports(m):
    return [r for r in m.requests if r[1] == "/api/v1/trials/1/progress"]


def test_reports_left(m, a):
    m.start("1.rep.1", ["python3", "-c", spooling(1, "os._exit(9)")])
    assert m.wait_exit("1.rep.1")["code"] == 9
    r, = reports(m)
    assert r[2] == {"x": 1} and r[3]["Det-Seq"] == "1.1", r


def test_reports_refused(m, a):
    """What the master refuses is told as lost, with its words; only what it took is called sent."""
    m.report_refusals = 2
    m.start("1.no.1", ["python3", "-c", spooling(3, "os._exit(9)")])
    assert m.wait_exit("1.no.1")["code"] == 9
    m.wait_log("2 reports that ranks had left are lost, the master refused them: ")
    assert "x is no progress" in m.text() and len(reports(m)) == 3
    m.wait_log("1 reports that ranks had left were sent")


def test_reports_left_by_a_lost_task(m, a):
    """Whoever ends what a killed det-task left does not send for as long as there is something: here 100 s."""
    m.report_s = 0.05
    m.start("1.rest.1", ["python3", "-c", spooling(2000, "print('left', flush=True); time.sleep(1000)")])
    m.wait_log("left")
    os.kill(task_pid("1.rest.1"), signal.SIGKILL)
    assert m.wait_exit("1.rest.1")["reason"] == "lost"
    assert 0 < len(reports(m)) < 2000


def main():
    names = sys.argv[1:] or [n[5:] for n in sorted(globals()) if n.startswith("test_")]
    failed = []
    for name in names:
        m = FakeMaster()
        a = None
        try:
            a = Agent(m, start=False)
            a.env["DET_HARNESS"] = a.path("det-harness")
            a.run()
            m.wait_connected()
            begun = time.monotonic()
            globals()["test_" + name](m, a)
            print(f"ok   {name} {time.monotonic() - begun:.2f} s", flush=True)
        except BaseException as e:  # noqa: BLE001
            print(f"FAIL {name}: {type(e).__name__} {e}", flush=True)
            failed.append(name)
            if isinstance(e, KeyboardInterrupt):
                raise
        finally:
            if a:
                a.close(show=name in failed)
            m.stop()
    assert alive(os.getpid())
    sys.exit(1 if failed else 0)


main()

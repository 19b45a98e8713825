#!/usr/bin/env python3
"""Commands as entrypoints, zero slots, startup-hook.sh, Python, variables, another user. usage: test_agent_entrypoints.py [NAME ...]"""
import glob
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TOP, Cluster, wait_until  # noqa: E402

USER = "det-test-user"


def run(c, entrypoint, files=None, state="STATE_COMPLETED", **over):
    config = {"name": "command", "entrypoint": entrypoint, "max_restarts": 0, "resources": {"slots_per_trial": 0},
              "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}, **over}
    with tempfile.TemporaryDirectory() as d:
        for name, text in (files or {}).items():
            with open(os.path.join(d, name), "w") as f:
                f.write(text)
        exp = c.create(json.dumps(config), d)
    c.wait(exp, state, 60)
    trial = c.trials(exp)[0]
    wait_until(c.slots_free, 10, "free slots")
    return trial, c.logs(trial["id"])


def test_commands(c):
    for entrypoint in ("sh -c 'echo one; echo \"two  words\"'", ["sh", "-c", 'echo one; echo "two  words"']):
        for slots in (0, 1):
            _, log = run(c, entrypoint, resources={"slots_per_trial": slots})
            assert "one" in log and "two  words" in log, log
    _, log = run(c, ["./no-such-program"], state="STATE_ERROR")
    assert "no-such-program" in log, log


def test_restarts(c):
    for slots in (0, 1):
        trial, log = run(c, "echo try; exit 3", state="STATE_ERROR", max_restarts=2, resources={"slots_per_trial": slots})
        assert trial["restarts"] == 2 and log.count("|| try") == 3 and log.count("|| ERROR: the command exited with code 3") == 3, (trial, log)


WHEEL_HOOK = """\
python3 - <<'END'
import zipfile
with zipfile.ZipFile("layered-1-py3-none-any.whl", "w") as w:
    w.writestr("layered.py", "")
    for name, text in (("METADATA", "Metadata-Version: 2.1\\nName: layered\\nVersion: 1\\n"),
                       ("WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"), ("RECORD", "")):
        w.writestr("layered-1.dist-info/" + name, text)
END
pip install --no-index ./layered-1-py3-none-any.whl
"""


def test_hook_layer(c):
    """pip installs in a hook, over a Python that its distribution keeps to itself, for this task alone."""
    if not glob.glob("/usr/lib/python3*/EXTERNALLY-MANAGED") or not os.path.exists("/usr/bin/pip"):
        return
    of_host = {"environment": {"environment_variables": ["PATH=/usr/bin:/bin", "PYTHONHOME=/usr"]}}
    _, log = run(c, "python3 -c 'import layered, sys; print(layered.__file__, sys.prefix)'", {"startup-hook.sh": WHEEL_HOOK}, **of_host)
    assert "/run/layer/lib/python3" in log, log
    _, log = run(c, "python3 -c 'import layered'", {}, state="STATE_ERROR", **of_host)
    assert "ModuleNotFoundError" in log, log
    venv = c.path("checkpoints", "venv")  # its modules are seen where there is a hook, too
    site = os.path.join(venv, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    os.makedirs(site)
    os.makedirs(os.path.join(venv, "bin"))
    os.symlink("/usr/bin/python3", os.path.join(venv, "bin", "python3"))
    for name, text in (("pyvenv.cfg", "home = /usr/bin\n"), (os.path.join(site, "mine.py"), "")):
        with open(os.path.join(venv, name), "w") as f:
            f.write(text)
    of_venv = {"environment": {"environment_variables": [f"PATH={venv}/bin:/usr/bin:/bin"]}}
    _, log = run(c, "python3 -c 'import mine; print(mine.__file__)'", {"startup-hook.sh": "true\n"}, **of_venv)
    assert site in log, log


def test_hook(c):
    hook = "echo from the hook\nexport LEFT_BY_HOOK='a b'\ntouch made-by-hook\n"
    _, log = run(c, "ls; echo \"hook: $LEFT_BY_HOOK\"", {"startup-hook.sh": hook})
    assert "from the hook" in log and "hook: a b" in log and "made-by-hook" in log, log
    for bad in ("false\n", "exit 4\n", "no-such-command\n"):
        _, log = run(c, "echo began", {"startup-hook.sh": bad}, state="STATE_ERROR")
        assert "startup-hook.sh" in log and "began" not in log.splitlines(), log


def own_tmp(c):
    """/tmp is the task's own: a Python that its hook puts there is found, by PATH and by its name; one of the host's is not."""
    host = tempfile.mkdtemp(prefix="det-test-python-", dir="/tmp")
    os.chmod(host, 0o777)
    made = f"mkdir -p {host}/bin\nprintf '#!/bin/sh\\necho mine: \"$@\"\\n' >{host}/bin/python3\nchmod +x {host}/bin/python3\n"
    try:
        _, log = run(c, "model_def:T", {"model_def.py": "", "startup-hook.sh": made + f"export PATH={host}/bin:$PATH\n"})
        if os.listdir(host):
            print("skip: this host gives tasks no /tmp of their own")
            return
        assert f"Python is {host}/bin/python3, as startup-hook.sh says." in log and "mine: -m determined.exec.harness" in log, log
        _, log = run(c, "python3 hello", {"startup-hook.sh": made}, environment={"python": host})
        assert "mine: hello" in log, log
        os.mkdir(host + "/bin")
        os.symlink("/usr/bin/python3", host + "/bin/python3")
        trial, log = run(c, "python3 hello", state="STATE_ERROR", environment={"python": host})
        assert f"environment.python, on agent agent-0: there is no {host}" in log and trial["restarts"] == 0, log
    finally:
        shutil.rmtree(host)


def test_variables(c):
    env = {"environment_variables": ["PLAIN=one", "WITH=a=b c", "EMPTY=", "DET_CONTAINER_ID=other", "CUDA_VISIBLE_DEVICES=0"]}
    _, log = run(c, "echo \"<$PLAIN> <$WITH> <$EMPTY> <$CUDA_VISIBLE_DEVICES> $DET_CONTAINER_ID\"", environment=env)
    assert "<one> <a=b c> <> <>" in log, log
    assert "<> other" not in log, log  # by it the processes of a task are found
    _, log = run(c, "echo \"<$LD_BIND_NOW>\"")
    assert "<>" in log, log  # what the agent sets for its own programs stays there


def look_at_python(c):
    """What the user puts on PATH is run as the user, never as the agent: also to see whether it has torch."""
    folder = c.path("checkpoints", "bin")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "python3"), "w") as f:
        f.write('#!/bin/sh\n[ "$(id -u)" != 0 ] || exit 1\necho "$0 was given $*"\n')
    os.chmod(f.name, 0o755)
    _, log = run(c, "model_def:T", {"model_def.py": ""}, environment={"environment_variables": [f"PATH={folder}:/usr/bin:/bin"]})
    assert f.name + " was given -m determined.exec.harness" in log, log
    _, log = run(c, "python3 --hello", environment={"python": folder + "/python3"})
    assert f.name + " was given --hello" in log, log


def test_user(c):
    """Ranks of a root agent run as the task user, can write checkpoints and cannot read what is the agent's."""
    look = ("id -un; for f in ../spec.json ../sock ../state.json " + c.path("agent.token") + " " + c.path("admin.password")
            + "; do cat $f >/dev/null 2>&1 && echo CAN READ $f; done; ls .. 2>&1; touch ../x 2>/dev/null && echo CAN WRITE; "
            "touch x && echo can work; echo here $(/bin/pwd) $(python3 -c 'import os; print(os.getcwd())'); for p in $PPID 1; do "
            "[ $p -gt 0 ] && kill -0 $p 2>/dev/null && echo CAN SIGNAL; done; true")  # 0: its parent is in no namespace of its own
    _, log = run(c, look)
    assert USER in log and "can work" in log and "CAN" not in log and "spec.json" not in log, log
    here = next(line for line in log.splitlines() if "|| here " in line).split("|| here ")[1].split()
    assert len(here) == 2 and here[0] == here[1] and here[0].startswith(c.path("agent-0")), log
    digits = {"name": "user", "entrypoint": "model_def:DigitsTrial", "max_restarts": 0,
              "hyperparameters": {"global_batch_size": 16, "learning_rate": 0.05, "dropout": 0.1},
              "searcher": {"name": "single", "metric": "accuracy", "smaller_is_better": False, "max_length": {"batches": 50}}}
    exp = c.create(json.dumps(digits), "examples/digits")
    c.wait(exp, seconds=60)
    cps = [p for p in c.api("GET", f"/trials/{c.trials(exp)[0]['id']}/checkpoints")["checkpoints"] if p["state"] == "STATE_COMPLETED"]
    assert cps, "no checkpoint"
    assert os.stat(c.path("checkpoints", cps[0]["uuid"])).st_uid == pwd.getpwnam(USER).pw_uid
    c.api("DELETE", f"/experiments/{exp}")
    wait_until(lambda: not os.path.exists(c.path("checkpoints", cps[0]["uuid"])), 30, "the checkpoint to be deleted")


def with_user(name):
    if os.getuid() != 0 or not shutil.which("useradd"):
        print(f"skip {name}: it takes root and useradd")
        return
    subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", USER], check=True)
    try:
        with Cluster(agents=1, slots=1, agent_args=["--task-user", USER]) as c:
            test_user(c)
            look_at_python(c)
            test_hook_layer(c)
            own_tmp(c)
            print("ok   user", flush=True)
    finally:
        # refused while a process of the user's, though it was killed, is not yet gone
        wait_until(lambda: subprocess.run(["userdel", USER]).returncode == 0, 10, "the user to be deleted")


def main():
    names = sys.argv[1:] or [n[5:] for n in globals() if n.startswith("test_")]
    plain = [n for n in names if n != "user"]
    if plain:
        with Cluster(agents=1, slots=1) as c:
            for name in plain:
                globals()["test_" + name](c)
                print(f"ok   {name}", flush=True)
    if "user" in names:
        with_user("user")


if __name__ == "__main__":
    main()

"""The master's settings: every mistake at once, the order of the sources, and that example and documentation are true.

    test_master_config.py --write    after a change of the table: writes deploy/master.yaml.example and the table of docs/configuration.md
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, TOP  # noqa: E402


def master(*args, env=None, status=0):
    r = subprocess.run([BIN + "/det-master", *args], text=True, capture_output=True, timeout=60, env={**os.environ, **(env or {})})
    assert r.returncode == status, f"{args}: {r.returncode}\n{r.stdout}{r.stderr}"
    return r.stdout if status == 0 else r.stderr


def leaves(tree, prefix=""):
    """{path: value} of the settings; the keys of a list's members are list[].key, of the first member."""
    out = {}
    for key, v in tree.items():
        if isinstance(v, dict):
            out.update(leaves(v, f"{prefix}{key}."))
        elif isinstance(v, list) and v and isinstance(v[0], dict):
            out.update(leaves(v[0], f"{prefix}{key}[]."))
        else:
            out[prefix + key] = v
    return out


def without_comments(text):
    """The example with every setting switched on: prose lines have one blank after the #."""
    return "".join(line[1:] + "\n" for line in text.splitlines() if re.match(r"#( {2}|\S)", line))


def example(d):
    text = master("--print-example")
    committed = open(os.path.join(TOP, "deploy", "master.yaml.example")).read()
    assert text == committed, "deploy/master.yaml.example differs from det-master --print-example"
    path = os.path.join(d, "all.yaml")
    with open(path, "w") as f:
        f.write(without_comments(text))
    everything = leaves(json.loads(master("--config", path, "--print-config")))
    defaults = leaves(json.loads(master("--print-config")))
    assert {k: v for k, v in everything.items() if "[]" not in k and k in defaults} == \
        {k: v for k, v in defaults.items() if v != []}, everything
    return everything


HEAD = "| setting | default | meaning | option |\n|---|---|---|---|\n"


def table_of(text, conf):
    """The rows of docs/configuration.md, from the example and the defaults."""
    rows = []
    for path, help_text, form in re.findall(r"^# ([\w.\[\]]+): (.*)\.\n# \((.*)\)$", text, re.M):
        value = "dbname=det" if path == "db" else conf[path]
        shown = "" if value is None else f"`{value if value and isinstance(value, str) else json.dumps(value)}`"
        what, _, rest = form.partition("; ")
        option = ", ".join(f"`{x}`" for x in rest.split("; ") if x.startswith("--"))
        rows.append(f"| `{path}` | {shown} | {help_text} ({what}) | {option} |\n")
    return "".join(rows)


def documentation(d):
    """Each setting has its row in docs/configuration.md: the one that the program's own words make."""
    text = open(os.path.join(TOP, "docs", "configuration.md")).read()
    wanted = HEAD + table_of(master("--print-example"), example(d))
    assert wanted in text, f"docs/configuration.md should hold this (test_master_config.py --write makes it so):\n{wanted}"


def write(d):
    text = master("--print-example")
    with open(os.path.join(TOP, "deploy", "master.yaml.example"), "w") as f:
        f.write(text)
    path = os.path.join(TOP, "docs", "configuration.md")
    before, after = open(path).read().split(HEAD)
    with open(path, "w") as f:
        f.write(before + HEAD + table_of(text, example(d)) + re.sub(r"\A(\|.*\n)*", "", after))


def every_mistake(d):
    path = os.path.join(d, "bad.yaml")
    with open(path, "w") as f:
        f.write("stall_timeot: 1\nport: many\nresource_manager:\n  scheduler:\n    typ: x\n    type: prioritee\n  default_compute_resource_pool: 5\n"
                "log_level: loud\nlaunch_error: maybe\ncheckpoint_storage: {type: nfs}\nhost: [a]\n")
    text = master("--config", path, "--port", "99999", env={"DET_AGENT_RECONNECT_WAIT": "soon"}, status=2)
    for said in ("line 1: stall_timeot: no such setting; did you mean stall_timeout?", 'line 2: port: expected a whole number from 0 to 65535, got "many"',
                 "line 5: resource_manager.scheduler.typ: no such setting; did you mean type?", "line 6: resource_manager.scheduler.type: expected one of",
                 "line 7: resource_manager.default_compute_resource_pool: expected text of at most 128 bytes, got 5", "line 8: log_level", "line 9: launch_error: expected true or false",
                 "checkpoint_storage.type", "line 11: host: expected text, got a list", 'DET_AGENT_RECONNECT_WAIT: expected a whole number of seconds', "--port: expected"):
        assert said in text, f"{said!r} is not in:\n{text}"
    for content, said in (("a: [", "YAML: line"), ("- 1\n", "expected a map of settings"), ("port: 1\nport: 2\n", "given twice"), ("resource_manager: 5\n", "expected a map"), ("webhooks: {networks: 10.0.0.0/33}\n", "webhooks.networks: \"10.0.0.0/33\"")):
        with open(path, "w") as f:
            f.write(content)
        assert said in master("--config", path, status=2), content
    assert "No such file" in master("--config", os.path.join(d, "absent.yaml"), status=2)
    assert "did you mean --port" in master("--portt", "1", status=2)
    assert "unexpected argument" in master("serv", status=2)


def sources(d):
    """Defaults, then the file, then the environment, then options."""
    path = os.path.join(d, "some.yaml")
    with open(path, "w") as f:
        f.write("port: 1\nstall_timeout: 1\ncluster_name: file\nresource_manager: {scheduler: {type: fifo}}\n")
    env = {"DET_PORT": "2", "DET_STALL_TIMEOUT": "2", "DET_RESOURCE_MANAGER_SCHEDULER_TYPE": "priority"}
    conf = leaves(json.loads(master("--config", path, "--port", "3", "--print-config", env=env)))
    assert (conf["port"], conf["stall_timeout"], conf["cluster_name"], conf["agent_reconnect_wait"]) == (3, 2, "file", 25), conf
    assert conf["resource_manager.scheduler.type"] == "priority", conf
    open(path, "w").close()
    assert json.loads(master("--config", path, "--print-config")) == json.loads(master("--print-config")), "an empty file changes nothing"


def secrets(d):
    text = master("--db", "password=hunter2", "--print-config")
    assert "hunter2" not in text and json.loads(text)["db"] == "********", text
    path = os.path.join(d, "secret.yaml")
    with open(path, "w") as f:
        f.write("db: {password: hunter2}\n")
    assert "hunter2" not in master("--config", path, status=2)


def main():
    with tempfile.TemporaryDirectory() as d:
        for test in [write] if sys.argv[1:] == ["--write"] else (example, documentation, every_mistake, sources, secrets):
            test(d)
            print(f"ok {test.__name__}", flush=True)


main()

"""How each command of the documents is tried: run in one of the scenes, or named here with the reason why not.

A scene is a fresh Debian 12 and one shell, in which commands follow each other as a reader would type them.
"""
import re

from commands import commands, code, documents

#: Commands that cannot run in a test, and why.
NOT_RUN = {
    ("README.md", "tests/run"): "this is one of its tests",
    ("README.md", "tests/run unit tidy"): "this is one of its tests",
    ("README.md", "tests/faults/run --all"): "takes hours; tests/integration/test_faults_run.py looks at its options",
    ("README.md", "pip install ."): "fetches build tools from PyPI; docs/install.md's form without a network runs",
    ("docs/install.md", "pip install ."): "the same",
    ("docs/install.md", "pip install dist/determined-*.whl"): "tests/python/test_client.py makes and installs it",
    ("docs/compatibility.md", "det python"): "README.md's runs",
    ("docs/adding-an-op.md", "meson test -C build --suite ops"): "tests/run ops is that",
    ("docs/porting-python.md", "torchrun --nproc_per_node=2 train.py"): "Debian 12's torch cannot, as the same sentence says; what it advises runs",
    ("docs/reliability.md", "tests/faults/run --all"): "the same",
    **{("docs/reliability.md", c.text): "tests/run sim runs the same, shorter" for c in commands("docs/reliability.md") if c.is_block},
    ("README.md", "det experiment watch 2"): "a screen; tests/integration/test_cli.py watches",
    ("docs/compatibility.md", "det trial plot ID... [--log] [--svg FILE] [--png FILE]"): "tests/integration/test_cli.py draws",
    **{("docs/configuration.md", t): "lines of a startup-hook.sh; tests/integration/test_agent_tasks.py has such hooks"
       for t in ("export PATH=...", "export DET_PYTHON_EXECUTABLE=...")},
    **{(page, "det trial stacks ID"): "tests/integration/test_cli.py asks" for page in ("docs/compatibility.md", "docs/reliability.md")},
    ("README.md", "det why 7"): "needs a search that ended trials; tests/integration/test_search.py asks",
    ("docs/install.md", "det checkpoint adopt UUID [TRIAL]"): "needs a checkpoint that no row knows; tests/integration/test_stores.py has one",
    ("docs/install.md", "det checkpoint discard UUID [TRIAL]"): "the same",
    **{("docs/install.md", t): "tests/integration/test_agent_certificates.py joins, renews and revokes agents"
       for t in ("det agent join-token", "det agent join-token NAME", "det-agent --join-token TOKEN", "det agent revoke NAME")},
    ("docs/install.md", "det master rotate-authority"): "tests/integration/test_master_tls.py and test_agent_certificates.py rotate",
    ("docs/install.md", "det master audit"): "tests/integration/test_audit.py reads it",
    **{("docs/working.md", c.text): "builds and tests this tree once more" for c in commands("docs/working.md") if c.is_block},
    ("docs/gpu.md", "tests/cuda/ptxas.py NVCC NAME.ptxas..."): "needs a CUDA toolkit, where it is one of the tests",
    **{("docs/gpu.md", t): "needs a CUDA toolkit, and the second a GPU"
       for t in ("tests/gpu/pack FOLDER", "tests/gpu/run --packed FOLDER")},
    ("docs/porting.md", "det experiment create const.yaml . --follow"): "needs photographs; docs/trial-api.md's runs",
}

#: Named by a document as what there is not.
ABSENT = {("docs/compatibility.md", "det deploy"), ("docs/compatibility.md", "det dev")}


def run(doc, text, instead=None):
    """`instead`: what is typed where the document says ID, or where no systemd is."""
    return doc, text, instead or text


def sh(text):
    """What a reader has or does beside the commands."""
    return None, text, text


def put(path, text):
    return sh(f"cat > {path} <<'END-OF-FILE'\n{text.rstrip()}\nEND-OF-FILE")


TRAIN_C = """
#include <stdio.h>
#include "model_def.c"
#include <det/trainer.h>
int main(void)
{{
    struct det_err err = {{0}};
    {body}
    det_trainer_destroy(t);
    if (err.text[0])
        fprintf(stderr, "%s\\n", err.text);
    return err.text[0] != 0;
}}
"""
NET_PY = """
import torch


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)


def train_set():
    return torch.utils.data.TensorDataset(torch.randn(256, 3), torch.randint(0, 2, (256,)))


valid_set = train_set
"""
PYTHON = "docs/porting-python.md"


def one_machine():
    """README.md, and what the other documents do with the cluster that deploy/quickstart makes."""
    readme, tour, conf = "README.md", "docs/trial-api.md", "docs/configuration.md"
    export = next(c.text for c in commands(readme) if c.text.startswith("export PATH"))
    photographs = "det-harness run model_def:ImageNetTrial --config const.yaml --test-mode"
    trainer = code(tour, "c", -1).split("\n\n")[0]
    trial, script = code(PYTHON, "python", 1), code(PYTHON, "python", 2)
    return [
        run(readme, "deploy/quickstart"),
        run(readme, export, re.sub(r"37711", "$(cat /var/lib/det/master.port)", export)),
        run(readme, "det experiment create examples/digits/const.yaml examples/digits"),
        run(readme, "det experiment pause 2; det experiment activate 2"),
        run(readme, "det experiment wait 2"),
        run(readme, "det experiment list-checkpoints 2"),
        run(readme, 'det model create digits --description "ten digits, 8 x 8"'),
        run(readme, "det model register-version digits UUID",
            "det model register-version digits $(det experiment list-checkpoints 2 | grep COMPLETED | grep -oE '[0-9a-f]{8}-[0-9a-f-]{27}' | tail -n 1)"),
        run(readme, "det model list-versions digits"),
        run(readme, "det why exp:2"),
        run(readme, "det trial timeline ID", "det trial timeline 1"),
        run(PYTHON, "det trial describe ID", "det trial describe 1"),
        run("docs/compatibility.md", "det tensorboard start ID", "det tensorboard start 1"),
        run(conf, "det experiment create CONFIG DIR",
            "det experiment create examples/digits/const.yaml examples/digits --config profiling.enabled=true --follow"),
        *[run(page, "det trial profile ID", "det trial profile $(det experiment list-trials 3 --columns trial --csv | tr -dc 0-9)")
          for page in (readme, conf, PYTHON, "docs/compatibility.md")],
        run(conf, "det experiment replay ID", "det experiment replay 1"),
        run(conf, "det preview-search CONFIG", "det preview-search examples/digits/grid.yaml"),
        run(conf, "det store list"),
        run(conf, "det agent list"),
        run(conf, "det store adopt PLACE", "det store adopt /var/lib/det/checkpoints"),
        run(conf, "det experiment config ID", "det experiment config 1"),
        run(conf, "det-master --print-config"),
        run("docs/adding-an-op.md", "python3 tests/tidy/api_list.py . --write"),
        run("docs/benchmarks.md", "bench/run --list"),
        sh("cd examples/first"),
        run(readme, "det-harness run model_def.c --config const.yaml"),
        sh("cd ../digits"),
        *[run(tour, c.text) for c in commands(tour) if c.is_block and c.text.startswith("det-harness")],
        run(tour, "det experiment create const.yaml . --follow"),
        put("train.c", TRAIN_C.format(body=trainer)),
        run(tour, "export PKG_CONFIG_PATH=PREFIX/lib/pkgconfig", "export PKG_CONFIG_PATH=/var/lib/det/prefix/lib/pkgconfig"),
        run(tour, "cc -o train train.c $(pkg-config --cflags --libs det)"),
        sh("LD_LIBRARY_PATH=/var/lib/det/prefix/lib ./train"),
        sh("cd ../imagenet"),
        run("docs/porting.md", photographs, photographs + " --fake-data"),
        sh("cd ../..; deploy/quickstart status"),
        run(readme, "apt-get install python3-torch"),
        run(readme, "det python", "det python -c 'import determined.pytorch'"),
        sh("export PYTHONPATH=/var/lib/det/prefix/lib/det/python; cd examples/python/first"),
        run(readme, "python3 -m determined.exec.local model_def:SineTrial --config const.yaml"),
        sh("cd ../../..; mkdir /tmp/net; cd /tmp/net"),
        put("model_def.py", NET_PY + trial),
        put("train.py", NET_PY + trial + script),
        put("const.yaml", code(PYTHON, "yaml", 0)),
        run(PYTHON, "python3 -m determined.exec.local model_def:NetTrial --config const.yaml --test-mode"),
        run(PYTHON, "python3 -m determined.launch.torchrun", "python3 -m determined.launch.torchrun --nproc_per_node=2 train.py"),
        sh("cd -"),
        run(readme, "deploy/quickstart down"),
        sh("test ! -e /var/lib/det"),
    ]


INSTALL = "docs/install.md"


def _blocks():
    return [c.text for c in commands(INSTALL) if c.is_block]


def packages():
    """The first half of docs/install.md, which needs the network."""
    before = [run(INSTALL, text) for text in _blocks()[:3]]
    return [
        *before,
        sh("apt-get install python3-pip python3-venv python3-setuptools python3-wheel"),
        sh("python3 -m venv --system-site-packages /tmp/venv; . /tmp/venv/bin/activate"),
        run(INSTALL, "pip install . --no-build-isolation --no-index"),
        sh('cd /tmp; python3 -c "import determined; print(determined.__file__)"; deactivate'),
        sh("apt-get install curl openssl"),
    ]


#: Without systemd: what the unit says is started by hand, as its user.
UNITS = r"""
unit() { sed -n "s/^$1=//p" "/etc/systemd/system/$2.service" | head -n 1; }
start_unit() {
    local user env
    user=$(unit User "$1") env=$(unit EnvironmentFile "$1")
    (
        if [ -n "$env" ]; then set -a; . "$env"; fi
        exec runuser -u "${user:-root}" -- $(unit ExecStart "$1")
    ) >>"/var/log/$1.log" 2>&1 </dev/null &
    echo $! >"/run/$1.pid"
}
stop_unit() { kill "$(cat "/run/$1.pid")"; tail --pid "$(cat "/run/$1.pid")" -f /dev/null; }
until_() { for _ in $(seq 300); do if "$@" >/dev/null 2>&1; then return 0; fi; sleep 0.2; done; cat /var/log/det-*.log; return 1; }
"""
AS_ADMIN = """export DET_USER=admin DET_PASS_FILE=/var/lib/det/master/admin.password
export DET_MASTER=https://master:8080 DET_MASTER_CERT_FILE=/etc/det/master.crt"""
TRIES = "det experiment create examples/digits/const.yaml examples/digits --config searcher.max_length.epochs=1 --follow"


def cluster():
    """The second half, in a network of its own: a master and an agent as docs/install.md sets them up, then with a certificate from elsewhere."""
    rest = _blocks()[3:]
    master, agent = "systemctl enable --now det-master", "systemctl enable --now det-agent"
    units = {master: "start_unit det-master", agent: "start_unit det-agent"}
    steps = {text: run(INSTALL, text, units.get(text)) for text in rest}
    at_doctor = next(i for i, text in enumerate(rest) if "det-master doctor" in text)
    at_agent = rest.index(master) + 1
    return [
        sh("hostname master; echo 127.0.0.1 master >>/etc/hosts; mkdir -p /etc/systemd/system; pg_ctlcluster 15 main start"),
        sh(UNITS),
        *[steps[t] for t in rest[:at_doctor]],
        put("/etc/det/master.yaml", code(INSTALL, "yaml", 0)),
        *[steps[t] for t in rest[at_doctor:at_agent]],
        sh("until_ test -s /var/lib/det/master/agent.token; until_ curl -fsS --cacert /var/lib/det/master/master.crt https://master:8080/readyz"),
        sh("cp /var/lib/det/master/agent.token /var/lib/det/master/master.crt ."),
        run(INSTALL, "install -D -m 0644 master.crt /etc/det/master.crt"),
        run(INSTALL, "det-master --print-config"),
        *[steps[t] for t in rest[at_agent:]],
        sh(AS_ADMIN),
        sh("until_ det agent list"),
        sh(TRIES),
        run(INSTALL, "det user list"),
        run(INSTALL, "det master lives"),
        run(INSTALL, "det master strays"),
        run(INSTALL, "det master strays --remove"),
        run(INSTALL, "groupadd -g 1900000000 det-share"),
        run(INSTALL, "chmod o-rx", "chmod o-rx /srv/det/checkpoints"),
        *by_fingerprint(),
        *certificate_from_elsewhere(),
        run(INSTALL, "det-agent --work-dir /var/lib/det/agent --end-tasks"),
        sh("stop_unit det-master"),
        run(INSTALL, "runuser -u det-master -- det-master new-life --config /etc/det/master.yaml"),
        sh("start_unit det-master; until_ curl -fsS --cacert master.crt https://master:8080/readyz; det master lives"),
        sh("stop_unit det-master; pg_ctlcluster 15 main stop"),
    ]


def by_fingerprint():
    """As somebody whose host has no certificate of the authority."""
    login = "det user login NAME --fingerprint FINGERPRINT"
    shown = "$(grep -o 'SHA256:[0-9a-f]*' /var/log/det-master.log | tail -n 1)"
    return [
        sh("unset DET_MASTER_CERT_FILE; ! det agent list </dev/null 2>refused; grep -e --fingerprint refused"),
        run(INSTALL, login, login.replace("NAME", "admin").replace("FINGERPRINT", f'"{shown}"') + " </var/lib/det/master/admin.password"),
        sh("det agent list; export DET_MASTER_CERT_FILE=/etc/det/master.crt"),
    ]


def certificate_from_elsewhere():
    in_its_place = "security: {tls: {cert: /etc/det/master.crt, key: /etc/det/master.key}}"
    return [
        sh("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=master -addext subjectAltName=DNS:master -keyout master.key -out master.crt"),
        sh("install -m 0644 master.crt /etc/det/master.crt; install -o det-master -m 0400 master.key /etc/det/master.key"),
        sh(f"sed -i 's|^security:.*|{in_its_place}|' /etc/det/master.yaml; grep '{in_its_place}' /etc/det/master.yaml"),
        sh("stop_unit det-agent; stop_unit det-master; start_unit det-master; until_ curl -fsS --cacert master.crt https://master:8080/readyz"),
        sh("(set -a; . /etc/det/agent.env; det-agent doctor); start_unit det-agent"),
        sh("until_ det agent list"),
        sh(TRIES),
        sh("stop_unit det-agent"),
    ]


#: name -> (its steps, whether it has the network)
SCENES = {"one_machine": (one_machine, True), "packages": (packages, True), "cluster": (cluster, False)}


def script(name):
    """A scene as one bash script, which names the command that failed."""
    out = ["set -eEu -o pipefail", "cd /det", "trap 'echo \"FAILED: $step (status $?)\" >&2' ERR"]
    for doc, text, typed in SCENES[name][0]():
        said = f"{doc}: {text}" if doc else typed
        said = said.split("\n")[0].replace("'", "'\\''")
        out += [f"step='{said}'; echo \"== $step\"", typed]
    return "\n".join(out) + "\n"


def is_mention(command):
    """`det job update JOB --ahead-of OTHER` within a sentence: verbs, options and places to fill in, nothing to be typed as it is. That it has
    such verbs and options is checked; it runs where a scene fills it in."""
    return not command.is_block and all(re.fullmatch(r"[a-z][a-z0-9-]*|--?[a-zA-Z-]+|[A-Z]+|(tests|deploy|bench)/\S+|model_def\S+|master\.yaml", w) for w in command.text.split())


def uncovered():
    """Commands that no scene runs and no list names, and entries here that no document has any more."""
    found = [c for doc in documents() for c in commands(doc)]
    told = {(c.doc, c.text) for c in found}
    tried = {(doc, text) for make, _ in SCENES.values() for doc, text, _ in make() if doc}
    named = set(NOT_RUN) | ABSENT
    mentioned = {(c.doc, c.text) for c in found if is_mention(c)}
    return sorted(told - tried - named - mentioned), sorted((tried | named) - told)

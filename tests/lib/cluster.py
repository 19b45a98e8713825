"""A private cluster for tests and benchmarks: PostgreSQL, det-master and agents in one temporary directory.

    with Cluster(agents=1, slots=2) as c:
        exp = c.create("examples/digits/const.yaml", "examples/digits")
        c.wait(exp, "STATE_COMPLETED")

Every process is started by this object and ended by it, by id. Nothing waits for a time: wait_until polls a
condition up to a deadline and fails with the logs. Binaries come from $DET_BIN (an installed prefix's bin).
"""
import base64
import contextlib
import glob
import hashlib
import http.client
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.environ.get("DET_BIN") or os.path.join(os.environ.get("DET_BUILD", os.path.join(TOP, "build")), "prefix", "bin")
# Times here are those of an idle machine; whoever waits for something waits for that many times as long, and for a minute at least.
KILL_MAX_S = 10  # I3: every kill ends within that, however slow the machine or the build
SLOWER = 8 if os.environ.get("DET_SANITIZED") else 3
HANG_S = 60  # no machine stands still for so long
# How a test ends its daemons: what it proves stays so by SIGKILL, but whoever is killed counts no lines (tests/run coverage).
END = signal.SIGTERM if os.environ.get("DET_COVERAGE") else signal.SIGKILL
# A runner's time limit arrives as SIGTERM: an exception, so that clusters end what they started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
TERMINAL = ("STATE_COMPLETED", "STATE_CANCELED", "STATE_ERROR")
PG_BIN = sorted(glob.glob(os.environ.get("DET_PG_BIN") or "/usr/lib/postgresql/*/bin"))[-1:]
# A build's own: it lays the schema once, as its det-master would at each start. Without a build, which a prefix alone does not name, that does.
LAY_SCHEMA = os.environ.get("DET_BUILD") and shutil.which(os.path.join(os.environ["DET_BUILD"], "tests", "integration", "lay-schema"))
PSQL = PG_BIN[0] + "/psql" if PG_BIN else "psql"  # without Debian's wrapper, which takes five times as long


def available_bytes():
    """Of memory, for whoever asks for it now: a tmpfs tells only how large it may become."""
    with open("/proc/meminfo") as f:
        return 1024 * next(int(line.split()[1]) for line in f if line.startswith("MemAvailable:"))


def has_memory_for_pg():
    """Where a suite of tests/run has a /dev/shm that ends with it (a test that is killed leaves its database), and there is far more room
    than databases of tests take. Half of the time of a system call for a file is that of the journal of a disk which all tests share.
    Elsewhere, as for benchmarks, they are on a disk as people's are."""
    with contextlib.suppress(OSError):
        s = os.statvfs("/dev/shm")
        room = min(s.f_bavail * s.f_frsize, available_bytes())
        return os.environ.get("DET_PG_MEMORY") == "yes" and os.access("/dev/shm", os.W_OK) and room >= 8 << 30
    return False


def pg_account():
    """Whom a root's PostgreSQL, which refuses root, runs as (tests/lib/pg.sh)."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return pwd.getpwnam("nobody")


class ApiError(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


def wait_until(condition, seconds, what):
    """Polls until condition() is truthy and returns that value. A look may be a process and a backend of PostgreSQL, and others want
    the processors: the longer it has waited, the rarer it looks."""
    most_s = max(seconds * SLOWER, HANG_S)
    begin = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited_s = time.monotonic() - begin
        if waited_s > most_s:
            raise AssertionError(f"waited {most_s} s for {what}")
        time.sleep(min(max(0.02, waited_s / 20), 0.2))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def is_looking(pid):
    """det-task's own look whether a task's processes reach the master: it comes after three seconds, and goes with an answer."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return b"--reach" in f.read().split(b"\0")
    except OSError:
        return False


def processes_with(*needles):
    """Ids of live processes whose environment holds all needles (what setsid'd and double-forked keeps), but for is_looking()."""
    found = []
    for p in os.listdir("/proc"):
        if p.isdigit() and int(p) != os.getpid():
            try:
                with open(f"/proc/{p}/environ", "rb") as f:
                    env = f.read()
            except OSError:
                continue
            if all(n.encode() in env for n in needles) and alive(int(p)) and not is_looking(p):
                found.append(int(p))
    return found


class Cluster:
    def __init__(self, agents=1, slots=2, master_args=(), agent_args=(), env=None, keep=None, pg_args=(), apart=False, agent_uid=0):
        """keep: a directory of its own for it, which stays and is begun with the next time. pg_args: settings "name=value".
        apart: each user's tasks run as a uid of their own, as without any option; else as the agent does.
        agent_uid: agents are not root."""
        self.keep = keep or os.environ.get("DET_TEST_KEEP")
        if keep:
            os.makedirs(keep, exist_ok=True)
        self.dir = os.path.abspath(keep) if keep else tempfile.mkdtemp(prefix="det-test-")
        os.chmod(self.dir, 0o755)
        self.master_args, self.agent_args, self.slots = list(master_args), list(agent_args), slots
        # TMPDIR: what a task that was killed leaves there goes with the cluster.
        self.env = {**os.environ, "DET_THREADS_PER_SLOT": "1", "DET_CACHE_DIR": self.path("cache"), "TMPDIR": self.path("tmp"), **(env or {})}
        self.procs, self.port, self.token = {}, 0, None
        self.n_agents, self.pg_args, self.apart, self.agent_uid = agents, list(pg_args), apart, agent_uid
        self.more_masters = []  # URLs beside the first, for agents

    # -- life ------------------------------------------------------------------------------------
    def __enter__(self):
        try:
            self.start_pg()
            for d in ("checkpoints", "cache", "tmp"):
                os.makedirs(self.path(d), exist_ok=True)
                os.chmod(self.path(d), 0o777)
            self.start_master()
            for i in range(self.n_agents):
                self.start_agent(i)
            self.wait_agents(self.n_agents)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, tb):
        if kind and kind is not KeyboardInterrupt:
            self.show_logs()
        for name in [n for n in self.procs if n.startswith("agent-")]:  # who lives starts more
            self.stop(name, END)
        self.end_tasks()
        for name in [n for n in self.procs if n != "pg"]:
            self.stop(name, END)
        self.end_rest()
        self.stop("pg", signal.SIGINT if self.keep else signal.SIGQUIT)  # what goes needs no last checkpoint
        if not self.keep:
            self.remove()

    def end_rest(self):
        """Whatever of this cluster lives beside its daemons and tasks, a det that was left for example."""
        rest = [p for p in processes_with(f"DET_CACHE_DIR={self.path('cache')}") if p != self.pid("pg")]
        for pid in rest:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(AssertionError):  # it is told by what it leaves
            wait_until(lambda: not any(map(alive, rest)), 10, "the end of what was killed")

    def remove(self):
        """A process that was killed may write its last file while the others are removed."""
        data = os.path.realpath(self.path("pg-data"))

        def gone():
            for d in (data, self.dir):
                shutil.rmtree(d, ignore_errors=True)
            return not os.path.exists(data) and not os.path.exists(self.dir)
        with contextlib.suppress(AssertionError):  # whoever looks through /tmp tells
            wait_until(gone, 10, "the cluster's directory to go")

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def show_logs(self, lines=25):
        for name in sorted(os.listdir(self.dir)):
            if name.endswith(".log"):
                with open(self.path(name), errors="replace") as f:
                    all_of_it = f.readlines()
                bug = [i for i, line in enumerate(all_of_it) if "Sanitizer: " in line or "runtime error: " in line][:1]  # its stacks come next
                tail = all_of_it[bug[0]:bug[0] + 4 * lines] if bug else all_of_it[-lines:]
                print(f"--- {name}", "".join(tail), sep="\n", file=sys.stderr)

    def spawn(self, name, argv, **kw):
        with open(self.path(name + ".log"), "ab") as log:
            self.procs[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                                cwd="/", env=self.env, **kw)
        return self.procs[name]

    def pid(self, name):
        return self.procs[name].pid if name in self.procs else -1

    def stop(self, name, sig=signal.SIGTERM, seconds=15):
        p = self.procs.pop(name, None)
        if not p:
            return
        if p.poll() is None:
            p.send_signal(sig)
            try:
                p.wait(seconds * SLOWER)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def processes(self, exp):
        """Ids of the processes of an experiment of this cluster."""
        return processes_with(f"DET_EXPERIMENT_ID={exp}\0", f"DET_CACHE_DIR={self.path('cache')}\0")

    def is_telling(self, task):
        """Whether a det-task of this task lives on this cluster's agents: it ends when all is told."""
        mine, name = b"det-task\0" + self.path("agent-").encode(), f"/tasks/{task}.".encode()
        for p in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{p}/cmdline", "rb") as f:
                    line = f.read()
            except OSError:  # gone meanwhile
                continue
            if line.startswith(mine) and name in line:
                return True
        return False

    # -- PostgreSQL --------------------------------------------------------------------------------
    def start_pg(self):
        data, sock = self.path("pg-data"), self.path("pg-socket")
        root = os.getuid() == 0
        user = pg_account() if root else None
        if has_memory_for_pg() and not self.keep and not self.apart and not os.path.lexists(data):
            os.symlink(tempfile.mkdtemp(prefix="det-test-pg-", dir="/dev/shm"), data)
        for d in (data, sock):
            os.makedirs(d, mode=0o700, exist_ok=True)
            if root:
                os.chown(d, user.pw_uid, user.pw_gid)
        as_pg = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if root else {}
        if not os.path.exists(os.path.join(data, "PG_VERSION")):
            what = ["laid", LAY_SCHEMA] if LAY_SCHEMA else ["template"]
            made = subprocess.run(["bash", os.path.join(TOP, "tests", "lib", "pg.sh"), *what], check=True, stdout=subprocess.PIPE, text=True, cwd="/").stdout.strip()
            subprocess.run(["cp", "-a", "--sparse=always", made + "/.", data], check=True, cwd="/")
        self.spawn("pg", [PG_BIN[0] + "/postgres", "-D", data, "-c", "listen_addresses=", "-c", f"unix_socket_directories={sock}",
                          "-c", "log_min_messages=warning", "-c", "fsync=" + os.environ.get("DET_PG_FSYNC", "on"), *[x for s in self.pg_args for x in ("-c", s)]], **as_pg)
        wait_until(lambda: subprocess.run([PG_BIN[0] + "/pg_isready", "-q", "-h", sock, "-U", "det"]).returncode == 0, 30, "PostgreSQL")
        if not self.sql("SELECT 1 FROM pg_database WHERE datname='det'", "postgres"):
            self.sql("CREATE DATABASE det", "postgres")

    def sql(self, query, db="det"):
        r = subprocess.run([PSQL, "-qAtX", "-h", self.path("pg-socket"), "-U", "det", "-d", db, "-c", query],
                           text=True, capture_output=True, check=True)
        return r.stdout.strip()

    # -- daemons -----------------------------------------------------------------------------------
    def start_master(self):
        port_file = self.path("master.port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        self.spawn("master", [BIN + "/det-master", "--host", "127.0.0.1", "--port", str(self.port),
                              "--db", f"host={self.path('pg-socket')} user=det dbname=det", "--port-file", port_file,
                              "--admin-password-file", self.path("admin.password"), "--agent-token-file", self.path("agent.token"),
                              "--checkpoint-dir", self.path("checkpoints"), *self.master_args])
        wait_until(lambda: self.procs["master"].poll() is not None or (os.path.exists(port_file) and open(port_file).read().strip()), 30, "det-master")
        assert self.procs["master"].poll() is None, "det-master ended at start"
        self.port = int(open(port_file).read())

    def start_agent(self, i=0):
        name, token, more = f"agent-{i}", self.path("agent.token"), {}
        if self.agent_uid:
            more = {"user": self.agent_uid, "group": self.agent_uid, "extra_groups": []}
            token = shutil.copy(token, self.path(name + ".token"))
            os.makedirs(self.path(name), exist_ok=True)
            for path in (token, self.path(name)):
                os.chown(path, self.agent_uid, self.agent_uid)
        self.spawn(name, [BIN + "/det-agent", "--master", ",".join([f"http://127.0.0.1:{self.port}", *self.more_masters]), "--token-file", token,
                          "--id", name, "--slots", str(self.slots), "--work-dir", self.path(name), *([] if self.apart else ["--task-user", ""]), *self.agent_args], **more)

    def wait_agents(self, n):
        wait_until(lambda: len([a for a in self.api("GET", "/agents")["agents"] if a["enabled"]]) >= n, 30, f"{n} agents")

    def end_tasks(self):
        for i in range(self.n_agents):
            if os.path.isdir(self.path(f"agent-{i}")):
                subprocess.run([BIN + "/det-agent", "--work-dir", self.path(f"agent-{i}"), "--end-tasks"], env=self.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60 * SLOWER)

    # -- API ---------------------------------------------------------------------------------------
    def login(self):
        password = open(self.path("admin.password")).read().strip()
        hashed = hashlib.sha512(("GubPEmmotfiK9TMD6Zdw" + password).encode()).hexdigest()
        self.token = self.request("POST", "/auth/login", {"username": "admin", "password": hashed, "isHashed": True}, auth=False)["token"]

    def request(self, method, path, body=None, auth=True, headers=None):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOWER)
        try:
            h = {"Authorization": "Bearer " + self.token} if auth and self.token else {}
            conn.request(method, "/api/v1" + path, None if body is None else json.dumps(body), {**h, **(headers or {})})
            r = conn.getresponse()
            text = r.read().decode()
            if r.status != 200:
                raise ApiError(r.status, text)
            return json.loads(text) if text else {}
        finally:
            conn.close()

    def api(self, method, path, body=None):
        if not self.token:
            self.login()
        return self.request(method, path, body)

    def forget_answers(self):
        """Searches are answered from what was found before, until the master writes something: it hears nothing of a test's own SQL."""
        self.api("POST", "/users/setting", {"settings": [{"key": "forget", "value": "1", "storagePath": "tests"}]})

    def api_patiently(self, method, path, body=None, seconds=60):
        """Like api, through an outage of the master or the database."""
        def attempt():
            try:
                return [self.api(method, path, body)]
            except (OSError, http.client.HTTPException):
                return None
            except ApiError as e:
                if e.status in (502, 503, 504):
                    return None
                raise
        return wait_until(attempt, seconds, f"{method} {path}")[0]

    def det(self, *args, check=True, env=None, within=(), **kw):
        """`within`: the beginning of a command that runs another, such as unshare --mount."""
        e = {**self.env, "DET_MASTER": f"http://127.0.0.1:{self.port}", "DET_USER": "admin",
             "DET_PASS_FILE": self.path("admin.password"), "XDG_CONFIG_HOME": self.path("config"), **(env or {})}
        r = subprocess.run([*within, BIN + "/det", *args], text=True, capture_output=True, env=e, timeout=300 * SLOWER, **kw)
        if check and r.returncode != 0:
            raise AssertionError(f"det {' '.join(args)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
        return r

    def create(self, config, context, activate=True, **replace):
        """Submits a directory; config is a path or YAML text; replace edits it: key text -> new text."""
        text = open(os.path.join(TOP, config)).read() if config.endswith(".yaml") else config
        for old, new in replace.items():
            text = text.replace(old, new)
        files = []
        context = os.path.join(TOP, context) if context else None
        for root, dirs, names in os.walk(context) if context else []:
            for n in sorted(names):
                full = os.path.join(root, n)
                files.append({"path": os.path.relpath(full, context), "type": 48, "mode": 0o100644, "uid": 0, "gid": 0, "mtime": "1700000000",
                              "content": base64.b64encode(open(full, "rb").read()).decode()})
        r = self.api("POST", "/experiments", {"config": text, "modelDefinition": files, "activate": activate, "validateOnly": False})
        return r["experiment"]["id"]

    def experiment(self, exp):
        return self.api_patiently("GET", f"/experiments/{exp}")["experiment"]

    def trials(self, exp):
        return self.api_patiently("GET", f"/experiments/{exp}/trials?limit=1000")["trials"]

    def wait(self, exp, state="STATE_COMPLETED", seconds=120):
        def done():
            e = self.experiment(exp)
            return e if e["state"] == state or e["state"] in TERMINAL else None
        e = wait_until(done, seconds, f"experiment {exp} to be {state}")
        if e["state"] != state:
            for t in self.trials(exp):
                print(f"--- trial {t['id']} {t['state']}", self.logs(t["id"])[-4000:], sep="\n", file=sys.stderr)
            raise AssertionError(f"experiment {exp} ended {e['state']}, not {state}")
        return e

    def logs(self, trial):
        """All of it where the trial has ended: a det-task waits 1.5 s for its last lines to be taken, 0.3 s if killed, and tells of the exit."""
        t = self.api("GET", f"/trials/{trial}")["trial"]
        if t["state"] in TERMINAL:
            with contextlib.suppress(AssertionError):  # what is then missed of it says more
                wait_until(lambda: not self.is_telling(t["taskId"]), 10, "its last lines")
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * SLOWER)
        conn.request("GET", f"/api/v1/trials/{trial}/logs", headers={"Authorization": "Bearer " + self.token})
        text = conn.getresponse().read().decode()
        conn.close()
        return "".join(json.loads(line)["result"]["message"] for line in text.splitlines() if line)

    def metrics(self, trial, group="training"):
        """[(steps, metrics)] of the rows that count (not archived), in order."""
        q = f"SELECT coalesce(json_agg(json_build_array(steps, metrics) ORDER BY steps), '[]') FROM metrics WHERE trial_id={trial} AND grp='{group}' AND NOT archived"
        return json.loads(self.sql(q))

    def timeline(self, trial):
        """The kinds of what happened to a trial, in order."""
        return [e["kind"] for e in self.api("GET", f"/trials/{trial}/timeline")["events"]]

    def slots_free(self):
        """True when every slot of every agent is without a container."""
        agents = self.api_patiently("GET", "/agents")["agents"]
        return all(s["container"] is None for a in agents for s in a["slots"].values())

#!/usr/bin/env python3
"""Each request of each verb of det is refused once: det says in what words, fails, and tells nothing that it does not know."""
import http.client
import http.server
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, SLOWER, TOP, Cluster  # noqa: E402

DIGITS = os.path.join(TOP, "examples/digits")
CONST = os.path.join(DIGITS, "const.yaml")
WORDS = "planted: the moon is in the wrong house"
SMALL = ["--config", "searcher.max_length={batches: 40}", "--config", "scheduling_unit=20"]

# What is told though a request for more words was refused: (the verb, the end of its path).
DOES_WITHOUT = (("t describe", "/trials/1/why"), ("e cancel", "/experiments/2"), ("e kill", "/experiments/2"))


class Gate(http.server.BaseHTTPRequestHandler):
    """Passes requests on to the master, but for the nth, which it refuses as a master would."""
    protocol_version = "HTTP/1.1"
    to, nth, seen = 0, 0, []

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "/auth/login" not in self.path:
            Gate.seen.append(f"{self.command} {self.path}")
            if len(Gate.seen) == Gate.nth:
                return self.answer(400, b'{"error": {"message": "%s"}}' % WORDS.encode())
        conn = http.client.HTTPConnection("127.0.0.1", Gate.to, timeout=60 * SLOWER)
        conn.request(self.command, self.path, body or None, {k: v for k, v in self.headers.items() if k.lower() not in ("host", "accept-encoding")})
        r = conn.getresponse()
        data = r.read()
        conn.close()
        self.answer(r.status, data, r.getheader("Content-Type"))

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on


def commands(c):
    """What is typed. {n}: the number of the request that is refused, so that what is made at last is known by how many there are."""
    uuid = c.api("GET", "/experiments/1/checkpoints")["checkpoints"][0]["uuid"]
    with open(c.path("base.yaml"), "w") as f:
        f.write("max_restarts: 7\n")
    yield from ("master info", "master config", "master logs", "master audit", "master lives", "master strays", "master strays --remove --yes", "master retention")
    yield from ("agent list", "agent disable agent-0", "agent enable agent-0", "agent enable --all", "slot list", "slot disable agent-0 0",
                "slot enable agent-0 0")
    yield from ("store list", "job list", "task list", "rp list", "why exp:2", "why trial:1", "resources raw 2026-01-01T00:00:00Z 2026-01-02T00:00:00Z",
                "resources aggregated 2026-01-01 2026-01-02")
    yield from ("user whoami", "user list", "user create ann{n}", "user deactivate ann2", "user activate ann2", "token create", "token list", "token list ann2",
                "auth link")
    yield from ("user-group list", "user-group create crew{n}", "user-group describe crew2", "user-group add-user crew2 ann2", "user-group list --groups-user-belongs-to ann2",
                "user-group remove-user crew2 ann2", "user-group change-name crew2 team{n}", "user-group delete team3 --yes")
    yield from ("rbac list-roles", "rbac my-permissions", "rbac list-users-roles ann2", "rbac describe-role Viewer", "rbac assign-role Viewer --username-to-assign ann2",
                "rbac unassign-role Viewer --username-to-assign ann2")
    yield from ("template list", f"template create base{{n}} {c.path('base.yaml')}", f"template set base2 {c.path('base.yaml')}", "template describe base2",
                "template remove base2")
    yield from ("workspace create W{n}", "workspace list", "workspace describe W2", "workspace list-projects W2", "project create W2 P{n}", "project describe W2 P3",
                "project list-experiments W2 P3", "project archive W2 P3", "project unarchive W2 P3", "workspace archive W2", "workspace unarchive W2")
    yield from ("model create M{n}", "model list", f"model register-version M2 {uuid}", "model describe M2", "model describe M2 --version 1", "model list-versions M2", "model edit M2 --notes x",
                "model move M2 -w W2", "model archive M2", "model unarchive M2", "model delete M2 1 --yes", "model delete M2 --yes")
    yield from ("e list", "e describe 1", "e describe 1 --metrics", "e list-trials 1", "e list-checkpoints 1", "e list-checkpoints 1 --best 1", "e config 1", "e rungs 1", "e replay 1",
                "e logs 1", "e wait 1", "e watch 1", f"e download-model-def 1 -o {c.path('model.tgz')}", "e set name 1 new", "e set description 1 what", "e set weight 2 2",
                "e set max-slots 2 1", "e set priority 2 10", "e label add 1 x", "e label remove 1 x", "e move 1 W2 P3", "e archive 1", "e unarchive 1",
                "e activate 2", "e pause 2", f"e download 1 -o {c.path('best')}{{n}}", f"e create {CONST} {DIGITS} --paused")
    yield from ("t describe 1", "t describe 1 --metrics", "t logs 1", "t timeline 1", "t watch 1", "t plot 1", "t profile 1", f"t download 1 --best -o {c.path('trial')}{{n}}", "t kill 1",
                "tensorboard start 1", "tensorboard start -t 1", f"checkpoint describe {uuid}", f"checkpoint download {uuid} -o {c.path('one')}{{n}}",
                f"checkpoint rm {uuid} --glob *.none --yes", "checkpoint gc --experiment 1", "e cancel 2", "e kill 2", "e delete 2 --yes")


def run(c, words):
    env = {**c.env, "DET_MASTER": f"http://127.0.0.1:{c.gate}", "DET_USER": "admin", "DET_PASS_FILE": c.path("admin.password"), "XDG_CONFIG_HOME": c.path("config")}
    return subprocess.run([BIN + "/det", *words], text=True, capture_output=True, stdin=subprocess.DEVNULL, env=env, timeout=300 * SLOWER)


def wrong_of(verb, r, path):
    """What is wrong with how det took a refusal; None: nothing."""
    if any(verb.startswith(v) and path.startswith("GET ") and path.endswith(end) for v, end in DOES_WITHOUT):
        return None if r.returncode == 0 else "does without it, and failed"
    if r.returncode != 1:
        return f"exit {r.returncode}"
    return None if WORDS in r.stderr else "does not say why"


def refuse_each(c, text):
    """Yields what is wrong with it, a sentence each."""
    for n in range(1, 30):
        Gate.nth, Gate.seen = n, []
        words = text.format(n=n).split()
        r = run(c, words)
        if len(Gate.seen) < n:
            if r.returncode != 0:
                yield f"det {text}: {n - 1} requests, none refused: exit {r.returncode}, {r.stderr}"
            return
        wrong = wrong_of(text, r, Gate.seen[n - 1])
        if wrong:
            yield f"det {text}: {Gate.seen[n - 1]}: {wrong}: {r.stdout[-300:]!r} {r.stderr[-300:]!r}"
    yield f"det {text} has no end of requests"


def main():
    with Cluster(agents=1, slots=1) as c:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gate)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Gate.to, c.gate = c.port, server.server_address[1]
        c.det("e", "create", CONST, DIGITS, *SMALL)
        c.wait(1)
        c.det("e", "create", CONST, DIGITS, "--paused")
        wrong = [w for text in commands(c) for w in refuse_each(c, text)]
        server.shutdown()
        assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    main()

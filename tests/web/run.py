#!/usr/bin/env python3
"""tests/web/run.py [NAME...]: the page's journeys in a headless Chromium on a cluster of their own.

Needs node, `npm ci --ignore-scripts` in web/ and a Chromium ($DET_CHROMIUM, else /usr/bin/chromium). Pictures of every page in both themes go to
$DET_TEST_OUT, where that is set."""
import contextlib
import http.server
import os
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TOP, Cluster  # noqa: E402
from masters import start_standby, wait_serving  # noqa: E402
from proxy import Proxy  # noqa: E402


# A pool whose order people can change, and that nothing runs in; what does not stop when asked is killed soon. Receivers
# of webhooks are the journeys' own.
SETTINGS = """
resource_pools:
  - {pool_name: line, scheduler: {type: priority}}
preempt_timeout: 15
webhooks: {networks: 127.0.0.0/8}
quotas:
  - {user: admin, pool: line, slots: 8}
"""


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as settings:
        settings.write(SETTINGS)
        settings.flush()
        return journeys(["--web-dir", os.path.join(TOP, "web/dist"), "--config", settings.name])


class Masters:
    """What a journey may ask of the masters, each a POST that is answered when it is done; `front` is an address before whichever leads."""

    def __init__(self, c):
        self.c, self.front = c, Proxy(("127.0.0.1", c.port))

    def kill(self):
        self.front.refuses = True  # nothing listens behind it
        self.c.stop("master", signal.SIGKILL)

    def start(self):
        self.c.start_master()
        self.front.target, self.front.refuses = ("127.0.0.1", self.c.port), False
        self.c.wait_agents(1)

    def stand_by(self):
        self.port = start_standby(self.c)

    def take_over(self):
        wait_serving(self.c, self.port)
        self.front.target, self.front.refuses = ("127.0.0.1", self.port), False

    def back(self):
        self.front.cut()
        self.c.stop("standby")
        self.start()


@contextlib.contextmanager
def asked(masters):
    """An address of the loopback that does what is posted to it."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            act = {f.__name__: f for f in (masters.kill, masters.start, masters.stand_by, masters.take_over, masters.back)}.get(self.path[1:])
            if act:
                act()
            self.send_response(204 if act else 404)
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def journeys(master_args):
    with Cluster(slots=2, master_args=master_args) as c, asked(masters := Masters(c)) as control:
        c.login()
        env = {**os.environ, "DET_TEST_URL": f"http://127.0.0.1:{c.port}", "DET_TEST_TOKEN": c.token,
               "DET_TEST_FRONT": f"http://127.0.0.1:{masters.front.port}", "DET_TEST_MASTERS": control,
               "DET_TEST_PASSWORD": open(c.path("admin.password")).read().strip(), "TMPDIR": c.path("tmp"), "TZ": "Asia/Kolkata", "HOME": c.path("tmp")}
        return subprocess.run(["node", os.path.join(TOP, "web/test/journeys/run.mjs"), *sys.argv[1:]], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())

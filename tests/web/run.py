#!/usr/bin/env python3
"""tests/web/run.py [NAME...]: the page's journeys in a headless Chromium on a cluster of their own.

Needs node, `npm ci --ignore-scripts` in web/ and a Chromium ($DET_CHROMIUM, else /usr/bin/chromium). Pictures of every page in both themes go to
$DET_TEST_OUT, where that is set."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TOP, Cluster  # noqa: E402


# A pool whose order people can change, and that nothing runs in; what does not stop when asked is killed soon.
SETTINGS = """
resource_pools:
  - {pool_name: line, scheduler: {type: priority}}
preempt_timeout: 15
quotas:
  - {user: admin, pool: line, slots: 8}
"""


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as settings:
        settings.write(SETTINGS)
        settings.flush()
        return journeys(["--web-dir", os.path.join(TOP, "web/dist"), "--config", settings.name])


def journeys(master_args):
    with Cluster(slots=2, master_args=master_args) as c:
        c.login()
        env = {**os.environ, "DET_TEST_URL": f"http://127.0.0.1:{c.port}", "DET_TEST_TOKEN": c.token,
               "DET_TEST_PASSWORD": open(c.path("admin.password")).read().strip(), "TMPDIR": c.path("tmp"), "TZ": "Asia/Kolkata", "HOME": c.path("tmp")}
        return subprocess.run(["node", os.path.join(TOP, "web/test/journeys/run.mjs"), *sys.argv[1:]], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())

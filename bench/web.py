#!/usr/bin/env python3
"""web: what a person waits for on the page, in a headless Chromium (bench/web.mjs), from a cluster of its own.

Needs node and `npm ci --ignore-scripts` in web/. 100,000 experiments come from the first statements of bench/api_rows.sql,
without trials."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
from api import CONFIG  # noqa: E402
from cluster import TOP, Cluster  # noqa: E402


def load(c, experiments):
    with open(os.path.join(HERE, "api_rows.sql")) as f:
        rows = f.read().split("CREATE TEMP TABLE made")[0] + "ANALYZE;\n"
    subprocess.run(["psql", "-1qAtX", "-v", "ON_ERROR_STOP=1", "-h", c.path("pg-socket"), "-U", "det", "-d", "det", "-v", f"experiments={experiments}",
                    "-v", "per=1", "-v", "config=" + CONFIG], input=rows, text=True, check=True, stdout=subprocess.DEVNULL)


def main():
    with Cluster(agents=0, master_args=["--web-dir", os.path.join(TOP, "web/dist")]) as c:
        c.login()
        load(c, 100000)
        env = {**os.environ, "DET_TEST_URL": f"http://127.0.0.1:{c.port}", "DET_TEST_TOKEN": c.token,
               "DET_TEST_PASSWORD": open(c.path("admin.password")).read().strip(), "TMPDIR": c.path("tmp"), "HOME": c.path("tmp")}
        return subprocess.run(["node", os.path.join(TOP, "web/test/bench.mjs")], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())

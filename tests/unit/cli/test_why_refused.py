#!/usr/bin/env python3
"""usage: test_why_refused.py DET    a master that cannot tell why is asked once, not for an experiment of that number too"""
import http.server
import os
import subprocess
import sys
import tempfile
import threading


class Refusing(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        Refusing.asked.append(self.path)
        self.send_response(400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main(det):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="det-tests-") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "DET_USER_TOKEN": "t", "DET_MASTER": f"http://127.0.0.1:{server.server_port}"}
        r = subprocess.run([det, "why", "5"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    server.shutdown()
    assert r.returncode == 1, r
    about = [path for path in Refusing.asked if path.startswith(("/api/v1/trials/", "/api/v1/experiments/"))]
    assert about == ["/api/v1/trials/5/why"], Refusing.asked


if __name__ == "__main__":
    main(*sys.argv[1:])

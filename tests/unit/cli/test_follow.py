#!/usr/bin/env python3
"""usage: test_follow.py DET    a followed log outlives absences of its master, however silent the trial is"""
import http.server
import os
import subprocess
import sys
import tempfile
import threading

TOLD = threading.Event()  # det has said that the master is back


class Restarted(http.server.BaseHTTPRequestHandler):
    """Cuts the first two streams before any line, is away after each, and ends the third."""
    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self):
        Restarted.asked += 1
        if Restarted.asked in (2, 4):  # no master behind the proxy
            self.send_response(503)
            self.send_header("Retry-After", "60")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if Restarted.asked > 1:
            TOLD.wait(60)
            TOLD.clear()
        if Restarted.asked > 4:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True

    def log_message(self, *_):
        pass


def main(det):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Restarted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    said = []
    with tempfile.TemporaryDirectory(prefix="det-tests-") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "DET_USER_TOKEN": "t", "DET_MASTER": f"http://127.0.0.1:{server.server_port}"}
        with subprocess.Popen([det, "t", "logs", "-f", "5"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
            for line in p.stdout:
                said.append(line)
                if line == "det: the master is back\n":
                    TOLD.set()
    server.shutdown()
    assert p.returncode == 0 and Restarted.asked == 5, (p.returncode, Restarted.asked, said)
    assert ["back" in line or "is away, and is asked again: " in line and "away" for line in said] == ["away", True, "away", True], said


if __name__ == "__main__":
    main(*sys.argv[1:])

#!/usr/bin/env python3
"""usage: test_version.py DET    what a master that lies has to say of itself, and of its absence, never reaches a terminal raw"""
import http.server
import json
import os
import pty
import subprocess
import sys
import tempfile
import threading

EVIL = "x\x1b]0;owned\x07\x7f\x9b2J"


class Liar(http.server.BaseHTTPRequestHandler):
    answers = []  # the last one for ever

    def do_GET(self):
        status, answer = Liar.answers.pop(0) if len(Liar.answers) > 1 else Liar.answers[0]
        body = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Retry-After", "60")  # no more than one try
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def on_terminal(words, env):
    screen, theirs = pty.openpty()
    p = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(screen, 65536):
            said += more
    except OSError:  # EIO: nobody has it open any more
        pass
    os.close(screen)
    assert p.wait(60) == 0, said
    return said.decode()


def main(det):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def said_of(*words, answers):
        Liar.answers = answers
        said = on_terminal([det, *words], env)
        assert not set(said) & set("\x1b\x07\x7f\x9b"), ascii(said)
        return said

    with tempfile.TemporaryDirectory(prefix="det-tests-") as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "DET_USER_TOKEN": "t", "DET_MASTER": f"http://127.0.0.1:{server.server_port}", "TERM": "dumb"}
        away = (503, {"message": EVIL})
        assert "owned" in said_of("version", answers=[(200, {EVIL: EVIL, "version": "1"})])
        assert "does not say its version: " in (said := said_of("version", answers=[away])) and "owned" in said, said
        assert "does not say its version: GET /info: expected an object" in said_of("version", answers=[(200, [1])])
        assert "owned" in said_of("master", "info", answers=[(200, {"version": EVIL})])
        there = [(200, {"experiment": {"id": 5, "state": state}}) for state in ("STATE_ACTIVE", "STATE_COMPLETED")]
        said = said_of("e", "wait", "5", "--json", answers=[there[0], away, there[1]])
        assert "is asked again: " in said and "owned" in said, said
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])

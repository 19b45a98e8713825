#!/usr/bin/env python3
"""Every verb and option of Determined's det is known: it is done, or what to do instead is said."""
import http.server
import os
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN  # noqa: E402

WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "determined_words.txt")
UUID = "0b7a9d4e-4a4c-4f0e-9a55-3b1f6b7f9d10"


class Refusing(http.server.BaseHTTPRequestHandler):
    """A master that refuses everything at once, and counts it."""
    asked = 0

    def refuse(self):
        Refusing.asked += 1
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = refuse

    def log_message(self, *args):
        pass


def read_lines():
    """(names of the noun, names of the verb, its arguments, its options) of each line."""
    groups = {}
    for line in open(WORDS):
        line = line.strip()
        if line.startswith("{"):
            name, _, text = line.partition(" = ")
            groups[name] = text
        elif line and not line.startswith("#"):
            for name, text in groups.items():
                line = line.replace(name, text)
            words, args, options = (part.split() for part in (line + " ").split("|"))
            yield words[0].split(","), words[1].split(",") if words[1:] else [""], args, options


ALIASES = {("b", "ls"): ("bindings", "list"), ("b", "c"): ("bindings", "call")}


def verbs():
    """Each once: without aliases, and without a noun's or verb's word that means another by default."""
    found = {(nouns[0], *names[0].split(".")) for nouns, names, _, _ in read_lines()}
    found = {(v[0], *ALIASES.get(v[1:], v[1:])) for v in found}
    found = {v[:-1] + ("list",) if v[-1] == "ls" else v for v in found}
    return {v for v in found if not any(w[:len(v)] == v != w for w in found)}


def test_list_is_whole():
    """Determined 0.27's det has 169 verbs, 17 of them below deploy."""
    below = [v for v in verbs() if v[0] == "deploy"]
    assert len(below) == 17 and len(verbs()) == 169, (len(below), len(verbs()))


def make_calls(top):
    """Each name once without options, and each option once by the first names."""
    with open(top + "/c.yaml", "w") as f:
        f.write("name: x\nentrypoint: 'true'\nsearcher: {name: single, metric: x, max_length: 1}\n")
    os.mkdir(top + "/model")

    def filled(word):
        option, eq, value = word.partition("=") if word.startswith("-") else ("", "", word)
        value = value.replace("FILE", top + "/c.yaml").replace("DIR", top + "/model").replace("UUID", UUID)
        return ([option] if option else []) + ([value] if value else [])

    for nouns, verbs, args, options in read_lines():
        args = [part for word in args for part in filled(word)]
        for noun in nouns:
            for verb in verbs:
                yield [noun, *verb.split("."), *args]
        for option in options:
            yield [nouns[0], *verbs[0].split("."), *args, *filled(option)]


def is_known(call, env, top):
    """It went as far as the master, or was done without one; or it was refused with what to do instead."""
    before = Refusing.asked
    typed = "pass-word\n" * 2 if "change-password" in call else "y\n"
    r = subprocess.run([BIN + "/det", *call], env=env, text=True, capture_output=True, input=typed, timeout=60, cwd=top)
    instead = r.returncode == 2 and any(words in r.stderr for words in (" here: ", " is needed: "))
    return r.returncode == 0 or Refusing.asked > before or instead, f"det {' '.join(call)}: {r.returncode}: {r.stdout + r.stderr}"


def test_all_words():
    bad, n = [], 0
    master = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=master.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as top:
        env = {**os.environ, "DET_MASTER": f"http://127.0.0.1:{master.server_port}", "DET_USER": "u", "DET_PASS": "x",
               "XDG_CONFIG_HOME": top}
        for call in make_calls(top):
            known, said = is_known([w for w in call if w], env, top)
            bad += [] if known else [said[-400:].strip()]
            n += 1
    master.shutdown()
    assert not bad, "\n".join([f"{len(bad)} of {n} are not known:", *bad])


if __name__ == "__main__":
    test_list_is_whole()
    test_all_words()

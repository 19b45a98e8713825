#!/usr/bin/env python3
"""The house rules that a compiler does not check: layers, sizes, banned calls, the core's purity.

usage: tidy.py SOURCE_DIR BUILD_DIR    prints each violation as path:line: text; exit 1 if there are any
"""
import ast
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from decoders import check_decoders
from documents import check_documents
from purity import check_core
from rings import check_rings
from rooms import check_rooms
from schema import check_schema
from statics import check_statics

# folder -> folders whose headers it may include, besides its own (design: the arrows of ARCHITECTURE.md)
LAYERS = {
    "base": [],
    "proto": ["base"],
    "client": ["proto", "base"],
    "storage": ["client", "proto", "base"],
    "db": ["proto", "base"],
    "master/core": ["proto", "base"],
    "master/shell": ["master/core", "client", "db", "proto", "base"],
    "master/api": ["master/shell", "master/core", "db", "proto", "base"],
    "master": ["master/api", "master/shell", "master/core", "db", "proto", "base"],
    "agent/core": ["proto", "base"],
    "agent/shell": ["agent/core", "client", "storage", "proto", "base"],
    "agent/life": ["proto", "base"],
    "agent/task": ["agent/life", "client", "storage", "proto", "base"],
    "agent": ["agent/shell", "agent/core", "client", "proto", "base"],
    "harness/include": ["base"],
    "harness/comm": ["base"],
    "harness/loop": ["harness/comm", "client", "storage", "proto", "base"],
    "harness/tensor": ["harness/include", "base"],
    "harness/backend": ["harness/tensor", "harness/include", "base"],
    "harness/autograd": ["harness/tensor", "harness/backend", "harness/include", "base"],
    "harness/nn": ["harness/autograd", "harness/tensor", "harness/backend", "harness/include", "base"],
    "harness/optim": ["harness/nn", "harness/autograd", "harness/tensor", "harness/backend", "harness/include", "base"],
    "harness/data": ["harness/tensor", "harness/include", "base"],
    "harness/pth": ["harness/tensor", "harness/include", "base"],
    "harness/tensorboard": ["harness/tensor", "harness/include", "base"],
    "harness/profile": ["harness/tensor", "harness/include", "base"],
    "harness/python": ["harness/loop", "harness/comm", "harness/tensorboard", "storage", "base"],
    "harness/trial": ["harness", "client", "storage", "proto", "base"],
    "cli": ["client", "proto", "base"],
}
ANYTHING = ("tests", "bench")
BANNED = r"strcpy|strcat|sprintf|vsprintf|gets|system|popen|alloca|atoi|strtok|pkill|killall" \
    r"|time(?=\(NULL)"  # lags what files are stamped with by a tick: clk_wall_us
HELD_IN = "harness/backend/cpu/dnnl/dnnl_prim.c"
HELD = r"dnnl_sgemm|dnnl_primitive_execute"  # run with signals held, by prim_sgemm() and prim_run() there


def sources(top):
    out = subprocess.run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"], text=True, capture_output=True, check=True).stdout
    return [f for f in out.splitlines() if f.endswith((".c", ".h", ".cc", ".cu", ".cuh")) and os.path.exists(os.path.join(top, f))]


def folder_of(path):
    """The longest folder of LAYERS that holds path."""
    d = os.path.dirname(path)
    while d and d not in LAYERS:
        d = os.path.dirname(d)
    return d


def check_layers(top, files):
    owner = {}
    for f in files:
        if f.endswith(".h") and folder_of(f):
            name = os.path.basename(f)
            public = os.path.basename(os.path.dirname(f)) == "det"  # included as det/NAME only
            owner.setdefault("det/" + name if public else name, set()).add(folder_of(f))
    for f in files:
        me = folder_of(f)
        if not me or f.startswith(ANYTHING):
            continue
        allowed = {me} | set(LAYERS[me])
        for n, line in enumerate(open(os.path.join(top, f), errors="replace"), 1):
            m = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
            if not m:
                continue
            homes = owner.get(m.group(1), set())
            if "<" in line and not m.group(1).startswith("det/"):
                continue
            if homes and not any(h == a or h.startswith(a + "/") for h in homes for a in allowed):
                yield f, n, f"includes {m.group(1)} of {'/'.join(sorted(homes))}, which {me} may not see"


def check_format(top, files):
    """Where Debian 12's clang-format is: others break some lines otherwise."""
    if not shutil.which("clang-format"):
        return
    version = subprocess.run(["clang-format", "--version"], text=True, capture_output=True).stdout
    if "version 14." not in version:
        return
    r = subprocess.run(["clang-format", "--dry-run", *files], cwd=top, text=True, capture_output=True)
    lines = dict(reversed(re.findall(r"^(\S+?):(\d+):\d+: warning", r.stderr, re.M)))
    for path in sorted(lines):
        yield path, int(lines[path]), "is not as clang-format has it: clang-format -i"


def check_shadows(top, files):
    """A header named as a system header would be found in its place: sched.h once broke pthread.h."""
    for f in files:
        if f.endswith(".h") and "/det/" not in f and os.path.exists("/usr/include/" + os.path.basename(f)):
            yield f, 1, f"hides <{os.path.basename(f)}> of the system: rename it"


def check_functions(top, files):
    """Length by ctags; const tables are no functions, so they do not count."""
    r = subprocess.run(["ctags", "--output-format=json", "--fields=+ne", "--kinds-C=f", "--kinds-C++=f", "-f", "-", *files],
                       cwd=top, text=True, capture_output=True)
    for line in r.stdout.splitlines():
        t = json.loads(line)
        n = t.get("end", t["line"]) - t["line"] + 1
        if n > 70:
            yield t["path"], t["line"], f"{t['name']} has {n} lines; 70 is the most"


def check_files(top, files):
    for f in files:
        n = sum(1 for _ in open(os.path.join(top, f), errors="replace"))
        if n > 800:
            yield f, n, f"{n} lines; 800 is the most: look for the seam"


COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)


def strip_comments(text):
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def check_columns(top, files):
    """100 of them; what stands in quotes (SQL, messages, a case's expression) does not count in code."""
    for f in files:
        text = open(os.path.join(top, f), errors="replace").read()
        lines = text.splitlines()
        for n, line in enumerate(lines, 1):
            bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', line) if len(line) > 100 else ""
            if len(bare) > 100:
                yield f, n, f"a line has {len(bare)} columns without its strings; 100 is the most"
        for m in COMMENT.finditer(text):
            if m.group(0)[0] != "/":
                continue
            first = text.count("\n", 0, m.start())
            for n in range(first, first + m.group(0).count("\n") + 1):
                if len(lines[n]) > 100:
                    yield f, n + 1, f"a comment's line has {len(lines[n])} columns; 100 is the most"


def check_banned(top, files):
    for f in files:
        banned = BANNED if f == HELD_IN else f"{BANNED}|{HELD}"
        text = strip_comments(open(os.path.join(top, f), errors="replace").read())
        for n, line in enumerate(text.splitlines(), 1):
            m = re.search(r"\b(%s)\s*\(" % banned, line)
            if m:
                yield f, n, f"banned call: {m.group(1)}"


# An error is judged by its code and its errno (err->sys), a result by being looked at (DET_MUST of det/err.h).
JUDGED = re.compile(r"\bstr(?:str|n?cmp|casecmp)\s*\([^;{]*?(?:\bdb_words|strerror)\s*\(|\bstr(?:str|ncmp|casecmp)\s*\([^;{]*?\berr(?:->|\.)text\b")
WORDED = re.compile(r"\bdet_fail\([^;]*?: %s\",[^;]*?\bstrerror\([^;?]*?\)\)")
CAN_FAIL = re.compile(r"^(DET_MUST )?(?:static inline )?int (\w+)\(([^;{}]*?)\bstruct det_err \*\w+\)", re.M)
STATIC = re.compile(r"^static (?:inline )?int (\w+)\([^;{}]*?\bstruct det_err \*\w+\)\s*\{", re.M)
TELLS = ("det_fail", "det_fail_errno", "det_fail_as", "det_wrap", "det__keep_error", "storage_errno", "loop_storage_failed")  # fill an error in and return its code
MUST = ("base", "proto", "client", "storage", "db", "master", "agent", "harness", "cli")
USERS = ("harness/include",)  # a trial's author may have no use for a result


def check_errors(top, files):
    for f in files:
        if f.startswith(ANYTHING):
            continue
        whole = open(os.path.join(top, f), errors="replace").read()
        text = strip_comments(whole)
        for m in JUDGED.finditer(text):
            yield f, text.count("\n", 0, m.start()) + 1, "judges an error by its words: look at err->code or err->sys"
        for m in WORDED.finditer("" if f.startswith("cli/") else whole):  # det only shows them
            yield f, whole.count("\n", 0, m.start()) + 1, "loses the errno: det_fail_errno()"
        for name in STATIC.findall(text):  # whose results gcc would let go
            for m in re.finditer(rf"(?:[;{{}}]|\)\s*\n|\belse)\s*({name})\(", text):
                yield f, text.count("\n", 0, m.start(1)) + 1, f"{name}() can fail: look at its result, or det_ignore()"
        if not f.endswith(".h") or not f.startswith(MUST) or f.startswith(USERS):
            continue
        for m in CAN_FAIL.finditer(text):
            if not m.group(1) and m.group(2) not in TELLS:
                yield f, text.count("\n", 0, m.start()) + 1, f"{m.group(2)}() can fail: DET_MUST (det/err.h)"


def check_words(top):
    """Words of unfinished work, and processes ended by name."""
    out = subprocess.run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"], text=True, capture_output=True).stdout
    for f in out.splitlines():
        if f.startswith("tests/tidy/") or not f.endswith((".c", ".h", ".cc", ".cu", ".cuh", ".sh", ".py", "quickstart", "run")):
            continue
        path = os.path.join(top, f)
        if not os.path.isfile(path):
            continue
        for n, line in enumerate(open(path, errors="replace"), 1):
            m = re.search(r"\b(TODO|FIXME|XXX|HACK|pkill|killall)\b", line)
            if m:
                yield f, n, f"word: {m.group(1)}"


def check_one_loop(top):
    """The order of training is the C loop's alone: Python calls a trial's steps only as its client, and never in a loop."""
    bad = []
    steps = ("train_batch", "evaluate_batch")
    for path in glob.glob(os.path.join(top, "harness/python/determined/**/*.py"), recursive=True):
        tree = ast.parse(open(path).read())
        client = os.path.basename(path) == "_client.py"
        looped = {id(n) for loop in ast.walk(tree) if isinstance(loop, (ast.For, ast.While, ast.comprehension)) for n in ast.walk(loop)}
        for n in ast.walk(tree):
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in steps and (not client or id(n) in looped):
                bad.append((os.path.relpath(path, top), n.lineno, f"calls {n.func.attr}(): the loop of harness/loop is the only one"))
    return bad


def main():
    top, build = sys.argv[1], sys.argv[2]
    files = sources(top)
    bad = [*check_layers(top, files), *check_rooms(top, files), *check_shadows(top, files), *check_functions(top, files), *check_files(top, files), *check_columns(top, files), *check_format(top, files),
           *check_banned(top, files), *check_errors(top, files), *check_statics(top, files), *check_one_loop(top), *check_words(top), *check_core(build), *check_rings(top, build), *check_documents(top, LAYERS), *check_schema(top), *check_decoders(top, files)]
    for path, line, text in bad:
        print(f"{path}:{line}: {text}")
    print(f"tidy: {len(files)} files, {len(bad)} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""The rooms of a floor: which folder inside a layer may see which, and how many files one may hold.

A layer's libraries have all of its rooms among their include directories, so that the compiler sees no difference: this does.
"." is the layer's own folder. A room sees itself, and what its line names; ARCHITECTURE.md says what each is for.
"""
import collections
import os
import re
import subprocess

MOST = 24  # files in one folder
ROOMS = {
    "base": {".": "text", "det": "", "text": ".", "json": ". text", "files": ". text", "process": ". json"},
    "proto": {".": "", "charts": "", "config": ".", "agent": ".", "rows": ""},
    "db": {
        ".": "wire stmt",
        "stmt": ".",
        "wire": ". stmt lead",
        "lead": ". wire stmt",
        "read": ". stmt",
        "write": ". stmt",
        "collect": ".",
        "people": ". stmt read",
    },
    "master/core": {
        ".": "life place sched search answer keep",
        "life": ". place sched search keep",
        "place": ". life keep",
        "sched": ". life place",
        "search": ".",
        "answer": ". life place sched search",
        "keep": ". life place sched",
    },
    "master/shell": {
        ".": "http people settings hosts",
        "http": ". people drive",
        "people": ". http drive hosts",
        "settings": ". http",
        "drive": ". http hosts chores",
        "hosts": ". http people settings drive",
        "chores": ". drive settings",
    },
    "master/api": {".": "", **dict.fromkeys(("experiments", "trials", "checkpoints", "cluster", "people", "logs"), ".")},
    "agent/shell": {".": "tasks host", "tasks": "", "host": "."},
    "agent/task": {".": "run log report python", "python": "", "run": "log", "log": "", "report": "run"},
    "harness/loop": {".": "checkpoint report", "checkpoint": ". report", "report": "."},
    "harness/autograd": {".": "ops", "ops": ".", "functions": ". ops"},
    "harness/backend/cpu": {".": "dnnl elem", "dnnl": ".", "elem": "."},
    "harness/backend/cuda": {".": "conv flash gemm", "grid": ".", **dict.fromkeys(("conv", "elem", "flash", "gemm", "rows"), ". grid")},
    "harness/data": {".": "sets", "sets": "images", "images": "sets"},
    "harness/trial": {".": "model state run", "model": "run", "state": ". model run", "run": ". state"},
    "cli": {".": "experiment", "plot": "", "experiment": ". people checkpoint plot", "trial": ". experiment checkpoint", "checkpoint": ". experiment", "cluster": ". experiment", "people": ". experiment"},
}
LARGER = {  # a folder of more files, and why it is one room all the same
    "bench": "one file a benchmark, by whose name bench/run knows it",
    "db/functions": "one noun of the database a file; who looks for a function searches them all",
    "db/migrations": "one file a version; those on main stay where and as they are",
    "harness/backend/ref": "one file an operation, flat on purpose: the plain C that all else is compared with",
    "harness/python/determined/pytorch": "the package that models import by its names",
    "proto/config": "the stages that a configuration goes through, in the order of expconf.h, and what they share",
    "tests/faults": "one file a fault",
    "tests/integration": "one file a subject, run by its name",
    "tests/ops": "one file a family of operations",
    "tests/python": "one file a subject, run by its name",
    "tests/sim/mutants": "one file a planted bug",
    "tests/unit/base": "one file a header of base/",
    "tests/unit/core": "one file a subject, all told in the words of world.h",
    "web/dist/assets": "what is built",
    "web/test/journeys": "one file a journey",
}
INDEXES = (  # headers whose first comment says which file of their folder holds what
    "master/shell/http/http.h", "master/shell/people/auth.h", "master/shell/settings/settings.h", "master/shell/drive/driver.h", "master/shell/hosts/agents.h",
    "agent/shell/agent.h", "agent/task/task.h", "harness/loop/loop_impl.h", "harness/trial/trial_context.h", "harness/trial/state/trial_state_impl.h",
)
NO_CODE = ("meson.build", ".md", ".yaml")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def room_of(floor, path):
    rest = os.path.dirname(os.path.relpath(path, floor))
    return rest or "."


def check_sees(top, floor, rooms, files):
    mine = [f for f in files if f.startswith(floor + "/") and (room_of(floor, f) in rooms)]
    home = {os.path.basename(f): room_of(floor, f) for f in mine if f.endswith((".h", ".cuh"))}
    for f in mine:
        room = room_of(floor, f)
        allowed = {room, *rooms[room].split()}
        text = open(os.path.join(top, f), errors="replace").read()
        for m in INCLUDE.finditer(text):
            there = home.get(m[1])
            if there and there not in allowed:
                yield f, text.count("\n", 0, m.start()) + 1, f"includes {m[1]} of {floor}/{there}, which {floor}/{room} may not see"


def check_sizes(top):
    out = subprocess.run(["git", "-C", top, "ls-files", "-co", "--exclude-standard"], text=True, capture_output=True, check=True).stdout
    folders = collections.Counter(os.path.dirname(f) for f in out.splitlines()
                                  if not f.endswith(NO_CODE) and os.path.exists(os.path.join(top, f)))
    for folder, n in folders.items():
        if n > MOST and folder not in LARGER:
            yield folder, 1, f"holds {n} files; {MOST} is the most: a room more, or a word in tests/tidy/rooms.py why not"
    for folder in LARGER:
        if folders[folder] <= MOST:
            yield folder, 1, f"holds {folders[folder]} files: it needs no reason in tests/tidy/rooms.py any more"


def check_indexes(top, files):
    for header in INDEXES:
        told = open(os.path.join(top, header)).read().split("*/")[0]
        named = set(re.findall(r"\b\w+\.c\b", told.split("The files of this folder:")[-1]))
        there = {os.path.basename(f) for f in files if os.path.dirname(f) == os.path.dirname(header) and f.endswith(".c")}
        for name in sorted(there ^ named):
            yield header, 1, f"says {'nothing of' if name in there else 'something of'} {name}, which is {'in' if name in there else 'not in'} its folder"


def check_rooms(top, files):
    bad = list(check_indexes(top, files))
    bad += [b for floor, rooms in ROOMS.items() for b in check_sees(top, floor, rooms, files)]
    for f in files:
        folder = os.path.dirname(f)
        inside = [floor for floor in ROOMS if folder == floor or folder.startswith(floor + "/")]
        if inside and room_of(max(inside, key=len), f) not in ROOMS[max(inside, key=len)]:
            bad.append((f, 1, "stands in a folder that tests/tidy/rooms.py does not know: say there what it may see"))
    return bad + list(check_sizes(top))

"""The virtual environment of a task whose configuration lists requirements. usage: environment.py REQUEST CACHE MIB FOLDER [OTHER]

OTHER is the interpreter that takes over if this one has no torch.

Runs as the task does, by the interpreter that the environment is for, whatever its version, and imports nothing of ours.
What a list needs is installed once, below CACHE, which is this account's alone: under a name that is its hash, made under
another name and renamed when it is whole. Of that every task gets a thin virtual environment of its own, FOLDER: what a hook
installs goes there and is seen by nobody else. Each line of its output is a
sign of life to the agent, so it says nothing while nothing moves. Descriptor 3 gets the answer, JSON: {"lock": PATH, "made": PATH}: whoever
uses the environment locks the one (shared) and sees whether the other is there still; or {"error": TEXT, "host": whether another host might do better}.

A start whose environment is there is to cost next to nothing: what only the making of one needs is imported there.
"""
from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple

    Request = Dict[str, Any]  # environment.python of the configuration

NAME = re.compile("[0-9a-f]{32}$")
LEFT = re.compile("(?:new|old)-([0-9a-f]{32})(?:-.*)?$")
SILENCE_S = 30  # then a word of ours shows that something lives, if it does
ABOUT = "det-environment.json"
# Of what an installer says: compiled where one has failed, not at each start.
OF_HOST = ("No space left on device|Disk quota exceeded|Read-only file system|Input/output error|Cannot allocate memory|MemoryError|"
           "[Cc]onnection (refused|reset|aborted|broken)|Network is unreachable|No route to host|[Tt]imed out|ConnectTimeout|"
           "name resolution|Name or service not known|connect error|dns error|error sending request|"
           r"\b5\d\d Server Error|HTTP error 5\d\d|server error \(5")  # as pip, uv and what they build with say it
UNREACHED = "connection broken by|error sending request|tcp connect error|dns error"  # of an index


try:
    from _sha2 import sha256  # hashlib loads OpenSSL for it
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore  # before Python 3.12
    except ImportError:
        from hashlib import sha256


class Failed(Exception):
    host = True


class BadList(Failed):
    host = False


def say(text: str) -> None:
    print(text, flush=True)


# ---- decisions ----

def key_of(request: Request, interpreter: List[str], environ: Mapping[str, str]) -> str:
    """The name of what a request needs: the list, where from, and what for."""
    told = sorted((k, v) for k, v in environ.items() if k.startswith(("PIP_", "UV_")))
    wanted = [request.get(k) for k in ("requirements", "constraints", "index_url", "extra_index_urls")]
    text = json.dumps([wanted, bool(request.get("system_site_packages")), interpreter, told])
    return sha256(text.encode()).hexdigest()[:32]


def index_arguments(request: Request) -> List[str]:
    index = ["--index-url", request["index_url"]] if request.get("index_url") else []
    return index + [word for url in request.get("extra_index_urls") or [] for word in ("--extra-index-url", url)]


def bytes_of_mib(text: str) -> int:
    if not re.match("[0-9]{1,12}$", text):
        raise Failed(f"DET_PYTHON_CACHE_MIB of the agent's environment is {text!r}; a whole number of MiB is wanted")
    return int(text) << 20


def reason(lines: List[str]) -> str:
    """What of an installer's output says why: its last error, with the line after it where that names the package."""
    lines = [line.strip(" ╰─▶×│\t\n") for line in lines if line.strip()]
    errors = [i for i, line in enumerate(lines) if line.startswith(("ERROR:", "error:", "Because "))]
    if not errors:
        return lines[-1] if lines else "it said nothing"
    at = errors[-1]
    text = re.sub("^(ERROR|error): ", "", lines[at]).strip()
    mismatch = "DO NOT MATCH THE HASHES" in text and at + 1 < len(lines)
    return "the hash of " + re.split(r" \(?from ", lines[at + 1])[0] + " is another" if mismatch else text


def unreachable(request: Request, lines: List[str], environ: Mapping[str, str]) -> str:
    """One sentence where an installer found no package because no index answered; "": it is not so."""
    last = [line for line in lines if line.strip()][-10:]
    text = "".join(last)
    if not any(re.search(UNREACHED, line) for line in last):
        return ""
    package = re.search("No matching distribution found for (.+)", text) or re.search(r"/simple/([^/\s`'\")]+)", text)
    why = re.search(r"\[Errno -?\d+\] ([^'\")]+)", text) or re.search(r"([Cc]onnection refused|[^:(]*timed out)", text)
    named = request.get("index_url") or environ.get("PIP_INDEX_URL") or environ.get("UV_INDEX_URL")
    index = " " + re.sub("//[^/@]*@", "//", named) if named else ", the installer's own"
    return (f"there is no connection to the index{index}{', where ' + package.group(1).strip() + ' was looked for' if package else ''}"
            f"{': ' + why.group(1).strip() if why else ''}")


def is_hosts(status: int, lines: List[str]) -> bool:
    """Whether an installer failed by what another host, or this one later, might not have: its end, as Popen has it, and its output."""
    return status < 0 or any(re.search(OF_HOST, line) for line in [line for line in lines if line.strip()][-10:])


# ---- the cache ----

def own_folder(path: str) -> str:
    """Made for this user alone; one that another could write to is refused: what lies there is run."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise Failed(f"{path} is no folder of this user's alone; remove it")
    return path


def lock_of(root: str, key: str) -> int:
    return os.open(os.path.join(root, key + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


class Signs:
    """Of life: whether what `look` sees is another than when it was asked last."""

    def __init__(self, look: Callable[[], Any]) -> None:
        self.look, self.seen = look, look()

    def moved(self) -> bool:
        before, self.seen = self.seen, self.look()
        return bool(before != self.seen)


def beat(new: str) -> None:
    """Shows those who wait that the environment's maker lives."""
    try:
        os.utime(new)
    except OSError:
        pass


def beat_of(new: str) -> int:
    """Another one each time that its maker lives."""
    try:
        return os.stat(new).st_mtime_ns
    except OSError:
        return 0  # not begun, or whole


def take(fd: int, kind: int, new: str) -> None:
    """The lock, for whose holder's signs of life it waits."""
    signs, speak_at = Signs(lambda: beat_of(new)), 0.0
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if time.monotonic() >= speak_at:
            if signs.moved() or not speak_at:
                say("Another task makes the same environment of Python's; this one waits for it.")
            speak_at = time.monotonic() + SILENCE_S
        time.sleep(0.05)


def where_free(root: str, key: str, remove: Callable[[], None]) -> bool:
    """Removes where nobody has it, nor gets it meanwhile; whether it was so."""
    fd = lock_of(root, key)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove()
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def remove_tree(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def files_of(folder: str) -> Iterator[os.stat_result]:
    for at, _, files in os.walk(folder):
        for name in files:
            try:
                yield os.lstat(os.path.join(at, name))
            except OSError:
                pass


def bytes_of(folder: str) -> int:
    return sum(f.st_blocks * 512 for f in files_of(folder))


def about(root: str, key: str) -> Tuple[str, int]:
    """(the folder that its scripts name, bytes), also of one whose file is damaged."""
    try:
        with open(os.path.join(root, key, ABOUT)) as f:
            found = json.load(f)
            return str(found["made_at"]), int(found["bytes"])
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return os.path.join(root, "new-" + key), bytes_of(os.path.join(root, key))


def entries_of(root: str) -> List[Tuple[float, str, int]]:
    """(last used, key, bytes) of what is whole, the least recently used first."""
    found = []
    for key in filter(NAME.match, os.listdir(root)):
        try:
            found.append((os.stat(os.path.join(root, key + ".lock")).st_mtime, key, about(root, key)[1]))
        except OSError:
            pass
    return sorted(found)


def sweep(root: str) -> None:
    """What somebody left who was killed."""
    for found in filter(None, map(LEFT.match, os.listdir(root))):
        where_free(root, found.group(1), lambda left=os.path.join(root, found.group()): remove_tree(left))  # type: ignore


def put_away(root: str, key: str) -> None:
    """Its name is free at once, even if what lies there is not all to be removed. The lock is the caller's."""
    if os.path.isdir(os.path.join(root, key)):  # else another has done it since it was looked for
        import tempfile  # not for a start whose environment is there, which is to be short

        old = tempfile.mkdtemp(prefix=f"old-{key}-", dir=root)
        os.rename(os.path.join(root, key), old)
        remove_tree(old)


def evict(root: str, bytes_max: int) -> None:
    """Removes what was not used for longest until the rest fits; nothing that somebody uses."""
    entries = entries_of(root)
    total = sum(size for _, _, size in entries)
    for _, key, size in entries:
        if total <= bytes_max:
            return
        if where_free(root, key, lambda key=key: put_away(root, key)):  # type: ignore
            total -= size


def tidy(root: str, bytes_max: int) -> None:
    """Room for other environments, which is no reason for this task to fail."""
    try:
        sweep(root)
        evict(root, bytes_max)
    except OSError as e:
        say(f"Environments of Python's that nobody uses could not be removed: {e}")


# ---- making one ----

def watch(done: threading.Event, new: str) -> None:
    """Says that a silent installer lives as long as what it writes changes."""
    begun = time.monotonic()
    written = [new] + [os.environ[k] for k in ("PIP_CACHE_DIR", "UV_CACHE_DIR") if os.environ.get(k)]
    signs = Signs(lambda: [sum(f.st_size for f in files_of(folder)) for folder in written])
    while not done.wait(SILENCE_S):
        if signs.moved():
            say(f"Still at it, after {time.monotonic() - begun:.0f} s.")
            beat(new)


def run(argv: List[str], new: str) -> Tuple[int, List[str]]:
    """An installer, its output into the log, what it would leave in /tmp if it were killed in `new`. Its end and what it said last."""
    import subprocess
    import threading

    scratch = os.path.join(new, "tmp")
    os.mkdir(scratch)
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    done = threading.Event()
    lines: List[str] = []
    threading.Thread(target=watch, args=(done, new), daemon=True).start()
    with subprocess.Popen(argv, env={**environ, "PYTHONNOUSERSITE": "1", "TMPDIR": scratch}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace") as child:
        for line in child.stdout or ():
            say(line.rstrip("\n"))
            beat(new)
            lines = lines[-200:] + [line]
    done.set()
    remove_tree(scratch)
    return child.returncode, lines


def has(package: str) -> bool:
    """Whether this interpreter does, which was started without site."""
    import importlib.util
    import site

    site.main()
    return importlib.util.find_spec(package) is not None


def installer(python: str) -> Tuple[List[str], str]:
    """The words before the arguments of an installation into the environment of `python`, and what they are called."""
    import shutil

    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", python, "--compile-bytecode"], "uv"
    if not has("pip"):
        raise Failed(f"there is neither uv on PATH nor pip in {sys.executable}: one of them is to be installed on this host")
    return [sys.executable, "-m", "pip", "--python", python, "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"], "pip"


def write_lines(path: str, lines: List[str]) -> str:
    with open(path, "w") as f:
        f.write("".join(line + "\n" for line in lines))
    return path


def install(request: Request, folder: str) -> None:
    begun = time.monotonic()
    import venv  # which a start that finds its environment has no use for

    venv.EnvBuilder(system_site_packages=bool(request.get("system_site_packages")), symlinks=True, with_pip=False).create(folder)
    argv, name = installer(os.path.join(folder, "bin", "python3"))
    say(f"Python's environment of {', '.join(request['requirements'])[:200]} is made by {name}, for {sys.executable}.")
    argv += index_arguments(request) + ["-r", write_lines(os.path.join(folder, "requirements.txt"), request["requirements"])]
    if request.get("constraints"):
        argv += ["-c", write_lines(os.path.join(folder, "constraints.txt"), request["constraints"])]
    status, said = run(argv, folder)
    if status:
        why = f"signal {-status} ended it" if status < 0 else unreachable(request, said, os.environ) or reason(said)
        raise (Failed if is_hosts(status, said) else BadList)(f"{name} could not install the requirements: {why}")
    say(f"Python's environment is made, in {time.monotonic() - begun:.1f} s.")


def make(request: Request, root: str, key: str, bytes_max: int) -> None:
    import subprocess

    tidy(root, bytes_max)
    new = os.path.join(root, "new-" + key)
    remove_tree(new)  # of one that was killed
    try:
        install(request, new)
        with open(os.path.join(new, ABOUT), "w") as f:
            json.dump({"made_at": new, "bytes": bytes_of(new)}, f)
        subprocess.run(["sync", "-f", new], stdin=subprocess.DEVNULL, check=False)
        os.rename(new, os.path.join(root, key))
    except BaseException:
        remove_tree(new)
        raise


def hold(request: Request, root: str, key: str, bytes_max: int) -> int:
    """Has it made if it is not there. The lock, shared."""
    lock, made, new = lock_of(root, key), os.path.join(root, key), os.path.join(root, "new-" + key)
    take(lock, fcntl.LOCK_SH, new)
    while not os.path.isdir(made):
        take(lock, fcntl.LOCK_EX, new)
        if not os.path.isdir(made):
            make(request, root, key, bytes_max)
        take(lock, fcntl.LOCK_SH, new)  # it is let go for a moment
    return lock


# ---- the task's own ----

def read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def write(path: str, data: bytes, mode: int = 0o644) -> None:
    with open(path, "wb") as f:
        f.write(data)
        os.fchmod(f.fileno(), stat.S_IMODE(mode))


def copy_programs(made: str, made_at: str, folder: str) -> None:
    """Scripts name the environment that they were made in: now the task's."""
    for name in os.listdir(os.path.join(made, "bin")):
        source, target = os.path.join(made, "bin", name), os.path.join(folder, "bin", name)
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        if os.path.islink(source) or not os.path.isfile(source):
            continue
        data = read(source)
        write(target, data if b"\0" in data else data.replace(os.fsencode(made_at), os.fsencode(folder)), os.stat(source).st_mode)


def write_pip(folder: str) -> None:
    """pip of the interpreter, which installs into the task's own. Whether there is one it says itself, if it is wanted."""
    path = os.path.join(folder, "bin", "pip")
    if os.path.exists(path):
        return
    text = "#!/bin/sh\nexec '{}' -m pip --python '{}/bin/python3' \"$@\"\n".format(*(p.replace("'", "'\\''") for p in (sys.executable, folder)))
    for name in (path, path + "3"):
        write(name, os.fsencode(text), 0o755)


def make_thin(made: str, made_at: str, folder: str) -> None:
    packages = "lib/python{}.{}/site-packages".format(*sys.version_info[:2])
    if os.path.lexists(folder):
        remove_tree(folder)
    os.makedirs(os.path.join(folder, packages))
    os.mkdir(os.path.join(folder, "bin"))
    write(os.path.join(folder, "pyvenv.cfg"), read(os.path.join(made, "pyvenv.cfg")))
    write(os.path.join(folder, packages, "det-requirements.pth"), os.fsencode(f"import site; site.addsitedir({os.path.join(made, packages)!r})\n"))
    copy_programs(made, made_at, folder)
    write_pip(folder)


def give_way(other: str) -> None:
    """To the interpreter that trials have, where this one lacks torch, which is to be seen in the environment."""
    import site

    places = [site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]  # which -I leaves out
    if not has("torch") and not any(os.path.isdir(os.path.join(place, "torch")) for place in places if place):
        os.execv(other, [other, "-I", "-S", *sys.argv[:-1]])


def main(request_path: str, cache: str, mib: str, folder: str, other: str = "") -> Dict[str, Any]:
    if other:
        give_way(other)
    bytes_max = bytes_of_mib(mib)
    with open(request_path) as f:
        request = json.load(f)
    os.makedirs(os.path.dirname(cache), exist_ok=True)
    root = own_folder(cache)
    key = key_of(request, [os.path.realpath(sys.executable), sys.version, os.uname().machine], os.environ)
    for name in ("PIP_CACHE_DIR", "UV_CACHE_DIR"):
        os.environ.setdefault(name, os.path.join(os.path.dirname(folder), "downloads"))
    lock = hold(request, root, key, bytes_max)
    make_thin(os.path.join(root, key), about(root, key)[0], folder)
    os.utime(lock)
    tidy(root, bytes_max)
    return {"lock": os.path.join(root, key + ".lock"), "made": os.path.join(root, key)}


def leave(answer: Dict[str, Any]) -> None:
    with os.fdopen(3, "w") as f:
        json.dump(answer, f)
    sys.exit("error" in answer)


if __name__ == "__main__":
    try:
        leave(main(*sys.argv[1:]))
    except (Failed, OSError) as e:
        leave({"error": str(e), "host": getattr(e, "host", True)})

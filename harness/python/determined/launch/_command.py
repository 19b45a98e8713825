"""Commands that cannot be run, told of as a shell does: 127 for what is not there, 126 for what is no program."""

import errno
import os
import re
import shutil
from typing import List, Optional, Tuple

Problem = Tuple[int, str]
_NOT_FOUND, _NO_PROGRAM = 127, 126


def _script_problem(command: List[str]) -> Optional[Problem]:
    """Python would say so itself, but once for each rank, and behind it torchrun its own traceback."""
    python = re.fullmatch(r"python[0-9.]*", os.path.basename(command[0]))
    if not python or len(command) < 2 or command[1].startswith("-") or os.path.exists(command[1]):
        return None
    return _NOT_FOUND, f"{command[1]}: there is no such script in {os.getcwd()}: correct its name, or add it to the model definition"


def problem(command: List[str]) -> Optional[Problem]:
    """Exit code and text for a command that cannot be run, by what its file tells; None: it can."""
    name = command[0]
    if shutil.which(name):
        return _script_problem(command)
    path = "/" in name
    if name.startswith("-"):
        return _NOT_FOUND, f"{name}: an option where the command is expected: what is for the launcher ends with --"
    if re.fullmatch(r"[\w.]+:\w+", name):
        return _NOT_FOUND, f"{name}: command not found: a trial's class is run by --trial {name}"
    if os.path.isfile(name) and name.endswith(".py"):
        return _NO_PROGRAM if path else _NOT_FOUND, f"{name} is a Python script, no command: put python3 before it"
    if path and os.path.isdir(name):
        return _NO_PROGRAM, f"{name} is a directory: name the program in it"
    if path and os.path.exists(name):
        return _NO_PROGRAM, f"{name} is not executable: chmod +x {name}, or put its interpreter before it"
    if path:
        return _NOT_FOUND, f"{name}: no such file (the working directory is {os.getcwd()}): correct its name, or add it to the model definition"
    beside = f", or write ./{name} for the one in {os.getcwd()}" if os.path.isfile(name) else ""
    return _NOT_FOUND, f"{name}: command not found in PATH ({os.environ.get('PATH', '')}): install it on this host{beside}"


def explain(command: List[str], error: OSError) -> Problem:
    """What the kernel refused, though its file looks like a program."""
    name = command[0]
    if error.errno == errno.ENOEXEC:
        return _NO_PROGRAM, f"{name} is no program of this machine: a script's first line names what runs it, as in #!/bin/sh"
    if error.errno == errno.ENOENT:
        return _NOT_FOUND, f"{name}: its first line names an interpreter that is not on this host: correct it, or install that"
    return _NO_PROGRAM, f"{name} cannot be run: {error.strerror}"

"""What the launchers share."""

import os
import shutil
import sys
from typing import List, NoReturn, Tuple

import determined as det
from determined import _python
from determined.launch import _command


def parse(argv: List[str], usage: str) -> Tuple[List[str], List[str]]:
    """[OVERRIDES... --] (--trial TRIAL | SCRIPT...) as the overrides and the command that each rank runs."""
    overrides: List[str] = []
    if "--" in argv:
        at = argv.index("--")
        overrides, argv = argv[:at], argv[at + 1 :]
    if argv[:1] == ["--trial"]:
        if len(argv) != 2:
            fail(usage)
        return overrides, [sys.executable, "-m", "determined.exec.harness", argv[1]]
    if not argv:
        fail(usage)
    return overrides, argv


def become(command: List[str]) -> NoReturn:
    """The launcher is what it starts: signals for the one reach the other, and there is one exit code."""
    check(command)
    try:
        os.execvp(command[0], command)
    except OSError as e:
        code, text = _command.explain(command, e)
        fail(text, code)


def fail(text: str, code: int = 1) -> NoReturn:
    print(text.strip(), file=sys.stderr)
    sys.exit(code)


def check(command: List[str]) -> None:
    """Before there are ranks, each of which would fail by it."""
    problem = _command.problem(command)
    if problem:
        fail(problem[1], problem[0])


def need(program: str, name: str, info: det.ClusterInfo) -> None:
    """What starts the ranks is on this host, and this is the only one."""
    if shutil.which(program) is None:
        fail(
            f"{program} is not installed on this host: install {name}, or start the ranks by "
            "python3 -m determined.launch.torch_distributed"
        )
    if len(info.container_addrs) > 1:
        fail(f"determined.launch.{name} starts ranks on one host; use torch_distributed for several")


def cluster() -> det.ClusterInfo:
    info = det.get_cluster_info()
    if info is None or info.task_type != "TRIAL":
        fail("this launcher runs in a trial's task; elsewhere use torchrun, horovodrun or deepspeed themselves")
    assert info is not None
    problem = _python.problem()
    if problem:
        fail(problem)
    os.environ["DET_CHIEF_IP"] = info.container_addrs[0]
    return info

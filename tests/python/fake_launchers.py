"""Programs named deepspeed and horovodrun: the flags that ours are given, and what each rank is told by theirs.

usage: fake_launchers.py deepspeed|horovodrun ARGUMENTS...
"""
import argparse
import os
import subprocess
import sys


def start(commands, environments):
    ranks = [subprocess.Popen(c, env={**os.environ, **e}) for c, e in zip(commands, environments)]
    return max([r.wait() for r in ranks])


def deepspeed(argv):
    p = argparse.ArgumentParser(prog="deepspeed", allow_abbrev=False)
    p.add_argument("--num_gpus", type=int, required=True)
    p.add_argument("--master_port", type=int, default=29500)
    p.add_argument("--no_python", action="store_true")
    p.add_argument("--no_local_rank", action="store_true")
    p.add_argument("script")
    p.add_argument("arguments", nargs=argparse.REMAINDER)
    a = p.parse_args(argv)
    gpus = ",".join(map(str, range(a.num_gpus)))  # whatever was visible
    python = [] if a.no_python else [sys.executable, "-u"]
    commands = [[*python, a.script, *([] if a.no_local_rank else [f"--local_rank={n}"]), *a.arguments] for n in range(a.num_gpus)]
    told = {"WORLD_SIZE": a.num_gpus, "LOCAL_SIZE": a.num_gpus, "CROSS_RANK": 0, "CROSS_SIZE": 1, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": a.master_port, "CUDA_VISIBLE_DEVICES": gpus}
    return start(commands, [{k: str(v) for k, v in {**told, "RANK": n, "LOCAL_RANK": n}.items()} for n in range(a.num_gpus)])


def horovodrun(argv):
    p = argparse.ArgumentParser(prog="horovodrun", allow_abbrev=False)
    p.add_argument("-np", "--num-proc", type=int, required=True)
    p.add_argument("-H", "--hosts", required=True)
    p.add_argument("--start-timeout", type=int)
    p.add_argument("--gloo-timeout-seconds", type=int)
    p.add_argument("command", nargs=argparse.REMAINDER)
    a = p.parse_args(argv)
    host, slots = a.hosts.split(":")
    assert host == "localhost" and int(slots) >= a.num_proc, a.hosts
    told = {"HOROVOD_SIZE": a.num_proc, "HOROVOD_LOCAL_SIZE": a.num_proc, "HOROVOD_CROSS_RANK": 0, "HOROVOD_CROSS_SIZE": 1}
    ranks = [{**told, "HOROVOD_RANK": n, "HOROVOD_LOCAL_RANK": n} for n in range(a.num_proc)]
    return start([a.command] * a.num_proc, [{k: str(v) for k, v in r.items()} for r in ranks])


if __name__ == "__main__":
    sys.exit({"deepspeed": deepspeed, "horovodrun": horovodrun}[sys.argv[1]](sys.argv[2:]))

#!/usr/bin/env python3
"""Runs nvcc and keeps what ptxas says of the kernels (-Xptxas -v), for tests/cuda/ptxas.py.

usage: ptxas_report.py REPORT COMMAND...    the rest of its output is passed on; exits as COMMAND does
"""
import subprocess
import sys


def is_of_ptxas(line):
    return line.startswith("ptxas info") or "bytes stack frame" in line


def main():
    report, command = sys.argv[1], sys.argv[2:]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    lines = done.stdout.splitlines(keepends=True)
    with open(report, "w", encoding="utf-8") as f:
        f.writelines(line for line in lines if is_of_ptxas(line))
    sys.stderr.writelines(line for line in lines if not is_of_ptxas(line))
    return done.returncode


sys.exit(main())

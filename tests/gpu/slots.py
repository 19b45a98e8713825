#!/usr/bin/env python3
"""det-agent finds the GPUs that nvidia-smi lists.

usage: slots.py DET-AGENT
"""
import re
import subprocess
import sys
import tempfile


def main(agent):
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"GPU \d+: (.*?) \(UUID", listed)
    with tempfile.TemporaryDirectory() as d:
        p = subprocess.run([agent, "doctor", "--master", "http://127.0.0.1:1", "--token-file", d + "/token", "--slots", "auto",
                            "--work-dir", d + "/work"], capture_output=True, text=True)
    print(listed, p.stdout, p.stderr)
    assert names and f"{len(names)} GPU" in p.stdout, f"det-agent doctor does not see these {len(names)} GPUs"


main(*sys.argv[1:])

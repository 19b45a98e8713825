#!/usr/bin/python3
"""usage: detignore.py    asks git whether detignore.json says what .gitignore would do"""
import json
import os
import subprocess
import tempfile

TABLE = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "detignore.json")))
for case in TABLE["cases"]:
    with tempfile.TemporaryDirectory() as top:
        subprocess.run(["git", "init", "-q", top], check=True)
        for path in TABLE["paths"]:
            os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
            open(os.path.join(top, path), "w").close()
        with open(os.path.join(top, ".gitignore"), "w") as f:
            f.write(case["ignore"])
        found = subprocess.run(["git", "ls-files", "-z", "--others", "--exclude-standard"], cwd=top, check=True, capture_output=True, text=True)
        ignored = sorted(set(TABLE["paths"]) - set(found.stdout.split("\0")))
        assert ignored == sorted(case["ignored"]), (case["ignore"], ignored, case["ignored"])
print(f"{len(TABLE['cases'])} cases, as git has them")

#!/usr/bin/python3
"""run.py TEST    runs one file of tests; exit status 77 where there is no PyTorch, or sanitizers are on"""
import importlib.util
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if importlib.util.find_spec("torch") is None or os.environ.get("DET_SANITIZED"):
    print("skipped: no PyTorch here, or none that bears sanitizers")
    sys.exit(77)
sys.argv[:] = [sys.argv[1], *sys.argv[2:]]
spec = importlib.util.spec_from_file_location("__main__", sys.argv[0])
module = importlib.util.module_from_spec(spec)
sys.modules["__main__"] = module
spec.loader.exec_module(module)

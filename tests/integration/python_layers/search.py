"""usage: search.py CONFIG STATE MODEL    a search by a process that is no task of the cluster's"""
import json
import logging
import os
import pathlib
import sys

from determined import searcher
from method import Method, die_once

logging.basicConfig(level=logging.INFO)
where = pathlib.Path(sys.argv[2])
runner = die_once(searcher.LocalSearchRunner(Method(), where), resumed=os.path.exists(where / "experiment_id.txt"))
print(runner.run(json.loads(sys.argv[1]), sys.argv[3]))

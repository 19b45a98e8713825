"""loop: per_batch: microseconds that the training loop adds to a batch (bench/programs/loop.c says to which)."""
import json
import os
import statistics
import subprocess
import sys

program = os.path.join(os.environ["DET_BUILD"], "bench", "bench-loop")
if not os.path.exists(program):
    sys.exit(f"bench/loop: {program} is not built (ninja -C {os.environ['DET_BUILD']} bench/bench-loop)")
out = subprocess.run([program, *sys.argv[1:]], stdout=subprocess.PIPE, text=True, check=True).stdout
rounds = [tuple(map(float, line.split())) for line in out.splitlines()]
added = [loop - bare for loop, bare in rounds]
for loop, bare in rounds:
    print(f"loop {loop:.3f} us, bare {bare:.3f} us, added {loop - bare:.3f} us", file=sys.stderr)
print(json.dumps({"bench": "loop", "figure": "per_batch", "value": statistics.median(added), "unit": "us",
                  "peer": None, "peer_value": None, "ratio": None}))

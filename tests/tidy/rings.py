"""Files that call each other in a circle: none but those named here, each with its reason.

A file calls another where its object needs a symbol that the other's defines, within one library or program. What is in a ring can only be
understood, tested and moved as a whole; so a ring is one thing that happens to be several files, and has to say why.
"""
import json
import os
import re
import subprocess

RINGS = {
    "master/core": (
        "the lives of trials, allocations and agents end each other: a killed agent ends allocations, which ends runs, which starts others",
        "keep/deadline keep/gc life/alloc life/alloc_end life/alloc_report life/exp life/exp_search life/task_spec life/trial"
        " life/trial_policy life/trial_report place/agent place/avoid place/fit place/pool place/slots place/store sched/queue"),
    "master/shell": (
        "the driver performs effects on agents, waits and connections, each of which posts events to it",
        "chores/gc chores/purge drive/driver drive/waits drive/waits_search hosts/agents hosts/lives hosts/strays http/http http/http_late http/http_reply"
        " http/http_stream people/auth"),
    "agent/task": (
        "one task's life in chapters (task.h): start, Python, run, reach, trace, what ended, what is said, the end",
        "task task_drain task_end task_python task_reach task_reap task_start task_trace"),
    "harness/autograd": (
        "an operation's entry in op_table names its rules, and a gradient's rule is made of operations",
        "autocast device_tensor engine functions/functions functions/functions_elem functions/functions_join functions/functions_math"
        " functions/functions_nn functions/functions_reduce functions/functions_view ops/op ops/op_attention ops/op_grad ops/op_grad_elem"
        " ops/op_grad_image ops/op_grad_math ops/op_grad_seq ops/op_grad_view ops/op_rows ops/op_shape ops/op_shape_elem ops/op_shape_image"
        " ops/op_shape_math ops/op_shape_seq ops/op_table run_cast run_empty tape"),
    "harness/backend/cuda": (
        "the device's table names the operations, which ask the device for its handles and memory",
        "conv/cuda_conv conv/cuda_plan cuda_device cuda_upload gemm/cuda_lt"),
}


def circles(calls):
    """Tarjan's strongly connected components of more than one member."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in calls.get(v, ()):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for v in calls:
        if v not in index:
            visit(v)
    return found


def read_calls(objects):
    """{object: the objects that it calls}"""
    out = subprocess.run(["nm", "-A", *objects], text=True, capture_output=True, check=True).stdout
    home, needs = {}, {o: set() for o in objects}
    for line in out.splitlines():
        m = re.match(r"(.+?):[0-9a-f ]{16} (\w) (\S+)$", line)
        if m and m[2] == "U":
            needs[m[1]].add(m[3])
        elif m and m[2] in "TDBRV":
            home[m[3]] = m[1]
    return {o: {home[s] for s in names if s in home and home[s] != o} for o, names in needs.items()}


def libraries(top, build):
    """[{object: source}] of each library and program of the product; the CUDA kernels' objects have no entry."""
    made = {}
    for c in json.load(open(os.path.join(build, "compile_commands.json"))):
        source = os.path.relpath(os.path.join(c["directory"], c["file"]), top)
        if source.startswith(("tests/", "bench/", "..")) or not os.path.exists(os.path.join(build, c["output"])):
            continue
        made.setdefault(os.path.dirname(c["output"]), {})[os.path.join(build, c["output"])] = source
    return made.values()


def check_rings(top, build):
    seen = set()
    for objects in libraries(top, build):
        for circle in circles(read_calls(list(objects))):
            files = sorted(os.path.splitext(objects[o])[0] for o in circle)
            floor = next((f for f in RINGS if all(p.startswith(f + "/") for p in files)), None)
            known = {f"{floor}/{name}" for name in RINGS[floor][1].split()} if floor else set()
            seen |= set(files)
            for f in sorted(set(files) - known):
                yield f, 1, f"is in a ring of files with {' '.join(x for x in files if x != f)}: give it a direction"
    for floor, (_, names) in RINGS.items():
        for name in names.split():
            path = f"{floor}/{name}"
            if path not in seen and any(path.startswith(os.path.splitext(s)[0]) for o in libraries(top, build) for s in o.values()):
                yield path, 1, "is in no ring any more: take it out of tests/tidy/rings.py"

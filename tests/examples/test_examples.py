#!/usr/bin/env python3
"""The examples, trained by det-harness alone.

usage: test_examples.py NAME             a function test_NAME below
       test_examples.py example NAME     the entry NAME of table.py
       test_examples.py listed NAME...   that these are the entries, and the directories of examples/
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
from decimal import Decimal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import TOP  # noqa: E402
from harness import Output, Scratch  # noqa: E402
from ports import free_port  # noqa: E402
from table import EXAMPLES  # noqa: E402

DIGITS, ENTRY = "examples/digits", "model_def:DigitsTrial"
LINES_MAX = 250  # of one file of an example
WEIGHTS = "conv1.weight", "fc2.bias"  # of the digits


def test_listed(*names):
    """No example without a test, no test without an example; those of python/ are of test_python_examples.py."""
    assert sorted(names) == sorted(EXAMPLES) == sorted(set(os.listdir(TOP + "/examples")) - {"python"}), (names, sorted(EXAMPLES))


def presentable(where):
    assert os.path.isfile(where + "/README.md"), where
    for name in os.listdir(where):
        if name.endswith((".c", ".h", ".yaml", ".md")):
            lines = open(os.path.join(where, name)).read().count("\n")
            assert lines <= LINES_MAX, (where, name, lines)


def few_batches(s, entry, where, x, sets):
    """One batch of everything; then four batches, which are those of two and two, bit for bit."""
    tb = ["--tensorboard-dir", s.dir + "/tb"]  # else a writer makes runs/ in the example

    def train(n, *args):
        return s.run(entry, where, x.config, sets + ["searcher.max_length={batches: %d}" % n, "scheduling_unit=2"], [*args, *tb])
    once = s.run(entry, where, x.config, sets, ["--test", *tb])
    assert len(once.checkpoints) == 1 and x.metric in once.validation[1], (once.text, once.err)
    whole, first = train(4), train(2)
    rest = train(4, "--resume", first.checkpoints[-1])
    assert s.sha(rest.checkpoints[-1]) == s.sha(whole.checkpoints[-1])
    assert rest.validation[4] == whole.validation[4], (rest.validation, whole.validation)


def to_the_goal(s, entry, where, x, sets):
    out = s.run(entry, where, x.config, sets + x.long, ["--tensorboard-dir", s.dir + "/tb"], env={"DET_THREADS_PER_SLOT": str(x.threads)}, timeout=60 * x.minutes)
    values = [v[x.metric] for v in out.validation.values()]
    best = max(values) if x.larger else min(values)
    print(f"{where}: best {x.metric} {best}, wanted {x.goal}")
    assert best >= x.goal if x.larger else best <= x.goal, out.text


def test_example(name):
    x, where = EXAMPLES[name], "examples/" + name
    presentable(os.path.join(TOP, where))
    with Scratch() as s:
        sets = x.data(s.dir) if x.data else []
        if sets is None:
            print("its data are not here: skipped")
            sys.exit(77)
        few_batches(s, "model_def:" + x.entry, where, x, sets + x.quick)
        if os.environ.get("DET_TEST_LONG") and not os.environ.get("DET_SANITIZED"):
            to_the_goal(s, "model_def:" + x.entry, where, x, sets)


def length(batches):
    return ["searcher.max_length={batches: %d}" % batches, "min_validation_period={batches: 20}", "scheduling_unit=10"]


def test_digits_seeds():
    """The best trial of the grid reaches 97 % with every seed of five."""
    seeds = range(1, 6) if not os.environ.get("DET_SANITIZED") else range(1, 2)
    for seed in seeds:
        with Scratch() as s:
            best = 0
            for point in range(6):
                out = s.run(ENTRY, DIGITS, "grid.yaml", [f"reproducibility.experiment_seed={seed}"], ["--point", str(point)])
                best = max(best, out.best("accuracy"))
            assert best >= 0.97, (seed, best)


def test_same_bytes():
    """Same seed, same bytes; another seed, other bytes."""
    with Scratch() as s:
        a, b = (s.run(ENTRY, DIGITS, "const.yaml", length(60)) for _ in range(2))
        c = s.run(ENTRY, DIGITS, "const.yaml", length(60) + ["reproducibility.experiment_seed=1"])
        assert a.training and a.training == b.training and a.validation == b.validation
        assert s.sha(a.checkpoints[-1]) == s.sha(b.checkpoints[-1]) != s.sha(c.checkpoints[-1])
        assert sorted(os.listdir(s.path(a.checkpoints[-1]))) == ["code", "load_data.json", "metadata.json", "state_dict.pth", "trial_state.pkl"]


def test_resume():
    """Stopped in mid-epoch and resumed: the bits of the run that was never stopped."""
    with Scratch() as s:
        decay = ["hyperparameters.lr_decay=0.9"]  # and a scheduler's state
        whole = s.run(ENTRY, DIGITS, "const.yaml", length(120) + decay)
        for k in (1, 44, 45, 70):
            first = s.run(ENTRY, DIGITS, "const.yaml", length(k) + decay)
            rest = s.run(ENTRY, DIGITS, "const.yaml", length(120) + decay, ["--resume", first.checkpoints[-1]])
            assert s.sha(rest.checkpoints[-1]) == s.sha(whole.checkpoints[-1]), k
            tail = {n: v for n, v in whole.training.items() if n > k + 10}
            assert tail == {n: v for n, v in rest.training.items() if n > k + 10}, k
        sets = length(40) + ["optimizations.aggregation_frequency=4"]  # also between two updates
        whole = s.run(ENTRY, DIGITS, "const.yaml", sets)
        for k in (20, 23):
            first = s.run(ENTRY, DIGITS, "const.yaml", sets + length(k)[:1])
            rest = s.run(ENTRY, DIGITS, "const.yaml", sets, ["--resume", first.checkpoints[-1]])
            assert s.sha(rest.checkpoints[-1]) == s.sha(whole.checkpoints[-1]), k


def test_other_device():
    """A checkpoint of the device that DET_DEVICE names (or of the CPU) goes on on the CPU, as it would have there, to rounding."""
    with Scratch() as s:
        sets = ["hyperparameters.dropout=0"]
        whole, first = s.run(ENTRY, DIGITS, "const.yaml", length(40) + sets), s.run(ENTRY, DIGITS, "const.yaml", length(30) + sets)
        rest = s.run(ENTRY, DIGITS, "const.yaml", length(40) + sets, ["--resume", first.checkpoints[-1]], env={"DET_DEVICE": "cpu"})
        here, there = (out.training[40]["loss"] for out in (whole, rest))
        assert abs(here - there) <= 1e-2 * here, (here, there)


def run_two(s, where, sets, args=()):
    """What rank 0 of two printed; rank 1 prints nothing."""
    port, procs = str(free_port()), []
    for rank in range(2):
        env = s.env(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2", C10D_PORT=port, DET_CHIEF_IP="127.0.0.1")
        procs.append(subprocess.Popen(s.command(ENTRY, "const.yaml", sets, args), cwd=os.path.join(TOP, where), env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    out = [p.communicate(timeout=500) for p in procs]
    assert [p.returncode for p in procs] == [0, 0] and not out[1][0], out
    return Output(subprocess.CompletedProcess([], 0, *out[0]))


def test_two_ranks():
    """Two ranks of 16 equal one of 32 to rounding, shuffled, into the second epoch (45 batches)."""
    with Scratch() as s:
        sets = ["searcher.max_length={batches: 50}", "min_validation_period={batches: 50}", "scheduling_unit=1", "hyperparameters.dropout=0"]
        one, two = s.run(ENTRY, DIGITS, "const.yaml", sets), run_two(s, DIGITS, sets)
        assert sorted(one.training) == sorted(two.training) == list(range(1, 51))
        for n in range(1, 51):
            a, b = one.training[n]["loss"], two.training[n]["loss"]
            # rounding grows with the steps; batch 45 has 16 and 14 records, whose mean of means is not the mean of 30
            assert abs(a - b) <= (1e-5 if n <= 10 else 1e-2 if n < 45 else 0.1) * a, (n, a, b)


def test_two_ranks_f64():
    """In f64 the mean over the ranks is f64 too: two ranks of 16 give the weights of one of 32 to 1e-12."""
    with Scratch() as s:
        told = "\n".join(f"""    if (det_trial_rank(ctx) == 0)
        printf("{name} %.17g\\n", det_item(e, det_sum(e, det_abs(e, det_module_tensor(d->net, "{name}")))));""" for name in WEIGHTS)
        d = edited(s, ("det_forward(d->conv1, x)", "det_forward(d->conv1, det_cast(e, x, DET_F64))"),
                   ("    det_trial_wrap_model(", "    det_module_to(d->net, DET_F64);\n    det_trial_wrap_model("),
                   ("    det_trial_backward(", told + "\n    det_trial_backward("), ("#include <det/trial.h>", "#include <det/trial.h>\n#include <stdio.h>"))
        sets = length(12) + ["hyperparameters.dropout=0"]
        one, two = ([(name, float(v)) for name, v in re.findall(rf"^({'|'.join(WEIGHTS)}) (\S+)$", out.text, re.M)]
                    for out in (s.run(ENTRY, d, "const.yaml", sets), run_two(s, d, sets)))
        assert len(one) == len(two) == 12 * len(WEIGHTS) and one[0] != one[-2], (one, two)
        assert all(a == b and abs(v - w) <= 1e-12 * v for (a, v), (b, w) in zip(one, two)), (one, two)


def test_two_ranks_resume():
    """Running statistics and accumulated gradients differ between ranks, yet what is resumed has the bits of what was never stopped."""
    with Scratch() as s:
        d = edited(s, ("*conv2, *fc1", "*conv2, *norm, *fc1"),
                   ("    d->fc1 = ", '    d->norm = det_module_add(d->net, "norm", det_nn_batch_norm2d(e, 32));\n    d->fc1 = '),
                   ("x = det_max_pool2d(e, x", "x = det_forward(d->norm, x);\n    x = det_max_pool2d(e, x"))
        sets = ["optimizations.aggregation_frequency=2"]
        whole, first = run_two(s, d, length(40) + sets), run_two(s, d, length(25) + sets)
        rest = run_two(s, d, length(40) + sets, ["--resume", first.checkpoints[-1]])
        assert s.sha(rest.checkpoints[-1]) == s.sha(whole.checkpoints[-1])
        assert rest.validation[40] == whole.validation[40], (rest.validation, whole.validation)
        assert rest.training[40] == whole.training[40]


def test_two_ranks_parts():
    """A part of the model that only one rank's batches go through (and, at times, none's) is the same on both ranks."""
    with Scratch() as s:
        told = """    float sum = (float)det_item(e, det_sum(e, det_abs(e, det_module_tensor(d->more, "weight"))));
    const size_t *bytes;
    const void *const *all = det_trial_allgather(ctx, &sum, sizeof sum, &bytes);
    if (det_trial_rank(ctx) == 0)
        printf("batch %lld %.9g %.9g\\n", (long long)batch_idx, *(const float *)all[0], *(const float *)all[1]);
    d->part = det_trial_rank(ctx) == 1 && batch_idx % 3 == 1;
"""
        d = edited(s, ("*fc1, *fc2;", "*fc1, *fc2, *more;\n    bool part;"), ("#include <stdbool.h>", "#include <stdbool.h>\n#include <stdio.h>"),
                   ("    d->fc2 = ", '    d->more = det_module_add(d->net, "more", det_nn_linear(e, 64, 10));\n    d->fc2 = '),
                   ("    return det_forward(d->fc2, x);", "    struct det_tensor *y = det_forward(d->fc2, x);\n    return d->part ? det_add(e, y, det_forward(d->more, x)) : y;"),
                   ("    struct det_tensor *label = det_batch_tensor(batch, \"label\");\n\n    struct det_tensor *out = det_forward(d->net, det_batch_tensor(batch, \"image\"));\n    struct det_tensor *loss",
                    told + "    struct det_tensor *label = det_batch_tensor(batch, \"label\");\n\n    struct det_tensor *out = det_forward(d->net, det_batch_tensor(batch, \"image\"));\n    struct det_tensor *loss"))
        out = run_two(s, d, length(12))
        lines = re.findall(r"^batch \d+ (\S+) (\S+)$", out.text, re.M)
        assert len(lines) == 12 and all(a == b for a, b in lines), lines
        assert lines[0] == lines[1] != lines[2] == lines[3] == lines[4] != lines[5], lines  # it moves in batches 1 and 4


def test_two_ranks_draws():
    """Ranks that have drawn different numbers of random numbers (here one has a batch more to validate) go on drawing their own."""
    with Scratch() as s:
        d = edited(s, (".batch_size = 60", ".batch_size = 80"),
                   ('    det_metrics_tensor(metrics, "validation_loss"', '    det_dropout(e, out, 0.5, true);\n    det_metrics_tensor(metrics, "validation_loss"'))
        whole, first = run_two(s, d, length(40)), run_two(s, d, length(20))
        rest = run_two(s, d, length(40), ["--resume", first.checkpoints[-1]])
        assert rest.training[40] == whole.training[40], (rest.training, whole.training)
        assert s.sha(rest.checkpoints[-1]) == s.sha(whole.checkpoints[-1])


def edited(s, *changes):
    """A copy of the digits with parts of its source replaced."""
    d = os.path.join(s.dir, "model")
    shutil.rmtree(d, ignore_errors=True)
    shutil.copytree(os.path.join(TOP, DIGITS), d)
    text = open(d + "/model_def.c").read()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    open(d + "/model_def.c", "w").write(text)
    return d


def fails(s, where, *words, entry=ENTRY, sets=(), args=(), code=1):
    out = s.run(entry, where, "const.yaml", length(20) + list(sets), args, ok=False)
    assert out.code == code, (out.code, out.text, out.err)
    for w in words:
        assert w in out.err, f"{w!r} is not in {out.err!r}"
    return out


def test_mistakes():
    """What a person gets wrong is named, with where it is."""
    with Scratch() as s:
        fails(s, DIGITS, "model_deff", "model_deff.c", entry="model_deff:DigitsTrial")
        fails(s, DIGITS, "DigitTrial", "struct det_trial_type", entry="model_def:DigitTrial")
        fails(s, DIGITS, "module:Class", entry="model_def.DigitsTrial")
        fails(s, DIGITS, "module:Class", entry="../model_def:DigitsTrial")
        fails(s, DIGITS, "hyperparameters.learning_rate", "a string", sets=["hyperparameters.learning_rate=fast"])
        fails(s, DIGITS, "global_batch_size", sets=["hyperparameters.global_batch_size=0"])
        fails(s, DIGITS, "data.path", sets=["data.path=7"])
        fails(s, DIGITS, "nothere.csv", sets=["data.path=nothere.csv"])
        fails(s, DIGITS, "searcher", sets=["searcher.metric=acuracy"])
        fails(s, edited(s, ('"learning_rate"', '"optimizer.lr"')), "hyperparameters.optimizer.lr", "global_batch_size")
        out = fails(s, edited(s, ("int64_t row)", "int64_t row, nosuchtype z)")), "model_def.c:", "nosuchtype", "does not compile")
        assert out.err.index("nosuchtype") < out.err.index("does not compile")
        fails(s, edited(s, (".columns = 64", ".columns = 63")), "image", "63")
        fails(s, edited(s, ("32 * 4 * 4", "32 * 4 * 5")), "linear", "train_batch")
        fails(s, edited(s, ('"label")', '"lable")')), "NULL")
        fails(s, edited(s, ("DET_API_VERSION", "99")), "version 99")
        fails(s, edited(s, ("    .self_bytes = sizeof(struct digits),\n", "")), "self_bytes is 0", "sizeof")
        fails(s, edited(s, ("    .train_batch = train_batch,\n", "")), "train_batch")
        fails(s, edited(s, ("    det_trial_wrap_model(ctx, d->net);\n", "")), "det_trial_wrap_model")
        fails(s, edited(s, ("int64_t row)\n{", "int64_t row)\n{ extern int no_such_function(void); no_such_function();")), "no_such_function")
        d = edited(s)
        open(d + "/model_def.py", "w").write("class DigitsTrial: pass\n")
        fails(s, d, "Python trial")
        out = s.run(ENTRY, DIGITS, "const.yaml", length(20) + ["hyperparameters.dropout=1.5"], ok=False)
        assert "dropout is 1.5" in out.err + out.text, (out.text, out.err)


def crashes(s, hurt, *words):
    at = "    struct digits *d = self;\n    struct det_engine *e"
    d = edited(s)
    text = open(d + "/model_def.c").read()
    i = text.index("static void train_batch")
    deep = "static int deep(volatile int *p) { volatile char a[999]; a[0] = 1; return *p ? deep(p) + a[0] : 0; }\n"
    wide = "__attribute__((noinline)) static void wide(int64_t i) { volatile char a[64 << 20]; a[(32 << 20) + i] = 1; }\n"
    open(d + "/model_def.c", "w").write("#include <stdio.h>\n" + text[:i] + deep + wide + text[i:].replace(at, f"    if (batch_idx == 3) {{ {hurt} }}\n" + at, 1))
    out = s.run(ENTRY, d, "const.yaml", length(20), ok=False)
    if os.environ.get("DET_SANITIZED"):
        assert out.code != 0
        return out
    assert out.code == -11 and "train_batch, batch 3" in out.err, (out.code, out.err)
    assert all(w in out.err for w in words), (words, out.err)
    assert ("stack overflow" in out.err) == ("stack overflow" in words), out.err
    return out


def test_crash():
    """A crash names the hook and the batch, and the process dies of the signal; a stack that is too small is called that. What was printed
    before is there, and so is the first failure, whose NULL is often what crashed."""
    with Scratch() as s:
        out = crashes(s, "volatile int *p = 0; puts(\"printed before\"); *p = 1;", "SIGSEGV", "batch 3\n")
        assert "printed before" in out.text or os.environ.get("DET_SANITIZED"), out.text
        crashes(s, "volatile int yes = 1; deep(&yes);", "stack overflow", "ulimit -s")
        crashes(s, "wide(batch_idx);", "stack overflow", "KiB")
        failed = "det_relu(det_trial_engine(ctx), NULL); volatile int *p = 0; *p = 1;"
        crashes(s, failed, "SIGSEGV", "batch 3; it had failed before that: relu(NULL)")


def test_cache():
    """Compiled once for a content; a damaged checkpoint is refused."""
    with Scratch() as s:
        def objects():
            return sorted(f for _, _, files in os.walk(s.dir + "/cache") for f in files)
        d = edited(s)
        s.run(ENTRY, d, "const.yaml", length(5))
        first = objects()
        assert len(first) == 1 and first[0].endswith(".so"), first
        s.run(ENTRY, d, "const.yaml", length(5), env={"DET_CC": "/bin/false"}, ok=False)
        s.run(ENTRY, d, "const.yaml", length(5))
        assert objects() == first
        with open(d + "/extra.h", "w") as f:
            f.write("static const int extra = 1; int extra_of_model(void); int extra_of_model(void) { return extra; }\n")
        s.run(ENTRY, d, "const.yaml", length(5), env={"DET_CC": "/bin/false"}, ok=False)
        s.run(ENTRY, d, "const.yaml", length(5))
        assert objects() == first, "what no source reads is not compiled anew"
        with open(d + "/model_def.c", "a") as f:
            f.write('#include "extra.h"\n')
        out = s.run(ENTRY, d, "const.yaml", length(5))
        assert len(objects()) == 2
        with open(s.path(out.checkpoints[-1], "state_dict.pth"), "r+b") as f:
            f.seek(2000)
            f.write(b"damage")
        bad = s.run(ENTRY, d, "const.yaml", length(10), ["--resume", out.checkpoints[-1]], ok=False)
        assert bad.code == 1 and "state_dict.pth" in bad.err, bad.err
        meta = json.load(open(s.path(out.checkpoints[-1], "metadata.json")))
        assert meta["steps_completed"] == 5 and "state_dict.pth" in meta["xxh128"], meta


def check_trace(path):
    """The Trace Event Format, strictly; and that the spans of a thread nest. Returns the spans."""
    j = json.load(open(path), parse_float=Decimal)
    assert set(j) == {"schemaVersion", "displayTimeUnit", "truncated", "traceEvents"} and j["truncated"] is False
    allowed = {"X": {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"}, "C": {"ph", "name", "pid", "tid", "ts", "args"},
               "M": {"ph", "name", "pid", "tid", "ts", "args"}}
    for e in j["traceEvents"]:
        assert set(e) == allowed[e["ph"]] and isinstance(e["name"], str) and isinstance(e["args"], dict), e
        assert type(e["pid"]) is int and type(e["tid"]) is int and e["ts"] >= 0 and e.get("dur", 0) >= 0, e
        assert e["ph"] != "C" or all(type(v) is int and v >= 0 for v in e["args"].values()), e
    spans = [e for e in j["traceEvents"] if e["ph"] == "X"]
    for tid in {e["tid"] for e in spans}:
        open_until = []
        for e in (e for e in spans if e["tid"] == tid):
            while open_until and open_until[-1] <= e["ts"]:
                open_until.pop()
            assert not open_until or e["ts"] + e["dur"] <= open_until[-1], e
            open_until.append(e["ts"] + e["dur"])
    return spans


def test_profiler():
    """Two rounds of recording: batches 2 to 4 and 7 to 9, the second one ended by the end of training, or cut short by it."""
    for batches, rounds in (10, [(2, 3, 4), (7, 8, 9)]), (9, [(2, 3, 4), (7, 8)]):
        profiler_rounds(batches, rounds)


def profiler_rounds(batches, rounds):
    with Scratch() as s:
        wrap = "    det_trial_wrap_optimizer(ctx, d->sgd);"
        d = edited(s, (wrap, wrap + "\n    det_trial_set_profiler(ctx, .wait = 1, .warmup = 1, .active = 3, .repeat = 2);"),
                   (".shuffle = true", ".shuffle = true, .prefetch = 2"))
        sets = [f"searcher.max_length={{batches: {batches}}}", "scheduling_unit=5", "min_validation_period={batches: 3}"]
        s.run(ENTRY, d, "const.yaml", sets, ["--tensorboard-dir", s.dir + "/tb"])
        traces = sorted(glob.glob(s.dir + "/tb/*#0.*.pt.trace.json"))
        assert len(traces) == len(rounds), os.listdir(s.dir + "/tb")
        for steps, path in zip(rounds, traces):
            spans = check_trace(path)
            names = [e["name"] for e in spans]
            assert sorted(n for n in names if n.startswith("ProfilerStep")) == [f"ProfilerStep#{i}" for i in steps]
            assert names.count("train_batch") == names.count("dataloader_next") == names.count("train_batch.backward") == len(steps)
            assert {"checkpoint", "validate", "train_batch.step_optimizer"} <= set(names), set(names)
            conv = next(e for e in spans if e["name"] == "conv2d")
            assert conv["cat"] == "cpu_op" and re.search(r"float32\[\d+, 1, 8, 8\].*-> float32\[", conv["args"]["detail"]), conv
            if len(steps) > 2:  # more than the loader had ready
                assert "load_batch" in names and len({e["tid"] for e in spans}) == 2  # the loop's thread and the loader's


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]](*sys.argv[2:])

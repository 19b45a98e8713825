#!/usr/bin/env python3
"""Training without a cluster: det-harness run, and a program of one's own. usage: test_run.py NAME   (a function test_NAME below)"""
import fcntl
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from cluster import BIN, TOP  # noqa: E402
from harness import Scratch  # noqa: E402
from test_examples import DIGITS, edited  # noqa: E402

HPARAMS = ["--hparam", "global_batch_size=32", "--hparam", "learning_rate=0.05", "--hparam", "dropout=0.1"]


def test_options():
    """A file in the place of module:Class, no configuration, lengths in words, a directory to go on from."""
    with Scratch() as s:
        out = s.run("model_def.c", DIGITS, args=HPARAMS + ["--max-length", "1 epochs", "--validation-period", "20", "--checkpoint-period=30",
                                                           "--reporting-period", "1epochs", "--checkpoint-policy", "none", "--step-zero-validation"])
        assert sorted(out.validation) == [0, 20, 40, 45] and len(out.checkpoints) == 2 and sorted(out.training) == [20, 30, 40, 45], out.text
        more = s.run("./model_def.c", DIGITS, args=HPARAMS + ["--max-length", "2880 records", "--latest-checkpoint", s.path(out.checkpoints[-1])])
        assert min(more.training) > 45 and max(more.training) == 90, more.text
        one = s.run("model_def.c", DIGITS, "const.yaml", args=["--test-mode"])
        assert sorted(one.training) == [1] and sorted(one.validation) == [1] and len(one.checkpoints) == 1, one.text


def test_refused():
    with Scratch() as s:
        for words, model, args in (("3furlongs", "model_def.c", ["--max-length", "3furlongs"]),
                                   ("two words", "model_def.c", ["--max-length", "2", "epochs"]),
                                   ("nothere.c", "nothere.c", ["--max-length", "2"]),
                                   ("below it", "/etc/passwd", ["--max-length", "2"]),
                                   ("max_length", "model_def.c", []),
                                   ("best, all", "model_def.c", ["--max-length", "2", "--checkpoint-policy", "often"]),
                                   ("it has: DigitsTrial", "model_def:Digits", ["--max-length", "2"]),
                                   ("/nowhere", "model_def.c", ["--max-length", "2", "--latest-checkpoint", "/nowhere/x"]),
                                   ("1 batches for 2 ranks", "model_def.c", ["--max-length", "2", "--ranks", "2", "--hparam", "global_batch_size=4000"]),
                                   ("1 to 256", "model_def.c", ["--max-length", "2", "--ranks", "1000"])):
            out = s.run(model, DIGITS, args=HPARAMS + args, ok=False)
            assert out.code in (1, 2) and words in out.err, (words, out.code, out.err)


def test_fake_data():
    """Made-up records in the shapes of the real ones, or of what a reader's missing file would hold."""
    with Scratch() as s:
        args = ["--fake-data", "--max-length", "10", "--checkpoint-policy", "none"]
        out = s.run("model_def.c", DIGITS, "const.yaml", args=args)
        assert sorted(out.validation) == [10] and 1.5 < out.validation[10]["validation_loss"] < 4, out.text
        again = s.run("model_def.c", DIGITS, "const.yaml", args=args)
        assert again.validation == out.validation and again.training == out.training
        s.run("model_def.c", DIGITS, "const.yaml", ["data.path=/nowhere.csv"], args)


def test_waiting():
    """OpenMP's threads soon sleep while they wait, unless the user says otherwise."""
    with Scratch() as s:
        d = edited(s, ("    det_trial_backward(ctx, loss);", "    if (batch_idx == 0) printf(\"%s %s\\n\", getenv(\"OMP_WAIT_POLICY\"), getenv(\"GOMP_SPINCOUNT\"));\n    det_trial_backward(ctx, loss);"),
                   ("#include <det/trial.h>", "#include <det/trial.h>\n#include <stdio.h>\n#include <stdlib.h>"))
        for given, seen in ((None, "passive 10000"), ("active", "active (null)")):
            out = s.run("model_def.c", d, "const.yaml", args=["--test"], env={"OMP_WAIT_POLICY": given})
            assert seen in out.text.splitlines(), (given, out.text)


def on_terminal(command, where, env, columns):
    """What it writes to a terminal, and its exit code."""
    screen, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    p = subprocess.Popen(command, cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(screen, 65536):
            said += more
    except OSError:  # EIO: it has ended
        pass
    os.close(screen)
    return said.decode(), p.wait()


def test_bar():
    """On a terminal a bar below the reports, as wide as there is room for, which is gone at the end."""
    with Scratch() as s:
        d = edited(s, ("    det_trial_backward(ctx, loss);", "    usleep(120000);\n    det_trial_backward(ctx, loss);"),  # more than the bar waits
                   ("#include <det/trial.h>", "#include <det/trial.h>\n#include <unistd.h>"))
        for length in ("8 batches", "256 records"):
            command = s.command("model_def.c", "const.yaml", args=["--max-length", length, "--reporting-period", "4"])
            text, code = on_terminal(command, d, s.env(), 200)
            drawn = [line.split("\x1b[K")[1] for line in text.split("\r") if "\x1b[K[" in line]
            assert code == 0 and len(drawn) > 4 and all(re.match(r"\[=*>? *\] \d/8", line) for line in drawn), (code, text)
            assert any(re.search(r"\[=+> *\] [2-7]/8  [0-9.]+ batches/s  0:0\d left.* loss ", line) for line in drawn), (length, drawn)
            assert "\r\x1b[Kbatches 4 " in text and text.rsplit("\x1b[K", 1)[1].startswith(("checkpoint 8 ", "validation 8 ", "batches 8 ")), (length, text)
        text, code = on_terminal(command, d, s.env(), 30)
        drawn = [line for line in text.split("\r\x1b[K") if line.startswith("[")]
        assert code == 0 and drawn and max(map(len, drawn)) == 29, (code, text)


def test_ranks():
    """Two ranks share the batches; one that dies ends the run, and is named."""
    with Scratch() as s:
        p = subprocess.run(s.command("model_def.c", "const.yaml", args=["--ranks", "2", "--max-length", "1 epochs"]), cwd=os.path.join(TOP, DIGITS),
                           env=s.env(), text=True, capture_output=True, timeout=280)
        assert p.returncode == 0 and "[rank=0] validation 45" in p.stdout and "[rank=1] validation" not in p.stdout, (p.stdout, p.stderr)
        d = edited(s, ("    det_trial_backward(ctx, loss);", "    if (det_trial_rank(ctx) == 1 && batch_idx == 3) { volatile int *p = 0; *p = 1; }\n    det_trial_backward(ctx, loss);"))
        began = time.monotonic()
        p = subprocess.run(s.command("model_def.c", "const.yaml", args=["--ranks", "3", "--max-length", "100 epochs"]), cwd=d,
                           env=s.env(), text=True, capture_output=True, timeout=280)
        assert p.returncode not in (0, 130) and "rank 1 was ended by signal" in p.stderr, (p.returncode, p.stderr)
        assert "train_batch, batch 3" in p.stderr and time.monotonic() - began < 240, p.stderr
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        p = subprocess.run(s.command("model_def.c", "const.yaml", args=["--ranks", "30", "--max-length", "1 epochs"]), cwd=os.path.join(TOP, DIGITS),
                           env=s.env(), text=True, capture_output=True, timeout=280, preexec_fn=few)
        assert p.returncode == 1 and re.search(r"start rank \d+: Too many open files", p.stderr), (p.returncode, p.stderr)


def test_exit():
    """Model code that ends the process: never in silence, and never as if training were done. A child of its own may."""
    with Scratch() as s:
        for code, ends in ((0, 1), (3, 3), (256, 1)):
            d = edited(s, ("    det_trial_backward(ctx, loss);", f"    if (batch_idx == 3 && fork() == 0) exit(0);\n    if (batch_idx == 4) printf(\"the last word\\n\"), exit({code});\n    det_trial_backward(ctx, loss);"),
                       ("#include <det/trial.h>", "#include <det/trial.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>"))
            out = s.run("model_def.c", d, "const.yaml", args=["--max-length", "20"], ok=False)
            assert out.code == ends and out.err.count("the trial called exit") == 1 and f"exit({code}) in train_batch, batch 4" in out.err, (out.code, out.err)
            assert "the last word" in out.text, out.text
            assert "det_trial_set_stop_requested()" in out.err and not out.checkpoints, out.text


def test_interrupt():
    """Ctrl-C: a checkpoint, and the command that goes on from it."""
    with Scratch() as s:
        cmd = s.command("model_def.c", "const.yaml", args=["--max-length", "100000", "--reporting-period", "5"])
        where = os.path.join(TOP, DIGITS)
        p = subprocess.Popen(cmd, cwd=where, env=s.env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = p.stdout.readline()
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=280)
        assert first.startswith("batches 5") and p.returncode == 130, (p.returncode, first, err)
        steps = int(re.search(r"stopped after (\d+) batches", err).group(1))
        line = err[err.index("to go on:"):].splitlines()[1].split()
        assert line[:-2] == cmd and line[-2] == "--latest-checkpoint" and os.path.isdir(line[-1]), (line, cmd)
        line[line.index("100000")] = str(steps + 1)
        more = subprocess.run(line, cwd=where, env=s.env(), text=True, capture_output=True, timeout=280)
        assert more.returncode == 0 and f"batches {steps + 1}" in more.stdout, (more.stdout, more.stderr)


OWN = r'''
#include "model_def.c"
#include <det/trainer.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct det_err err = {0};
    struct det_trainer *t = NULL;
    struct det_loaded_trial *l = NULL;
    struct det_trainer_options o = {.hparams = "{\"global_batch_size\": 32, \"learning_rate\": 0.05, \"dropout\": 0}", .checkpoint_dir = argv[1]};
    int rc = det_trainer_create(&DigitsTrial, &o, &t, &err);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = det_trainer_fit(t, &err, .max_length = DET_BATCHES(5), .reporting_period = DET_BATCHES(5));
    det_trainer_destroy(t);
    if (rc == 0) /* a checkpoint of det-harness run: its class comes from its own code */
        rc = det_load_trial_from_checkpoint(argv[2], &(struct det_load_options){.hparams = "{\"dropout\": 0.5}"}, &l, &err);
    if (rc == 0)
        printf("loaded: dropout %g\n", det_hparam_f64(det_loaded_trial_context(l), "dropout"));
    else
        fprintf(stderr, "%s\n", err.text);
    det_loaded_trial_destroy(l);
    return det_trainer_exit_code(rc);
}
'''


def test_own_main():
    """A program that links libdet: trains twice, and loads what det-harness trained."""
    with Scratch() as s:
        d = edited(s)
        trained = s.run("model_def.c", d, "const.yaml", args=["--max-length", "3"]).checkpoints[-1]
        open(d + "/train.c", "w").write(OWN)
        pc = dict(os.environ, PKG_CONFIG_PATH=os.path.join(os.path.dirname(BIN), "lib", "pkgconfig"))
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "det"], env=pc, text=True, capture_output=True, check=True).stdout.split()
        subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-o", "train", "train.c", *flags], cwd=d, check=True)
        p = subprocess.run(["./train", s.checkpoints, s.path(trained)], cwd=d, env=s.env(), text=True, capture_output=True, timeout=280)
        assert p.returncode == 0, p.stderr
        losses = re.findall(r"batches 5  loss ([\d.]+)", p.stdout)
        assert len(losses) == 2 and float(losses[1]) < float(losses[0]) and "loaded: dropout 0.5" in p.stdout, p.stdout


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()

#!/usr/bin/env python3
"""PyTorch opens what we write, and we go on from what PyTorch writes, to the bit."""
import json
import os
import pickle
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
PYTHON = "/usr/bin/python3"  # Debian's, which has python3-torch


def have_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


if os.environ.get("DET_SANITIZED") or not have_torch():
    print("no PyTorch (apt-get install python3-torch), or a sanitizer build: skipped")
    sys.exit(77)
if "torch" not in sys.argv:
    sys.exit(subprocess.run([PYTHON, os.path.abspath(__file__), "torch"]).returncode)

import torch  # noqa: E402
from harness import Scratch  # noqa: E402

DIGITS, ENTRY = "examples/digits", "model_def:DigitsTrial"
SETS = ["scheduling_unit=10", "min_validation_period={batches: 20}", "hyperparameters.lr_decay=0.9"]


def length(n):
    return ["searcher.max_length={batches: %d}" % n, *SETS]


def same_net():
    """The example's network in PyTorch, under the same names."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.Conv2d(16, 32, 3, padding=1)
            self.fc1, self.fc2 = torch.nn.Linear(512, 64), torch.nn.Linear(64, 10)

        def forward(self, x):
            x = torch.nn.functional.relu(self.conv1(x))
            x = torch.nn.functional.max_pool2d(torch.nn.functional.relu(self.conv2(x)), 2)
            return self.fc2(torch.nn.functional.relu(self.fc1(x.flatten(1))))
    return Net().eval()


def digits():
    import gzip
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    rows = [[float(v) for v in line.split(b",")] for line in gzip.open(os.path.join(top, DIGITS, "digits.csv.gz"))]
    t = torch.tensor(rows)[4::5]
    return t[:, :64].reshape(-1, 1, 8, 8) / 16, t[:, 64].long()


with Scratch() as s:
    out = s.run(ENTRY, DIGITS, "const.yaml", length(120))
    whole = s.sha(out.checkpoints[-1])
    state = torch.load(s.path(out.checkpoints[-1], "state_dict.pth"))
    assert list(state) == ["models_state_dict", "optimizers_state_dict", "lr_schedulers_state_dict", "callbacks", "rng_state"], list(state)

    # The model gives PyTorch's network the accuracy that we measured.
    net = same_net()
    net.load_state_dict(state["models_state_dict"][0])
    x, y = digits()
    with torch.no_grad():
        right = (net(x).argmax(1) == y).float()
    batches = [right[i:i + 60].mean().item() for i in range(0, len(right), 60)]
    assert abs(sum(batches) / len(batches) - out.validation[120]["accuracy"]) < 1e-5, (batches, out.validation)

    # The optimizer and the scheduler load too, and hold what they should.
    sgd = torch.optim.SGD(net.parameters(), lr=1.0)
    lr = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
    sgd.load_state_dict(state["optimizers_state_dict"][0])
    lr.load_state_dict(state["lr_schedulers_state_dict"][0])
    group = sgd.param_groups[0]
    assert group["momentum"] == 0.9 and abs(group["lr"] - 0.05 * 0.9 ** 2) < 1e-9, group
    assert lr.last_epoch == 2 and lr.gamma == 0.9, lr.state_dict()
    assert all(sgd.state[p]["momentum_buffer"].shape == p.shape for p in net.parameters())
    counters = pickle.load(open(s.path(out.checkpoints[-1], "trial_state.pkl"), "rb"))
    assert counters["batches_trained"] == 120 and counters["epochs_trained"] == 2, counters

    # Loaded and saved by PyTorch, a checkpoint continues to the same bits.
    half = s.run(ENTRY, DIGITS, "const.yaml", length(70)).checkpoints[-1]
    path = s.path(half, "state_dict.pth")
    state = torch.load(path)
    net.load_state_dict(state["models_state_dict"][0])
    sgd.load_state_dict(state["optimizers_state_dict"][0])
    lr.load_state_dict(state["lr_schedulers_state_dict"][0])
    state["models_state_dict"] = [net.state_dict()]  # an OrderedDict with _metadata
    state["optimizers_state_dict"], state["lr_schedulers_state_dict"] = [sgd.state_dict()], [lr.state_dict()]
    torch.save(state, path)
    meta = json.load(open(s.path(half, "metadata.json")))
    del meta["xxh128"]
    json.dump(meta, open(s.path(half, "metadata.json"), "w"))
    rest = s.run(ENTRY, DIGITS, "const.yaml", length(120), ["--resume", half])
    assert s.sha(rest.checkpoints[-1]) == whole
print("torch", torch.__version__, "reads ours, and we go on from what it wrote")

"""The code of docs/porting-python.md does what the page says."""
import os
import re
import unittest

import torch
from support import store

DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/porting-python.md")


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)


def records():
    return torch.utils.data.TensorDataset(torch.randn(64, 3), torch.randint(0, 2, (64,)))


class Porting(unittest.TestCase):
    def test_code(self):
        with open(DOC) as f:
            script, trial, run = re.findall(r"```python\n(.*?)```", f.read(), re.S)
        names = {"Net": Net, "train_set": records, "valid_set": records}
        with store() as where:
            exec(trial, names)
            exec(run.replace("Epoch(30)", "Epoch(2)").replace("Epoch(5)", "Epoch(1)"), names)
            self.assertEqual(len(os.listdir(where)), 2)
        valid = records()
        names = {"Net": Net, "torch": torch, "F": torch.nn.functional, "device": "cpu", "train_set": records(), "valid_set": valid}
        with store():
            exec(script.replace("range(30)", "range(1)"), names)
            self.assertEqual(os.listdir("."), ["epoch-0.pth"])


if __name__ == "__main__":
    unittest.main()

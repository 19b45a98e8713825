"""Stands in for torchmetrics, which Debian does not have: update(), compute() and reset() of one metric."""


class F1Score:
    def __init__(self, task, num_classes, average="micro"):
        assert (task, average) == ("multiclass", "macro")
        self.classes = range(num_classes)
        self.reset()

    def reset(self):
        self.pairs = []

    def update(self, preds, target):
        self.pairs += zip(preds.tolist(), target.tolist())

    def compute(self):
        def of(c):
            hit = sum(p == t == c for p, t in self.pairs)
            return 2 * hit / max(sum((p == c) + (t == c) for p, t in self.pairs), 1)
        return sum(map(of, self.classes)) / len(self.classes)

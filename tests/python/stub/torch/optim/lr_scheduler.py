"""Schedulers that count."""


class _LRScheduler:
    pass


class ReduceLROnPlateau(_LRScheduler):
    pass


class LambdaLR(_LRScheduler):
    def __init__(self, optimizer, function):
        self.optimizer, self.function, self.epoch = optimizer, function, -1
        self.step()

    def step(self):
        self.epoch += 1
        self.function(self.epoch)

    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]

class LightningModule:
    """What it logs in a step is what training_step() and validation_step() gave to self.log()."""

    def __init__(self):
        self.logged = {}

    def log(self, name, value):
        self.logged[name] = float(value)

    def __call__(self, *args):
        return self.forward(*args)


class Trainer:
    """Steps, each logged in a call of its own, which names the epoch too; validation once an epoch, at the last step's number."""

    def __init__(self, max_epochs=1, logger=None, log_every_n_steps=1, enable_checkpointing=True):
        self.max_epochs, self.logger = max_epochs, logger

    def log(self, module, epoch, step):
        logged, module.logged = module.logged, {}
        if logged:
            self.logger.log_metrics(metrics={**logged, "epoch": epoch}, step=step)

    def epoch(self, module, train, valid, epoch, step):
        for i, batch in enumerate(train):
            module.training_step(batch, i)
            self.log(module, epoch, step)
            step += 1
        for i, batch in enumerate(valid or ()):
            module.validation_step(batch, i)
        self.log(module, epoch, step - 1)
        return step

    def fit(self, module, train, valid=None):
        step = 0
        self.logger.log_hyperparams({})
        for epoch in range(self.max_epochs):
            step = self.epoch(module, train, valid, epoch, step)
        self.logger.save()
        self.logger.finalize("success")

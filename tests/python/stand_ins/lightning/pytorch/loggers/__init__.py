import abc


class Logger(abc.ABC):
    @property
    @abc.abstractmethod
    def name(self):
        pass

    @property
    @abc.abstractmethod
    def version(self):
        pass

    @abc.abstractmethod
    def log_metrics(self, metrics, step=None):
        pass

    @abc.abstractmethod
    def log_hyperparams(self, params, *args, **kwargs):
        pass

    def save(self):
        pass

    def finalize(self, status):
        self.save()

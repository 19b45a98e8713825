"""Stands in for mlflow, which Debian does not have: the calls of one run, kept in `told`."""
told = []


def _keeps(name):
    def call(*args, **options):
        told.append((name, *args, *options.values()))
    return call


set_experiment, start_run, log_params, log_metrics, end_run = map(_keeps, ("set_experiment", "start_run", "log_params", "log_metrics", "end_run"))


def search_runs(filter_string="", output_format="pandas"):
    return []

"""Weights & Biases and MLflow beside the cluster: rank 0 tells them what it tells the cluster, and a resumed run goes on in theirs.

searcher: {name: single, metric: loss, max_length: {batches: 60}}
entrypoint: python3 wandb_mlflow.py
environment: {environment_variables: [WANDB_MODE=offline, "MLFLOW_TRACKING_URI=file:/data/mlruns"]}
"""
import determined as det
import mlflow
import wandb
from determined import core


class Trackers:
    """By the trial's number, which stays through pauses and restarts."""

    def __init__(self, info, hparams):
        name = f"trial-{info.trial.trial_id}" if info else "local"
        wandb.init(project="det", id=name, resume="allow", config=hparams)
        mlflow.set_experiment("det")
        known = mlflow.search_runs(filter_string=f"tags.trial = '{name}'", output_format="list")
        mlflow.start_run(run_id=known[0].info.run_id if known else None, run_name=name, tags={"trial": name})
        mlflow.log_params(hparams)

    def log(self, step, metrics):
        wandb.log(metrics, step=step)
        mlflow.log_metrics(metrics, step=step)

    def close(self):
        wandb.finish()
        mlflow.end_run()


def main():
    info = det.get_cluster_info()
    hparams = info.trial.hparams if info else {"lr": 0.1}
    with core.init() as context:
        trackers, x = Trackers(info, hparams), 1.0
        for operation in context.searcher.operations():
            for step in range(10, (operation.length if info else 60) + 1, 10):
                x -= hparams.get("lr", 0.1) * 2 * x  # the training: of x * x
                context.train.report_training_metrics(step, {"loss": x * x})
                trackers.log(step, {"loss": x * x})
            context.train.report_validation_metrics(step, {"loss": x * x})
            operation.report_completed(x * x)
        trackers.close()


if __name__ == "__main__":
    main()

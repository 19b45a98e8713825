"""Weights & Biases and MLflow beside the cluster: rank 0 tells them what it tells the cluster.

A trial that was paused goes on in MLflow's run, and in W&B's where WANDB_MODE is online: offline, W&B resumes none.

searcher: {name: single, metric: loss, max_length: {batches: 60}}
entrypoint: python3 wandb_mlflow.py
environment: {environment_variables: [WANDB_MODE=offline, "MLFLOW_TRACKING_URI=file:/data/mlruns"]}
"""
import json

import determined as det
import mlflow
import wandb
from determined import core


class Trackers:
    """By the cluster and the trial's number, which stay through pauses and restarts."""

    def __init__(self, info, hparams):
        name = f"{info.cluster_id}-trial-{info.trial.trial_id}" if info else "local"
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
        trackers, step, x = Trackers(info, hparams), 0, 1.0
        if info and info.latest_checkpoint:
            with context.checkpoint.restore_path(info.latest_checkpoint) as path:
                step, x = json.loads((path / "state.json").read_text())
        for operation in context.searcher.operations():
            length = operation.length if info else 60
            while step < length:
                step, x = step + 1, x - hparams.get("lr", 0.1) * 2 * x  # the training: of x * x
                pause = context.preempt.should_preempt()
                if step % 10 == 0 or pause:
                    context.train.report_training_metrics(step, {"loss": x * x})
                    trackers.log(step, {"loss": x * x})
                    with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                        (path / "state.json").write_text(json.dumps([step, x]))
                if pause:
                    return trackers.close()
            context.train.report_validation_metrics(step, {"loss": x * x})
            operation.report_completed(x * x)
        trackers.close()


if __name__ == "__main__":
    main()

"""Runs a trial of this directory without a cluster, with an experiment's configuration.

usage: python3 -m determined.exec.local MODULE:CLASS [OPTION...]

Several processes share the batches when torchrun (or any other launcher) starts them as ranks.
"""

import argparse
import logging
import pathlib
import sys
from typing import Any, Dict, List, Optional

import determined as det
from determined import _loop, core, pytorch
from determined.exec import harness
from determined.pytorch._trainer import _seed
from determined.pytorch._units import TrainUnit


class PrintingTrainContext(core.DummyTrainContext):
    """Prints a line for each report, in the words of det-harness run."""

    def __init__(self, tensorboard_dir: Optional[str]) -> None:
        self._directory = tensorboard_dir

    def get_tensorboard_path(self) -> Optional[pathlib.Path]:
        return pathlib.Path(self._directory) if self._directory else None

    def _line(self, kind: str, steps: int, metrics: Dict[str, Any]) -> None:
        values = "  ".join(f"{k} {v:.6g}" for k, v in metrics.items() if isinstance(v, (int, float)))
        print(f"{kind} {steps}  {values}", flush=True)

    def report_training_metrics(
        self, steps_completed: int, metrics: Dict[str, Any], batch_metrics: Optional[List[Dict[str, Any]]] = None
    ) -> None:
        self._line("batches", steps_completed, metrics)

    def report_validation_metrics(self, steps_completed: int, metrics: Dict[str, Any]) -> None:
        self._line("validation", steps_completed, metrics)

    def _report_checkpoint(self, steps_completed: int, uuid: str) -> None:
        print(f"checkpoint {steps_completed} {uuid}", flush=True)


def parse(argv: List[str]) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python3 -m determined.exec.local", description=__doc__.splitlines()[0])  # type: ignore
    p.add_argument("entrypoint", metavar="MODULE:CLASS")
    p.add_argument("-c", "--config", metavar="FILE", help="the experiment configuration")
    p.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="change a key of it; may be repeated")
    p.add_argument("--point", metavar="N", type=int, default=0, help="which point of a grid (from 0)")
    p.add_argument("--latest-checkpoint", metavar="UUID", help="start from this checkpoint")
    p.add_argument("--tensorboard-dir", metavar="DIR", help="write metrics there")
    p.add_argument("--test-mode", action="store_true", help="one batch, one validation batch, one checkpoint")
    return p.parse_args(argv)


def _length(config: Dict[str, Any], hparams: Dict[str, Any], test_mode: bool) -> TrainUnit:
    length = config["searcher"].get("max_length")
    if isinstance(length, int):
        return pytorch.Batch(length)
    if length is None and not test_mode:
        raise ValueError('the configuration has no searcher.max_length: add --set "searcher.max_length={epochs: 2}"')
    unit = TrainUnit._from_config(length or {"batches": 1}, hparams.get("global_batch_size"))
    assert unit is not None
    return unit


def main(argv: List[str]) -> int:
    args = parse(argv)
    try:
        config, hparams = _loop.experiment(args.config, args.set, args.entrypoint, args.point)
    except RuntimeError as e:
        print(f"determined.exec.local: {e}", file=sys.stderr)
        return 2
    logging.basicConfig(level=harness._log_level(False), format=det.LOG_FORMAT)
    _seed(config["reproducibility"]["experiment_seed"])
    optimizations = config.get("optimizations") or {}
    with pytorch.init(
        hparams=hparams,
        exp_conf=config,
        aggregation_frequency=optimizations.get("aggregation_frequency", 1),
        enable_tensorboard_logging=args.tensorboard_dir is not None,
    ) as context:
        context._core.train = PrintingTrainContext(args.tensorboard_dir)
        context._default_average = optimizations.get("average_aggregated_gradients", True)
        context._default_fp16 = optimizations.get("gradient_compression", False)
        trial = harness.load_trial_class(args.entrypoint)(context)
        options = harness._fit_options(config, hparams)
        options["checkpoint_policy"] = "none" if options["checkpoint_policy"] == "none" else "all"
        pytorch.Trainer(trial, context).fit(
            max_length=_length(config, hparams, args.test_mode),
            latest_checkpoint=args.latest_checkpoint,
            test_mode=args.test_mode,
            **options,
        )
    return 0


if __name__ == "__main__":
    harness.leave(lambda: main(sys.argv[1:]))

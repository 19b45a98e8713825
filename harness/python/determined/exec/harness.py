"""Runs a trial that the entrypoint names as module:Class.

usage: python3 -m determined.exec.harness MODULE:CLASS        in a task of the cluster, once for each rank
"""

import difflib
import importlib
import logging
import os
import sys
import traceback
from typing import Any, Callable, Dict, NoReturn, Optional, Type

import torch

import determined as det
from determined import pytorch
from determined.core import _alive
from determined.pytorch._mistakes import explained, refuse_old_interface
from determined.pytorch._units import TrainUnit

logger = logging.getLogger("determined")


def load_trial_class(spec: str) -> Type[pytorch.PyTorchTrial]:
    module, _, name = spec.partition(":")
    sys.path.insert(0, os.getcwd())
    with explained():
        found: Any = importlib.import_module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [n for n, v in vars(found).items() if isinstance(v, type)], 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f'{module} has no "{part}", which the entrypoint {spec} names{meant}')
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, pytorch.PyTorchTrial)):
        raise TypeError(f"the entrypoint {spec} is no determined.pytorch.PyTorchTrial")
    refuse_old_interface(found)
    return found


def _log_level(debug: bool) -> int:
    if debug:
        return logging.DEBUG
    rank = os.environ.get("RANK") or os.environ.get("HOROVOD_RANK") or 0
    return logging.INFO if int(rank) == 0 else logging.WARNING


def _fit_options(config: Dict[str, Any], hparams: Dict[str, Any]) -> Dict[str, Any]:
    size = hparams.get("global_batch_size")
    return {
        "checkpoint_period": TrainUnit._from_config(config.get("min_checkpoint_period"), size),
        "validation_period": TrainUnit._from_config(config.get("min_validation_period"), size),
        "reporting_period": pytorch.Batch(config.get("scheduling_unit", 100)),
        "checkpoint_policy": config.get("checkpoint_policy", "best"),
        "step_zero_validation": config.get("perform_initial_validation", False),
    }


def main(spec: str) -> int:
    info = det.get_cluster_info()
    if info is None or info.task_type != "TRIAL":
        print("determined.exec.harness runs in a trial's task; elsewhere use determined.pytorch.Trainer", file=sys.stderr)
        return 2
    trial_info, config = info.trial, info.trial._config
    logging.basicConfig(level=_log_level(trial_info._debug), format=det.LOG_FORMAT)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        if not os.environ.get("USE_TORCH_DISTRIBUTED"):
            os.environ["USE_TORCH_DISTRIBUTED"] = "True"
            logger.info(f"{os.environ['WORLD_SIZE']} ranks by torch.distributed: module:Class as the entrypoint starts no Horovod")
        os.environ.setdefault("MASTER_ADDR", os.environ.get("DET_CHIEF_IP", "127.0.0.1"))
        os.environ.setdefault("MASTER_PORT", os.environ.get("C10D_PORT", "29400"))
    if (config.get("stall_timeout") or 0) > 0:
        _alive.begin()
    cls = load_trial_class(spec)
    optimizations = config.get("optimizations") or {}
    with pytorch.init(
        hparams=trial_info.hparams,
        exp_conf=config,
        aggregation_frequency=optimizations.get("aggregation_frequency", 1),
    ) as context:
        context._default_average = optimizations.get("average_aggregated_gradients", True)
        context._default_fp16 = optimizations.get("gradient_compression", False)
        trainer = pytorch.Trainer(cls(context), context)
        trainer._legacy, trainer._spec = True, spec
        profiling = config.get("profiling") or {}
        trainer.configure_profiler(
            **{k: v for k, v in profiling.items() if k in ("sync_timings", "enabled", "begin_on_batch", "end_after_batch")}
        )
        trainer.fit(latest_checkpoint=info.latest_checkpoint, **_fit_options(config, trial_info.hparams))
    return 0


def _left_at(error: SystemExit) -> Optional[str]:
    """Where the trial's own code, or a library that it called, left; None: the package did, which says why itself."""
    frames = traceback.extract_tb(error.__traceback__)
    package, here = os.path.dirname(det.__file__), os.getcwd()
    if not frames or frames[-1].filename.startswith(package + os.sep):
        return None
    own = [f for f in frames if f.filename.startswith(here + os.sep)] or frames[-1:]
    return f"{os.path.relpath(own[-1].filename, here)}, line {own[-1].lineno}, in {own[-1].name}"


def _tell_exit(error: SystemExit) -> None:
    at = _left_at(error)
    if at is not None and error.code:
        traceback.print_exception(type(error), error, error.__traceback__)
    elif at is not None:
        logger.warning(f"sys.exit() ended the trial before its training did ({at}): what was not trained yet is not trained")
    elif isinstance(error.code, str):
        print(error.code, file=sys.stderr)  # as the interpreter does


def _code(main: Callable[[], int]) -> int:
    """What the process ends with, whatever ends it; InvalidHP ends a trial by SystemExit."""
    try:
        return main()
    except SystemExit as e:
        _tell_exit(e)
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore
        return 1


def leave(main: Callable[[], int]) -> NoReturn:
    """Without the interpreter's shutdown, in which gloo's threads can block for ever on the interpreter's lock."""
    code = _code(main)
    sys.stdout.flush()
    sys.stderr.flush()
    logging.shutdown()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    leave(lambda: main(sys.argv[1]))

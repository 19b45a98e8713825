"""A trial from a checkpoint, outside of training."""

import importlib
import json
import os
import pathlib
import sys
import warnings
from typing import Any, Dict, Optional, Type, Union

import torch

import determined as det
from determined import core
from determined.pytorch._client import STATE_FILES, load_model
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._trial import PyTorchTrial


class CheckpointLoadContext(PyTorchTrialContext):
    """A context for a trial that will not train: wrapping leaves objects as and where they are."""

    def __init__(self, hparams: Optional[Dict[str, Any]] = None, exp_conf: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(
            core_context=core.Context(checkpoint=None, distributed=core.DummyDistributedContext()),  # type: ignore
            trial_seed=0,
            hparams=hparams,
            slots_per_trial=1,
            num_gpus=0,
            exp_conf=exp_conf,
            aggregation_frequency=1,
            steps_completed=0,
            managed_training=False,
            debug_enabled=False,
            enable_tensorboard_logging=False,
        )

    def wrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        self.models.append(model)
        return model


def load_trial_from_checkpoint_path(
    path: str,
    trial_class: Optional[Type[PyTorchTrial]] = None,
    trial_kwargs: Optional[Dict[str, Any]] = None,
    torch_load_kwargs: Optional[Dict[str, Any]] = None,
    **kwargs: Any,
) -> Union[PyTorchTrial, torch.nn.Module]:
    """The trial with the weights of the checkpoint in this directory; no optimizer, no random state.

    Of a trial of before 2020, whose build_model() gives its model: that model.
    """
    if kwargs:
        warnings.warn("give arguments of torch.load() as torch_load_kwargs", FutureWarning)
        if torch_load_kwargs is not None:
            raise ValueError(f"torch_load_kwargs excludes further arguments: {', '.join(kwargs)}")
        torch_load_kwargs = kwargs
    directory = pathlib.Path(path)
    about = _load_data(directory)
    config, hparams = about.get("experiment_config"), about.get("hparams")
    if not trial_class and about.get("is_trainer"):
        trial_class = _class_from_code(directory, about.get("trial_cls_spec"), bool(about.get("trial_in_main")))
    cls = trial_class or _legacy_class(directory, about.get("trial_cls_spec") or (config or {}).get("entrypoint"))
    context = CheckpointLoadContext(hparams, config)
    trial = cls(context, **(trial_kwargs or {}))
    checkpoint = _load_checkpoint(directory, torch_load_kwargs or {})
    if "model_state_dict" in checkpoint and hasattr(trial, "build_model"):
        model = trial.build_model()
        load_model(model, checkpoint["model_state_dict"])
        return model  # type: ignore
    _load_weights(context, checkpoint)
    return trial


def _load_data(directory: pathlib.Path) -> Dict[str, Any]:
    for name in ("load_data.json", "metadata.json"):
        if (directory / name).exists():
            about = json.loads((directory / name).read_text())
            if name == "load_data.json" or {"experiment_config", "hparams"} <= about.keys():
                return dict(about)
    raise AssertionError(f"{directory} has neither load_data.json nor a metadata.json that tells the trial")


def _find(module: str, qualname: str) -> Type[PyTorchTrial]:
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found  # type: ignore


def _class_from_code(directory: pathlib.Path, spec: Optional[str], in_main: bool) -> Type[PyTorchTrial]:
    module, _, qualname = (spec or "").partition(":")
    if not qualname or module == "__main__" or in_main:
        raise ValueError(
            f'the checkpoint names its trial as "{spec}", which cannot be imported: give trial_class'
        )
    try:
        with det.import_from_path(directory / "code"):
            return _find(module, qualname)
    except (ImportError, AttributeError) as e:
        raise ValueError(f'the trial "{spec}" cannot be imported from {directory / "code"} ({e}): give trial_class') from e


def _legacy_class(directory: pathlib.Path, spec: Optional[str]) -> Type[PyTorchTrial]:
    module, _, qualname = (spec or "").partition(":")
    if not qualname:
        raise ValueError(f'the checkpoint names its trial as "{spec}", not as module:Class: give trial_class')
    code = str(directory / "code")
    os.chdir(code)
    sys.path[0] = code
    return _find(module, qualname)


def _load_checkpoint(directory: pathlib.Path, options: Dict[str, Any]) -> Dict[str, Any]:
    found = [directory / f for f in STATE_FILES if (directory / f).exists()]
    if not found:
        raise FileNotFoundError(f"the checkpoint in {directory} has no {STATE_FILES[0]}")
    return torch.load(found[0], **{"weights_only": False, **options})  # type: ignore  # the random state is no tensor


def _load_weights(context: PyTorchTrialContext, checkpoint: Dict[str, Any]) -> None:
    states = checkpoint.get("models_state_dict", [checkpoint.get("model_state_dict")])
    for model, state in zip(context.models, states):
        load_model(model, state)

"""A trial from a checkpoint, outside of training."""

import contextlib
import importlib
import json
import pathlib
import warnings
from typing import Any, Dict, Iterator, Optional, Type, Union

import torch

from determined import core
from determined._import import importing
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
    directory = pathlib.Path(path).resolve()
    about = _load_data(directory)
    with _own_code(directory, about) if trial_class is None else contextlib.nullcontext():
        return _build(directory, about, trial_class or _class_of(directory, about), trial_kwargs or {}, torch_load_kwargs or {})


def _build(
    directory: pathlib.Path, about: Dict[str, Any], cls: Type[PyTorchTrial], arguments: Dict[str, Any], options: Dict[str, Any]
) -> Union[PyTorchTrial, torch.nn.Module]:
    context = CheckpointLoadContext(about.get("hparams"), about.get("experiment_config"))
    trial = cls(context, **arguments)
    checkpoint = _load_checkpoint(directory, options)
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


@contextlib.contextmanager
def _own_code(directory: pathlib.Path, about: Dict[str, Any]) -> Iterator[None]:
    """The checkpoint's code comes first, whatever other code has modules of the same names. That of a trial which no
    Trainer ran also finds its files in the working directory, and its modules stay, where their names are free."""
    code = directory / "code"
    if about.get("is_trainer"):
        with importing(code):
            yield
    else:
        with importing(code, keep=True), contextlib.chdir(code):
            yield


def _class_of(directory: pathlib.Path, about: Dict[str, Any]) -> Type[PyTorchTrial]:
    is_trainer = about.get("is_trainer")
    spec = about.get("trial_cls_spec") or (None if is_trainer else (about.get("experiment_config") or {}).get("entrypoint"))
    module, _, qualname = (spec or "").partition(":")
    if not qualname or (is_trainer and (module == "__main__" or about.get("trial_in_main"))):
        raise ValueError(f'the checkpoint names its trial as "{spec}", which cannot be imported: give trial_class')
    try:
        return _find(module, qualname)
    except (ImportError, AttributeError) as e:
        if not is_trainer:
            raise
        raise ValueError(f'the trial "{spec}" cannot be imported from {directory / "code"} ({e}): give trial_class') from e


def _load_checkpoint(directory: pathlib.Path, options: Dict[str, Any]) -> Dict[str, Any]:
    found = [directory / f for f in STATE_FILES if (directory / f).exists()]
    if not found:
        raise FileNotFoundError(f"the checkpoint in {directory} has no {STATE_FILES[0]}")
    return torch.load(found[0], **{"weights_only": False, **options})  # type: ignore  # the random state is no tensor


def _load_weights(context: PyTorchTrialContext, checkpoint: Dict[str, Any]) -> None:
    states = checkpoint.get("models_state_dict", [checkpoint.get("model_state_dict")])
    for model, state in zip(context.models, states):
        load_model(model, state)

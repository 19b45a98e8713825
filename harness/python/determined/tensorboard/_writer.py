"""The writer where the package tensorboard is not installed: the calls of torch's SummaryWriter that trials make."""

import importlib.util
import os
import socket
import time
from typing import Any, Dict, Optional, Union

import numpy as np

from determined import _loop

Path = Union[str, "os.PathLike[str]"]
ORDERS = {"CHW": (1, 2, 0), "HWC": (0, 1, 2), "HW": (0, 1)}


def _numbers(values: Any) -> np.ndarray:
    """A tensor, an array or a list, on whatever device, as an array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float() if values.is_floating_point() else values.detach().cpu()
        values = values.numpy()
    return np.asarray(values)


def _step(global_step: Optional[int]) -> int:
    return 0 if global_step is None else int(global_step)


class EventWriter:
    """Event files in a directory, by default runs/<date>_<host>.

    What the directory's files hold under a tag at a step is not written a second time: a trial that repeats some
    batches after a restart leaves one value for each.
    """

    def __init__(self, log_dir: Optional[Path] = None) -> None:
        self.log_dir = os.fspath(log_dir or os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname()))
        self._events = _loop.EventWriter(self.log_dir)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Optional[int] = None, *_: Any, **__: Any) -> None:
        self._events.add_scalar(tag, float(scalar_value), _step(global_step))

    def add_scalars(self, main_tag: str, tag_scalar_dict: Dict[str, Any], global_step: Optional[int] = None, *_: Any) -> None:
        """Several numbers in one chart."""
        for name, value in tag_scalar_dict.items():
            self._events.add_named(main_tag, name, float(value), _step(global_step))

    def add_histogram(self, tag: str, values: Any, global_step: Optional[int] = None, *_: Any, **__: Any) -> None:
        self._events.add_histogram(tag, _numbers(values).astype(np.float64).tobytes(), _step(global_step))

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Optional[int] = None, walltime: Any = None, dataformats: str = "CHW"
    ) -> None:
        """1 to 4 channels; integers of 0 to 255, or numbers of 0 to 1."""
        image = _numbers(img_tensor)
        if dataformats not in ORDERS or image.ndim != len(ORDERS[dataformats]):
            raise ValueError(f'an image of {image.ndim} dimensions does not fit dataformats="{dataformats}": CHW, HWC or HW')
        scale = 1 if image.dtype == np.uint8 else 255
        pixels: Any = image.transpose(ORDERS[dataformats]).astype(np.float64) * scale
        height, width, channels = pixels.shape if pixels.ndim == 3 else (*pixels.shape, 1)
        self._events.add_image(tag, pixels.tobytes(), height, width, channels, _step(global_step))

    def add_text(self, tag: str, text_string: str, global_step: Optional[int] = None, *_: Any) -> None:
        self._events.add_text(tag, text_string, _step(global_step))

    def remember(self, directory: Path) -> None:
        """What the files of this directory hold is not written a second time either."""
        self._events.remember(os.fspath(directory))

    def get_logdir(self) -> str:
        return self.log_dir

    def flush(self) -> None:
        self._events.flush()

    def close(self) -> None:
        """A later write opens a new file."""
        self._events.close()

    def __enter__(self) -> "EventWriter":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def open_writer(log_dir: Optional[Path] = None) -> Any:
    """torch's SummaryWriter where the package tensorboard is installed, else an EventWriter."""
    if importlib.util.find_spec("tensorboard") is None:
        return EventWriter(log_dir)
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(log_dir=log_dir)

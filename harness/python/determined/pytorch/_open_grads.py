"""Gradients between two updates, which belong to the state of a trial with an aggregation_frequency above 1.

A checkpoint may fall between updates. Without what was summed up so far, different on every rank, a resumed trial would
make its next update of fewer batches than one that was never stopped. They may be as large as the model, so that ranks
hand them to the chief in pieces, through temporary files, and each rank's is a file of its own in the checkpoint.
"""

import logging
import os
import shutil
import tempfile
from typing import IO, Any, List, Optional

import torch

logger = logging.getLogger("determined.pytorch")

FOLDER = "accumulated_gradients"
PIECES_BYTES = 1 << 27  # of all ranks together: what each of them holds of it at a time

_LOST = "A trial that is resumed from this checkpoint makes its first update of fewer batches"


def of(models: List[torch.nn.Module]) -> List[List[Optional[torch.Tensor]]]:
    """Of every parameter of every model, on the CPU. Copies: a view is pickled with all that it is a view of."""
    return [[None if p.grad is None else p.grad.detach().cpu().clone() for p in m.parameters()] for m in models]


def _write(models: List[torch.nn.Module], trial_id: int, ranks: int) -> IO[bytes]:
    """This rank's, in a temporary file; an empty one where there is no room."""
    file: Any = tempfile.TemporaryFile()
    try:
        torch.save({"trial_id": trial_id, "ranks": ranks, "tensors": of(models)}, file)
        file.seek(0)
        return file  # type: ignore
    except (OSError, RuntimeError) as e:
        file.close()
        logger.warning(f"gradients between two updates: {e}; give $TMPDIR more room. {_LOST}")
        return open(os.devnull, "rb")


class _Gathered:
    """The files of all ranks, at the chief; there is none where one of them has failed."""

    def __init__(self, ranks: int) -> None:
        self.files: List[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(ranks)]

    def add(self, pieces: List[bytes]) -> None:
        try:
            for file, piece in zip(self.files, pieces):
                file.write(piece)
        except OSError as e:
            logger.warning(f"gradients between two updates: {e}; give $TMPDIR more room. {_LOST}")
            self.files = []

    def whole(self) -> List[IO[bytes]]:
        return self.files if all(file.tell() for file in self.files) else []


def gather(models: List[torch.nn.Module], trial_id: int, ranks: Any) -> List[IO[bytes]]:
    """At the chief, a file of each rank in the order of ranks; every rank must call it."""
    own = _write(models, trial_id, ranks.size)
    all_of_them = _Gathered(ranks.size if ranks.rank == 0 else 0)
    while True:
        pieces = ranks.allgather(own.read(max(PIECES_BYTES // ranks.size, 1)))
        if not any(pieces):
            return all_of_them.whole()
        all_of_them.add(pieces)


def save(files: List[IO[bytes]], directory: str) -> None:
    for rank, file in enumerate(files):
        os.makedirs(os.path.join(directory, FOLDER), exist_ok=True)
        file.seek(0)
        with open(_path(directory, rank), "wb") as target:
            shutil.copyfileobj(file, target)
        file.close()


def _path(directory: str, rank: int) -> str:
    return os.path.join(directory, FOLDER, f"rank_{rank}.pth")


def restore(models: List[torch.nn.Module], directory: str, trial_id: int, ranks: Any) -> None:
    """Another trial's (a warm start) are left alone, and so are those of another number of ranks."""
    if not os.path.exists(_path(directory, 0)):
        return
    path = _path(directory, ranks.rank)
    saved = torch.load(path if os.path.exists(path) else _path(directory, 0), map_location="cpu", weights_only=False)
    if saved["trial_id"] != trial_id:
        return
    if saved["ranks"] != ranks.size:
        logger.warning(
            f"the checkpoint has gradients of {saved['ranks']} ranks, this run has {ranks.size}: the first update is of fewer batches"
        )
        return
    for model, grads in zip(models, saved["tensors"]):
        for p, grad in zip(model.parameters(), grads):
            p.grad = None if grad is None else grad.to(p.device)

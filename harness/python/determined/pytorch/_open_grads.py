"""Gradients between two updates, which belong to the state of a trial with an aggregation_frequency above 1.

A checkpoint may fall between updates. Without what was summed up so far, different on every rank, a resumed trial would
make its next update of fewer batches than one that was never stopped. They may be as large as the model, so that ranks
hand them to the chief in pieces, through temporary files, and each rank's is a file of its own in the checkpoint.
"""

import contextlib
import logging
import os
import shutil
import tempfile
from typing import IO, Any, Callable, Dict, List, Optional

import torch

from determined.pytorch import _torch_file

logger = logging.getLogger("determined.pytorch")

FOLDER = "accumulated_gradients"
PIECES_BYTES = 1 << 27  # of all ranks together: what each of them holds of it at a time

_LOST = "A trial that is resumed from this checkpoint makes its first update of fewer batches"


def of(models: List[torch.nn.Module]) -> List[List[Optional[torch.Tensor]]]:
    """Of every parameter of every model, on the CPU. Copies: a view is pickled with all that it is a view of."""
    return [[None if p.grad is None else p.grad.detach().cpu().clone() for p in m.parameters()] for m in models]


def _write(models: List[torch.nn.Module], trial_id: int, ranks: int) -> IO[bytes]:
    """This rank's, in a temporary file."""
    file: Any = tempfile.TemporaryFile()
    try:
        _torch_file.save({"trial_id": trial_id, "ranks": ranks, "tensors": of(models)}, file)
        file.seek(0)
    except BaseException:
        _close([file])
        raise
    return file  # type: ignore


def _close(files: List[IO[bytes]]) -> None:
    """Of files that are given up: where there was no room, closing them says so once more."""
    for file in files:
        with contextlib.suppress(OSError):
            file.close()


class _Mine:
    """What this rank does with files of its own; the others wait for it, so that a failure becomes a text that they get."""

    def __init__(self) -> None:
        self.problem: Optional[str] = None

    def attempt(self, step: Callable[[], Any], otherwise: Any) -> Any:
        if self.problem is None:
            try:
                return step()
            except (OSError, RuntimeError) as e:
                self.problem = f"{e}, with temporary files in {tempfile.tempdir or 'no directory at all'}"
        return otherwise


def _add(files: List[IO[bytes]], pieces: List[bytes]) -> None:
    for file, piece in zip(files, pieces):
        file.write(piece)
        file.flush()  # whether there is room for it is known now


def gather(models: List[torch.nn.Module], trial_id: int, ranks: Any) -> List[IO[bytes]]:
    """At the chief, a file of each rank in the order of ranks; none where a rank failed. Every rank must call it."""
    mine, most = _Mine(), max(PIECES_BYTES // ranks.size, 1)
    own = mine.attempt(lambda: _write(models, trial_id, ranks.size), None)
    files = mine.attempt(lambda: [tempfile.TemporaryFile() for _ in range(ranks.size if ranks.rank == 0 else 0)], [])
    while True:
        piece = mine.attempt(lambda: own.read(most), b"")
        problems, pieces = zip(*ranks.allgather((mine.problem, piece)))
        if any(problems) or not any(pieces):
            break
        mine.attempt(lambda: _add(files, list(pieces)), None)
    _close([own] if own else [])
    if not any(problems):
        return files  # type: ignore
    _close(files)
    for rank, problem in enumerate(problems):
        if problem and ranks.rank in (0, rank):
            logger.warning(
                f"gradients between two updates, of rank {rank}: {problem}; make room there, or set TMPDIR to a directory "
                f"with room for the gradients, on rank 0's host for those of all ranks. {_LOST}"
            )
    return []


def save(files: List[IO[bytes]], directory: str) -> None:
    for rank, file in enumerate(files):
        os.makedirs(os.path.join(directory, FOLDER), exist_ok=True)
        file.seek(0)
        with open(_path(directory, rank), "wb") as target:
            shutil.copyfileobj(file, target)
        file.close()


def _path(directory: str, rank: int) -> str:
    return os.path.join(directory, FOLDER, f"rank_{rank}.pth")


def warn_of_others(checkpoint: Dict[str, Any], trial_id: int) -> None:
    """Gradients that are in state_dict.pth itself, where a trial in C and earlier versions keep them."""
    kept = checkpoint.get(FOLDER)
    if isinstance(kept, dict) and kept.get("trial_id") == trial_id:
        logger.warning(
            f'state_dict.pth has gradients between two updates ("{FOLDER}") of an earlier version or of a trial in C, which '
            "are left out: the first update is of fewer batches"
        )


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

"""TensorBoard: a writer of event files, which the loop keeps beside the checkpoints."""

from determined.tensorboard._writer import EventWriter, open_writer

__all__ = ["EventWriter", "open_writer"]

"""Writers of single metrics, from before context.get_tensorboard_writer()."""

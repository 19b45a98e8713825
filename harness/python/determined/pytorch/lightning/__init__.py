"""Not here, and not in Determined 0.27."""

raise ImportError(
    "determined.pytorch.lightning (LightningAdapter) is gone: use Lightning's own Trainer with "
    "determined.lightning.experimental.DetLogger, or determined.core from its callbacks"
)

"""Not here."""

raise ImportError(
    "determined.pytorch.dsat (DeepSpeed Autotune) is not available in this version: search over DeepSpeed's configuration as "
    "hyperparameters, with determined.pytorch.deepspeed.overwrite_deepspeed_config"
)

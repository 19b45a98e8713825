"""Not here."""

raise ImportError(
    "determined.keras is not available in this version, which trains PyTorch: call determined.core from a Keras callback instead "
    "(examples/python/core_api), or port the model to a PyTorchTrial"
)

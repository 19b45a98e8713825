"""Not here, and not in Determined since 0.24."""

raise ImportError(
    "determined.estimator is gone, as TensorFlow's Estimators are: call determined.core from the training script instead "
    "(examples/python/core_api)"
)

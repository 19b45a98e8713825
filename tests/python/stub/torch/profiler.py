"""Nothing is profiled."""

"""Programs that tasks start."""

"""Not here."""

raise ImportError("determined.common.util is not available in this version: for YAML use PyYAML's yaml.safe_load and yaml.safe_dump")

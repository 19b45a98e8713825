"""Not here."""

raise ImportError("determined.common.yaml is not available in this version: use PyYAML, import yaml")

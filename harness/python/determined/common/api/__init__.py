"""Not here."""

raise ImportError(
    "determined.common.api is not available in this version: use determined.experimental.client, or the REST API itself, "
    "which is the same (docs/api.md)"
)

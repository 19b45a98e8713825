"""Not here."""

raise ImportError("determined.common.storage is not available in this version: use Checkpoint.download() of determined.experimental.client, or determined.core's checkpoint context in a trial")

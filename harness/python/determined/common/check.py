"""The exception of a failed consistency check."""


class CheckFailedError(Exception):
    """Values that must agree do not."""

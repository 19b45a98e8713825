"""Not here."""

raise ImportError("determined.common.constants is not available in this version: the master's address and the user's name are arguments of determined.experimental.client.login()")

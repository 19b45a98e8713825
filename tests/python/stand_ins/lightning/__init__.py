"""Stands in for Lightning 2, which Debian does not have: the documented interface of a logger, and a Trainer's calls of it."""

"""Programs that tasks start."""

from determined import _python

_python.check()

"""What a module says of a name that it has no more, in its __getattr__, and of a library that it stands beside."""

import contextlib
import opcode
import sys
from typing import Any, ClassVar, Dict, Iterator, NoReturn


def absent(text: str) -> Exception:
    """An ImportError where the name is imported, since there Python says its own words in place of an AttributeError's; elsewhere an
    AttributeError, so that hasattr() and getattr() with a default have their answer. No class can be both."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_name == "__getattr__" and frame.f_globals.get("__name__", "").startswith("determined"):
        frame = frame.f_back  # one module may ask another
    is_import = frame is not None and frame.f_lasti >= 0 and opcode.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"
    return ImportError(text) if is_import else AttributeError(text)


@contextlib.contextmanager
def needs(package: str, module: str) -> Iterator[None]:
    """Around an import by `module`: where the package is not installed, how it is installed. What the package itself lacks is its own."""
    try:
        yield
    except ModuleNotFoundError as e:
        if e.name != package:
            raise
        raise ModuleNotFoundError(
            f"{module} needs the package {package}, which {sys.executable or 'this Python'} lacks: python3 -m pip install {package}; for a "
            f"trial write  environment: {{python: {{requirements: [{package}], system_site_packages: true}}}}  into its configuration",
            name=package,
        ) from None


class Lacking:
    """Base of a class of Determined's client that has not all of its methods here: what to do instead."""

    _LACKS: ClassVar[Dict[str, str]] = {}

    def __getattr__(self, name: str) -> NoReturn:
        kind = type(self)
        if name in kind._LACKS:
            raise AttributeError(f"{kind.__name__}.{name} is not available in this version: {kind._LACKS[name]}")
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")

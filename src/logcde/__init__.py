"""Learning from irregular, asynchronous observation streams, without filling a gap.

The names of `logcde._api` are here, imported when the first of them is asked for: the command line can answer a plain
question without waiting for JAX.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logcde._api import *


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    # A part of the package is imported by itself: parts ask for each other in this way while they are imported.
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    try:
        return getattr(importlib.import_module("logcde._api"), name)
    except AttributeError:
        raise AttributeError(f"module 'logcde' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(name for name in dir(importlib.import_module("logcde._api")) if not name.startswith("_"))

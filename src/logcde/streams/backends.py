"""Which data-frame library to use where the user has not said."""

import importlib
import importlib.util
from types import ModuleType

from logcde.errors import StreamError

KNOWN = ("polars", "pandas", "pyarrow")


def default_backend() -> ModuleType:
    """The first of polars, pandas and pyarrow that is installed; imported here and not before.

    >>> default_backend().__name__
    'polars'
    """
    for library in KNOWN:
        if importlib.util.find_spec(library):
            return importlib.import_module(library)
    raise StreamError(
        "No data-frame library is installed. Install one of polars, pandas and pyarrow: pip install logcde[frames]."
    )

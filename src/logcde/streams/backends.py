"""Which data-frame library to use where the user has not said."""

import importlib
import importlib.util
from types import ModuleType

from logcde.errors import StreamError, TableError

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


def arrow() -> ModuleType:
    """pyarrow, with its parts for Parquet, CSV and computing; imported here and not before.

    >>> arrow().parquet.__name__
    'pyarrow.parquet'
    """
    try:
        for part in ("compute", "csv", "parquet"):
            importlib.import_module(f"pyarrow.{part}")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise TableError(
            'Reading and writing files of tables needs pyarrow, which is not installed: pip install "logcde[frames]".'
        ) from error

"""Small tables, and a way to run a command on them."""

import numpy as np
import polars
import pytest

from logcde.cli import main
from logcde.cli.main import Failed

COLUMNS = ("--series", "id", "--time", "t", "--channel", "name", "--value", "x")
NAMES = ["id", "t", "name", "x"]


def long(series=6, seed=0):
    """A long table of asynchronous channels, sorted by series."""
    rng = np.random.default_rng(seed)
    rows = []
    for who in range(series):
        for t in np.cumsum(rng.integers(1, 9, rng.integers(3, 12))).tolist():
            rows += [
                (f"p{who}", float(t), name, float(rng.normal())) for name in ("pulse", "temp")[: rng.integers(1, 3)]
            ]
    return polars.DataFrame(rows, schema=NAMES, orient="row")


def table(*rows):
    """A long table of these rows."""
    return polars.DataFrame(rows, schema=NAMES, orient="row", infer_schema_length=None)


def write(frame, file):
    """Write a data frame as Parquet or CSV, by the suffix."""
    frame.write_csv(file) if file.suffix == ".csv" else frame.write_parquet(file, row_group_size=20)
    return str(file)


def run(*arguments):
    """The exit code of a command, or its error message."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.message if isinstance(end.value, Failed) else end.value.code

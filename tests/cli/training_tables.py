"""Small tables to train on: all series have one shape, so that few programs are compiled."""

import json

import numpy as np
import polars

from tests.cli.tables import write

SERIES = 20
TABLE = ("--series", "id", "--time", "t", "--horizon", 8)
QUICK = (*TABLE, "--every", 2, "--depth", 1, "--hidden", 4, "--steps", 4)


def vitals(seed=0):
    """A wide table: two channels, one of them at every second stamp, and a class that the other determines."""
    rng = np.random.default_rng(seed)
    rows = []
    for who in range(SERIES):
        ill = who % 2
        pulse = 60 + np.cumsum(rng.normal(ill - 0.5, 0.2, 7))
        for step, value in enumerate(pulse.tolist()):
            temp = 37 + rng.normal() if step % 2 else None
            rows.append((f"p{who}", float(step), value, temp, "ill" if ill else "well", value))
    return polars.DataFrame(rows, schema=["id", "t", "pulse", "temp", "state", "extra"], orient="row")


def labels(**changed):
    """A table of targets, with those of the first series changed."""
    frame = (
        vitals().group_by("id", maintain_order=True).agg(polars.col("state").first(), rise=polars.last("pulse") - 60)
    )
    for name, value in changed.items():
        first = polars.col("id") == "p0"
        frame = frame.with_columns(polars.when(first).then(polars.lit(value)).otherwise(polars.col(name)).alias(name))
    return frame


def as_long(frame):
    """The same observations as a long table."""
    long = frame.unpivot(["pulse", "temp"], index=["id", "t"], variable_name="name", value_name="x")
    return long.drop_nulls().sort("t", maintain_order=True)


def tables(folder):
    """Write tables of observations and targets."""
    write(vitals().drop("extra"), folder / "vitals.parquet")
    write(as_long(vitals()), folder / "long.csv")
    write(labels(), folder / "labels.csv")
    return folder


def printed(capsys):
    """The last line that was printed, parsed as JSON."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])

"""A long table cut into many files, by series or by time."""

import numpy as np
import polars

from tests.cli.tables import long

CHANNELS = ("id", "t", "name", "x")


def with_dense_series(series=24, seed=0):
    """A long table in which some series observe all channels at every event, and others do not."""
    frame, rng = long(series, seed), np.random.default_rng(seed)
    rows = [
        (f"d{who}", float(t), name, float(rng.normal()))
        for who in range(series // 3)
        for t in np.cumsum(rng.integers(1, 9, 6)).tolist()
        for name in ("pulse", "temp")
    ]
    return polars.concat([frame, polars.DataFrame(rows, schema=frame.schema, orient="row")])


def by_series(frame, folder, files=4):
    """Files of whole series."""
    folder.mkdir(parents=True)
    for number, ids in enumerate(np.array_split(frame["id"].unique(maintain_order=True).to_numpy(), files)):
        frame.filter(polars.col("id").is_in(ids.tolist())).write_parquet(folder / f"{number}.parquet")
    return folder


def by_time(frame, folder, files=5):
    """Files of all series, one after another in time."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), files)):
        frame.sort("t", maintain_order=True)[rows].write_parquet(folder / f"hour{number}.parquet")
    return folder


def read_folder(folder):
    """All parts of an output folder, sorted."""
    return polars.concat([polars.read_parquet(file) for file in sorted(folder.glob("*.parquet"))]).sort(
        polars.col("id"), maintain_order=True
    )

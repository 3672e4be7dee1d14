"""Streams go back out as the long table that they are."""

from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np

from logcde.errors import StreamError
from logcde.streams.clock import DatetimeClock
from logcde.streams.columns import AbstractStreams
from logcde.streams.places import name
from logcde.streams.ragged import owners


def to_long(streams: AbstractStreams, backend: ModuleType) -> Any:
    """A long frame of the backend's own kind: series, time, channel, value, and one column for each term."""
    _check_ids(streams.ids)
    schema = streams.schema
    event, series = owners(streams.obs_offsets), owners(streams.offsets)
    stamps = schema.clock.stamps(streams.times, None if streams.origins is None else streams.origins[series])
    polars = backend.__name__ == "polars"
    if polars and stamps.dtype.kind in "mM" and np.datetime_data(stamps.dtype)[0] == "s":
        # Polars has no seconds; its milliseconds hold the same stamps.
        stamps = stamps.astype(f"{stamps.dtype.name.partition('[')[0]}[ms]")
    columns = {
        "series": streams.ids[series][event],
        "time": stamps[event],
        "channel": np.array(schema.channels, object)[streams.channel],
        "value": streams.value.astype(np.float64, copy=False),
        **{term.name: streams.terms[event, column] for column, term in enumerate(schema.terms)},
    }
    frame = nw.from_dict(columns, backend=backend)
    if backend.__name__ != "pyarrow":
        frame = frame.with_columns(nw.col("channel").cast(nw.Enum(schema.channels)))
    if isinstance(schema.clock, DatetimeClock) and schema.clock.zone is not None:
        frame = frame.with_columns(nw.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(schema.clock.zone))
    return frame.to_native()


def _check_ids(ids: np.ndarray) -> None:
    seen, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise StreamError(
            f"Series {name(seen[counts > 1][0])} is here {counts.max()} times, and a table could not tell the copies "
            "apart. Take each series once."
        )

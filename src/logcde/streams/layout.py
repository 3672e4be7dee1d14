"""What the columns of a table in a file mean: long, one observation in each row, or wide, one stamp in each row."""

import dataclasses
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool

from logcde.streams.frames import read_long, read_wide, unobserved
from logcde.streams.reading import Reading
from logcde.streams.streams import Streams


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which columns hold ids of series, stamps, values, and in long tables names of channels. See `long` and `wide`.

    Without a column of series, all rows are one series. `channels` are the names of all channels in order, None if they
    are those seen, sorted.
    """

    series: str | None
    time: str
    values: tuple[str, ...]
    channel: str | None
    channels: tuple[str, ...] | None

    @classmethod
    def long(
        cls,
        series: str | None = "series",
        time: str = "time",
        channel: str = "channel",
        value: str = "value",
        channels: tuple[str, ...] | None = None,
    ) -> "Layout":
        """One observation in each row.

        >>> Layout.long("patient", "hours").columns
        ('patient', 'channel', 'hours', 'value')
        """
        return cls(series, time, (value,), channel, channels)

    @classmethod
    def wide(cls, channels: tuple[str, ...], series: str | None = "series", time: str = "time") -> "Layout":
        """One stamp in each row, one channel in each column of values.

        >>> Layout.wide(("pulse", "temp"), series=None).columns
        ('time', 'pulse', 'temp')
        """
        return cls(series, time, channels, None, channels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that say what a row belongs to."""
        return tuple(label for label in (self.series, self.channel) if label is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.labels, self.time, *self.values)

    def read(self, table: Any, reading: Reading) -> Streams:
        """The streams of a table, as by `Streams.from_frame` or `Streams.from_wide`."""
        names = self.channels if reading.schema is None else None
        if self.channel is None:
            return Streams(*read_wide(table, self.series, self.time, names, {}, reading))
        return Streams(*read_long(table, self.series, self.time, self.channel, self.values[0], names, {}, reading))

    def missing(self, table: nw.DataFrame) -> Bool[np.ndarray, "row column"]:
        """Where there is no value."""
        return np.stack([unobserved(table[value]) for value in self.values], axis=1)

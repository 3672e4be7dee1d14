"""What the columns of a table in a file mean: long, one observation in each row, or wide, one stamp in each row."""

import abc
import dataclasses
from typing import Any

import narwhals as nw
import numpy as np
from jaxtyping import Bool

from logcde.streams.frames import read_long, read_wide, unobserved
from logcde.streams.reading import Reading
from logcde.streams.streams import Streams


class AbstractLayout(abc.ABC):
    """Which columns hold ids of series (None: all rows are one series), stamps, names of channels, and values."""

    series: str | None
    time: str
    channel: str | None
    channels: tuple[str, ...] | None
    values: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that say what a row belongs to."""
        return tuple(label for label in (self.series, self.channel) if label is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.labels, self.time, *self.values)

    @abc.abstractmethod
    def read(self, table: Any, reading: Reading) -> Streams:
        """The streams of a table."""

    def missing(self, table: nw.DataFrame) -> Bool[np.ndarray, "row column"]:
        """Where there is no value."""
        return np.stack([unobserved(table[value]) for value in self.values], axis=1)


@dataclasses.dataclass(frozen=True)
class Long(AbstractLayout):
    """One observation in each row. `channels` are their names in the order wanted, by default those seen, sorted.

    >>> Long("patient", "hours").columns
    ('patient', 'channel', 'hours', 'value')
    """

    series: str | None = "series"
    time: str = "time"
    channel: str = "channel"
    value: str = "value"
    channels: tuple[str, ...] | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The one column of values."""
        return (self.value,)

    def read(self, table: Any, reading: Reading) -> Streams:
        """As `Streams.from_frame`."""
        names = self.channels if reading.schema is None else None
        return Streams(*read_long(table, self.series, self.time, self.channel, self.value, names, {}, reading))


@dataclasses.dataclass(frozen=True)
class Wide(AbstractLayout):
    """One stamp in each row, one channel in each of the columns `channels`.

    >>> Wide(("pulse", "temp"), series=None).columns
    ('time', 'pulse', 'temp')
    """

    channels: tuple[str, ...]
    series: str | None = "series"
    time: str = "time"
    channel: None = None

    @property
    def values(self) -> tuple[str, ...]:
        """One column of values for each channel."""
        return self.channels

    def read(self, table: Any, reading: Reading) -> Streams:
        """As `Streams.from_wide`."""
        names = self.channels if reading.schema is None else None
        return Streams(*read_wide(table, self.series, self.time, names, {}, reading))

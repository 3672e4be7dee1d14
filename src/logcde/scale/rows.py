"""What becomes of streams: the rows of a table, for each query interval or for each series.

This module knows streams and Arrow tables, not where either comes from or goes to.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.errors import EmbeddingError, Remedy, TableError, Where

if TYPE_CHECKING:
    from logcde.embedding import Coordinates, Embedding
    from logcde.features.abstract import AbstractFittedFeatures
    from logcde.kernels.records import Intervals
    from logcde.streams import Cuts, Partition, Schema, Streams
    from logcde.streams.clock import Clock

SCALE = "Scale the values, or leave such rows out."
"""What to do about numbers that are too large for double precision, or for features."""
NUMBERS_IN_MEMORY = 1 << 22
"""Coordinates that are in memory at once."""
INTERVALS_IN_MEMORY = 1 << 20
"""Intervals that are in memory at once, unless one series has more."""


@dataclasses.dataclass
class Tally:
    """What has been made so far.

    Attributes:
        rows: Rows.
        series: Series that have any.
        intervals: Query intervals.
        filled: Those of them that hold an event.
        lost: Ids of series whose predictions are not finite.
    """

    rows: int = 0
    series: int = 0
    intervals: int = 0
    filled: int = 0
    lost: list[Any] = dataclasses.field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add what has been made elsewhere."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class AbstractRows(abc.ABC):
    """Rows of a table that are made of streams, each of its own series alone."""

    @abc.abstractmethod
    def columns(self, series: str, schema: "Schema", text: bool) -> Any:
        """The pyarrow schema of the rows.

        Args:
            series: The name of the column of series ids.
            schema: Channels and clock of the streams.
            text: Whether ids are text.
        """

    @abc.abstractmethod
    def tables(self, streams: "Streams", columns: Any, tally: Tally) -> Iterator[Any]:
        """The rows of some streams as pyarrow tables of a bounded size."""


@dataclasses.dataclass(frozen=True)
class IntervalRows(AbstractRows):
    """The log-signature of every series over every query interval.

    Attributes:
        embedding: Options of the log-signatures.
        rule: From some series to those of them that have queries, and their partition.
    """

    embedding: "Embedding"
    rule: "Callable[[Streams], tuple[Streams, Partition]]"

    def columns(self, series: str, schema: "Schema", text: bool) -> Any:
        """Columns of series, start and stop, and of each coordinate."""
        labels = self.embedding.coordinates(schema).basis.labels
        return output_columns(series, schema.clock, text, ("start", "stop"), labels, np.dtype(self.embedding.dtype))

    def tables(self, streams: "Streams", columns: Any, tally: Tally) -> Iterator[Any]:
        """A row for each interval, in the order of series."""
        from logcde.embedding.factors import intervals_of

        coordinates = self.embedding.coordinates(streams.schema)
        for some, cuts in self._slices(streams):
            every = intervals_of(some, cuts)
            yield from self._interval_tables(some, every, coordinates, columns)
            tally.rows += every.size
            tally.series += len(some)
            tally.intervals += every.size
            tally.filled += int((every.begin < every.end).sum())

    def _slices(self, group: "Streams") -> "Iterator[tuple[Streams, Cuts]]":
        """Some series at a time, so that the number of their intervals is bounded."""
        first, partition = self.rule(group[:1])
        intervals = len(partition.cuts(first).points) if len(first) else 1
        step = max(1, INTERVALS_IN_MEMORY // intervals)
        for start in range(0, len(group), step):
            streams, partition = self.rule(group[start : start + step])
            if len(streams):
                yield streams, partition.cuts(streams)

    def _interval_tables(
        self, streams: "Streams", every: "Intervals", coordinates: "Coordinates", columns: Any
    ) -> Iterator[Any]:
        """Output tables with a bounded number of rows each."""
        from logcde.embedding.host import compose_each
        from logcde.streams.faults import Places
        from logcde.streams.frames import arrow

        pyarrow, dtype = arrow(), np.dtype(self.embedding.dtype)
        places = Places(streams.ids, streams.schema, streams.origins)
        step = max(1, NUMBERS_IN_MEMORY // coordinates.basis.dimension)
        for first in range(0, every.size, step):
            some = every.take(slice(first, first + step))
            values = np.asfortranarray(compose_each(streams, some, coordinates, dtype))

            def place(interval: int, some: Any = some) -> Where:
                series = some.series[interval]
                start, stop = (places.stamp(series, end[interval]) for end in (some.start, some.stop))
                return places.where(series, detail=f"interval from {start} to {stop}")

            check_finite(values, coordinates.basis.labels, place, Remedy.TOO_LARGE if dtype == np.float32 else SCALE)
            origins = None if streams.origins is None else streams.origins[some.series]
            ends = (streams.schema.clock.stamps(end, origins) for end in (some.start, some.stop))
            made = [streams.ids[some.series], *ends, *values.T]
            arrays = [pyarrow.array(column).cast(kind) for column, kind in zip(made, columns.types, strict=True)]
            yield pyarrow.Table.from_arrays(arrays, schema=columns)


@dataclasses.dataclass(frozen=True)
class FixedPartition:
    """The same partition for all series."""

    partition: "Partition"

    def __call__(self, streams: "Streams") -> "tuple[Streams, Partition]":
        """The same streams, and the partition."""
        return streams, self.partition


@dataclasses.dataclass(frozen=True)
class FeatureRows(AbstractRows):
    """One row for each series, by features that are fitted already."""

    fitted: "AbstractFittedFeatures"

    def columns(self, series: str, schema: "Schema", text: bool) -> Any:
        """Columns of series and of each feature."""
        return output_columns(series, schema.clock, text, (), self.fitted.names, np.dtype(np.float32))

    def tables(self, streams: "Streams", columns: Any, tally: Tally) -> Iterator[Any]:
        """A row for each series."""
        from logcde.streams.faults import Places
        from logcde.streams.frames import arrow

        pyarrow, names = arrow(), self.fitted.names
        step = max(1, NUMBERS_IN_MEMORY // len(names))
        for first in range(0, len(streams), step):
            some = streams[first : first + step]
            rows = self.fitted(some)
            check_finite(rows, names, Places(some.ids, some.schema).where)
            made = [some.ids, *np.asfortranarray(rows).T]
            arrays = [pyarrow.array(column).cast(kind) for column, kind in zip(made, columns.types, strict=True)]
            yield pyarrow.Table.from_arrays(arrays, schema=columns)
            tally.rows += len(some)
            tally.series += len(some)


def check_finite(
    values: np.ndarray, labels: Sequence[str], place: Callable[[int], Where], remedy: Remedy | str = SCALE
) -> None:
    """Refuse coordinates that are infinite or not a number, with the `place` of the first row that has one.

    >>> check_finite(np.array([[1.0, np.inf]]), ("pulse", "time"), lambda row: Where(series="p1"))
    Traceback (most recent call last):
    logcde.errors.EmbeddingError: Series 'p1': the coordinate 'time' is inf in float64. Scale the values, ...
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # all of them, and much faster than one by one
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0].tolist()
        where = place(row)
        rows = len(np.unique(bad[:, 0]))
        others = f" (and {rows - 1:,} more rows)" if rows > 1 else ""
        raise EmbeddingError(
            f"{where}: the coordinate {labels[column]!r} is {values[row, column]} in {values.dtype}{others}.",
            remedy,
            where=where,
        )


def output_columns(
    series: str, clock: "Clock", text: bool, stamps: tuple[str, ...], labels: Iterable[str], dtype: np.dtype
) -> Any:
    """The pyarrow schema of ids, stamps and numbers; two columns of one name are refused."""
    from logcde.streams.frames import arrow

    pyarrow = arrow()
    columns = [(series, pyarrow.string() if text else pyarrow.int64())]
    columns += [(name, stamp_type(clock)) for name in stamps]
    columns += [(label, pyarrow.from_numpy_dtype(dtype)) for label in labels]
    check_distinct_names([name for name, _ in columns])
    return pyarrow.schema(columns)


def stamp_type(clock: "Clock") -> Any:
    """The pyarrow type of the stamps of a clock."""
    from logcde.streams.clock import DatetimeClock, NumericClock
    from logcde.streams.frames import arrow

    pyarrow = arrow()
    if isinstance(clock, NumericClock):
        return pyarrow.float64()
    if isinstance(clock, DatetimeClock):
        return pyarrow.timestamp(clock.resolution, clock.zone)
    return pyarrow.duration(clock.resolution)


def check_distinct_names(names: Sequence[str]) -> None:
    """Refuse columns of one name.

    >>> check_distinct_names(["id", "time", "time"])
    Traceback (most recent call last):
    logcde.errors.TableError: The output would have two columns named 'time'. Rename that column of the table.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"The output would have two columns named {twice!r}.", "Rename that column of the table.")

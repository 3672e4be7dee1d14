"""`logcde embed`: write the log-signatures of all query intervals of a table, or features of each of its series.

The table may be larger than memory.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.cli.output import OutputTable, check_output, open_output, progress_bar
from logcde.cli.partition_options import PartitionOptions, PartitionRule
from logcde.cli.table import TableOptions
from logcde.errors import EmbeddingError, Remedy, TableError, Where

if TYPE_CHECKING:
    from logcde.embedding import Coordinates, Embedding
    from logcde.features import AbstractFeatures
    from logcde.kernels.records import Intervals
    from logcde.streams import Cuts, Schema, Streams
    from logcde.streams.file_scan import Scan

MOST_COORDINATES = 100_000
"""Columns of features that a file can reasonably have."""
SCALE = "Scale the values, or leave such rows out."
"""What to do about numbers that are too large for double precision, or for features."""
NUMBERS_IN_MEMORY = 1 << 22
"""Coordinates that are in memory at once."""
INTERVALS_IN_MEMORY = 1 << 20
"""Intervals that are in memory at once, unless one series has more."""


@dataclasses.dataclass(frozen=True)
class Embed:
    """Write the log-signature of every series over every query interval: one row each, one column per coordinate.

    The table is read twice, in pieces: it may be larger than memory. Examples:

    logcde embed vitals.parquet --series id --time t --channel name --value x --every 1h -o features.parquet

    logcde embed wide.csv --single --intervals 24 --depth 3 -o features.csv

    With --features it writes one row for each series instead, whatever its length, for any model that takes a table:

    logcde embed vitals.csv --series id --time t --features windows -o features.parquet
    """

    table: tyro.conf.OmitArgPrefixes[TableOptions]
    partition: tyro.conf.OmitArgPrefixes[PartitionOptions]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """File to write, .parquet, .csv or .jsonl: columns of series, start and stop, and one for each coordinate; with
    --features columns of series and of each feature."""
    features: Literal["windows", "logsigs"] | None = None
    """One row for each series: statistics and random units of windows, or log-signatures of parts of the series. Values
    are scaled and windows chosen by the series of the table (if there are more than --rows, by the first ones), so
    series to be compared belong in one table."""
    windows: int | None = None
    """With --features windows: number of windows of a series of typical length, by default chosen from the data."""
    units: int | None = None
    """With --features windows: number of random units, three columns each; by default 0, statistics only."""
    parts: tuple[int, ...] = ()
    """With --features logsigs: numbers of equal parts of a series, each with a log-signature; by default 1 2 4 8."""
    depth: int = 2
    """Depth of the log-signatures: 1 has increments only, 2 also areas."""
    no_counts: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave out the observation counts of channels as coordinates."""
    no_time: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave out time as a coordinate."""
    roughness: tyro.conf.FlagCreatePairsOff[bool] = False
    """Add the sum of squared changes of each channel, `~name`, as a coordinate."""
    precision: Literal["float32", "float64"] = "float64"
    """Type of the coordinates."""
    rows: int = 500_000
    """Rows of the table in memory at once, approximately. Series stay whole, so one may take more."""

    def run(self) -> int:
        """Write the features and return the exit code."""
        self._check_options()
        check_output(self.output, self.table.file, self.rows)
        try:
            with open_output(self.output) as output:
                series, start = self._write(output)
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        sys.stdout.write(f"Wrote {output.rows:,} rows of {series:,} series to {self.output}.\n")
        if start:
            sys.stdout.write(f"Time counts from {start}.\n")
        return 0

    def _check_options(self) -> None:
        """Refuse options that have no effect together."""
        if self.features is not None:
            for name, given in dataclasses.asdict(self.partition).items():
                if given is not None:
                    raise TableError(
                        f"--{name} makes query intervals, but --features writes one row for each series.",
                        f"Leave out --{name} or --features.",
                    )
        allowed = {"windows": ("windows", "units"), "logsigs": ("parts",)}.get(self.features or "", ())
        for name, needed in (("windows", "windows"), ("units", "windows"), ("parts", "logsigs")):
            if getattr(self, name) not in (None, ()) and name not in allowed:
                raise TableError(f"--{name} is an option of --features {needed}.", f"Add that, or leave out --{name}.")
        if self.features == "windows" and (self.depth != 2 or self.no_counts or self.no_time or self.roughness):
            raise TableError(
                "Features of windows are no log-signatures: they have neither --depth nor --no-counts, --no-time or "
                "--roughness.",
                "Leave these out, or choose --features logsigs.",
            )

    def _write(self, output: OutputTable) -> tuple[int, str]:
        """Write all rows. Returns the number of series, and in words from where time counts if not from 0."""
        from logcde.streams.file_scan import some_streams
        from logcde.streams.summary import start_of_time

        with progress_bar("scanning", None) as report:
            scan = self.table.scan(report)
        write = self._write_intervals if self.features is None else self._write_features
        with (
            progress_bar("embedding", scan.rows) as report,
            # Closed in any case, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            return write(scan, groups, output), start_of_time(scan.schema.clock, None)

    def _write_intervals(self, scan: "Scan", groups: "Iterable[Streams]", output: OutputTable) -> int:
        """Write a row for each query interval."""
        from logcde.embedding.factors import intervals_of
        from logcde.streams.partition import warn_if_mostly_empty

        embedding = self._embedding()
        rule = self.partition.rule(self.table, scan)
        coordinates = checked_coordinates(embedding, scan.schema)
        schema = _output_schema(scan, coordinates.basis.labels, self.precision, ("start", "stop"))
        output.begin(schema)
        written = intervals = filled = 0
        for group in groups:
            for streams, cuts in _slices(group, rule):
                every = intervals_of(streams, cuts)
                for table in _interval_tables(streams, every, coordinates, schema, embedding.dtype):
                    output.write(table)
                written, intervals = written + len(streams), intervals + every.size
                filled += int((every.begin < every.end).sum())
        warn_if_mostly_empty(intervals, filled)
        return written

    def _write_features(self, scan: "Scan", groups: "Iterable[Streams]", output: OutputTable) -> int:
        """Write a row for each series, with features that are fitted to the first group."""
        from logcde.streams.faults import Places
        from logcde.streams.frames import arrow

        pyarrow, fitted, schema, written = arrow(), None, None, 0
        for group in groups:
            if fitted is None or schema is None:
                fitted = self._features(scan.schema).fit(group)
                check_columns(len(fitted.names))
                schema = _output_schema(scan, fitted.names, "float32", ())
                output.begin(schema)
            step = max(1, NUMBERS_IN_MEMORY // len(fitted.names))
            for first in range(0, len(group), step):
                streams = group[first : first + step]
                rows = fitted(streams)
                check_finite(rows, fitted.names, Places(streams.ids, streams.schema).where)
                columns = [streams.ids, *np.asfortranarray(rows).T]
                arrays = [pyarrow.array(column).cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
                output.write(pyarrow.Table.from_arrays(arrays, schema=schema))
                written += len(streams)
        return written

    def _embedding(self) -> "Embedding":
        from logcde.embedding import Embedding

        return Embedding(
            self.depth, not self.no_counts, not self.no_time, np.dtype(self.precision), roughness=self.roughness
        )

    def _features(self, schema: "Schema") -> "AbstractFeatures":
        from logcde.features import LogSignatureFeatures, WindowFeatures

        # Before the fit, which makes a name and numbers for each column.
        if self.features == "windows":
            check_columns(3 * (self.units or 0))
            return WindowFeatures(windows=self.windows, units=self.units or 0)
        embedding = self._embedding()
        check_columns(sum(self.parts) * checked_coordinates(embedding, schema).basis.dimension)
        return LogSignatureFeatures(embedding, scales=self.parts) if self.parts else LogSignatureFeatures(embedding)


def checked_coordinates(embedding: "Embedding", schema: "Schema") -> "Coordinates":
    """The coordinates of the features; refused if they are too many, before memory is allocated for them."""
    from logcde.algebra.lyndon import witt_dimensions

    channels = len(schema.channels)
    width = channels * (1 + embedding.counts + embedding.roughness) + embedding.time
    # At absurd depths the number of coordinates has too many digits to be computed.
    size = sum(witt_dimensions(width, min(embedding.depth, 64)))
    if size > MOST_COORDINATES:
        number = f"{size:,}" if embedding.depth < 10 else "far too many"
        smaller = (
            "--depth 1 or fewer channels" if embedding.depth > 1 and width <= MOST_COORDINATES else "fewer channels"
        )
        raise EmbeddingError(
            f"{channels:,} channels make {width:,} letters, and a log-signature over these has {number} coordinates at "
            f"depth {embedding.depth}; a table can have {MOST_COORDINATES:,}.",
            f"Choose {smaller}, or --no-counts. If these are not channels, check the names of columns.",
        )
    return embedding.coordinates(schema)


def check_columns(count: int) -> None:
    """Refuse more columns than a file can reasonably have.

    >>> check_columns(10**9)
    Traceback (most recent call last):
    logcde.errors.EmbeddingError: These features have 1,000,000,000 columns; a table can have 100,000. Choose fewer ...
    """
    if count > MOST_COORDINATES:
        raise EmbeddingError(
            f"These features have {count:,} columns; a table can have {MOST_COORDINATES:,}.",
            "Choose fewer channels, units, parts, or a smaller depth.",
        )


def _slices(group: "Streams", rule: PartitionRule) -> "Iterator[tuple[Streams, Cuts]]":
    """Some series at a time, so that the number of their intervals is bounded."""
    first, partition = rule(group[:1])
    intervals = len(partition.cuts(first).points) if len(first) else 1
    step = max(1, INTERVALS_IN_MEMORY // intervals)
    for start in range(0, len(group), step):
        streams, partition = rule(group[start : start + step])
        if len(streams):
            yield streams, partition.cuts(streams)


def _interval_tables(
    streams: "Streams", every: "Intervals", coordinates: "Coordinates", schema: Any, dtype: Any
) -> Iterator[Any]:
    """Output tables with a bounded number of rows each."""
    from logcde.embedding.host import compose
    from logcde.streams.faults import Places
    from logcde.streams.frames import arrow

    pyarrow = arrow()
    places = Places(streams.ids, streams.schema, streams.origins)
    step = max(1, NUMBERS_IN_MEMORY // coordinates.basis.dimension)
    for first in range(0, every.size, step):
        some = every.take(slice(first, first + step))
        values = np.asfortranarray(compose(streams, some, coordinates, dtype))

        def place(interval: int, some: Any = some) -> Where:
            series = some.series[interval]
            start, stop = (places.stamp(series, end[interval]) for end in (some.start, some.stop))
            return places.where(series, detail=f"interval from {start} to {stop}")

        check_finite(values, coordinates.basis.labels, place, Remedy.TOO_LARGE if dtype == np.float32 else SCALE)
        origins = None if streams.origins is None else streams.origins[some.series]
        ends = (streams.schema.clock.stamps(end, origins) for end in (some.start, some.stop))
        columns = [streams.ids[some.series], *ends, *values.T]
        arrays = [pyarrow.array(column).cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
        yield pyarrow.Table.from_arrays(arrays, schema=schema)


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


def _output_schema(scan: "Scan", labels: Iterable[str], precision: str, stamps: tuple[str, ...]) -> Any:
    from logcde.streams.clock import DatetimeClock, NumericClock
    from logcde.streams.frames import arrow

    pyarrow = arrow()
    clock = scan.schema.clock
    if isinstance(clock, NumericClock):
        stamp = pyarrow.float64()
    elif isinstance(clock, DatetimeClock):
        stamp = pyarrow.timestamp(clock.resolution, clock.zone)
    else:
        stamp = pyarrow.duration(clock.resolution)
    series = pyarrow.string() if isinstance(next(iter(scan.numbers)), str) else pyarrow.int64()
    columns = [(scan.layout.series or "series", series), *((name, stamp) for name in stamps)]
    columns += [(label, getattr(pyarrow, precision)()) for label in labels]
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"The output would have two columns named {twice!r}.", "Rename that column of the table.")
    return pyarrow.schema(columns)

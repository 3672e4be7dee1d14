"""`logcde embed`: log-signatures of the series of a table, as a table, for files of any size."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.cli.output import Output, bar, check_output, writing
from logcde.cli.partition_options import Cut, Cutting
from logcde.cli.table import Table, in_options
from logcde.errors import EmbeddingError, TableError

if TYPE_CHECKING:
    from logcde.embedding import Coordinates, Embedding
    from logcde.streams import Cuts, Schema, Streams
    from logcde.streams.file_scan import Scan

MOST_COORDINATES = 100_000
"""Columns of features that a file can reasonably have."""
NUMBERS = 1 << 22
"""Numbers of features that are held at once."""
INTERVALS = 1 << 20
"""Intervals that are held at once, unless one series has more."""


@dataclasses.dataclass(frozen=True)
class Embed:
    """Write the log-signature of every series over every query interval: one row each, one column for each coordinate.

    The table is read twice, in pieces: it may be larger than memory. Examples:
    logcde embed vitals.parquet --series id --time t --channel name --value x --every 1h -o features.parquet
    logcde embed wide.csv --single --intervals 24 --depth 3 -o features.csv
    """

    table: tyro.conf.OmitArgPrefixes[Table]
    cutting: tyro.conf.OmitArgPrefixes[Cutting]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The file to write, .parquet, .csv or .jsonl: columns of series, start and stop, and one for each coordinate."""
    depth: int = 2
    """How many levels of the log-signature: 1 has increments only, 2 also areas."""
    no_counts: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave out the coordinates that count the observations of each channel."""
    no_time: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave out time as a coordinate."""
    precision: Literal["float32", "float64"] = "float64"
    """The type of the features."""
    rows: int = 500_000
    """About how many rows of the table are in memory at once. Series stay whole, so one may take more."""

    def run(self) -> int:
        """Do it."""
        check_output(self.output, self.table.file)
        try:
            with in_options(), writing(self.output) as output:
                series = self._write(output)
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        sys.stdout.write(f"{self.output}: {output.rows:,} rows of {series:,} series\n")
        return 0

    def _write(self, output: Output) -> int:
        from logcde.embedding import Embedding
        from logcde.streams.file_scan import some_streams

        embedding = Embedding(self.depth, not self.no_counts, not self.no_time, np.dtype(self.precision))
        with bar("looking", None) as report:
            scan = self.table.scan(report)
        cut = self.cutting.cut(self.table, scan)
        coordinates = checked_coordinates(embedding, scan.schema)
        kinds = _kinds(scan, coordinates, self.precision)
        output.begin(kinds)
        written = 0
        with (
            bar("embedding", scan.rows) as report,
            # Closed whatever happens, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            for group in groups:
                for streams, cuts in _slices(group, cut):
                    for table in features(streams, cuts, coordinates, kinds, embedding.dtype):
                        output.write(table)
                    written += len(streams)
        return written


def checked_coordinates(embedding: "Embedding", schema: "Schema") -> "Coordinates":
    """The coordinates of the features; refused where there would be too many, before anything is as large as that."""
    from logcde.algebra.lyndon import witt_dimensions

    channels = len(schema.channels)
    width = channels * (1 + embedding.counts) + embedding.time
    # Sizes of depths that nobody can mean have too many digits even to write them down.
    size = sum(witt_dimensions(width, min(embedding.depth, 64)))
    if size > MOST_COORDINATES:
        number = f"{size:,}" if embedding.depth < 10 else "far too many"
        smaller = (
            "--depth 1 or fewer channels" if embedding.depth > 1 and width <= MOST_COORDINATES else "fewer channels"
        )
        raise EmbeddingError(
            f"{channels:,} channels make {width:,} letters, and at depth {embedding.depth} a log-signature over these "
            f"has {number} coordinates; {MOST_COORDINATES:,} are the most for a table. Choose {smaller}, or "
            "--no-counts. If these are not channels, see whether the columns were named rightly."
        )
    return embedding.coordinates(schema)


def features(streams: "Streams", cuts: "Cuts", coordinates: "Coordinates", kinds: Any, dtype: Any) -> Iterator[Any]:
    """Tables of features, a bounded number of rows at a time."""
    from logcde.embedding.factors import intervals_of
    from logcde.embedding.host import compose
    from logcde.streams.frames import arrow

    pyarrow = arrow()
    every = intervals_of(streams, cuts)
    step = max(1, NUMBERS // coordinates.basis.dimension)
    for first in range(0, every.size, step):
        some = every.take(slice(first, first + step))
        values = np.asfortranarray(compose(streams, some, coordinates, dtype))
        origins = None if streams.origins is None else streams.origins[some.series]
        ends = (streams.schema.clock.stamps(end, origins) for end in (some.start, some.stop))
        columns = [streams.ids[some.series], *ends, *values.T]
        arrays = [pyarrow.array(column).cast(kind) for column, kind in zip(columns, kinds.types, strict=True)]
        yield pyarrow.Table.from_arrays(arrays, schema=kinds)


def _slices(group: "Streams", cut: Cut) -> "Iterator[tuple[Streams, Cuts]]":
    """Some series at a time, such that their intervals are not too many."""
    first, partition = cut(group[:1])
    intervals = len(partition.cuts(first).points) if len(first) else 1
    step = max(1, INTERVALS // intervals)
    for start in range(0, len(group), step):
        streams, partition = cut(group[start : start + step])
        if len(streams):
            yield streams, partition.cuts(streams)


def _kinds(scan: "Scan", coordinates: "Coordinates", precision: str) -> Any:
    """The names and types of all columns of the output."""
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
    columns = [(scan.layout.series or "series", series), ("start", stamp), ("stop", stamp)]
    columns += [(label, getattr(pyarrow, precision)()) for label in coordinates.basis.labels]
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"The output would have two columns named {twice!r}. Rename that column of the table.")
    return pyarrow.schema(columns)

"""`logcde embed`: write the log-signatures of all query intervals of a table, which may be larger than memory."""

import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.cli.output import OutputTable, check_output, open_output, progress_bar
from logcde.cli.partition_options import PartitionOptions, PartitionRule
from logcde.cli.table import TableOptions
from logcde.errors import EmbeddingError, TableError

if TYPE_CHECKING:
    from logcde.embedding import Coordinates, Embedding
    from logcde.streams import Cuts, Schema, Streams
    from logcde.streams.file_scan import Scan

MOST_COORDINATES = 100_000
"""Columns of features that a file can reasonably have."""
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
    """

    table: tyro.conf.OmitArgPrefixes[TableOptions]
    partition: tyro.conf.OmitArgPrefixes[PartitionOptions]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """File to write, .parquet, .csv or .jsonl: columns of series, start and stop, and one for each coordinate."""
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
        check_output(self.output, self.table.file)
        try:
            with open_output(self.output) as output:
                series = self._write(output)
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        sys.stdout.write(f"Wrote {output.rows:,} rows of {series:,} series to {self.output}.\n")
        return 0

    def _write(self, output: OutputTable) -> int:
        """Write all rows. Returns the number of series."""
        from logcde.embedding import Embedding
        from logcde.streams.file_scan import some_streams

        embedding = Embedding(
            self.depth, not self.no_counts, not self.no_time, np.dtype(self.precision), roughness=self.roughness
        )
        with progress_bar("scanning", None) as report:
            scan = self.table.scan(report)
        rule = self.partition.rule(self.table, scan)
        coordinates = checked_coordinates(embedding, scan.schema)
        schema = _output_schema(scan, coordinates, self.precision)
        output.begin(schema)
        written = 0
        with (
            progress_bar("embedding", scan.rows) as report,
            # Closed in any case, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            for group in groups:
                for streams, cuts in _slices(group, rule):
                    for table in _feature_tables(streams, cuts, coordinates, schema, embedding.dtype):
                        output.write(table)
                    written += len(streams)
        return written


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


def _slices(group: "Streams", rule: PartitionRule) -> "Iterator[tuple[Streams, Cuts]]":
    """Some series at a time, so that the number of their intervals is bounded."""
    first, partition = rule(group[:1])
    intervals = len(partition.cuts(first).points) if len(first) else 1
    step = max(1, INTERVALS_IN_MEMORY // intervals)
    for start in range(0, len(group), step):
        streams, partition = rule(group[start : start + step])
        if len(streams):
            yield streams, partition.cuts(streams)


def _feature_tables(
    streams: "Streams", cuts: "Cuts", coordinates: "Coordinates", schema: Any, dtype: Any
) -> Iterator[Any]:
    """Output tables with a bounded number of rows each."""
    from logcde.embedding.factors import intervals_of
    from logcde.embedding.host import compose
    from logcde.streams.frames import arrow

    pyarrow = arrow()
    every = intervals_of(streams, cuts)
    step = max(1, NUMBERS_IN_MEMORY // coordinates.basis.dimension)
    for first in range(0, every.size, step):
        some = every.take(slice(first, first + step))
        values = np.asfortranarray(compose(streams, some, coordinates, dtype))
        origins = None if streams.origins is None else streams.origins[some.series]
        ends = (streams.schema.clock.stamps(end, origins) for end in (some.start, some.stop))
        columns = [streams.ids[some.series], *ends, *values.T]
        arrays = [pyarrow.array(column).cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
        yield pyarrow.Table.from_arrays(arrays, schema=schema)


def _output_schema(scan: "Scan", coordinates: "Coordinates", precision: str) -> Any:
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
        raise TableError(f"The output would have two columns named {twice!r}.", "Rename that column of the table.")
    return pyarrow.schema(columns)

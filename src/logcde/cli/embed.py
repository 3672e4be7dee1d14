"""`logcde embed`: write the log-signatures of all query intervals of a table, or features of each of its series.

The table may be larger than memory.
"""

import contextlib
import dataclasses
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from logcde.cli.config import options_of
from logcde.cli.folders import FolderOptions, check_single, is_folder, run_folder, tell_outcome
from logcde.cli.output import OutputTable, check_output, open_output, progress_bar
from logcde.cli.partition_options import PartitionOptions
from logcde.cli.resume import checksums
from logcde.cli.table import TableOptions
from logcde.errors import EmbeddingError, TableError

if TYPE_CHECKING:
    from logcde.embedding import Coordinates, Embedding
    from logcde.features import AbstractFeatures
    from logcde.scale.rows import AbstractRows, Tally
    from logcde.streams import Schema, Streams
    from logcde.streams.file_scan import Scan

MOST_COORDINATES = 100_000
"""Columns of features that a file can reasonably have."""


@dataclasses.dataclass(frozen=True)
class Embed:
    """Write the log-signature of every series over every query interval: one row each, one column per coordinate.

    The table is read twice, in pieces: it may be larger than memory. Examples:

    logcde embed vitals.parquet --series id --time t --channel name --value x --every 1h -o features.parquet

    logcde embed wide.csv --single --intervals 24 --depth 3 -o features.csv

    With --features it writes one row for each series instead, whatever its length, for any model that takes a table:

    logcde embed vitals.csv --series id --time t --features windows -o features.parquet

    Of many files it writes a folder of files, one for each part, and lists them in manifest.json at the end. A damaged
    file stops no other; the same command makes what is missing:

    logcde embed 'vitals/*.parquet' --series id --time t --every 1h -o features --ray auto
    """

    table: tyro.conf.OmitArgPrefixes[TableOptions]
    partition: tyro.conf.OmitArgPrefixes[PartitionOptions]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """File to write, .parquet, .csv or .jsonl: columns of series, start and stop, and one for each coordinate; with
    --features columns of series and of each feature. Of many files also a folder, or a URL of one."""
    folder: tyro.conf.OmitArgPrefixes[FolderOptions] = FolderOptions()
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
        if is_folder(self.output, self.table.file):
            return self._run_folder()
        check_single(self.folder)
        check_output(self.output, self.table.file, self.rows)
        try:
            with open_output(self.output) as output:
                tally, start = self._write(output)
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        sys.stdout.write(f"Wrote {output.rows:,} rows of {tally.series:,} series to {self.output}.\n")
        _tell_start(start)
        return 0

    def _run_folder(self) -> int:
        """Write a folder of parts and return the exit code."""
        from logcde.streams.partition import warn_if_mostly_empty
        from logcde.streams.summary import start_of_time

        outcome = run_folder(self.table, self.output, self.folder, self._rows, self._key(), self.rows)
        if outcome is None:
            return 130
        code = tell_outcome(outcome, self.output, "rows")
        if outcome.tally.intervals:
            warn_if_mostly_empty(outcome.tally.intervals, outcome.tally.filled)
        _tell_start(start_of_time(outcome.scan.schema.clock, None))
        return code

    def _key(self) -> dict[str, Any]:
        """What decides the content of the output besides the tables."""
        table = dataclasses.replace(self.table, file=Path())
        plain = dataclasses.replace(self, table=table, output=Path(), folder=FolderOptions())
        return options_of(plain) | checksums({"the query times": self.partition.at})

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

    def _write(self, output: OutputTable) -> "tuple[Tally, str]":
        """Write all rows. Returns what was written, and in words from where time counts if not from 0."""
        from logcde.scale.rows import Tally
        from logcde.streams.file_scan import some_streams
        from logcde.streams.partition import warn_if_mostly_empty
        from logcde.streams.summary import start_of_time

        with progress_bar("scanning", None) as report:
            scan = self.table.scan(report)
        tally = Tally()
        with (
            progress_bar("embedding", scan.rows) as report,
            # Closed in any case, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            first = next(groups)
            rows = self._rows(scan, lambda: first)
            text = isinstance(next(iter(scan.numbers)), str)
            columns = rows.columns(scan.layout.series or "series", scan.schema, text)
            output.begin(columns)
            for group in itertools.chain([first], groups):
                for table in rows.tables(group, columns, tally):
                    output.write(table)
        if tally.intervals:
            warn_if_mostly_empty(tally.intervals, tally.filled)
        return tally, start_of_time(scan.schema.clock, None)

    def _rows(self, scan: "Scan", first: "Callable[[], Streams]") -> "AbstractRows":
        """What is written: a row for each interval, or for each series, with features fitted to the first series."""
        from logcde.scale.rows import FeatureRows, IntervalRows

        if self.features is None:
            checked_coordinates(self._embedding(), scan.schema)
            return IntervalRows(self._embedding(), self.partition.rule(self.table, scan))
        fitted = self._features(scan.schema).fit(first())
        check_columns(len(fitted.names))
        return FeatureRows(fitted)

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


def _tell_start(start: str) -> None:
    if start:
        sys.stdout.write(f"Time counts from {start}.\n")


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

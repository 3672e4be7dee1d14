"""`logcde predict`: write the predictions of a trained model for a table, which may be larger than memory."""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from logcde.cli.notices import Notices, tell
from logcde.cli.output import OutputTable, check_output, open_output, progress_bar
from logcde.cli.table import TableOptions
from logcde.cli.trained import TableOverrides
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.cli.tasks import Predictions
    from logcde.cli.trained import Trained
    from logcde.estimators.queries import Queries
    from logcde.streams import Partition, Streams
    from logcde.streams.file_scan import Scan

MOST_AT_ONCE = 5_000_000
"""Forecasts of the series that are in memory together: more take very long before anything is written."""


@dataclasses.dataclass(frozen=True)
class Predict:
    """Write the predictions of a trained model for every series: a class with probabilities, a number, or forecasts.

    A prediction that is not finite is left empty, its series is named, and the exit code is then 1. Columns have the
    names of the training table, unless options say otherwise. The table is read twice, in pieces: it
    may be larger than memory. Examples:

    logcde predict model/ new.parquet -o predictions.parquet

    logcde predict model/ new.csv --series id --at times.csv -o forecasts.csv
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder that logcde train wrote."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Table of observations in the form of the training table; targets are not needed."""
    overrides: Annotated[tyro.conf.OmitArgPrefixes[TableOverrides], tyro.conf.arg(name="table")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """File to write, .parquet, .csv or .jsonl: columns of the series, the time predicted for, and the prediction."""
    at: Path | None = None
    """Forecasts: table of query times, with columns named as in FILE; without a series column they hold for all series.
    By default the end of each series."""
    every: str | None = None
    """Forecasts: predict at all multiples of this and at the end of each series.
    A number in units of time, or a duration such as 90min."""
    rows: int = 500_000
    """Rows of the table in memory at once, approximately. Series stay whole, so one may take more."""

    def run(self) -> int:
        """Write the predictions and return the exit code."""
        from logcde.cli.trained import load_trained

        notices = Notices()
        try:
            check_output(self.output, self.file, self.rows)
            trained = load_trained(self.model)
            with open_output(self.output) as output, notices.collecting():
                series = self._write(output, trained, notices)
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        sys.stdout.write(f"Wrote {output.rows:,} predictions for {series:,} series to {self.output}.\n")
        tell(notices.lines(series, "Such rows are empty."))
        return 1 if notices.lost else 0

    def _write(self, output: OutputTable, trained: "Trained", notices: Notices) -> int:
        """Write all predictions. Returns the number of series."""
        from logcde.cli.targets import with_end
        from logcde.streams.file_scan import some_streams

        table = self.overrides.table(self.file, trained.table)
        with progress_bar("scanning", None) as report:
            scan = table.scan(report, schema=trained.estimator.schema_)
        query_times = self._query_times(table, scan)
        columns = trained.task.columns(trained.outputs, trained.classes)
        schema: Any = None
        written = 0
        with (
            progress_bar("predicting", scan.rows) as report,
            # Closed in any case, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            for group in groups:
                streams, at = query_times(with_end(group, table, trained.estimator.gap_))
                if not len(streams):
                    continue
                predictions = trained.task.predict(trained.estimator, streams, at)
                notices.lost += streams.ids[np.unique(predictions.series[~predictions.finite])].tolist()
                made = _output_table(streams, predictions, columns, scan, table)
                if schema is None:
                    schema = made.schema
                    output.begin(schema)
                output.write(made.cast(schema))
                written += len(streams)
        return written

    def _query_times(self, table: TableOptions, scan: "Scan") -> "Callable[[Streams], tuple[Streams, Any]]":
        """From some series to those of them that have queries, and the query times; None for the ends of series."""
        from logcde.cli.partition_options import every_partition, read_query_times

        if self.at is not None and self.every is not None:
            raise TableError("--at and --every exclude each other.", "Leave one of them out.")
        if self.every is not None:
            partition = every_partition(self.every, scan.schema.clock)
            return lambda streams: (streams, _multiples(partition, streams))
        if self.at is None:
            return lambda streams: (streams, None)
        read = read_query_times(self.at, table, scan)

        def query_times(streams: "Streams") -> "tuple[Streams, Any]":
            from logcde.estimators.queries import queries_of_times

            streams, times = read(streams)
            return streams, queries_of_times(times, streams)

        return query_times


def _multiples(partition: "Partition", streams: "Streams") -> "Queries":
    """The query times that --every gives, if they can be answered."""
    from logcde.estimators.queries import queries_at

    queries = queries_at(partition, streams)
    if len(queries.times) > MOST_AT_ONCE:
        raise TableError(
            f"--every asks for {len(queries.times):,} forecasts at once, of at most {MOST_AT_ONCE:,}.",
            "Choose a longer one; or pass smaller --rows, for fewer series in memory.",
        )
    return queries


def _output_table(
    streams: "Streams",
    predictions: "Predictions",
    columns: "Mapping[str, Callable[[Predictions], Any]]",
    scan: "Scan",
    table: TableOptions,
) -> Any:
    from logcde.streams.clock import DatetimeClock
    from logcde.streams.frames import arrow

    pyarrow, clock, finite = arrow(), streams.schema.clock, predictions.finite
    origins = None if streams.origins is None else streams.origins[predictions.series]
    stamps = pyarrow.array(clock.stamps(predictions.time, origins))
    if isinstance(clock, DatetimeClock):
        stamps = stamps.cast(pyarrow.timestamp(clock.resolution, clock.zone))
    ids = pyarrow.array(streams.ids[predictions.series].tolist())
    made = {scan.layout.series or "series": ids, table.time: stamps}
    for name, values in columns.items():
        if name in made:
            raise TableError(f"The output would have two columns named {name!r}.", "Rename that column of the table.")
        column = pyarrow.array(np.asarray(values(predictions)).tolist())
        made[name] = column if finite.all() else pyarrow.compute.if_else(pyarrow.array(finite), column, None)
    return pyarrow.table(made)

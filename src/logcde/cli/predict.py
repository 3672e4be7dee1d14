"""`logcde predict`: write the predictions of a trained model for a table, which may be larger than memory."""

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from logcde.cli.advice import TRAINED_ADVICE
from logcde.cli.config import options_of
from logcde.cli.folders import FolderOptions, check_single, is_folder, run_folder, tell_outcome
from logcde.cli.notices import Notices, tell
from logcde.cli.output import OutputTable, check_output, open_output, progress_bar
from logcde.cli.resume import checksums
from logcde.cli.table import TableOptions
from logcde.cli.tasks import refuse_query_times
from logcde.cli.trained import TableOverrides
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.cli.trained import Trained
    from logcde.estimators.queries import Queries
    from logcde.scale.predictions import PredictionRows
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

    Of many files it writes a folder of files, one for each part, and lists them in manifest.json at the end. A damaged
    file stops no other; the same command makes what is missing:

    logcde predict model/ 'new/*.parquet' -o predictions --ray auto
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder that logcde train wrote."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """Table of observations in the form of the training table; targets are not needed. Also a folder of such tables, a
    pattern in quotation marks such as 'new/*.parquet', or a URL that fsspec opens."""
    overrides: Annotated[tyro.conf.OmitArgPrefixes[TableOverrides], tyro.conf.arg(name="table")]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """File to write, .parquet, .csv or .jsonl: columns of the series, the time predicted for, and the prediction.
    Of many files also a folder, or a URL of one."""
    folder: tyro.conf.OmitArgPrefixes[FolderOptions] = FolderOptions()
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
        if is_folder(self.output, self.file):
            return self._run_folder(notices)
        check_single(self.folder)
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

    def _run_folder(self, notices: Notices) -> int:
        """Write a folder of parts and return the exit code."""
        from logcde.artefact.files import MODEL_JSON, MODEL_TENSORS
        from logcde.cli.trained import load_trained

        trained = load_trained(self.model)
        table = self.overrides.table(self.file, trained.table)
        plain = dataclasses.replace(self, file=Path(), output=Path(), model=Path(), folder=FolderOptions())
        files = {"the model": self.model / MODEL_JSON, "its parameters": self.model / MODEL_TENSORS}
        key = options_of(plain) | checksums({**files, "the query times": self.at})
        outcome = run_folder(
            table,
            self.output,
            self.folder,
            lambda scan, first: self._rows(table, scan, trained),
            key,
            self.rows,
            trained.estimator.schema_,
        )
        if outcome is None:
            return 130
        with notices.collecting():
            code = tell_outcome(outcome, self.output, "predictions", TRAINED_ADVICE)
        notices.lost = outcome.tally.lost
        tell(notices.lines(outcome.tally.series, "Such rows are empty."))
        return 1 if notices.lost else code

    def _write(self, output: OutputTable, trained: "Trained", notices: Notices) -> int:
        """Write all predictions. Returns the number of series."""
        from logcde.scale.rows import Tally
        from logcde.streams.file_scan import some_streams

        table = self.overrides.table(self.file, trained.table)
        with progress_bar("scanning", None) as report:
            scan = table.scan(report, schema=trained.estimator.schema_)
        rows, tally = self._rows(table, scan, trained), Tally()
        text = isinstance(next(iter(scan.numbers)), str)
        columns = rows.columns(scan.layout.series or "series", scan.schema, text)
        with (
            progress_bar("predicting", scan.rows) as report,
            # Closed in any case, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            for group in groups:
                for made in rows.tables(group, columns, tally):
                    if output.writer is None:
                        output.begin(columns)
                    output.write(made)
        notices.lost += tally.lost
        return tally.series

    def _rows(self, table: TableOptions, scan: "Scan", trained: "Trained") -> "PredictionRows":
        """From series to the predictions that are written: one for each series, or one for each query time."""
        from logcde.scale.predictions import PredictionRows

        queries = self._query_times(table, scan)
        if queries is not None and trained.task.name != "forecast":
            refuse_query_times()
        return PredictionRows(trained.estimator, trained.outputs, table.time, table.horizon is not None, queries)

    def _query_times(self, table: TableOptions, scan: "Scan") -> "Callable[[Streams], tuple[Streams, Any]] | None":
        """From some series to those of them that have queries, and the query times; None if these are their ends."""
        from logcde.cli.partition_options import every_partition, read_query_times

        if self.at is not None and self.every is not None:
            raise TableError("--at and --every exclude each other.", "Leave one of them out.")
        if self.every is not None:
            partition = every_partition(self.every, scan.schema.clock)
            return lambda streams: (streams, _multiples(partition, streams))
        if self.at is None:
            return None
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

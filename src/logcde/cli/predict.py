"""`logcde predict`: what a trained model says about the series of a table, as a table, for files of any size."""

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from logcde.cli.output import Output, bar, check_output, writing
from logcde.cli.table import Table
from logcde.cli.trained import Columns
from logcde.errors import TableError

if TYPE_CHECKING:
    from logcde.cli.tasks import Predicted
    from logcde.cli.trained import Trained
    from logcde.streams import Streams
    from logcde.streams.file_scan import Scan


@dataclasses.dataclass(frozen=True)
class Predict:
    """Write what a trained model predicts for every series: a class with probabilities, a number, or a forecast.

    Columns are named as in training, unless it is said otherwise. The table is read twice, in pieces: it may be larger
    than memory. Examples:

    logcde predict model/ new.parquet -o predictions.parquet

    logcde predict model/ new.csv --series id --at times.csv -o forecasts.csv
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """The folder that logcde train wrote."""
    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """A table of observations like that of training, without answers."""
    columns: tyro.conf.OmitArgPrefixes[Columns]
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The file to write, .parquet, .csv or .jsonl: the series, the time that each prediction is for, and what it is."""
    at: Path | None = None
    """Forecasts: a table of stamps to predict at, with columns named as in FILE; without a column of series they are
    those of all. By default the end of each series."""
    every: str | None = None
    """Forecasts: predict at every multiple of this, a number in the units of time or a duration such as 90min, and at
    the end."""
    rows: int = 500_000
    """About how many rows of the table are in memory at once. Series stay whole, so one may take more."""

    def run(self) -> int:
        """Do it."""
        from logcde.cli.trained import as_trained, load_trained

        try:
            with as_trained():
                check_output(self.output, self.file)
                trained = load_trained(self.model)
                with writing(self.output) as output:
                    series = self._write(output, trained)
        except KeyboardInterrupt:
            sys.stderr.write(f"logcde: stopped. {self.output} was not written.\n")
            return 130
        sys.stdout.write(f"{self.output}: {output.rows:,} predictions for {series:,} series\n")
        return 0

    def _write(self, output: Output, trained: "Trained") -> int:
        from logcde.cli.targets import end
        from logcde.streams.file_scan import some_streams

        table = self.columns.table(self.file, trained.table)
        with bar("looking", None) as report:
            scan = table.scan(report, schema=trained.estimator.schema_)
        asked = self._asked(table, scan)
        content = trained.task.columns(trained.outputs, trained.classes)
        kinds: Any = None
        written = 0
        with (
            bar("predicting", scan.rows) as report,
            # Closed whatever happens, so that no temporary file outlives it.
            contextlib.closing(some_streams(scan, self.output.parent, report, group=self.rows)) as groups,
        ):
            for group in groups:
                streams, at = asked(end(group, table, trained.estimator.gap_))
                if not len(streams):
                    continue
                found = trained.task.predict(trained.estimator, streams, at)
                made = _table(streams, found, content, scan, table)
                if kinds is None:
                    kinds = made.schema
                    output.begin(kinds)
                output.write(made.cast(kinds))
                written += len(streams)
        return written

    def _asked(self, table: Table, scan: "Scan") -> "Callable[[Streams], tuple[Streams, Any]]":
        """When forecasts are asked for."""
        from logcde.cli.partition_options import of_length, queries_of

        if self.at is not None and self.every is not None:
            raise TableError("--at and --every exclude each other. Leave one of them out.")
        if self.every is not None:
            partition = of_length(self.every, scan.schema.clock)
            return lambda streams: (streams, partition)
        if self.at is None:
            return lambda streams: (streams, None)
        return queries_of(self.at, table, scan)


def _table(
    streams: "Streams", found: "Predicted", content: "dict[str, Callable[[Predicted], Any]]", scan: "Scan", table: Table
) -> Any:
    """Rows of the output."""
    from logcde.streams.clock import DatetimeClock
    from logcde.streams.frames import arrow

    pyarrow, clock = arrow(), streams.schema.clock
    origins = None if streams.origins is None else streams.origins[found.series]
    stamps = pyarrow.array(clock.stamps(found.time, origins))
    if isinstance(clock, DatetimeClock):
        stamps = stamps.cast(pyarrow.timestamp(clock.resolution, clock.zone))
    ids = pyarrow.array(streams.ids[found.series].tolist())
    columns = {scan.layout.series or "series": ids, table.time: stamps}
    for name, of in content.items():
        if name in columns:
            raise TableError(f"The output would have two columns named {name!r}. Rename that column of the table.")
        columns[name] = pyarrow.array(np.asarray(of(found)).tolist())
    return pyarrow.table(columns)

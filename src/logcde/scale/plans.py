"""`plan`: what must be known of all files before the first row is embedded, frozen into a function of tables."""

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from logcde.errors import ModelError
from logcde.scale.predictions import PredictionRows
from logcde.scale.rows import AbstractRows, FixedPartition, IntervalRows, Tally
from logcde.streams import Partition
from logcde.streams.file_scan import Scan, scan_of
from logcde.streams.file_summary import Layout as Layout
from logcde.streams.file_summary import Summary, check_whole, merged, settled, summarise
from logcde.streams.files import check_alike, open_table
from logcde.streams.frames import arrow
from logcde.streams.ingest import ReadOptions
from logcde.streams.locations import Location, tables_at
from logcde.streams.rows import Average, Drop, Earliest, FirstStamp, Forbid, KeepLast
from logcde.streams.stamps import OPEN_END, Horizon, Origin
from logcde.streams.streams import Streams
from logcde.streams.texts import Texts

if TYPE_CHECKING:
    from logcde.embedding import Embedding


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """From tables of whole series to streams that have the channels, the clock and the horizon of all files.

    Attributes:
        layout: The columns that are read; others are ignored.
        texts: How columns of text are read.
        options: How series are read.
    """

    layout: Layout
    texts: Texts
    options: ReadOptions

    def __call__(self, table: Any) -> Streams:
        """The streams of a pyarrow table."""
        pyarrow = arrow()
        table = table.select(list(self.layout.columns))
        for place, field in enumerate(table.schema):
            if pyarrow.types.is_dictionary(field.type):
                table = table.set_column(place, field.name, table[place].cast(field.type.value_type))
        return self.layout.read(self.texts(table), self.options)

    def scan(self, file: Location, seen: Summary) -> Scan:
        """A file with its summary, to be read in pieces."""
        return scan_of(open_table(file), self.layout, seen, self.options, self.texts)


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """A function from a table of whole series to a table of what was planned: features, or predictions.

    It is pure, and the same wherever it runs: it holds the channels, the clock and the horizon of all files that it was
    made for. Engines send it to their workers by their own means. Call it with thousands of series at a time.

    Attributes:
        reader: How tables are read.
        rows: What is made of their series.
        text: Whether series ids are text.
    """

    reader: Reader
    rows: AbstractRows
    text: bool

    @property
    def columns(self) -> Any:
        """The pyarrow schema of the tables that it returns."""
        assert self.reader.options.schema is not None
        return self.rows.columns(self.reader.layout.series or "series", self.reader.options.schema, self.text)

    def __call__(self, table: Any) -> Any:
        """The table of these series.

        Args:
            table: A pyarrow table, or a record batch, of whole series.

        Returns:
            A pyarrow table with the columns `columns`.
        """
        pyarrow, columns = arrow(), self.columns
        if isinstance(table, pyarrow.RecordBatch):
            table = pyarrow.Table.from_batches([table])
        if not len(table):
            return columns.empty_table()
        made = self.tables(iter([self.reader(table)]), Tally())
        return pyarrow.concat_tables([columns.empty_table(), *made]).combine_chunks()

    def tables(self, groups: Iterator[Streams], tally: Tally) -> Iterator[Any]:
        """The tables of some groups of series, of a bounded size each."""
        columns = self.columns
        for group in groups:
            yield from self.rows.tables(group, columns, tally)


def plan(
    pattern: str | Location | Sequence[str | Location],
    layout: Layout,
    embedding: "Embedding | None" = None,
    partition: Partition | None = None,
    *,
    model: Any = None,
    outputs: Sequence[str] = ("value",),
    horizon: Horizon | None = None,
    unit: timedelta | None = None,
    origin: Origin = Earliest(),
    epoch: str | None = None,
    sort: bool = False,
    duplicates: Forbid | KeepLast | Average = Forbid(),
    empty: Forbid | Drop = Forbid(),
    whole: bool = False,
) -> Plan:
    """Pass over files once, and freeze what every part of them must share into a function of tables.

    Args:
        pattern: A file, a folder, a pattern such as `vitals/*.parquet`, a URL of these that fsspec opens, or a list.
        layout: The meaning of the columns, `Layout.long(...)` or `Layout.wide(...)`.
        embedding: Options of the log-signatures that the plan computes.
        partition: Their query intervals; by default each series is one interval.
        model: A fitted estimator: predictions at the ends of series instead of log-signatures. Its channels and its
            clock count, and not those of the files.
        outputs: The names of the model's targets, for the columns of a forecast.
        horizon: End of the observation window; by default the latest stamp of all files, and with a model one typical
            gap after the last stamp of each series.
        unit: Unit of time for datetimes and durations; by default an hour.
        origin: Where time counts from, as in `Streams.from_frame`.
        epoch: The unit ("s", "ms", "us" or "ns") of stamps that are numbers since 1970.
        sort: Sort rows by time, instead of refusing stamps that go back.
        duplicates: What to do with different values of one channel at one stamp.
        empty: What to do with series without observations.
        whole: Every series is in one file: refuse one that is in several.

    Returns:
        A function from a pyarrow table of whole series to a pyarrow table with a row for each query interval, or for
        each prediction.

    >>> import tempfile, pyarrow
    >>> from pathlib import Path
    >>> from logcde import Embedding, Partition
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, rows in (("a.csv", "p,0,a,1\\np,3,b,2\\n"), ("b.csv", "q,1,a,5\\nq,4,a,3\\n")):
    ...         _ = Path(folder, name).write_text(f"series,time,channel,value\\n{rows}")
    ...     made = plan(f"{folder}/*.csv", Layout.long(), Embedding(depth=1), Partition.every(2.0))
    >>> q = {"series": ["q", "q"], "time": [1.0, 4.0], "channel": ["a", "a"], "value": [5.0, 3.0]}
    >>> made(pyarrow.table(q)).select(["series", "stop", "a", "#b"]).to_pylist()
    [{'series': 'q', 'stop': 2.0, 'a': 5.0, '#b': 0.0}, {'series': 'q', 'stop': 4.0, 'a': -2.0, '#b': 0.0}]
    """
    if (embedding is None) == (model is None):
        raise ModelError("A plan computes log-signatures or predictions.", "Give either an embedding or a model.")
    if model is not None and partition is not None:
        raise ModelError("Query intervals are for log-signatures, and a model was given.", "Leave out the partition.")
    given = [pattern] if isinstance(pattern, str) or not isinstance(pattern, Sequence) else pattern
    files = [file for one in given for file in tables_at(one)]
    opened = [open_table(file) for file in files]
    for file in opened[1:]:
        check_alike(opened[0], file)
    summaries = [summarise(file, layout, epoch=epoch) for file in opened]
    if whole:
        check_whole(summaries)
    schema = None if model is None else model.schema_
    if schema is None:
        options = ReadOptions.of(horizon, None, unit, origin, sort, duplicates, empty)
    else:
        begin = FirstStamp() if schema.clock.per_series else Earliest()
        end = OPEN_END if horizon is None else horizon
        options = ReadOptions.of(end, schema, None, begin, sort, duplicates, empty)
        layout = dataclasses.replace(layout, channels=schema.channels)
    seen = merged(summaries)
    if embedding is None:
        rows: AbstractRows = PredictionRows(model, tuple(outputs), layout.time, horizon is not None)
    else:
        rows = IntervalRows(embedding, FixedPartition(Partition.uniform(1) if partition is None else partition))
    return plan_of(Reader(layout, seen.texts, settled(seen, layout, options)), seen, rows)


def plan_of(reader: Reader, seen: Summary, rows: AbstractRows) -> Plan:
    """The plan for these files."""
    return Plan(reader, rows, isinstance(next(iter(seen.numbers)), str))

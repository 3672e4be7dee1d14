"""Series with their targets, read from the user's tables, to train on or to score a model on.

Targets are a column of the table of observations that is constant within each series, or columns of another table: one
row per series, or for forecasts one row per series and stamp. Without a table, the targets of a forecast are the next
values of the series themselves.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.cli.output import progress_bar
from logcde.cli.table import TableOptions
from logcde.cli.target_table import match_series, read_ids, read_target
from logcde.cli.tasks import TASKS, AbstractTask
from logcde.errors import TableError, Where
from logcde.report.record import Task as TaskName

if TYPE_CHECKING:
    from logcde.streams import Schema, Streams
    from logcde.streams.file_scan import Scan

MOST_CLASSES = 20
"""Different integers that are taken for classes, unless --task says otherwise."""


@dataclasses.dataclass(frozen=True)
class TargetOptions:
    """Where the values to predict are: a column of the table, or a table of its own."""

    target: str | None = None
    """Column to predict: of FILE, if it is constant within each series, or of the table of --targets."""
    targets: Path | None = None
    """Another table with the target column, and a series column named as in FILE.
    For forecasts it also has a stamp column; without --target, all its other columns are predicted."""
    only_matched: bool = False
    """Use only series that are in both tables, instead of refusing tables whose series differ."""


@dataclasses.dataclass(frozen=True)
class Examples:
    """Series with their targets.

    Attributes:
        table: Options that read another table in the same way, whatever further columns it has.
        rows: Rows of the table.
        streams: The series.
        targets: One target per series, `Streams` of targets, or None for the next values of the series.
        task: The task.
        why: Why it is this task.
        outputs: Names of the targets.
    """

    table: TableOptions
    rows: int
    streams: "Streams"
    targets: Any
    task: AbstractTask
    why: str
    outputs: tuple[str, ...]

    def __getitem__(self, index: np.ndarray) -> "Examples":
        from logcde.streams import Streams

        targets = self.targets
        if isinstance(targets, Streams):
            targets = targets[index]
        elif targets is not None:
            targets = [targets[place] for place in index.tolist()]
        return dataclasses.replace(self, streams=self.streams[index], targets=targets)

    def ending(self, gap: float) -> "Examples":
        """With the observation window of every series ending as in `with_end`."""
        return dataclasses.replace(self, streams=with_end(self.streams, self.table, gap))


def with_end(streams: "Streams", table: TableOptions, gap: float) -> "Streams":
    """Streams whose observation windows end a `gap` after their last events, unless the table has a horizon."""
    from logcde.estimators.data import last_times, with_horizon

    return streams if table.horizon is not None else with_horizon(streams, last_times(streams) + gap)


def read_examples(
    table: TableOptions,
    options: TargetOptions,
    task: TaskName | None,
    schema: "Schema | None" = None,
    outputs: tuple[str, ...] = (),
) -> Examples:
    """Read all series of a table with their targets.

    Args:
        table: The table of observations.
        options: Where the targets are.
        task: The task; None to infer it from the targets.
        schema: Schema of a trained model, to read tables as in training.
        outputs: Target names of a trained forecaster.
    """
    from logcde.streams.file_scan import all_streams
    from logcde.streams.rows import FirstStamp

    forecast = task == "forecast" or (task is None and _has_stamps(options, table))
    # First of all, since a missing target column is the most frequent mistake.
    exclude = _check_target(table, options, forecast)
    with progress_bar("scanning", None) as report:
        own = FirstStamp(near_zero=True) if table.origin is None and schema is None else None
        scan = table.scan(report, exclude=exclude, schema=schema, origin=own)
        if own is not None and scan.schema.clock.per_series:
            table = dataclasses.replace(table, origin="first")
    with progress_bar("reading", scan.rows) as report:
        streams = all_streams(scan, report)
    table = _with_all_columns(table, scan)
    if schema is None and len(streams) < 2:
        raise TableError(
            f"{table.file} has only one series, {streams.ids.tolist()[0]!r}. Training needs many.",
            "Name the column of series ids with --series; or cut a single recording into pieces with ids.",
        )
    if forecast:
        why = "as given" if task else f"{options.targets} has stamps"
        return _with_forecast_targets(table, scan, streams, options, outputs, why)
    return _with_series_targets(table, scan, streams, options, task, training=schema is None)


def infer_task(values: Sequence[Any], target: str) -> tuple[TaskName, str]:
    """Whether values are classes or numbers, and why.

    >>> infer_task(["yes", "no", "yes"], "died")
    ('classify', "the values of 'died' are text, 2 different ones")
    >>> infer_task([1.5, 2.0, 7.25], "days")[0], infer_task([0, 1, 1, 0], "died")[0]
    ('regress', 'classify')
    """
    different = set(values)
    if any(isinstance(value, str | bool) for value in values):
        what = "text" if isinstance(values[0], str) else "booleans"
        return "classify", f"the values of {target!r} are {what}, {len(different)} different ones"
    whole = all(math.isfinite(value) and value == int(value) for value in different)
    if whole and len(different) <= min(MOST_CLASSES, max(2, len(values) // 2)):
        return "classify", f"the values of {target!r} are integers, only {len(different)} different ones"
    what = "integers, many different ones" if whole else "numbers"
    return "regress", f"the values of {target!r} are {what}"


def _has_stamps(options: TargetOptions, table: TableOptions) -> bool:
    from logcde.streams.files import open_tables

    return options.targets is not None and table.time in open_tables(options.targets).types


def _check_target(table: TableOptions, options: TargetOptions, forecast: bool) -> tuple[str, ...]:
    """Check that the target column exists. Returns the columns that are not channels because of it."""
    from logcde.streams.files import open_tables
    from logcde.streams.schema import missing

    target, file = options.target, options.targets or table.file
    if target is None:
        if not forecast:
            raise TableError(
                "No target is given.",
                "Name the column to predict with --target: of the table itself, or of another that --targets names. To "
                "predict the next values of the channels, pass --task forecast.",
            )
        return ()
    types = open_tables(file).types
    if target not in types:
        other = "" if options.targets else ", and another table that has it with --targets"
        raise TableError(f"{file}: {missing(target, tuple(types))}", f"Name the right one with --target{other}.")
    if target in table.channels and not forecast:
        raise TableError(
            f"{target!r} is both a channel and the target: the model would see what it predicts.",
            "Leave it out of --channels.",
        )
    return () if forecast else (target,)


def _with_all_columns(table: TableOptions, scan: "Scan") -> TableOptions:
    """Options that name all columns that were read, so that further columns of other tables do not matter."""
    layout = scan.layout
    long = layout.channel is not None
    return dataclasses.replace(
        table,
        channels=scan.schema.channels,
        channel=layout.channel,
        value=layout.values[0] if long else None,
    )


def _with_series_targets(
    table: TableOptions,
    scan: "Scan",
    streams: "Streams",
    options: TargetOptions,
    task: TaskName | None,
    training: bool,
) -> Examples:
    """One target per series."""
    file, target = options.targets or table.file, options.target
    assert target is not None
    ids = streams.ids.tolist()
    found = read_target(file, scan.layout.series or "series", target, isinstance(ids[0], str))
    known = match_series(found, ids, repr(target), file, table.file, options.only_matched)
    streams = streams if all(known) else streams[np.array(known)]
    values = [found[one] for one in streams.ids.tolist()]
    name, why = (task, "as given") if task else infer_task(values, target)
    if name == "regress":
        _check_numbers(dict(zip(streams.ids.tolist(), values, strict=True)), target, file)
        values = [float(value) for value in values]
    else:
        values = as_classes(values, target)
    if training and name == "classify" and len(set(values)) > max(2, len(values) // 2):
        raise TableError(
            f"{target!r} has {len(set(values)):,} different values in {len(values):,} series; a class needs several "
            "series.",
            "Name another column with --target; for numbers, pass --task regress.",
        )
    if training and len(set(values)) < 2:
        raise TableError(
            f"All {len(values):,} series have the same {target!r}, {values[0]!r}: there is nothing to learn.",
            "Name another column with --target, or add series that differ.",
        )
    return Examples(table, scan.rows, streams, values, TASKS[name], why, (target,))


def _with_forecast_targets(
    table: TableOptions,
    scan: "Scan",
    streams: "Streams",
    options: TargetOptions,
    outputs: tuple[str, ...],
    why: str,
) -> Examples:
    """Targets with stamps, from another table, or the next values of the series."""
    from logcde.streams import Schema
    from logcde.streams.file_scan import all_streams
    from logcde.streams.files import open_tables

    task, channels = TASKS["forecast"], streams.schema.channels
    if options.targets is None:
        if options.target is not None:
            raise TableError(
                "For a forecast, --target is a column of the table that --targets names, but there is no --targets.",
                "Leave out --target to predict the next values of the channels.",
            )
        return Examples(table, scan.rows, streams, None, task, why, channels)
    types = open_tables(options.targets).types
    series = scan.layout.series or ""
    named = (options.target,) if options.target is not None else outputs
    names = named or tuple(name for name in types if name not in (series, table.time))
    target_table = dataclasses.replace(
        table, file=options.targets, channel=None, value=None, channels=names, horizon=None, drop_empty=True
    )
    # Ids before stamps: where time counts from each series' own start, stamps of unknown series have no time.
    ids = streams.ids.tolist()
    with_targets = read_ids(options.targets, series, isinstance(ids[0], str))
    known = match_series(with_targets, ids, "targets", options.targets, table.file, options.only_matched)
    unknown = [one for one in with_targets if one not in set(ids)]
    if unknown:
        raise TableError(
            f"{options.targets} has targets of the series {unknown[0]!r}, which is not in {table.file}.",
            "Leave it out.",
            where=Where(series=unknown[0]),
        )
    clock, origin = streams.schema.clock, None
    if streams.origins is not None:
        origin = dict(zip(ids, streams.origins, strict=True))
    found = all_streams(target_table.scan(schema=Schema(names, clock), origin=origin))
    places = {one: number for number, one in enumerate(found.ids.tolist())}
    streams = streams[np.array(known) & np.array([one in places for one in ids])]
    targets = found[np.array([places[one] for one in streams.ids.tolist()], np.int64)]
    return Examples(table, scan.rows, streams, targets, task, why, names)


def as_classes(values: Sequence[Any], target: str) -> list[Any]:
    """Integers that are stored as floats, as integers; fractions are refused.

    >>> as_classes([0.0, 1.0], "died")
    [0, 1]
    """
    found = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    wrong = next((value for value in found if isinstance(value, float)), None)
    if wrong is not None:
        raise TableError(
            f"{target!r} has the value {wrong}, which is not a class.", "To predict numbers, pass --task regress."
        )
    return found


def _check_numbers(found: Mapping[Any, Any], target: str, file: Path) -> None:
    for series, value in found.items():
        if isinstance(value, str):
            raise TableError(
                f"The column {target!r} of {file} has {value!r} for the series {series!r}, which is not a number.",
                "Name another column with --target; for classes, pass --task classify.",
                where=Where(series=series),
            )
        if not math.isfinite(value):
            raise TableError(
                f"The column {target!r} of {file} has {value} for the series {series!r}. Targets must be finite.",
                "Correct it, or leave that series out.",
                where=Where(series=series),
            )

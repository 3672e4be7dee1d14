"""What is to be predicted: a column that says it of every series, in the table itself or in another one.

Series with the answers that belong to them, read from the user's files: to learn from, or to compare with.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.cli.output import bar
from logcde.cli.table import Table
from logcde.cli.tasks import TASKS, AbstractTask
from logcde.errors import TableError
from logcde.report.record import Task

MOST_CLASSES = 20
"""Whole numbers that are taken for classes, unless the user says otherwise."""


@dataclasses.dataclass(frozen=True)
class Answers:
    """Where the answers are that a model should give."""

    target: str | None = None
    """Column of what is to be predicted: of FILE, if it is the same in all rows of a series, or of --targets."""
    targets: Path | None = None
    """Another table with that column and one of series, named as in FILE; for forecasts with one of stamps as well,
    and all further columns are predicted if --target names none."""
    only_matched: bool = False
    """Leave out series that are only in one of the two tables, instead of refusing them."""


def infer(values: Sequence[Any], target: str) -> tuple[Task, str]:
    """Whether these are classes or numbers, and why.

    >>> infer(["yes", "no", "yes"], "died")
    ('classify', "the values of 'died' are text, 2 different ones")
    >>> infer([1.5, 2.0, 7.25], "days")[0], infer([0, 1, 1, 0], "died")[0]
    ('regress', 'classify')
    """
    different = set(values)
    if any(isinstance(value, str | bool) for value in values):
        kind = "text" if isinstance(values[0], str) else "true or false"
        return "classify", f"the values of {target!r} are {kind}, {len(different)} different ones"
    whole = all(math.isfinite(value) and value == int(value) for value in different)
    if whole and len(different) <= min(MOST_CLASSES, max(2, len(values) // 2)):
        return "classify", f"the values of {target!r} are whole numbers, and only {len(different)} different ones"
    what = "whole numbers, and many different ones" if whole else "numbers"
    return "regress", f"the values of {target!r} are {what}"


def read_target(path: Path, series: str, target: str, text: bool) -> dict[Any, Any]:
    """The value of a column for each series that has one. Ids stay text if those of the observations are."""
    from logcde.streams.files import open_table
    from logcde.streams.frames import arrow

    pyarrow, file = arrow(), open_table(path)
    check_ids(path, series, tuple(file.types))
    if target == series:
        raise TableError(f"The column {target!r} is named for two purposes. Name another with --target.")
    pieces = [_pairs(piece) for piece in file.pieces([series, target], [])]
    if not pieces:
        raise TableError(f"{path} has no rows. There is nothing to learn from.")
    pairs = _pairs(pyarrow.concat_tables(pieces))
    column = _numbers(pairs[target]) if file.untyped else pairs[target]
    column = column.cast("double") if pyarrow.types.is_decimal(column.type) else column
    kinds = (pyarrow.types.is_timestamp, pyarrow.types.is_date, pyarrow.types.is_duration, pyarrow.types.is_nested)
    if any(kind(column.type) for kind in kinds):
        raise TableError(
            f"The column {target!r} of {path} is {column.type}. Models predict numbers and classes: convert it."
        )
    found: dict[Any, Any] = {}
    for one, value in zip(ids_of(pairs[series], text), column.to_pylist(), strict=True):
        if one in found:
            raise TableError(
                f"The column {target!r} of {path} has {found[one]!r} and {value!r} for the series {one!r}. Give each "
                "series one value. To predict values that change with time, pass --task forecast."
            )
        found[one] = value
    return found


def check_ids(path: Path, series: str, columns: tuple[str, ...]) -> None:
    """Refuse a table of answers that does not say which series they belong to."""
    from logcde.streams.schema import missing

    if series not in columns:
        raise TableError(
            f"{path}: {missing(series, columns)} The column of series ids has the same name in both tables: rename it "
            "in one of them."
        )


def ids_of(column: Any, text: bool) -> list[Any]:
    """Ids of series; whole numbers that are written as text are numbers, unless ids are `text`."""
    from logcde.streams.frames import arrow

    return (_numbers(column) if not text and arrow().types.is_string(column.type) else column).to_pylist()


def match(
    found: Mapping[Any, Any], ids: Sequence[Any], what: str, where: Path, table: Path, only_matched: bool
) -> list[bool]:
    """Which series have an answer. Where tables do not fit each other, that is refused unless it is wanted."""
    from logcde.streams.schema import listed

    known = [one in found for one in ids]
    lacking = [one for one, seen in zip(ids, known, strict=True) if not seen]
    if len(lacking) == len(ids):
        raise TableError(
            f"{where} has {what} of none of the series of {table}: there {listed(list(found), 3) or 'there are none'}, "
            f"here {listed(ids, 3)}. See whether the ids are written alike."
        )
    further = [one for one in found if one not in set(ids)]
    on = f"or pass --only-matched to go on with the {sum(known)} series that are in both"
    if lacking and not only_matched:
        raise TableError(
            f"{where} has no {what} of {len(lacking)} of {len(ids)} series, {listed(lacking, 3)}. Add them, {on}."
        )
    if further and not only_matched:
        raise TableError(
            f"{where} has {what} of {len(further)} series that are not in {table}, {listed(further, 3)}. See whether "
            f"the ids are written alike, {on}."
        )
    return known


def as_classes(values: Sequence[Any], target: str) -> list[Any]:
    """Whole numbers that are stored as fractions, as whole numbers; fractions are no classes.

    >>> as_classes([0.0, 1.0], "died")
    [0, 1]
    """
    found = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    wrong = next((value for value in found if isinstance(value, float)), None)
    if wrong is not None:
        raise TableError(
            f"{target!r} has the value {wrong}, which names no class. To predict numbers, use --task regress."
        )
    return found


def as_numbers(found: Mapping[Any, Any], target: str, where: Path) -> None:
    """Refuse what is no finite number."""
    for series, value in found.items():
        if isinstance(value, str):
            raise TableError(
                f"The column {target!r} of {where} has {value!r} for the series {series!r}, which is not a number. "
                "Name another column with --target; for classes, train with --task classify."
            )
        if not math.isfinite(value):
            raise TableError(
                f"The column {target!r} of {where} has {value} for the series {series!r}. Numbers to learn are finite: "
                "mend it, or leave that series out."
            )


def _pairs(table: Any) -> Any:
    """All different rows that are complete; NaN is missing."""
    from logcde.streams.frames import arrow

    compute = arrow().compute
    for place, field in enumerate(table.schema):
        if arrow().types.is_floating(field.type):
            filled = compute.if_else(compute.is_nan(table[place]), None, table[place])
            table = table.set_column(place, field.name, filled)
    table = table.drop_null()
    return table.group_by(table.schema.names, use_threads=False).aggregate([])


def _numbers(column: Any) -> Any:
    """Text as whole numbers or numbers, if all of it is."""
    from logcde.streams.frames import arrow

    for kind in ("int64", "double"):
        try:
            return arrow().compute.cast(arrow().compute.utf8_trim_whitespace(column), kind)
        except arrow().ArrowInvalid:
            continue
    return column


if TYPE_CHECKING:
    from logcde.streams import Schema, Streams
    from logcde.streams.file_scan import Scan


@dataclasses.dataclass(frozen=True)
class Examples:
    """Series and their answers: one for each, or `Streams` of them, or None for the next values of the series.

    `table` says all that there is to say about how they were read, and `outputs` are the names of the answers.
    """

    table: Table
    rows: int
    streams: "Streams"
    answers: Any
    task: AbstractTask
    why: str
    outputs: tuple[str, ...]

    def __getitem__(self, index: np.ndarray) -> "Examples":
        from logcde.streams import Streams

        answers = self.answers
        if isinstance(answers, Streams):
            answers = answers[index]
        elif answers is not None:
            answers = [answers[place] for place in index.tolist()]
        return dataclasses.replace(self, streams=self.streams[index], answers=answers)

    def ended(self, gap: float) -> "Examples":
        """With every series looked at for a `gap` after its last event, unless the user says how long."""
        return dataclasses.replace(self, streams=end(self.streams, self.table, gap))


def end(streams: "Streams", table: Table, gap: float) -> "Streams":
    """Streams that end a `gap` after their last event, unless the user says when."""
    from logcde.estimators.data import last_times, with_horizon

    return streams if table.horizon is not None else with_horizon(streams, last_times(streams) + gap)


def read_examples(
    table: Table, answers: Answers, task: Task | None, schema: "Schema | None" = None, outputs: tuple[str, ...] = ()
) -> Examples:
    """All series of a table with their answers; with the `schema` and `outputs` of a model, as it was trained."""
    from logcde.streams.clock import DatetimeClock
    from logcde.streams.file_scan import all_streams

    forecast = task == "forecast" or (task is None and _has_stamps(answers, table))
    apart = _kept_apart(table, answers, forecast)
    with bar("looking", None) as report:
        scan = table.scan(report, apart=apart, schema=schema)
        if table.origin is None and schema is None and isinstance(scan.schema.clock, DatetimeClock):
            table = dataclasses.replace(table, origin="first")
            scan = table.scan(report, apart=apart)
    with bar("reading", scan.rows) as report:
        streams = all_streams(scan, report)
    table = _in_full(table, scan)
    if schema is None and len(streams) < 2:
        raise TableError(
            f"{table.file} has one series only, {streams.ids.tolist()[0]!r}. Learning needs many. If there are more in "
            "it, name the column of series ids with --series; if not, cut the recording into pieces with ids."
        )
    if forecast:
        return _forecasts(table, scan, streams, answers, outputs, "as given" if task else _why_forecast(answers))
    return _labels(table, scan, streams, answers, task, schema is None)


def _kept_apart(table: Table, answers: Answers, forecast: bool) -> tuple[str, ...]:
    """The column of answers, which is no channel. It is looked for before all else, being what newcomers mistake."""
    from logcde.streams.files import open_table
    from logcde.streams.schema import missing

    target, where = answers.target, answers.targets or table.file
    if target is None:
        if not forecast:
            raise TableError(
                "Say what is to be predicted: name the column with --target. It is one of the table itself, or of "
                "another that --targets names. To learn the next values of the channels, pass --task forecast."
            )
        return ()
    types = open_table(where).types
    if target not in types:
        hint = "" if answers.targets else ", and another table that has it with --targets"
        raise TableError(f"{where}: {missing(target, tuple(types))} Name the right one with --target{hint}.")
    if target in table.channels and not forecast:
        raise TableError(f"{target!r} is both a channel and the target: the answer would be in the question.")
    return () if forecast else (target,)


def _labels(
    table: Table, scan: "Scan", streams: "Streams", answers: Answers, task: Task | None, learn: bool
) -> Examples:
    """One answer for each series."""
    where, target = answers.targets or table.file, answers.target
    assert target is not None
    ids = streams.ids.tolist()
    found = read_target(where, scan.layout.series or "series", target, isinstance(ids[0], str))
    known = match(found, ids, repr(target), where, table.file, answers.only_matched)
    streams = streams if all(known) else streams[np.array(known)]
    values = [found[one] for one in streams.ids.tolist()]
    kind, why = (task, "as given") if task else infer(values, target)
    if kind == "regress":
        as_numbers(dict(zip(streams.ids.tolist(), values, strict=True)), target, where)
        values = [float(value) for value in values]
    else:
        values = as_classes(values, target)
    if learn and kind == "classify" and len(set(values)) > max(2, len(values) // 2):
        raise TableError(
            f"There are {len(set(values)):,} different values of {target!r} in {len(values):,} series. As classes they "
            "need several series each. Name another column with --target; for numbers, use --task regress."
        )
    if learn and len(set(values)) < 2:
        raise TableError(
            f"All {len(values):,} series have the same {target!r}, {values[0]!r}: there is nothing to learn. Name "
            "another column with --target, or add series that differ."
        )
    return Examples(table, scan.rows, streams, values, TASKS[kind], why, (target,))


def _forecasts(
    table: Table, scan: "Scan", streams: "Streams", answers: Answers, outputs: tuple[str, ...], why: str
) -> Examples:
    """Answers with stamps, from another table, or the next values of the series."""
    from logcde.streams import Schema
    from logcde.streams.clock import DatetimeClock
    from logcde.streams.file_scan import all_streams
    from logcde.streams.files import open_table

    task, channels = TASKS["forecast"], streams.schema.channels
    if answers.targets is None:
        if answers.target is not None:
            raise TableError(
                "For a forecast, --target is a column of the table that --targets names: series, stamps and values. "
                "To learn the next values of the channels themselves, leave out --target."
            )
        return Examples(table, scan.rows, streams, None, task, why, channels)
    types = open_table(answers.targets).types
    series = scan.layout.series or ""
    named = (answers.target,) if answers.target is not None else outputs
    names = named or tuple(name for name in types if name not in (series, table.time))
    beside = dataclasses.replace(
        table, file=answers.targets, channel=None, value=None, channels=names, horizon=None, drop_empty=True
    )
    # Ids before stamps: where each series counts from its own start, those of unknown ones mean nothing.
    ids = streams.ids.tolist()
    stamped = read_ids(answers.targets, series, isinstance(ids[0], str))
    known = match(stamped, ids, "targets", answers.targets, table.file, answers.only_matched)
    unknown = [one for one in stamped if one not in set(ids)]
    if unknown:
        raise TableError(
            f"{answers.targets} has targets of {unknown[0]!r}, which is not in {table.file}. Leave it out."
        )
    clock, origin = streams.schema.clock, None
    if isinstance(clock, DatetimeClock) and streams.origins is not None:
        origin = dict(zip(ids, streams.origins, strict=True))
    found = all_streams(beside.scan(schema=Schema(names, clock), origin=origin))
    places = {one: number for number, one in enumerate(found.ids.tolist())}
    streams = streams[np.array(known) & np.array([one in places for one in ids])]
    targets = found[np.array([places[one] for one in streams.ids.tolist()], np.int64)]
    return Examples(table, scan.rows, streams, targets, task, why, names)


def read_ids(path: Path, series: str, text: bool) -> dict[Any, None]:
    """The ids of series in a table."""
    from logcde.streams.files import open_table

    file = open_table(path)
    check_ids(path, series, tuple(file.types))
    return dict.fromkeys(one for piece in file.pieces([series], []) for one in ids_of(piece[series], text))


def _has_stamps(answers: Answers, table: Table) -> bool:
    from logcde.streams.files import open_table

    return answers.targets is not None and table.time in open_table(answers.targets).types


def _why_forecast(answers: Answers) -> str:
    return f"{answers.targets} has stamps"


def _in_full(table: Table, scan: "Scan") -> Table:
    """Which columns were read, so that other tables can be read alike whatever else is in them."""
    layout = scan.layout
    long = layout.channel is not None
    return dataclasses.replace(
        table,
        channels=scan.schema.channels,
        channel=layout.channel,
        value=layout.values[0] if long else None,
    )

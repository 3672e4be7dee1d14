"""Series with the answers that belong to them, read from the user's files: to learn from, or to compare with."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logcde.cli.answers import Answers, as_classes, as_numbers, check_ids, ids_of, infer, match, read_target
from logcde.cli.table import Table
from logcde.cli.tasks import TASKS, AbstractTask
from logcde.cli.waiting import bar
from logcde.errors import TableError
from logcde.report.record import Kind

if TYPE_CHECKING:
    from logcde.streams import Schema, Streams
    from logcde.streams.scan import Scan


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
    from logcde.estimators.reading import last_stamps, with_horizon

    return streams if table.horizon is not None else with_horizon(streams, last_stamps(streams) + gap)


def read_examples(
    table: Table, answers: Answers, task: Kind | None, schema: "Schema | None" = None, outputs: tuple[str, ...] = ()
) -> Examples:
    """All series of a table with their answers; with the `schema` and `outputs` of a model, as it was trained."""
    from logcde.streams.clock import DatetimeClock
    from logcde.streams.pieces import all_streams

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
    table: Table, scan: "Scan", streams: "Streams", answers: Answers, task: Kind | None, learn: bool
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
    from logcde.streams.files import open_table
    from logcde.streams.pieces import all_streams

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

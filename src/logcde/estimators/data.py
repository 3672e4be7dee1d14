"""Whatever scikit-learn's users have becomes `Streams`: arrays, ragged lists, data frames, streams.

What is to be learnt, put beside the series that it belongs to: by position, or by the ids of the series.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from jaxtyping import Float64

from logcde.errors import StreamError, TrainingError
from logcde.streams import DatetimeClock, Earliest, FirstStamp, Schema, Streams
from logcde.streams.rows import Average, Forbid, KeepLast
from logcde.streams.schema import listed
from logcde.streams.stamps import Horizon, Origin


@dataclasses.dataclass(frozen=True)
class Long:
    """One observation in each row: which columns have the series' id, the stamp, the channel's name and the value.

    Datetimes count from each series' own first stamp in hours, unless `origin` and `unit` say otherwise. A series ends
    a little after its last stamp, by the usual gap between stamps, unless `horizon` says where. The other options are
    those of `Streams`.

    >>> Long(series="patient").time
    'time'
    """

    series: str = "series"
    time: str = "time"
    channel: str = "channel"
    value: str = "value"
    channels: tuple[str, ...] | None = None
    horizon: Horizon | None = None
    unit: timedelta | None = None
    origin: Origin | None = None
    sort: bool = False
    duplicates: Forbid | KeepLast | Average = Forbid()

    def read(self, frame: Any, schema: Schema | None) -> Streams:
        """A long table."""
        return Streams.from_frame(
            frame,
            self.series,
            self.time,
            self.channel,
            self.value,
            **_options(self, frame, schema),
        )


@dataclasses.dataclass(frozen=True)
class Wide:
    """One stamp in each row, one channel in each column. Options as those of `Long`.

    >>> Wide(series="patient", channels=("pulse", "temp")).channels
    ('pulse', 'temp')
    """

    series: str = "series"
    time: str = "time"
    channels: tuple[str, ...] | None = None
    horizon: Horizon | None = None
    unit: timedelta | None = None
    origin: Origin | None = None
    sort: bool = False
    duplicates: Forbid | KeepLast | Average = Forbid()

    def read(self, frame: Any, schema: Schema | None) -> Streams:
        """A wide table."""
        return Streams.from_wide(
            frame,
            self.series,
            self.time,
            **_options(self, frame, schema),
        )


Table: TypeAlias = Long | Wide
"""How the rows of a data frame are read as streams."""


def beside_table(table: Table, streams: Streams) -> Table:
    """A table of other channels of the same series, whose stamps count from where those of these streams do."""
    clock = streams.schema.clock
    if not isinstance(clock, DatetimeClock):
        return dataclasses.replace(table, channels=None)
    origin: Any = clock.origin
    if streams.origins is not None:
        origin = dict(zip(streams.ids.tolist(), streams.origins, strict=True))
    return dataclasses.replace(table, channels=None, origin=origin, unit=clock.unit)


def _options(table: Table, frame: Any, schema: Schema | None) -> dict[str, Any]:
    """What both kinds of tables are read with; a schema says the channels and the unit by itself."""
    return {
        "channels": table.channels if schema is None else None,
        "horizon": table.horizon,
        "schema": schema,
        "unit": table.unit if schema is None else None,
        "origin": _origin(table, frame, schema),
        "sort": table.sort,
        "duplicates": table.duplicates,
    }


def _origin(table: Table, frame: Any, schema: Schema | None) -> Origin:
    """Each series' own first stamp for datetimes; with a schema, that only where its clock has no origin."""
    if schema is not None:
        free = isinstance(schema.clock, DatetimeClock) and schema.clock.origin is None
        return (table.origin or FirstStamp()) if free else Earliest()
    if table.origin is not None:
        return table.origin
    columns = nw.from_native(frame).collect_schema()
    dated = table.time in columns and isinstance(columns[table.time], nw.Datetime | nw.Date)
    return FirstStamp() if dated else Earliest()


@dataclasses.dataclass(frozen=True)
class Read:
    """Streams, and the usual gap between stamps where it is known from the form of the data.

    `flat` says that they came as samples x features, `ended` that their horizons are their own.
    """

    streams: Streams
    gap: float | None = None
    flat: bool = False
    ended: bool = False


def read(data: Any, table: Table | None, schema: Schema | None, flatten: Callable[[Any], np.ndarray]) -> Read:
    """Streams from any of the forms; `flatten` checks samples x features as scikit-learn does.

    Arrays are (series, step, channel), stamped 0, 1, 2, ...; two axes are series of one channel; lists have an array
    (step, channel) for each series, or `Streams`.

    >>> read(np.zeros((4, 3, 2)), None, None, np.asarray).streams.schema.channels
    ('x1', 'x2')
    """
    if isinstance(data, Streams):
        return Read(data, ended=True)
    if isinstance(data, list | tuple) and data and all(isinstance(one, Streams) for one in data):
        return Read(Streams.concatenate(data), ended=True)
    if is_frame(data):
        if table is not None:
            return Read(table.read(data, schema), ended=table.horizon is not None)
        return _arrays(flatten(data)[..., None], flat=True)
    if isinstance(data, list | tuple) and data and all(isinstance(one, np.ndarray) for one in data):
        sizes = {one.shape[:1] for one in data}
        if any(one.ndim == 2 for one in data) or len(sizes) > 1:
            return _arrays([one[:, None] if one.ndim == 1 else one for one in data])
    if axes_of(data) == 3:
        return _arrays(np.asarray(data))
    return _arrays(flatten(data)[..., None], flat=True)


def axes_of(data: Any) -> int | None:
    """How many axes an array or nested list has, if it is one."""
    return np.ndim(data) if isinstance(data, list | tuple) else getattr(data, "ndim", None)


def is_frame(data: Any) -> bool:
    """Whether narwhals knows it as a data frame."""
    return nw.dependencies.is_into_dataframe(data) or isinstance(data, nw.LazyFrame)


def refuse_long(frame: Any) -> None:
    """Refuse a table whose rows cannot be samples with numbers as features."""
    columns = nw.from_native(frame).collect_schema()
    text = [name for name, kind in columns.items() if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object))]
    if text or {"series", "time"} <= set(columns):
        what = f"the column {text[0]!r} is {columns[text[0]]}" if text else "there are columns 'series' and 'time'"
        raise StreamError(
            f"Each row of the data frame would be one sample, and each column a number of it, but {what}. If rows are "
            "observations, several for each series, say which column is what: table=Long(...) or table=Wide(...)."
        )


def _arrays(values: np.ndarray | Sequence[np.ndarray], flat: bool = False) -> Read:
    """Steps 0, 1, 2, ...; a series ends one step after its last observation."""
    for number, one in enumerate(values):
        if np.iscomplexobj(one):
            raise StreamError(f"Complex data not supported: series number {number} has {one.dtype} values.")
    lengths = np.array([_length(np.asarray(one), number) for number, one in enumerate(values)])
    if isinstance(values, np.ndarray):
        streams = Streams.from_dense(values, horizon=float(values.shape[1]))
    else:
        steps = [np.arange(len(one)) for one in values]
        streams = Streams.from_arrays(steps, values, horizon=float(max(map(len, values))))
    return Read(with_horizon(streams, lengths.astype(np.float64)), gap=1.0, flat=flat, ended=True)


def _length(values: np.ndarray, number: int) -> int:
    """Steps up to the last observation."""
    known = np.ones(len(values), bool)
    if values.dtype.kind == "f" and values.ndim == 2:
        known = ~np.isnan(values).all(axis=1)
    if not known.any():
        raise StreamError(
            f"Series number {number} has no observation at all: there is no value in it but NaN. Leave it out."
        )
    return int(np.flatnonzero(known)[-1]) + 1


def with_horizon(streams: Streams, horizon: Float64[np.ndarray, "series"]) -> Streams:
    """The same observations, looked at up to there."""
    return dataclasses.replace(streams, horizon=horizon)


def last_stamps(streams: Streams) -> Float64[np.ndarray, "series"]:
    """The time of every series' last event, 0 where there is none."""
    some = np.diff(streams.offsets) > 0
    last = np.zeros(len(streams))
    last[some] = streams.times[streams.offsets[1:][some] - 1]
    return last


def check_channels(streams: Streams, fitted: Schema) -> None:
    """Refuse streams of other channels than those that the estimator was fitted to."""
    found = streams.schema
    if (found.channels, found.terms, found.continuous) == (fitted.channels, fitted.terms, fitted.continuous):
        return
    lacking = [name for name in fitted.channels if name not in found.channels]
    further = [name for name in found.channels if name not in fitted.channels]
    parts = [f"{listed(lacking)} lacking"] * bool(lacking) + [f"{listed(further)} new"] * bool(further)
    how = " and ".join(parts) or "in another order, or with other terms or continuous channels"
    raise StreamError(
        f"The estimator was fitted to the channels {listed(fitted.channels)}, but these series have "
        f"{listed(found.channels)}: {how}. Give the same channels in the same order, NaN where nothing is observed."
    )


def aligned(answers: Any, streams: Streams, flat: bool) -> Any:
    """One answer for each series, in their order.

    A mapping, or a pandas Series with an index, is looked up by the ids of the series; everything else, and everything
    that belongs to samples x features, is in their order already.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], ids=["a", "b"], horizon=1.0)
    >>> aligned({"b": 1, "a": 0}, streams, flat=False)
    [0, 1]
    """
    if isinstance(answers, Mapping):
        return _looked_up(dict(answers), streams)
    index = getattr(answers, "index", None)
    if flat or index is None or callable(index):  # as that of lists
        array = np.asarray(answers)
        _check_count(array, streams, flat)
        return array
    index = np.asarray(index)
    if len(set(index.tolist())) == len(index) and set(streams.ids.tolist()) <= set(index.tolist()):
        return _looked_up(dict(zip(index.tolist(), answers.tolist(), strict=True)), streams)
    raise TrainingError(
        f"The index of y is {listed(index.tolist(), 3)}, and the series are {listed(streams.ids.tolist(), 3)}: it is "
        "not clear which belongs to which. Give y the ids of the series as its index, each once, or, if it is in the "
        "order of the series, pass y.to_numpy()."
    )


def _looked_up(answers: dict, streams: Streams) -> list:
    lacking = [one for one in streams.ids.tolist() if one not in answers]
    if lacking:
        raise TrainingError(f"y has nothing for the series {listed(lacking, 3)}. Give every series its own.")
    return [answers[one] for one in streams.ids.tolist()]


def _check_count(answers: np.ndarray, streams: Streams, flat: bool) -> None:
    """One for each series; what has no length scikit-learn puts into words."""
    count, series = len(answers) if answers.ndim else len(streams), len(streams)
    if count != series:
        hint = ""
        if flat:
            hint = (
                " If rows of X are observations, several for each series, say so: table=Long(...) or table=Wide(...)."
            )
        elif count == len(streams.times):
            hint = " y has one for each row of the table, it seems; it needs one for each series."
        raise TrainingError(f"There are {series} series in X, but {count} in y. Give one for each series.{hint}")


def required(estimator: Any, answers: Any) -> None:
    """Refuse to learn from nothing, in the words of scikit-learn."""
    if answers is None:
        raise TrainingError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Give what belongs to each "
            "series."
        )

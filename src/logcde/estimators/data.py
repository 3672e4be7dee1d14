"""Input of estimators: arrays, ragged lists, data frames and streams become `Streams`; targets are aligned with them.

Targets belong to series by position, or by the ids of the series.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from jaxtyping import Float64

from logcde.errors import StreamError, TrainingError, Where
from logcde.streams import DatetimeClock, Earliest, FirstStamp, Schema, Streams, TimedeltaClock
from logcde.streams.labels import as_numbers, too_large, unmasked, written
from logcde.streams.rows import Average, Forbid, Keep, KeepLast
from logcde.streams.schema import listed
from logcde.streams.stamps import OPEN_END, Horizon, Origin

NAME_COLUMNS = (
    "If rows of X are observations, several per series, name the columns: table=Long(...) or table=Wide(...)."
)


@dataclasses.dataclass(frozen=True)
class Long:
    """Layout of a data frame with one observation per row.

    Args:
        series: Column of the series' ids.
        time: Column of the stamps.
        channel: Column of the channels' names.
        value: Column of the values.
        channels: Channels to read, in this order; by default all.
        horizon: End of the observation window of each series; by default one median gap after its last stamp.
        unit: Unit of time for datetimes; by default hours.
        origin: Stamp that counts as time 0; by default the first stamp of each series, and 0 for plain numbers that
            begin near it.
        sort: Sort the rows by time, instead of refusing unsorted ones.
        duplicates: What to do with several values of one channel at one stamp.

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
        """Read a data frame; with a `schema`, as further streams of it, which may be without observations."""
        columns = (self.series, self.time, self.channel, self.value)
        return Streams.from_frame(frame, *columns, **_options(self, schema))


@dataclasses.dataclass(frozen=True)
class Wide:
    """Layout of a data frame with one stamp per row and one column per channel.

    Args:
        series: Column of the series' ids.
        time: Column of the stamps.
        channels: Columns of the channels; by default all other columns.
        horizon: As in `Long`, and so are `unit`, `origin`, `sort` and `duplicates`.

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
        """Read a data frame; with a `schema`, as further streams of it, which may be without observations."""
        return Streams.from_wide(frame, self.series, self.time, **_options(self, schema))


Layout: TypeAlias = Long | Wide
"""How the rows of a data frame become streams."""


def layout_of_targets(layout: Layout, streams: Streams) -> Layout:
    """Return the layout of a data frame of targets: other channels, but the origin and unit of time of `streams`."""
    clock = streams.schema.clock
    if isinstance(clock, TimedeltaClock):
        return dataclasses.replace(layout, channels=None)
    origin: Any = clock.origin
    if streams.origins is not None:
        origin = dict(zip(streams.ids.tolist(), streams.origins, strict=True))
    unit = clock.unit if isinstance(clock, DatetimeClock) else layout.unit
    return dataclasses.replace(layout, channels=None, origin=origin, unit=unit)


def _options(layout: Layout, schema: Schema | None) -> dict[str, Any]:
    """Arguments of both constructors of `Streams`; a schema determines channels and unit by itself."""
    return {
        "channels": layout.channels if schema is None else None,
        "horizon": OPEN_END if layout.horizon is None else layout.horizon,
        "schema": schema,
        "unit": layout.unit if schema is None else None,
        "origin": origin_of(layout.origin, schema),
        "sort": layout.sort,
        "duplicates": layout.duplicates,
        "empty": Forbid() if schema is None else Keep(),
    }


def origin_of(given: Origin | None, schema: Schema | None) -> Origin:
    """Choose the first stamp of each series, unless numbers begin near 0; with a schema, the origin of its clock."""
    if schema is not None and not schema.clock.per_series:
        return Earliest()
    return FirstStamp(near_zero=True) if given is None else given


@dataclasses.dataclass(frozen=True)
class Input:
    """Streams that an estimator was given.

    Args:
        streams: The streams.
        gap: Time between two steps if the input was an array, else None.
        flat: Whether the input was an array (sample, feature).
        ended: Whether the streams have their final horizons.
    """

    streams: Streams
    gap: float | None = None
    flat: bool = False
    ended: bool = False


def read_input(
    data: Any,
    layout: Layout | None,
    schema: Schema | None,
    flatten: Callable[[Any], np.ndarray],
    channels_first: bool | None = None,
    further: bool = False,
) -> Input:
    """Turn any supported input into streams.

    Args:
        data: `Streams` or a list of them; an array (series, step, channel) or a list of arrays (step, channel), with
            stamps 0, 1, 2, ...; a data frame; or an array (sample, feature), which are series of one channel.
        layout: Layout of a data frame; without one, it is read as an array (sample, feature).
        schema: Schema of the training streams, or None.
        flatten: scikit-learn's check of an array (sample, feature).
        channels_first: Whether arrays have the axes (series, channel, step), and lists of them (channel, step); None if
            they have not, with a warning where their shape looks like it.
        further: Whether these are series to predict, which may be without observations.

    >>> read_input(np.zeros((4, 3, 2)), None, None, np.asarray).streams.schema.channels
    ('x1', 'x2')
    """
    if isinstance(data, Streams):
        return Input(data, ended=True)
    if isinstance(data, list | tuple) and data and all(isinstance(one, Streams) for one in data):
        return Input(Streams.concatenate(data), ended=True)
    data = [unmasked(one) for one in data] if isinstance(data, list | tuple) else unmasked(data)
    if is_frame(data):
        if layout is not None:
            return Input(layout.read(data, schema), ended=layout.horizon is not None)
        return _from_arrays(flatten(data)[..., None], flat=True, further=further)
    if isinstance(data, list | tuple) and data and all(isinstance(one, np.ndarray) for one in data):
        sizes = {one.shape[:1] for one in data}
        if any(one.ndim == 2 for one in data) or len(sizes) > 1:
            turned = [one.T if channels_first else one for one in data]
            return _from_arrays([one[:, None] if one.ndim == 1 else one for one in turned], schema, further=further)
    if axes_of(data) == 3:
        values = np.asarray(data)
        values = np.swapaxes(values, 1, 2) if channels_first else values
        return _from_arrays(values, schema, channels_first is None, further=further)
    return _from_arrays(flatten(data)[..., None], flat=True, further=further)


def axes_of(data: Any) -> int | None:
    """Return the number of axes of an array or nested list; None for anything else."""
    return np.ndim(data) if isinstance(data, list | tuple) else getattr(data, "ndim", None)


def is_frame(data: Any) -> bool:
    """Return whether narwhals supports this as a data frame."""
    return nw.dependencies.is_into_dataframe(data) or isinstance(data, nw.LazyFrame)


def check_samples(frame: Any) -> None:
    """Refuse a data frame without layout whose rows cannot be samples with numeric features."""
    columns = nw.from_native(frame).collect_schema()
    text = [name for name, kind in columns.items() if not (kind.is_numeric() or kind in (nw.Boolean, nw.Object))]
    if text or {"series", "time"} <= set(columns):
        found = f"the column {text[0]!r} is {columns[text[0]]}" if text else "there are columns 'series' and 'time'"
        raise StreamError(
            f"Without table=, each row of a data frame is one sample and each column a numeric feature, but {found}.",
            NAME_COLUMNS,
        )


def _from_arrays(
    values: np.ndarray | Sequence[np.ndarray],
    schema: Schema | None = None,
    unsure: bool = False,
    flat: bool = False,
    further: bool = False,
) -> Input:
    """Read arrays with stamps 0, 1, 2, ...; the horizon of a series is one step after its last observation.

    Without any observation it is one step after the last row.

    Args:
        values: One array (series, step, channel), or an array (step, channel) for each series.
        schema: Schema of the training streams, or None.
        unsure: Whether the axes may be others.
        flat: Whether the input was an array (sample, feature).
        further: Whether these are series to predict, which may be without observations.
    """
    empty = Keep() if further else Forbid()
    for number, one in enumerate(values):
        if np.iscomplexobj(one):
            raise StreamError(
                f"Complex data not supported: series {number} has {one.dtype} values.", where=Where(series=number)
            )
    lengths = np.array([_length(np.asarray(one), number, further) for number, one in enumerate(values)])
    if isinstance(values, np.ndarray):
        unsure = unsure and (schema is None or len(schema.channels) == values.shape[1] != values.shape[2])
        names = schema.channels if unsure and schema is not None else None
        streams = Streams.from_dense(
            values,
            channels=names,
            horizon=float(values.shape[1]),
            channels_first=None if unsure else False,
            empty=empty,
        )
    else:
        steps = [np.arange(len(one)) for one in values]
        streams = Streams.from_arrays(steps, values, horizon=float(max(1, *map(len, values))), empty=empty)
    return Input(with_horizon(streams, lengths.astype(np.float64)), gap=1.0, flat=flat, ended=True)


def _length(values: np.ndarray, number: int, further: bool) -> int:
    """Count the steps up to the last observation."""
    known = np.ones(len(values), bool)
    if values.dtype.kind == "f" and values.ndim == 2:
        known = ~np.isnan(values).all(axis=1)
    if further and not known.any():
        return max(1, len(values))
    if not known.any():
        raise StreamError(
            f"Series {number} has no observation: all its values are NaN.",
            "Leave it out.",
            where=Where(series=number),
        )
    return int(np.flatnonzero(known)[-1]) + 1


def with_horizon(streams: Streams, horizon: Float64[np.ndarray, "series"]) -> Streams:
    """Return the same observations with other ends of the observation windows."""
    return dataclasses.replace(streams, horizon=horizon)


def last_times(streams: Streams) -> Float64[np.ndarray, "series"]:
    """Return the time of the last event of each series; 0 if it has none."""
    some = np.diff(streams.offsets) > 0
    last = np.zeros(len(streams))
    last[some] = streams.times[streams.offsets[1:][some] - 1]
    return last


def check_channels(streams: Streams, fitted: Schema) -> None:
    """Refuse streams whose channels differ from those of the training streams."""
    found = streams.schema
    if (found.channels, found.terms, found.continuous) == (fitted.channels, fitted.terms, fitted.continuous):
        return
    missing = [name for name in fitted.channels if name not in found.channels]
    unknown = [name for name in found.channels if name not in fitted.channels]
    parts = [f"{listed(missing)} missing"] * bool(missing) + [f"{listed(unknown)} new"] * bool(unknown)
    how = " and ".join(parts) or "in another order, or with other terms or continuous channels"
    raise StreamError(
        f"The estimator was fitted to the channels {listed(fitted.channels)}, but these series have "
        f"{listed(found.channels)}: {how}.",
        "Give the same channels in the same order, NaN where nothing is observed.",
    )


def check_targets_given(estimator: Any, targets: Any) -> None:
    """Refuse to fit without targets; scikit-learn's own checks expect its wording."""
    if targets is None:
        raise TrainingError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.",
            "Give a target for each series.",
        )


def weights_of(weight: Any, streams: Streams) -> Float64[np.ndarray, "series"]:
    """Read one weight for each series, at least 0; by default all are 1.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], horizon=1.0)
    >>> weights_of([1, 3], streams)
    array([1., 3.])
    """
    if weight is None:
        return np.ones(len(streams))
    found = as_numbers(weight, lambda at: Where(detail="sample_weight"))
    if found.shape != (len(streams),):
        raise TrainingError(
            f"sample_weight has shape {found.shape}, but there are {len(streams)} series.", "Give one weight for each."
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise TrainingError(
            "sample_weight has numbers below 0, infinite ones or NaN.", "Give 0 or more to each series."
        )
    if not found.any():
        raise TrainingError("sample_weight has the weight zero for all series.", "Give some of them a positive one.")
    return found


def align_targets(targets: Any, streams: Streams, flat: bool) -> Any:
    """Return one target per series, in the order of the series.

    Args:
        targets: A mapping or a pandas Series is looked up by series id; anything else is in the order of the series.
        streams: The series.
        flat: Whether `X` was an array (sample, feature), whose targets are always in order.

    >>> streams = Streams.from_arrays([[0.0], [0.0]], [[[1.0]], [[2.0]]], ids=["a", "b"], horizon=1.0)
    >>> align_targets({"b": 1, "a": 0}, streams, flat=False)
    [0, 1]
    """
    if isinstance(targets, Mapping):
        found = _by_id(dict(targets), streams)
        _refuse_large(np.asarray(found))
        return found
    index = getattr(targets, "index", None)
    if flat or index is None or callable(index):  # `list.index` is a method
        array = np.asarray(targets)
        _check_count(array, streams, flat)
        _refuse_large(array)
        return array
    index = np.asarray(index)
    if len(set(index.tolist())) == len(index) and set(streams.ids.tolist()) <= set(index.tolist()):
        return _by_id(dict(zip(index.tolist(), targets.tolist(), strict=True)), streams)
    raise TrainingError(
        f"The index of y is {listed(index.tolist(), 3)}, but the ids of the series are "
        f"{listed(streams.ids.tolist(), 3)}, so targets cannot be matched with series.",
        "Use each series id once as the index of y; if y is in the order of the series, pass y.to_numpy().",
    )


def _refuse_large(targets: np.ndarray) -> None:
    """Refuse whole numbers beyond the range of float64, which NumPy keeps as objects."""
    large = [item for item in targets.reshape(-1).tolist() if too_large(item)] if targets.dtype.kind == "O" else []
    if large:
        raise TrainingError(f"y has {written(large[0])}, too large for float64 to hold exactly.", "Scale it first.")


def _by_id(targets: dict, streams: Streams) -> list:
    missing = [one for one in streams.ids.tolist() if one not in targets]
    if missing:
        raise TrainingError(
            f"y has no target for the series {listed(missing, 3)}.",
            "Give a target for each series.",
            where=Where(series=missing[0]),
        )
    return [targets[one] for one in streams.ids.tolist()]


def _check_count(targets: np.ndarray, streams: Streams, flat: bool) -> None:
    """Refuse another number of targets than of series; scikit-learn's checks refuse scalars later."""
    count, series = len(targets) if targets.ndim else len(streams), len(streams)
    if count != series:
        found, hint = f"There are {series} series in X, but {count} targets in y.", ""
        if flat:
            hint = f" {NAME_COLUMNS}"
        elif count == len(streams.times):
            found += " y seems to have one target for each row of X."
        raise TrainingError(found, f"Give one target for each series.{hint}")

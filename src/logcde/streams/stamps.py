"""Stamps of any type become arrays, stamps of rows become times since an origin, and horizons become times.

Numbers become float64, datetimes `datetime64` (in UTC, with the name of their zone), durations `timedelta64`. Missing
stamps (None, NaN, NaT) stay missing; `ingest` refuses them where there is an observation.

The origin is decided here, in `time_rows`, and nowhere else. Plain numbers count from 0. Those that are moments, such
as seconds since 1970, count from where the data begin, as datetimes do: otherwise nearly all of every observation
window would lie before the first event.
"""

import dataclasses
from collections.abc import Mapping, Sequence, Sized
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from logcde.errors import Remedy, StreamError, Where
from logcde.streams.clock import (
    HOUR,
    Clock,
    DatetimeClock,
    NumericClock,
    Stamps,
    Time,
    TimedeltaClock,
    epoch_of,
    moment_of,
)
from logcde.streams.faults import name, plain_id
from logcde.streams.labels import as_array, too_large, written
from logcde.streams.rows import Earliest, FirstStamp

LARGEST_WHOLE = 2**53
OPEN_END = Time(np.finfo(np.float64).max)
"""The horizon of series whose observation window ends later than all events; estimators then choose where."""
FAR = 10.0
"""Numbers begin far from 0 if the first is more than this many times as large as the time from first to last."""


def read_stamps(stamps: object) -> Stamps:
    """Stamps from an array, a list or a single one. An array of float64 is not copied.

    >>> read_stamps([1, 2.5])
    Stamps(array=array([1. , 2.5]), zone=None)
    >>> read_stamps([datetime(2024, 1, 1, tzinfo=UTC)]).zone
    'UTC'
    """
    array = as_array(stamps)
    if array.dtype.kind == "O":
        return _read_objects(array)
    if array.dtype.kind in "mM":
        return Stamps(_in_known_resolution(array))
    if array.dtype.kind in "fiu":
        return Stamps(_as_floats(array))
    raise StreamError(
        f"The stamps are of type {array.dtype.name}, which is no kind of time.", "Use numbers, datetimes or timedeltas."
    )


def on_grid(array: np.ndarray, resolution: str) -> np.ndarray:
    """Stamps in another resolution; refused where a stamp would change.

    >>> on_grid(np.array(["2024-01-01T00:01"], "datetime64[m]"), "s")
    array(['2024-01-01T00:01:00'], dtype='datetime64[s]')
    """
    dtype = np.dtype(f"{_family(array)}[{resolution}]")
    if array.dtype == dtype:
        return array
    cast = array.astype(dtype)
    changed = (cast != array) & ~np.isnat(array)
    if changed.any():
        first = array.reshape(-1)[np.argmax(changed.reshape(-1))]
        raise StreamError(
            f"The stamp {first} is finer than {dtype}, the resolution of these streams.",
            "Round it, or cast all stamps to the finer resolution first.",
            where=Where(stamp=str(first)),
        )
    return cast


def zone_name(zone: object) -> str:
    """The name of a time zone, from which `clock.zone_named` makes the zone.

    >>> from datetime import timezone
    >>> zone_name(timezone(timedelta(hours=2))), zone_name(UTC), zone_name("Europe/Paris")
    ('+02:00', 'UTC', 'Europe/Paris')
    """
    return str(zone).removeprefix("UTC") or "UTC"


def _family(array: np.ndarray) -> str:
    return "datetime64" if array.dtype.kind == "M" else "timedelta64"


def _as_floats(array: np.ndarray) -> Float64[np.ndarray, "..."]:
    if array.dtype.kind in "iu" and array.size and max(-int(array.min()), int(array.max())) > LARGEST_WHOLE:
        raise StreamError(
            f"The stamps go from {int(array.min())} to {int(array.max())}, too large for float64 to hold exactly"
            f"{_as_moment(int(array.min()))}.",
            Remedy.EPOCH,
        )
    return array.astype(np.float64, copy=False)


def _as_moment(stamp: int) -> str:
    moment = moment_of(float(stamp)) if abs(stamp) < 2**63 else ""
    return f"; the first one reads as {moment}" if moment else ""


def _in_known_resolution(array: np.ndarray) -> np.ndarray:
    unit, count = np.datetime_data(array.dtype)
    family = _family(array)
    if unit in ("s", "ms", "us", "ns"):
        return array if count == 1 else array.astype(f"{family}[{unit}]")
    if unit in ("m", "h", "D", "W") or (family == "datetime64" and unit in ("M", "Y")):
        return array.astype(f"{family}[s]")
    raise StreamError(
        f"Stamps of type {array.dtype} cannot be counted in seconds.", f"Cast them to {family}[ns] or coarser."
    )


def _read_objects(array: np.ndarray) -> Stamps:
    # NaN and NaT are the values that differ from themselves.
    flat = [None if item is None or item != item else item for item in array.reshape(-1)]
    given = [item for item in flat if item is not None]
    if not given:
        return Stamps(np.full(array.shape, np.nan))
    kind = next((kind for kind in (datetime, date, timedelta) if isinstance(given[0], kind)), (int, float, np.number))
    for item in given:
        if not isinstance(item, kind):
            found = "is no kind of time" if item is given[0] else f"is not of the type of the first one, {given[0]!r}"
            raise StreamError(
                f"The stamp {item!r} {found}.",
                "Use numbers, datetimes or timedeltas, the same throughout; text must be parsed first.",
                where=Where(stamp=item),
            )
        if getattr(item, "nanosecond", 0) or getattr(item, "nanoseconds", 0):
            raise StreamError(
                f"The stamp {item} has nanoseconds, which Python's own types lack.",
                "Pass such stamps as an array of type datetime64[ns] or timedelta64[ns].",
                where=Where(stamp=str(item)),
            )
    if kind is datetime:
        return _read_datetimes(flat, array.shape)
    if kind is date:
        return Stamps(np.array(flat, "datetime64[s]").reshape(array.shape))
    if kind is timedelta:
        return Stamps(np.array(flat, "timedelta64[us]").reshape(array.shape))
    large = next((item for item in given if too_large(item)), None)
    if large is not None:
        raise StreamError(
            f"The stamp {written(large)} is too large for float64 to hold exactly{_as_moment(int(large))}.",
            Remedy.EPOCH,
            where=Where(stamp=written(large)),
        )
    return Stamps(np.array([np.nan if item is None else item for item in flat], np.float64).reshape(array.shape))


def _read_datetimes(items: list[datetime | None], shape: tuple[int, ...]) -> Stamps:
    zones = {None if item.tzinfo is None else zone_name(item.tzinfo) for item in items if item is not None}
    if len(zones) > 1:
        named = ", ".join(sorted(str(zone) for zone in zones))
        raise StreamError(f"The stamps mix the time zones {named}.", "Convert them to one zone first.")
    plain = [
        item if item is None or item.tzinfo is None else item.astimezone(UTC).replace(tzinfo=None) for item in items
    ]
    return Stamps(np.array(plain, "datetime64[us]").reshape(shape), zones.pop())


Moment: TypeAlias = datetime | date | np.datetime64
Origin: TypeAlias = Earliest | FirstStamp | Moment | float | int | np.number | Mapping | Sequence | np.ndarray
Horizon: TypeAlias = float | int | np.number | timedelta | np.timedelta64 | Moment | Mapping | Sequence | np.ndarray

# Rows converted at a time: intermediate results stay in the cache.
BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class ClockOptions:
    """Options of the clock: `clock` itself, or the `unit` and `origin` to make one from the stamps."""

    unit: timedelta | None = None
    origin: Origin = Earliest()
    clock: Clock | None = None


class Timing(NamedTuple):
    """Times of the rows, the clock that converted them, and each series' origin where they differ."""

    times: Float64[np.ndarray, "row"]
    clock: Clock
    origins: Shaped[np.ndarray, "series"] | None = None


def time_rows(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    observed: Bool[np.ndarray, "row"],
    ids: Shaped[np.ndarray, "series"],
    options: ClockOptions = ClockOptions(),
    horizon: "Horizon | None" = None,
) -> Timing:
    """The stamps of rows as times, and the origin from which they count.

    Args:
        stamps: The stamp of each row.
        series: The number of its series.
        observed: Whether it has an observation: only such rows determine an origin that is taken from the data.
        ids: The ids of the series.
        options: The clock, or the options to make one.
        horizon: The end of the observation window, as the user gave it.
    """
    clock = options.clock or _clock_for(stamps, options)
    if stamps.array.dtype.kind != {NumericClock: "f", TimedeltaClock: "m", DatetimeClock: "M"}[type(clock)]:
        raise StreamError(
            f"The stamps are of type {stamps.array.dtype}, but the schema has a {type(clock).__name__}.",
            "Convert the stamps, or leave out the schema.",
        )
    if isinstance(clock, NumericClock):
        origins = None
        if options.clock is None or clock.per_series:
            valid = observed & np.isfinite(stamps.array)
            clock, origins = _settle_numbers(stamps.array[valid], series[valid], ids, options, horizon)
        return Timing(clock.times(stamps, None if origins is None else origins[series]), clock, origins)
    stamps = Stamps(on_grid(stamps.array, clock.resolution), stamps.zone)
    valid = observed & ~stamps.missing
    origins = None
    if isinstance(clock, DatetimeClock) and clock.origin is None:
        clock, origins = _settle(clock, Stamps(stamps.array[valid], stamps.zone), series[valid], ids, options.origin)
    times = np.empty(len(stamps.array))
    for start in range(0, len(times), BLOCK):
        block = slice(start, start + BLOCK)
        each = None if origins is None else origins[series[block]]
        times[block] = clock.times(Stamps(stamps.array[block], stamps.zone), each)
        lost = np.flatnonzero(valid[block] & ~_exact(stamps.array[block], times[block], clock, each))
        if lost.size:
            row = start + lost[0]
            raise StreamError(
                f"Series {name(ids[series[row]])}: the stamp {stamps.array[row]} is so far from the origin that "
                "float64 cannot hold it exactly.",
                Remedy.NEARER_ORIGIN,
                where=Where(series=plain_id(ids[series[row]]), stamp=str(stamps.array[row])),
            )
    return Timing(times, clock, origins)


def _exact(
    stamps: np.ndarray, times: np.ndarray, clock: TimedeltaClock | DatetimeClock, origins: np.ndarray | None
) -> Bool[np.ndarray, "row"]:
    """Whether each time converts back to its stamp."""
    known = np.where(np.isnan(times), 0.0, times)
    return np.ones(len(times), bool) if clock.ticks.always_exact(known) else clock.stamps(known, origins) == stamps


def _clock_for(stamps: Stamps, options: ClockOptions) -> Clock:
    kind = stamps.array.dtype.kind
    if kind == "m" and options.origin not in (Earliest(), FirstStamp(near_zero=True)):
        raise StreamError("An origin was given, but the stamps are durations, which have none.", "Leave it out.")
    if kind == "f":
        if options.unit is not None:
            raise StreamError("A unit was given, but the stamps are plain numbers, which have none.", "Leave it out.")
        return NumericClock()
    unit, resolution = options.unit or HOUR, np.datetime_data(stamps.array.dtype)[0]
    return TimedeltaClock(unit, resolution) if kind == "m" else DatetimeClock(unit, resolution, stamps.zone)


def _settle(
    clock: DatetimeClock, valid: Stamps, series: np.ndarray, ids: np.ndarray, origin: Origin
) -> tuple[DatetimeClock, np.ndarray | None]:
    """The clock with its origin; or the clock without one, and an origin for each series."""
    if isinstance(origin, Earliest):
        if not valid.array.size:
            raise StreamError("There is no observed stamp to count time from.", Remedy.ORIGIN)
        return dataclasses.replace(clock, origin=valid.array.min()), None
    if isinstance(origin, FirstStamp):
        return clock, _first_of_each(valid.array.view(np.int64), series, ids).view(valid.array.dtype)
    given = read_stamps(_per_series(origin, ids, "origin"))
    if given.array.dtype.kind != "M" or given.missing.any():
        raise StreamError(
            f"The origin {origin!r} is not a datetime.", "Stamps that are datetimes count from a datetime."
        )
    if (given.zone is None) != (clock.zone is None):
        raise StreamError("Of origin and stamps, one has a time zone and the other has none.", "Make them agree.")
    moments = on_grid(given.array, clock.resolution)
    if moments.ndim == 0:
        return dataclasses.replace(clock, origin=moments[()]), None
    return clock, moments


def _settle_numbers(
    valid: Float64[np.ndarray, "row"],
    series: Shaped[np.ndarray, "row"],
    ids: np.ndarray,
    options: ClockOptions,
    horizon: "Horizon | None",
) -> tuple[NumericClock, np.ndarray | None]:
    """The clock with its origin; or the clock without one, and an origin for each series."""
    origin, further = options.origin, options.clock is not None
    if isinstance(origin, Earliest) and not further:
        # Not from other numbers far from 0: a part of a series, read by itself, has to keep the zero of the whole.
        if not valid.size or valid.min() == valid.max() or epoch_of(float(valid.min())) is None:
            return NumericClock(), None
        return NumericClock(float(valid.min())), None
    if isinstance(origin, FirstStamp) and origin.near_zero and not further:
        first, last = _first_of_each(valid, series, ids), -_first_of_each(-valid, series, ids)
        if not _begins_far(first, last, horizon):
            return NumericClock(), None
    if isinstance(origin, Earliest | FirstStamp):
        return NumericClock(None), _first_of_each(valid, series, ids)
    given = read_stamps(_per_series(origin, ids, "origin"))
    if given.array.dtype.kind != "f" or not np.isfinite(given.array).all():
        raise StreamError(
            f"The origin {origin!r} is not a finite number.", "Stamps that are plain numbers count from such a number."
        )
    if given.array.ndim == 0 and not further:
        return NumericClock(float(given.array)), None
    return NumericClock(None), np.broadcast_to(given.array, (len(ids),)).astype(np.float64)


def _begins_far(
    first: Float64[np.ndarray, "series"], last: Float64[np.ndarray, "series"], horizon: "Horizon | None"
) -> bool:
    """Whether series with these first and last stamps begin so far from 0 that time had better not count from there.

    That is if their windows would be empty but for the end, or if the numbers count from 1970.
    """
    if horizon is not None and not isinstance(horizon, Time):
        ends = read_stamps(list(horizon.values()) if isinstance(horizon, Mapping) else horizon).array
        last = np.maximum(last, np.nanmax(ends)) if ends.dtype.kind == "f" and np.isfinite(ends).any() else last
    start, span = float(np.median(first)), float((last - first).max())
    return span > 0 and (start > FAR * span or epoch_of(start) is not None)


def _first_of_each(valid: np.ndarray, series: Shaped[np.ndarray, "row"], ids: np.ndarray) -> np.ndarray:
    """The first stamp of each series. One without any may start anywhere, for it has no event: where others do."""
    latest = np.inf if valid.dtype.kind == "f" else np.iinfo(np.int64).max
    first = np.full(len(ids), latest, valid.dtype)
    np.minimum.at(first, series, valid)
    first[first == latest] = first.min() if valid.size else 0
    return first


def _per_series(given: object, ids: np.ndarray, what: str) -> object:
    """One value for all series, or a list in order of the series; mappings from ids become lists."""
    if isinstance(given, Mapping):
        for identifier in ids:
            if identifier not in given:
                raise StreamError(
                    f"Series {name(identifier)} has no {what}.",
                    "Add its id to the mapping.",
                    where=Where(series=plain_id(identifier)),
                )
        return [given[identifier] for identifier in ids]
    if isinstance(given, np.ndarray) and given.ndim == 0:
        return given[()]
    if isinstance(given, Sized) and not isinstance(given, str) and len(given) != len(ids):
        raise StreamError(
            f"There are {len(ids)} series, but {len(given)} {what}s.", "Give one for each series, or one for all."
        )
    return given


def read_horizon(
    horizon: Horizon | None, ids: np.ndarray, clock: Clock, origins: np.ndarray | None
) -> Float64[np.ndarray, "series"] | None:
    """The horizon of each series as a time.

    Datetimes are stamps, and so are numbers if stamps are plain numbers. Durations, and otherwise numbers, count from
    the origin.
    """
    if horizon is None:
        return None
    if isinstance(horizon, Time):
        return np.full(len(ids), float(horizon))
    given = read_stamps(_per_series(horizon, ids, "horizon"))
    times = clock.times(Stamps(np.atleast_1d(given.array), given.zone), origins)
    return np.broadcast_to(times, (len(ids),)).astype(np.float64)

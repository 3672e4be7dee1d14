"""Stamps of any kind, as arrays or as Python objects, become arrays of one of three kinds.

Numbers become float64, datetimes `datetime64` (in UTC, with their zone noted), durations `timedelta64`. What is missing
(None, NaN, NaT) stays missing and is dealt with by `ingest`, which knows whether it matters.

Stamps of rows become times since an origin, and a horizon becomes a number for each series.
"""

import dataclasses
from collections.abc import Mapping, Sequence, Sized
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from logcde.errors import Remedy, StreamError
from logcde.streams.clock import HOUR, Clock, DatetimeClock, NumericClock, Stamps, TimedeltaClock
from logcde.streams.faults import name
from logcde.streams.labels import as_array
from logcde.streams.rows import Earliest, FirstStamp

LARGEST_WHOLE = 2**53


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
        f"The stamps are of type {array.dtype.name}, which is no kind of time. Use numbers, datetimes or timedeltas."
    )


def on_grid(array: np.ndarray, resolution: str) -> np.ndarray:
    """Stamps in another resolution, refused where that would change them.

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
            f"The stamp {first} is finer than {dtype}, the resolution of these streams. "
            "Round it, or cast all stamps to the finer resolution first."
        )
    return cast


def zone_name(zone: object) -> str:
    """The name under which `clock.zone_named` finds a time zone again.

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
            f"The stamps go from {int(array.min())} to {int(array.max())}, too large for float64 to hold exactly.",
            Remedy.EPOCH,
        )
    return array.astype(np.float64, copy=False)


def _in_known_resolution(array: np.ndarray) -> np.ndarray:
    unit, count = np.datetime_data(array.dtype)
    family = _family(array)
    if unit in ("s", "ms", "us", "ns"):
        return array if count == 1 else array.astype(f"{family}[{unit}]")
    if unit in ("m", "h", "D", "W") or (family == "datetime64" and unit in ("M", "Y")):
        return array.astype(f"{family}[s]")
    raise StreamError(
        f"Stamps of type {array.dtype} cannot be counted in seconds. Cast them to {family}[ns] or coarser."
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
            found = f"The stamp {item!r} is no kind of time"
            beside = "" if item is given[0] else f" that goes with the stamp {given[0]!r}"
            raise StreamError(
                f"{found}{beside}. Use numbers, datetimes or timedeltas, the same throughout; "
                "text must be parsed first."
            )
        if getattr(item, "nanosecond", 0) or getattr(item, "nanoseconds", 0):
            raise StreamError(
                f"The stamp {item} has nanoseconds, which Python's own types have not. Pass such stamps as an array of "
                "type datetime64[ns] or timedelta64[ns]."
            )
    if kind is datetime:
        return _read_datetimes(flat, array.shape)
    if kind is date:
        return Stamps(np.array(flat, "datetime64[s]").reshape(array.shape))
    if kind is timedelta:
        return Stamps(np.array(flat, "timedelta64[us]").reshape(array.shape))
    return Stamps(np.array([np.nan if item is None else item for item in flat], np.float64).reshape(array.shape))


def _read_datetimes(items: list[datetime | None], shape: tuple[int, ...]) -> Stamps:
    zones = {None if item.tzinfo is None else zone_name(item.tzinfo) for item in items if item is not None}
    if len(zones) > 1:
        named = ", ".join(sorted(str(zone) for zone in zones))
        raise StreamError(f"The stamps mix the time zones {named}. Convert them to one zone first.")
    plain = [
        item if item is None or item.tzinfo is None else item.astimezone(UTC).replace(tzinfo=None) for item in items
    ]
    return Stamps(np.array(plain, "datetime64[us]").reshape(shape), zones.pop())


Moment: TypeAlias = datetime | date | np.datetime64
Origin: TypeAlias = Earliest | FirstStamp | Moment | Mapping | Sequence | np.ndarray
Horizon: TypeAlias = float | int | np.number | timedelta | np.timedelta64 | Moment | Mapping | Sequence | np.ndarray

# Rows converted at a time: intermediate results stay in the cache.
BLOCK = 1 << 16


@dataclasses.dataclass(frozen=True)
class ClockOptions:
    """What the user asked of the clock: a given one, or the unit and origin of one to be made."""

    unit: timedelta | None = None
    origin: Origin = Earliest()
    clock: Clock | None = None


class Timing(NamedTuple):
    """Times of the rows, with the clock that made them, and each series' origin where they differ."""

    times: Float64[np.ndarray, "row"]
    clock: Clock
    origins: Shaped[np.ndarray, "series"] | None = None


def time_rows(
    stamps: Stamps,
    series: Shaped[np.ndarray, "row"],
    observed: Bool[np.ndarray, "row"],
    ids: Shaped[np.ndarray, "series"],
    options: ClockOptions = ClockOptions(),
) -> Timing:
    """Rows' stamps as times. Only observed rows count towards an origin that is taken from the data."""
    clock = options.clock or _clock_for(stamps, options)
    if stamps.array.dtype.kind != {NumericClock: "f", TimedeltaClock: "m", DatetimeClock: "M"}[type(clock)]:
        raise StreamError(
            f"The stamps are of type {stamps.array.dtype}, but the schema has a {type(clock).__name__}. "
            "Convert the stamps, or leave out the schema."
        )
    if isinstance(clock, NumericClock):
        return Timing(clock.times(stamps), clock)
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
            )
    return Timing(times, clock, origins)


def _exact(
    stamps: np.ndarray, times: np.ndarray, clock: TimedeltaClock | DatetimeClock, origins: np.ndarray | None
) -> Bool[np.ndarray, "row"]:
    """Which times lead back to their stamps."""
    known = np.where(np.isnan(times), 0.0, times)
    return np.ones(len(times), bool) if clock.ticks.always_exact(known) else clock.stamps(known, origins) == stamps


def _clock_for(stamps: Stamps, options: ClockOptions) -> Clock:
    kind = stamps.array.dtype.kind
    if kind != "M" and not isinstance(options.origin, Earliest):
        raise StreamError(
            f"An origin was given, but the stamps are of type {stamps.array.dtype} and not datetimes. Leave it out."
        )
    if kind == "f":
        if options.unit is not None:
            raise StreamError("A unit was given, but the stamps are plain numbers, which have none. Leave it out.")
        return NumericClock()
    unit, resolution = options.unit or HOUR, np.datetime_data(stamps.array.dtype)[0]
    return TimedeltaClock(unit, resolution) if kind == "m" else DatetimeClock(unit, resolution, stamps.zone)


def _settle(
    clock: DatetimeClock, valid: Stamps, series: np.ndarray, ids: np.ndarray, origin: Origin
) -> tuple[DatetimeClock, np.ndarray | None]:
    """A clock with one origin, or a clock without and an origin for each series."""
    if isinstance(origin, Earliest):
        if not valid.array.size:
            raise StreamError("There is no observed stamp to count time from.", Remedy.ORIGIN)
        return dataclasses.replace(clock, origin=valid.array.min()), None
    if isinstance(origin, FirstStamp):
        # Series without a single stamp start anywhere; they have no event that could tell.
        ticks = np.full(len(ids), np.iinfo(np.int64).max)
        np.minimum.at(ticks, series, valid.array.view(np.int64))
        ticks[ticks == np.iinfo(np.int64).max] = ticks.min()
        return clock, ticks.view(valid.array.dtype)
    given = read_stamps(_per_series(origin, ids, "origin"))
    if given.array.dtype.kind != "M" or given.missing.any():
        raise StreamError(f"The origin {origin!r} is not a datetime. Stamps that are datetimes count from a datetime.")
    if (given.zone is None) != (clock.zone is None):
        raise StreamError("Of origin and stamps, one has a time zone and the other has none. Make them agree.")
    moments = on_grid(given.array, clock.resolution)
    if moments.ndim == 0:
        return dataclasses.replace(clock, origin=moments[()]), None
    return clock, moments


def _per_series(given: object, ids: np.ndarray, what: str) -> object:
    """One for all, or a list with one for each series, whether it was given by id or in order."""
    if isinstance(given, Mapping):
        for identifier in ids:
            if identifier not in given:
                raise StreamError(f"Series {name(identifier)} has no {what}. Add its id to the mapping.")
        return [given[identifier] for identifier in ids]
    if isinstance(given, np.ndarray) and given.ndim == 0:
        return given[()]
    if isinstance(given, Sized) and not isinstance(given, str) and len(given) != len(ids):
        raise StreamError(f"There are {len(ids)} series, but {len(given)} {what}s. Give one for each, or one for all.")
    return given


def read_horizon(
    horizon: Horizon | None, ids: np.ndarray, clock: Clock, origins: np.ndarray | None
) -> Float64[np.ndarray, "series"] | None:
    """The horizon of each series as a time. Numbers and durations count from the start, datetimes are absolute."""
    if horizon is None:
        return None
    given = read_stamps(_per_series(horizon, ids, "horizon"))
    times = clock.times(Stamps(np.atleast_1d(given.array), given.zone), origins)
    return np.broadcast_to(times, (len(ids),)).astype(np.float64)

"""Stamps of rows become times since an origin, and a horizon becomes a number for each series."""

import dataclasses
from collections.abc import Mapping, Sequence, Sized
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from logcde.errors import StreamError
from logcde.streams.clock import HOUR, Clock, DatetimeClock, NumericClock, Stamps, TimedeltaClock
from logcde.streams.places import name
from logcde.streams.policies import Earliest, FirstStamp
from logcde.streams.stamps import on_grid, read_stamps

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
                "float64 cannot hold it exactly. Round the stamps to a coarser resolution, such as microseconds, or "
                "give an origin nearer to them, for example origin=FirstStamp()."
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
            raise StreamError("There is no observed stamp to count time from. Pass origin=, a datetime.")
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

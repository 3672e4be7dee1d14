"""One growing series and its clock: stamps become times as they come, and the first may be the origin.

Arrays of stamps are read in `stamps`.
"""

import dataclasses
import math

import numpy as np

from logcde.errors import StreamError, Where
from logcde.streams.clock import Clock, DatetimeClock, NumericClock, Stamps, Time, TimedeltaClock
from logcde.streams.labels import too_large
from logcde.streams.stamps import on_grid, read_stamps


def one_stamp(stamp: object) -> Stamps:
    """One stamp, as an array with one entry."""
    stamps = read_stamps([stamp])
    if stamps.array.shape != (1,):
        raise StreamError(
            f"The stamp of an event has shape {stamps.array.shape[1:]}.", "Give one stamp, not an array of them."
        )
    return stamps


def time_on(clock: Clock, stamp: object) -> Time:
    """The time of one stamp on the clock of its series. A `Time` is one already.

    >>> time_on(NumericClock(1.7e9), 1.7e9 + 2.5)
    2.5
    """
    if type(stamp) is Time:
        return stamp
    plain = isinstance(stamp, float) or (type(stamp) is int and not too_large(stamp))
    if plain and not math.isnan(clock.zero):
        return Time(stamp - clock.zero)  # type: ignore
    given = one_stamp(stamp)
    if clock.per_series and given.array.dtype.kind == ("f" if isinstance(clock, NumericClock) else "M"):
        raise StreamError(
            "Each series counts time from its own first stamp, and this one has none yet.",
            "Observe an event first.",
            where=Where(stamp=stamp),
        )
    return Time(clock.times(given)[0])


def length_on(clock: Clock, duration: object) -> float:
    """A length of time on a clock.

    >>> from datetime import timedelta
    >>> length_on(NumericClock(1.7e9), 2.5), length_on(TimedeltaClock(), timedelta(minutes=30))
    (2.5, 0.5)
    """
    return float(clock.lengths(one_stamp(duration))[0])


def begun_by(clock: Clock, stamp: object) -> Clock:
    """The clock of a series that has an event at this stamp: if each series has its own origin, the first one is it.

    A `Time` says nothing about the origin, and nor do numbers and durations if stamps are datetimes.

    >>> begun_by(NumericClock(None), 1.7e9).origin, begun_by(NumericClock(), 1.7e9).origin
    (1700000000.0, 0.0)
    """
    if not clock.per_series or type(stamp) is Time:
        return clock
    given = one_stamp(stamp)
    if isinstance(clock, NumericClock):
        return NumericClock(float(NumericClock().times(given)[0]))
    assert isinstance(clock, DatetimeClock)
    if given.array.dtype.kind != "M":
        return clock
    return dataclasses.replace(clock, origin=on_grid(given.array, clock.resolution)[0])


def origin_number(clock: Clock) -> float | int | None:
    """The origin of a clock as a number for JSON; None if it has none.

    >>> origin_number(DatetimeClock(origin=np.datetime64(5, "us"))), origin_number(NumericClock(None))
    (5, None)
    """
    origin = None if isinstance(clock, TimedeltaClock) else clock.origin
    return int(origin.astype(np.int64)) if isinstance(origin, np.datetime64) else origin


def own_origin(clock: Clock, common: Clock) -> float | int | None:
    """The origin of a series for its state; None if all series have that of the `common` clock.

    >>> own_origin(NumericClock(5.0), NumericClock(None)), own_origin(NumericClock(5.0), NumericClock(5.0))
    (5.0, None)
    """
    return origin_number(clock) if common.per_series else None


def with_origin_number(clock: Clock, number: float | int | None) -> Clock:
    """A clock whose series have their own origins with that of one series, as `origin_number` returns it."""
    if number is None or not clock.per_series:
        return clock
    if isinstance(clock, NumericClock):
        return NumericClock(float(number))
    assert isinstance(clock, DatetimeClock)
    return dataclasses.replace(clock, origin=np.datetime64(int(number), clock.resolution))  # type: ignore[call-overload]


def shown(clock: Clock, time: float) -> str:
    """A time for a sentence: as a stamp if stamps are plain numbers, otherwise as time since the origin.

    >>> shown(NumericClock(500.0), 2.5), shown(TimedeltaClock(), 2.5)
    ('502.5', '2.5')
    """
    return str(float(time + (0.0 if clock.per_series else clock.zero)))


def zero_for(clock: Clock, stamp: object) -> float:
    """What to add to times of a clock so that they are as `stamp` is given: nothing for a `Time`.

    >>> zero_for(NumericClock(500.0), 502.5), zero_for(NumericClock(500.0), Time(2.5))
    (500.0, 0.0)
    """
    return 0.0 if type(stamp) is Time else clock.zero

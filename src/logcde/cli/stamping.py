"""Stamps of lines as the times of a model: plain numbers, or datetimes in ISO 8601, as the model's clock says."""

import dataclasses
import re
from datetime import UTC, datetime

import numpy as np

from logcde.cli.lines import Stamp
from logcde.errors import StreamError
from logcde.streams.clock import Clock, DatetimeClock, Stamps, unit_name
from logcde.streams.stamps import on_grid

# Python's own datetimes end at microseconds.
FINER = re.compile(r"^(.*\.\d{6})(\d{1,3})(\D.*)?$")
NANOSECOND_YEARS = range(1678, 2262)


def time_of(stamp: Stamp, clock: Clock) -> float:
    """A stamp as time.

    >>> from logcde.streams import NumericClock
    >>> time_of(0.5, NumericClock())
    0.5
    >>> time_of("2024-01-01T06:30", DatetimeClock(origin=np.datetime64("2024-01-01", "us")))
    6.5
    """
    if not isinstance(clock, DatetimeClock):
        if isinstance(stamp, str):
            unit = unit_name(clock)
            counted = f"{unit} since the start of the series" if unit else "plain numbers"
            raise StreamError(f"The stamp {stamp!r} is text, but this model counts time in {counted}. Give a number.")
        return stamp
    if not isinstance(stamp, str):
        raise StreamError(
            f"The stamp {stamp} is a number, but the stamps of this model are datetimes. Give them in ISO 8601, such "
            'as "2024-03-01T12:30:00".'
        )
    return float(clock.times(_moment(stamp, clock))[0])


def since(stamp: str, clock: DatetimeClock) -> DatetimeClock:
    """The clock of a series that counts from this stamp."""
    return from_ticks(int(on_grid(_moment(stamp, clock).array, clock.resolution).view(np.int64)[0]), clock)


def from_ticks(ticks: int, clock: DatetimeClock) -> DatetimeClock:
    """The same of a stamp as a number of ticks, which `ticks_of` gives."""
    return dataclasses.replace(clock, origin=np.datetime64(ticks, clock.resolution))  # type: ignore[call-overload]


def ticks_of(clock: Clock) -> int | None:
    """The origin of a clock, if it has one, as a number that JSON can hold."""
    dated = isinstance(clock, DatetimeClock) and clock.origin is not None
    return int(clock.origin.astype(np.int64)) if dated else None  # type: ignore[union-attr]


def _moment(text: str, clock: DatetimeClock) -> Stamps:
    finer = FINER.match(text) if len(text) > len("2024-03-01T12:30:00.123456") else None
    try:
        moment = datetime.fromisoformat(text if finer is None else f"{finer[1]}{finer[3] or ''}")
        zone = None if moment.tzinfo is None else "UTC"
        moment = moment if zone is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise StreamError(
            f"The stamp {text!r} is not a datetime in ISO 8601, such as 2024-03-01T12:30:00. ({error})"
        ) from error
    fine = finer is not None or clock.resolution == "ns"
    if fine and moment.year not in NANOSECOND_YEARS:
        raise StreamError(f"The stamp {text!r} is too far away to be counted in nanoseconds.")
    array = np.array([moment], "datetime64[us]")
    if finer is not None:
        array = array.astype("datetime64[ns]") + int(finer[2].ljust(3, "0"))
    return Stamps(array, zone)

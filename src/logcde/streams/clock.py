"""Clocks: the exact conversion between the user's stamps and the float64 times inside a `Streams`.

Inside, every time is a number in [0, T], counted from an origin: that of the clock, or of each series. A clock converts
in whole ticks, so that stamps come back unchanged, to the last nanosecond; where float64 cannot promise that, ingest
refuses. A time is a function of the duration alone, not of the tick it was counted in, so converting back may try
coarse ticks first: a stamp on the second survives in float64 even where its nanoseconds, counted over years, would not.
Plain numbers have no ticks: they minus the origin are times. Clocks know nothing about series or channels.
"""

import abc
import dataclasses
import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Bool, Float64, Int64

from logcde.errors import StreamError

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
EPOCH_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
EPOCH_SECONDS = (631_152_000, 4_102_444_800)
"""From 1990 to 2100: numbers that are such moments in seconds, or finer, since 1970, most likely count from there."""


class Time(float):
    """A time: a number on the clock of streams, as opposed to a stamp, which still has to be converted.

    >>> Time(2.5)
    2.5
    """

    __slots__ = ()


def epoch_of(number: float) -> str | None:
    """The unit ("s", "ms", "us" or "ns") in which a number most likely counts from 1970, if it does.

    >>> epoch_of(1.7e9), epoch_of(1.7e12), epoch_of(86400.0)
    ('s', 'ms', None)
    """
    low, high = EPOCH_SECONDS
    return next((unit for unit, tick in NANOSECONDS.items() if low <= number * tick / 1e9 < high), None)


def moment_of(number: float) -> str:
    """The moment that a stamp is if it counts from 1970, with that reading; empty for numbers that do not seem to.

    >>> moment_of(1.7e9), moment_of(5.0)
    ('2023-11-14T22:13:20 in seconds since 1970', '')
    """
    unit = epoch_of(number)
    if unit is None:
        return ""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=round(number * NANOSECONDS[unit] / 1e3))
    return f"{moment.isoformat()} in {EPOCH_NAMES[unit]} since 1970"


@dataclasses.dataclass(frozen=True)
class Ticks:
    """One tick is `numerator / denominator` units, in lowest terms.

    >>> ticks = Ticks.of(timedelta(hours=1), "ms")
    >>> ticks.to_numbers(np.array([5_400_000]))
    array([1.5])
    >>> ticks.to_ticks(np.array([1.5]))
    array([5400000])
    """

    numerator: int
    denominator: int
    resolution: str

    @classmethod
    def of(cls, unit: timedelta, resolution: str) -> "Ticks":
        """Ticks of a resolution ("s", "ms", "us" or "ns") counted in a unit."""
        nanoseconds = (unit // timedelta(microseconds=1)) * 1_000
        if nanoseconds <= 0:
            raise StreamError(f"The unit of time is {unit!r}.", "It must be a positive duration.")
        common = math.gcd(nanoseconds, NANOSECONDS[resolution])
        return cls(NANOSECONDS[resolution] // common, nanoseconds // common, resolution)

    def to_numbers(self, ticks: Int64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Ticks as numbers. Equal durations give equal numbers, whatever the resolution."""
        if self.numerator > 1:
            limit = np.iinfo(np.int64).max // self.numerator
            if ticks.size and max(-int(ticks.min()), int(ticks.max())) > limit:
                raise StreamError(
                    "The unit of time is too small for stamps so far from the origin.", "Pass a larger unit."
                )
            ticks = ticks * self.numerator
        if self.denominator == 1:
            return ticks.astype(np.float64)
        # Whole units and the rest apart: each is exact, or correctly rounded, where ticks / denominator may be neither.
        whole, rest = np.divmod(ticks, self.denominator)
        return whole + rest / self.denominator

    def to_ticks(self, numbers: Float64[np.ndarray, "..."]) -> Int64[np.ndarray, "..."]:
        """Numbers as ticks: the coarsest tick that gives exactly this number, otherwise the nearest one."""
        nearest = self._nearest(numbers)
        if self.always_exact(numbers):
            return nearest
        flat, ticks = numbers.reshape(-1), nearest.reshape(-1)
        left = np.arange(flat.size)
        for nanoseconds in NANOSECONDS.values():
            factor = nanoseconds // NANOSECONDS[self.resolution]
            if factor <= 1 or not left.size:
                break
            coarse = ((ticks[left] + factor // 2) // factor) * factor
            found = self.to_numbers(coarse) == flat[left]
            ticks[left[found]] = coarse[found]
            left = left[~found]
        return nearest

    def _nearest(self, numbers: Float64[np.ndarray, "..."]) -> Int64[np.ndarray, "..."]:
        whole = np.floor(numbers)
        rest = np.rint((numbers - whole) * self.denominator).astype(np.int64)
        scaled = whole.astype(np.int64) * self.denominator + rest
        return scaled if self.numerator == 1 else (scaled + self.numerator // 2) // self.numerator

    def always_exact(self, numbers: Float64[np.ndarray, "..."]) -> bool:
        """Whether neighbouring ticks are so many floats apart that rounding cannot confuse them."""
        if not numbers.size:
            return True
        furthest = max(abs(float(numbers.min())), abs(float(numbers.max())))
        return math.ulp(furthest) * self.denominator < 0.25 * self.numerator


HOUR = timedelta(hours=1)


class Stamps(NamedTuple):
    """float64, `datetime64` or `timedelta64` stamps. Datetimes with a time zone are in UTC; `zone` names the zone."""

    array: np.ndarray
    zone: str | None = None

    @property
    def missing(self) -> Bool[np.ndarray, "..."]:
        """Where there is no stamp."""
        return np.asarray(np.isnan(self.array) if self.array.dtype.kind == "f" else np.isnat(self.array))


class AbstractClock(abc.ABC):
    """Converts between stamps and times. One of `NumericClock`, `TimedeltaClock`, `DatetimeClock`.

    `origins`, one stamp for each stamp, is needed only where each series has its own origin.
    """

    @property
    @abc.abstractmethod
    def per_series(self) -> bool:
        """Whether each series has its own origin."""

    @property
    @abc.abstractmethod
    def zero(self) -> float:
        """What to subtract from a plain number to make it a time; NaN where each series has its own origin."""

    @abc.abstractmethod
    def lengths(self, durations: Stamps) -> Float64[np.ndarray, "..."]:
        """Lengths of time, which have no origin, as times."""

    @abc.abstractmethod
    def times(self, stamps: Stamps, origins: np.ndarray | None = None) -> Float64[np.ndarray, "..."]:
        """Stamps as times, NaN where they are missing. Plain numbers are times already."""

    @abc.abstractmethod
    def stamps(self, times: Float64[np.ndarray, "..."], origins: np.ndarray | None = None) -> np.ndarray:
        """Times as stamps, the inverse of `times`."""

    @abc.abstractmethod
    def show(self, time: float, origin: np.generic | None = None) -> str:
        """One time as text, as the user would write its stamp."""


@dataclasses.dataclass(frozen=True)
class NumericClock(AbstractClock):
    """Stamps are plain numbers; times count from `origin` in the user's own unit.

    `origin` is 0 where stamps begin near it; None where each series has its own, kept in `Streams.origins`. Stamps from
    the origin up to twice as far come back unchanged, others up to rounding.

    >>> NumericClock().show(2.5)
    '2.5'
    >>> NumericClock(origin=1.7e9).times(Stamps(np.array([1_700_000_002.5])))
    array([2.5])
    """

    origin: float | None = 0.0

    @property
    def per_series(self) -> bool:
        """Whether `origin` is None."""
        return self.origin is None

    @property
    def zero(self) -> float:
        """The origin."""
        return math.nan if self.origin is None else self.origin

    def lengths(self, durations: Stamps) -> Float64[np.ndarray, "..."]:
        """The same numbers."""
        self._check(durations)
        return durations.array

    def times(self, stamps: Stamps, origins: np.ndarray | None = None) -> Float64[np.ndarray, "..."]:
        """Numbers minus the origin; the same numbers if it is 0."""
        self._check(stamps)
        return stamps.array if self.origin == 0.0 else stamps.array - self._origin(origins)

    def stamps(self, times: Float64[np.ndarray, "..."], origins: np.ndarray | None = None) -> np.ndarray:
        """Times plus the origin."""
        return times if self.origin == 0.0 else times + self._origin(origins)

    def show(self, time: float, origin: np.generic | None = None) -> str:
        """The shortest decimal that gives the stamp back."""
        return repr(float(self.stamps(np.array([time]), None if origin is None else np.array([origin]))[0]))

    def _check(self, stamps: Stamps) -> None:
        if stamps.array.dtype.kind != "f":
            raise StreamError(
                f"The stamps are {stamps.array.dtype}, but these streams count time in plain numbers.",
                "Convert the stamps to the same numbers.",
            )

    def _origin(self, origins: np.ndarray | None) -> np.ndarray:
        if self.origin is not None:
            return np.asarray(self.origin)
        if origins is None:
            raise _without_origin("number")
        return origins


@dataclasses.dataclass(frozen=True)
class TimedeltaClock(AbstractClock):
    """Stamps are durations since the start of their series; times count them in `unit`.

    `resolution` is the tick of the source: "s", "ms", "us" or "ns".

    >>> clock = TimedeltaClock(unit=timedelta(minutes=1), resolution="ms")
    >>> clock.times(Stamps(np.array([90_000], "timedelta64[ms]")))
    array([1.5])
    """

    unit: timedelta = HOUR
    resolution: str = "us"

    @property
    def per_series(self) -> bool:
        """No: durations have no origin."""
        return False

    @property
    def zero(self) -> float:
        """Nothing: plain numbers are times."""
        return 0.0

    def lengths(self, durations: Stamps) -> Float64[np.ndarray, "..."]:
        """Durations in `unit`."""
        return self.times(durations)

    def times(self, stamps: Stamps, origins: np.ndarray | None = None) -> Float64[np.ndarray, "..."]:
        """Durations in `unit`."""
        if stamps.array.dtype.kind == "M":
            raise StreamError(
                "The stamps are datetimes, but these streams count durations since the start of each series.",
                "Subtract the start from the stamps.",
            )
        return stamps.array if stamps.array.dtype.kind == "f" else _counted(stamps.array, self.unit)

    def stamps(self, times: Float64[np.ndarray, "..."], origins: np.ndarray | None = None) -> np.ndarray:
        """Durations as `timedelta64`."""
        return self.ticks.to_ticks(times).view(f"timedelta64[{self.resolution}]")

    def show(self, time: float, origin: np.generic | None = None) -> str:
        """For example `1 day, 2:30:00`."""
        duration = self.stamps(np.array([time]))[0]
        fine = self.resolution == "ns" and duration.astype(np.int64) % 1_000
        return str(duration) if fine else str(duration.astype("timedelta64[us]").item())

    @property
    def ticks(self) -> Ticks:
        """The conversion between ticks and times of this clock."""
        return Ticks.of(self.unit, self.resolution)


@dataclasses.dataclass(frozen=True)
class DatetimeClock(AbstractClock):
    """Stamps are datetimes; times count them in `unit` since `origin`.

    `origin` is a `datetime64` of the clock's resolution, in UTC where there is a zone; None where each series has its
    own, kept in `Streams.origins`. `zone` is the source's time zone, None for stamps without one.

    >>> clock = DatetimeClock(origin=np.datetime64("2024-01-01", "us"))
    >>> clock.times(Stamps(np.array(["2024-01-01T06:30"], "datetime64[us]")))
    array([6.5])
    >>> clock.show(6.5)
    '2024-01-01T06:30:00'
    """

    unit: timedelta = HOUR
    resolution: str = "us"
    zone: str | None = None
    origin: np.datetime64 | None = None

    @property
    def per_series(self) -> bool:
        """Whether `origin` is None."""
        return self.origin is None

    @property
    def zero(self) -> float:
        """Nothing: plain numbers are times."""
        return 0.0

    def lengths(self, durations: Stamps) -> Float64[np.ndarray, "..."]:
        """Durations in `unit`."""
        if durations.array.dtype.kind == "M":
            raise StreamError("A datetime is no length of time.", "Give a duration or a number.")
        return self.times(durations)

    def times(self, stamps: Stamps, origins: np.ndarray | None = None) -> Float64[np.ndarray, "..."]:
        """Time since the origin in `unit`. Durations count as time since the origin."""
        kind = stamps.array.dtype.kind
        if kind == "M":
            if (stamps.zone is None) != (self.zone is None):
                has, lacks = ("have", "lack") if self.zone is None else ("lack", "have")
                raise StreamError(
                    f"The stamps {has} a time zone, but those of the streams {lacks} one.",
                    "Attach a zone, or remove it, so that both agree.",
                )
            return _counted(stamps.array - self._origin(origins), self.unit)
        return stamps.array if kind == "f" else _counted(stamps.array, self.unit)

    def stamps(self, times: Float64[np.ndarray, "..."], origins: np.ndarray | None = None) -> np.ndarray:
        """Datetimes as `datetime64`, in UTC if the clock has a zone."""
        return self._origin(origins) + self.ticks.to_ticks(times).view(f"timedelta64[{self.resolution}]")

    def show(self, time: float, origin: np.generic | None = None) -> str:
        """ISO 8601 in the clock's own zone."""
        origins = None if origin is None else np.array([origin])
        return self.show_stamp(self.stamps(np.array([time]), origins)[0])

    def show_stamp(self, stamp: np.datetime64) -> str:
        """ISO 8601 in the clock's own zone."""
        if self.resolution == "ns" and stamp.astype(np.int64) % 1_000:
            return str(stamp) if self.zone is None else f"{stamp}Z"
        moment: datetime = stamp.astype("datetime64[us]").item()
        if self.zone is not None:
            moment = moment.replace(tzinfo=UTC).astimezone(zone_named(self.zone))
        return moment.isoformat()

    @property
    def ticks(self) -> Ticks:
        """The conversion between ticks and times of this clock."""
        return Ticks.of(self.unit, self.resolution)

    def _origin(self, origins: np.ndarray | None) -> np.ndarray:
        if self.origin is not None:
            return np.asarray(self.origin)
        if origins is None:
            raise _without_origin("datetime")
        return origins


def _without_origin(stamp: str) -> StreamError:
    return StreamError(
        f"Each series has its own origin here, so a {stamp} means nothing without its series.",
        "Give datetimes for each series, or durations since the origin."
        if stamp == "datetime"
        else "Give the stamps of each series.",
    )


Clock: TypeAlias = NumericClock | TimedeltaClock | DatetimeClock
"""Any clock."""


def unit_name(clock: Clock) -> str:
    """The unit that a clock counts in; empty for plain numbers.

    >>> unit_name(TimedeltaClock(timedelta(minutes=1))), unit_name(TimedeltaClock(timedelta(minutes=15)))
    ('minutes', 'units of 0:15:00')
    """
    if isinstance(clock, NumericClock):
        return ""
    names = {timedelta(**{name: 1}): name for name in ("weeks", "days", "hours", "minutes", "seconds", "milliseconds")}
    return names.get(clock.unit, f"units of {clock.unit}")


def _counted(durations: np.ndarray, unit: timedelta) -> Float64[np.ndarray, "..."]:
    """Durations in a unit, NaN where they are missing."""
    missing = np.isnat(durations)
    ticks = np.where(missing, 0, durations.view(np.int64)) if missing.any() else durations.view(np.int64)
    numbers = Ticks.of(unit, np.datetime_data(durations.dtype)[0]).to_numbers(ticks)
    numbers[missing] = np.nan
    return numbers


def zone_named(name: str) -> tzinfo:
    """A time zone by its name, or by a fixed offset such as "+02:00".

    >>> zone_named("+02:00")
    datetime.timezone(datetime.timedelta(seconds=7200))
    """
    if name[:1] in ("+", "-"):
        hours, minutes = name[1:].split(":")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(offset if name[0] == "+" else -offset)
    return UTC if name == "UTC" else ZoneInfo(name)

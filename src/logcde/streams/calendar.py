"""Where hours, days, weeks, months, quarters and years begin, on the wall clocks of the data's time zone."""

import enum
from datetime import UTC

import numpy as np
from jaxtyping import Float64, Int64

from logcde.errors import PartitionError, Remedy
from logcde.streams.clock import DatetimeClock, Stamps, zone_named
from logcde.streams.columns import AbstractStreams
from logcde.streams.ragged import offsets_of, owners

FIRST_MONDAY = 4  # days after 1970-01-01, a Thursday


class Calendar(enum.Enum):
    """A unit of the calendar: the step of its beginnings, and what it is counted in. Weeks begin on Monday."""

    HOUR = (1, "h")
    DAY = (1, "D")
    WEEK = (7, "D")
    MONTH = (1, "M")
    QUARTER = (3, "M")
    YEAR = (1, "Y")


def calendar_points(
    unit: Calendar, streams: AbstractStreams
) -> tuple[Int64[np.ndarray, "point"], Float64[np.ndarray, "point"]]:
    """For each beginning of a unit within a series' horizon: the series and the time, sorted by both."""
    clock = streams.schema.clock
    if not isinstance(clock, DatetimeClock):
        raise PartitionError(
            "These streams count time in plain numbers or durations, which have no calendar.",
            Remedy.CALENDAR,
        )
    if not len(streams):
        return np.empty(0, np.int64), np.empty(0)
    starts = clock.stamps(np.zeros(len(streams)), streams.origins)
    ends = clock.stamps(streams.horizon, streams.origins)
    moments = beginnings(unit, starts.min(), ends.max(), clock.zone).astype(starts.dtype)
    first, last = np.searchsorted(moments, starts, side="left"), np.searchsorted(moments, ends, side="right")
    offsets = offsets_of(last - first)
    series = owners(offsets)
    position = np.arange(len(series)) + (first - offsets[:-1])[series]
    origins = None if streams.origins is None else streams.origins[series]
    return series, clock.times(Stamps(moments[position], clock.zone), origins)


def beginnings(unit: Calendar, start: np.datetime64, end: np.datetime64, zone: str | None) -> np.ndarray:
    """Every beginning of a unit from `start` to `end`, and possibly some beyond.

    >>> start, end = np.datetime64("2024-03-31T03", "s"), np.datetime64("2024-03-31T23", "s")
    >>> beginnings(Calendar.DAY, start, end, "Europe/Paris")
    array(['2024-03-29T23:00:00', '2024-03-30T23:00:00',
           '2024-03-31T22:00:00'], dtype='datetime64[s]')
    """
    step, counted = unit.value
    day = np.timedelta64(1, "D")
    # A day on either side covers every offset of a zone.
    low, high = (start - day).astype("datetime64[h]"), (end + day).astype("datetime64[h]")
    shift = FIRST_MONDAY if unit is Calendar.WEEK else 0
    first = (low.astype(f"datetime64[{counted}]").astype(np.int64) - shift) // step
    last = (high.astype(f"datetime64[{counted}]").astype(np.int64) - shift) // step
    walls = (np.arange(first, last + 1) * step + shift).astype(f"datetime64[{counted}]").astype("datetime64[s]")
    if zone is None:
        return walls
    # An hour that the clocks show twice begins twice. One that they skip begins where the next one does.
    place, folds = zone_named(zone), (0, 1) if unit is Calendar.HOUR else (0,)
    moments = {
        wall.replace(tzinfo=place, fold=fold).astimezone(UTC).replace(tzinfo=None)
        for wall in walls.tolist()
        for fold in folds
    }
    return np.array(sorted(moments), "datetime64[s]")

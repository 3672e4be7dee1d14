"""How errors name the place: series, channel and stamp in the user's own terms.

What can be wrong with rows and events, each fault with its place and its remedy.
"""

import dataclasses
import math
from typing import SupportsFloat, SupportsIndex

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from logcde.errors import Remedy, StreamError
from logcde.streams.ragged import offsets_of
from logcde.streams.rows import Events, Rows
from logcde.streams.schema import Schema


@dataclasses.dataclass(frozen=True)
class Places:
    """Names for codes: the series' ids, the schema, and each series' origin where they differ.

    >>> places = Places(np.array(["p1", "p2"], object), Schema(("pulse",)))
    >>> places.at(1, 2.5, 0)
    "Series 'p2', channel 'pulse', at 2.5"
    """

    ids: Shaped[np.ndarray, "series"]
    schema: Schema
    origins: Shaped[np.ndarray, "series"] | None = None

    def series(self, code: SupportsIndex) -> str:
        """For example `Series 'p2'`."""
        return f"Series {name(self.ids[code])}"

    def channel(self, code: SupportsIndex) -> str:
        """For example `channel 'pulse'`."""
        return f"channel {self.schema.channels[code]!r}"

    def stamp(self, code: SupportsIndex, time: SupportsFloat) -> str:
        """A time of one series as the user would write it."""
        number = float(time)
        if not math.isfinite(number):
            return repr(number)
        return self.schema.clock.show(number, None if self.origins is None else self.origins[code])

    def at(self, code: SupportsIndex, time: SupportsFloat, channel: SupportsIndex | None = None) -> str:
        """For example `Series 'p2', channel 'pulse', at 2.5`."""
        what = "" if channel is None else f", {self.channel(channel)}"
        return f"{self.series(code)}{what}, at {self.stamp(code, time)}"


def name(identifier: object) -> str:
    """A series' id as a person would write it.

    >>> name(np.int64(3)), name("p1")
    ('3', "'p1'")
    """
    return repr(identifier.item() if isinstance(identifier, np.generic) else identifier)


def more(others: int) -> str:
    """How often the same fault occurs elsewhere.

    >>> more(0), more(2)
    ('', ' (and 2 more like it)')
    """
    return f" (and {others:,} more like it)" if others else ""


def check_numbers(rows: Rows, places: Places) -> None:
    """Refuse infinite values and terms, and stamps that are missing or infinite."""
    unstamped = ~np.isfinite(rows.time)
    if unstamped.any():
        bad = np.flatnonzero(unstamped)
        row = bad[0]
        found = "no stamp" if np.isnan(rows.time[row]) else "an infinite stamp"
        raise StreamError(
            f"{places.series(rows.series[row])}, {places.channel(rows.channel[row])}: the observation "
            f"{float(rows.value[row])!r} has {found}{more(len(bad) - 1)}. "
            "Give each observation its time, or leave it out."
        )
    infinite = np.isinf(rows.value)
    if infinite.any():
        bad = np.flatnonzero(infinite)
        row = bad[0]
        raise StreamError(
            f"{places.at(rows.series[row], rows.time[row], rows.channel[row])} has the infinite value "
            f"{float(rows.value[row])!r}{more(len(bad) - 1)}. Values must be finite; NaN means not observed."
        )
    for column, term in enumerate(places.schema.terms):
        bad = np.flatnonzero(np.isinf(rows.terms[:, column]))
        if bad.size:
            raise StreamError(
                f"{places.at(rows.series[bad[0]], rows.time[bad[0]])} has an infinite term {term.name!r}"
                f"{more(len(bad) - 1)}. Terms must be finite; NaN means that there is none."
            )


def disorder(rows: Rows, back: Int64[np.ndarray, "_"], places: Places) -> StreamError:
    """Rows, grouped by series, after which time goes back."""
    row = back[0]
    before, after = (places.stamp(rows.series[i], rows.time[i]) for i in (row, row + 1))
    return StreamError(
        f"{places.series(rows.series[row])}, {places.channel(rows.channel[row + 1])}: the stamp {after} comes after "
        f"the later stamp {before}{more(len(back) - 1)}.",
        Remedy.SORT,
    )


def check_terms(rows: Rows, starts: Int64[np.ndarray, "_"], observed: Bool[np.ndarray, "_"], places: Places) -> None:
    """Refuse terms at stamps where no channel is observed."""
    bare = starts[np.add.reduceat(observed.astype(np.int64), starts) == 0]
    if bare.size:
        raise StreamError(
            f"{places.at(rows.series[bare[0]], rows.time[bare[0]])} has a higher-order term but no observation"
            f"{more(len(bare) - 1)}. Terms belong to events: give the value of a channel at the same stamp."
        )


def conflict(rows: Rows, first: int, second: int, others: int, places: Places) -> StreamError:
    """Two rows that disagree about one value."""
    at = places.at(rows.series[first], rows.time[first], rows.channel[first])
    return StreamError(
        f"{at} has two different values, {float(rows.value[first])!r} and {float(rows.value[second])!r}{more(others)}.",
        Remedy.DUPLICATES,
    )


def check_horizon(
    horizon: Float64[np.ndarray, "series"] | None, time: Float64[np.ndarray, "event"], places: Places
) -> Float64[np.ndarray, "series"]:
    """The horizon of each series, by default the latest time of all."""
    if horizon is None:
        if not len(time):
            raise StreamError("There is no observation at all, hence no latest stamp.", Remedy.HORIZON)
        latest = float(time.max())
        if latest == 0:
            raise StreamError(
                f"{places.series(0)} and all others have their latest stamp at the start, "
                f"{places.stamp(0, 0.0)}, which leaves no interval to look at.",
                Remedy.HORIZON,
            )
        # Below zero, whatever the horizon, the stamps themselves are at fault.
        return np.full(len(places.ids), abs(latest))
    bad = np.flatnonzero(~(np.isfinite(horizon) & (horizon > 0)))
    if bad.size:
        raise StreamError(
            f"{places.series(bad[0])} has the horizon {float(horizon[bad[0]])!r}{more(len(bad) - 1)}. "
            "A horizon is a positive, finite length of time after the start of the series."
        )
    return horizon


def check_range(events: Events, horizon: Float64[np.ndarray, "series"], places: Places) -> None:
    """Refuse events before the start or after the horizon."""
    time = events.time
    if not len(time) or (time.min() >= 0 and time.max() <= horizon.min()):
        return
    outside = (time < 0) | (time > np.repeat(horizon, events.counts))
    if not outside.any():
        return
    bad = np.flatnonzero(outside)
    event = bad[0]
    series = int(np.searchsorted(offsets_of(events.counts), event, side="right")) - 1
    channel = events.channel[events.obs_offsets[event]]
    raise StreamError(
        f"{places.at(series, time[event], channel)} lies outside [{places.stamp(series, 0.0)}, "
        f"{places.stamp(series, horizon[series])}]{more(len(bad) - 1)}.",
        Remedy.EARLIER_ORIGIN if time[event] < 0 else Remedy.LATER_HORIZON,
    )

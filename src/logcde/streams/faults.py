"""Faults of rows and events: each check names the series, channel and stamp, and what to do.

`Places` turns codes and times back into the user's own terms.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from logcde.errors import Remedy, StreamError, Where
from logcde.streams.ragged import offsets_of
from logcde.streams.rows import Events, LongRows
from logcde.streams.schema import Schema, listed


@dataclasses.dataclass(frozen=True)
class Places:
    """What codes and times stand for: the ids of the series, the schema, and each series' origin where they differ.

    >>> places = Places(np.array(["p1", "p2"], object), Schema(("pulse",)))
    >>> places.at(1, 2.5, 0)
    "Series 'p2', channel 'pulse', at 2.5"
    >>> places.where(1, channel=0)
    Where(series='p2', channel='pulse', stamp=None, detail='')
    """

    ids: Shaped[np.ndarray, "series"]
    schema: Schema
    origins: Shaped[np.ndarray, "series"] | None = None

    def series(self, code: SupportsIndex) -> str:
        """For example `Series 'p2'`."""
        return str(self.where(code))

    def stamp(self, code: SupportsIndex, time: SupportsFloat) -> str:
        """A time of one series as the user would write it."""
        number = float(time)
        if not math.isfinite(number):
            return repr(number)
        return self.schema.clock.show(number, None if self.origins is None else self.origins[code])

    def at(self, code: SupportsIndex, time: SupportsFloat, channel: SupportsIndex | None = None) -> str:
        """For example `Series 'p2', channel 'pulse', at 2.5`."""
        return str(self.where(code, time, channel))

    def where(
        self,
        code: SupportsIndex,
        time: SupportsFloat | None = None,
        channel: SupportsIndex | None = None,
        detail: str = "",
    ) -> Where:
        """The place as data: series, and stamp and channel where they are given."""
        return Where(
            series=plain_id(self.ids[code]),
            channel=None if channel is None else self.schema.channels[channel],
            stamp=None if time is None else self.stamp(code, time),
            detail=detail,
        )


def plain_id(identifier: object) -> object:
    """A series' id as a Python object."""
    return identifier.item() if isinstance(identifier, np.generic) else identifier


def name(identifier: object) -> str:
    """A series' id for a sentence.

    >>> name(np.int64(3)), name("p1")
    ('3', "'p1'")
    """
    return repr(plain_id(identifier))


def not_finite(series: Sequence[object]) -> str:
    """The sentence about series whose predictions are not finite.

    >>> not_finite(["p1"])
    "The prediction for series 'p1' is not finite: probably it is much longer, denser or wilder than those of training."
    """
    shown = listed([plain_id(one) for one in series])
    if len(series) == 1:
        return (
            f"The prediction for series {shown} is not finite: probably it is much longer, denser or wilder than those "
            "of training."
        )
    return (
        f"The predictions for {len(series):,} series are not finite, {shown}: probably these are much longer, denser "
        "or wilder than those of training."
    )


def more(others: int) -> str:
    """How often the same fault occurs elsewhere.

    >>> more(0), more(2)
    ('', ' (and 2 more like it)')
    """
    return f" (and {others:,} more like it)" if others else ""


def check_numbers(rows: LongRows, places: Places) -> None:
    """Refuse infinite values and terms, and stamps that are missing or infinite."""
    unstamped = ~np.isfinite(rows.time)
    if unstamped.any():
        bad = np.flatnonzero(unstamped)
        row = bad[0]
        where = places.where(rows.series[row], channel=rows.channel[row])
        found = "no stamp" if np.isnan(rows.time[row]) else "an infinite stamp"
        raise StreamError(
            f"{where}: the observation {float(rows.value[row])!r} has {found}{more(len(bad) - 1)}.",
            "Give each observation its time, or leave it out.",
            where=where,
        )
    infinite = np.isinf(rows.value)
    if infinite.any():
        bad = np.flatnonzero(infinite)
        row = bad[0]
        where = places.where(rows.series[row], rows.time[row], rows.channel[row])
        raise StreamError(
            f"{where} has the infinite value {float(rows.value[row])!r}{more(len(bad) - 1)}.",
            "Values must be finite; NaN means not observed.",
            where=where,
        )
    for column, term in enumerate(places.schema.terms):
        bad = np.flatnonzero(np.isinf(rows.terms[:, column]))
        if bad.size:
            where = places.where(rows.series[bad[0]], rows.time[bad[0]])
            raise StreamError(
                f"{where} has an infinite term {term.name!r}{more(len(bad) - 1)}.",
                "Terms must be finite; NaN means that there is none.",
                where=where,
            )


def disorder(rows: LongRows, back: Int64[np.ndarray, "_"], places: Places) -> StreamError:
    """The error for rows, grouped by series, after which time goes back."""
    row = back[0]
    before, after = (places.stamp(rows.series[i], rows.time[i]) for i in (row, row + 1))
    where = places.where(rows.series[row], channel=rows.channel[row + 1])
    return StreamError(
        f"{where}: the stamp {after} comes after the later stamp {before}{more(len(back) - 1)}.",
        Remedy.SORT,
        where=dataclasses.replace(where, stamp=after),
    )


def check_terms(
    rows: LongRows, starts: Int64[np.ndarray, "_"], observed: Bool[np.ndarray, "_"], places: Places
) -> None:
    """Refuse terms at stamps where no channel is observed."""
    bare = starts[np.add.reduceat(observed.astype(np.int64), starts) == 0]
    if bare.size:
        where = places.where(rows.series[bare[0]], rows.time[bare[0]])
        raise StreamError(
            f"{where} has a higher-order term but no observation{more(len(bare) - 1)}.",
            "Terms belong to events: give the value of a channel at the same stamp.",
            where=where,
        )


def conflict(rows: LongRows, first: int, second: int, others: int, places: Places) -> StreamError:
    """The error for two rows with different values of one channel at one stamp."""
    where = places.where(rows.series[first], rows.time[first], rows.channel[first])
    values = f"{float(rows.value[first])!r} and {float(rows.value[second])!r}"
    return StreamError(f"{where} has two different values, {values}{more(others)}.", Remedy.DUPLICATES, where=where)


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
                f"{places.stamp(0, 0.0)}, so the observation window is empty.",
                Remedy.HORIZON,
                where=places.where(0, 0.0),
            )
        # Below zero, whatever the horizon, the stamps themselves are at fault.
        return np.full(len(places.ids), abs(latest))
    bad = np.flatnonzero(~(np.isfinite(horizon) & (horizon > 0)))
    if bad.size:
        raise StreamError(
            f"{places.series(bad[0])} has the horizon {float(horizon[bad[0]])!r}{more(len(bad) - 1)}.",
            "A horizon is a positive, finite length of time after the start of the series.",
            where=places.where(bad[0]),
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
    where = places.where(series, time[event], events.channel[events.obs_offsets[event]])
    window = f"[{places.stamp(series, 0.0)}, {places.stamp(series, horizon[series])}]"
    raise StreamError(
        f"{where} lies outside {window}{more(len(bad) - 1)}.",
        Remedy.EARLIER_ORIGIN if time[event] < 0 else Remedy.LATER_HORIZON,
        where=where,
    )

"""Paths given by the user become knots: one path for all series or one for each, from 0 to the horizon.

The part of a path after a series' horizon is not looked at; since paths are linear between knots, cutting one there is
exact. Anything missing before that is refused, for nothing is extrapolated.
"""

from collections.abc import Sequence

import numpy as np

from logcde.errors import StreamError
from logcde.streams.columns import AbstractStreams
from logcde.streams.faults import Places
from logcde.streams.knots import Knots
from logcde.streams.labels import as_numbers
from logcde.streams.ragged import offsets_of
from logcde.streams.schema import listed
from logcde.streams.stamps import read_stamps

Lists = Sequence | np.ndarray


def read_knots(streams: AbstractStreams, names: Sequence[str], times: Lists, values: Lists) -> Knots:
    """Knots of every series from stamps (knots,) and values (knots, channels), or lists of these."""
    places = Places(streams.ids, streams.schema, streams.origins)
    shared = not _is_list(times)
    if not shared and (len(times) != len(streams) or len(values) != len(streams)):
        raise StreamError(
            f"There are {len(streams)} series, but {len(times)} lists of knots and {len(values)} of their values. "
            "Give one path for each series, or one for all."
        )
    cut_times: list[np.ndarray] = []
    cut_values: list[np.ndarray] = []
    known: dict[float, tuple[np.ndarray, np.ndarray]] = {}
    for series, horizon in enumerate(streams.horizon.tolist()):
        # One path for all, cut at one horizon, is the same for all series that count from one origin.
        if not (shared and streams.origins is None and horizon in known):
            path = (times, values) if shared else (times[series], values[series])
            known[horizon] = _path(streams, series, names, *path, places)
        knots, heights = known[horizon]
        cut_times.append(knots)
        cut_values.append(heights)
    offsets = offsets_of(np.array([len(knots) for knots in cut_times], np.int64))
    width = len(names)
    return Knots(
        offsets,
        np.concatenate([np.empty(0), *cut_times]),
        np.concatenate([np.empty((0, width)), *cut_values]),
    )


def _is_list(times: Lists) -> bool:
    return len(times) > 0 and isinstance(times[0], Sequence | np.ndarray) and np.ndim(times[0]) > 0


def _path(
    streams: AbstractStreams, series: int, names: Sequence[str], times: Lists, values: Lists, places: Places
) -> tuple[np.ndarray, np.ndarray]:
    """One series' path, checked and cut at its horizon."""
    who = f"{places.series(series)}, continuous {listed(tuple(names))}"
    origins = None if streams.origins is None else streams.origins[series : series + 1]
    knots = streams.schema.clock.times(read_stamps(times), origins)
    heights = as_numbers(values, lambda at: f"{who}, knot {at[0]}")
    heights = heights[:, None] if heights.ndim == 1 and len(names) == 1 else heights
    if knots.ndim != 1 or heights.shape != (*knots.shape, len(names)):
        raise StreamError(
            f"{who}: {knots.size} knots with values of shape {heights.shape}. "
            f"Give one row for each knot and one column for each of the {len(names)} channel(s)."
        )
    for what, array in (("knot", knots), ("value", heights)):
        if not np.isfinite(array).all():
            raise StreamError(f"{who}: there is a {what} that is missing or infinite. A path is finite at every knot.")
    backwards = np.flatnonzero(np.diff(knots) <= 0)
    if backwards.size:
        first, second = (places.stamp(series, knots[backwards[0] + i]) for i in (0, 1))
        raise StreamError(
            f"{who}: the knot {second} follows {first}. Knots must increase: sort them, and give each once."
        )
    horizon = float(streams.horizon[series])
    if not len(knots) or knots[0] > 0 or knots[0] < 0 or knots[-1] < horizon:
        found = (
            f"go from {places.stamp(series, knots[0])} to {places.stamp(series, knots[-1])}"
            if len(knots)
            else "are none"
        )
        raise StreamError(
            f"{who}: the knots {found}, but the path must be known from the start, {places.stamp(series, 0.0)}, to the "
            f"horizon, {places.stamp(series, horizon)}. Add the missing ends."
        )
    inside = knots < horizon
    ends = np.array([np.interp(horizon, knots, column) for column in heights.T])
    return np.append(knots[inside], horizon), np.vstack([heights[inside], ends])

"""Continuous channels other than time: piecewise-linear paths, given by their knots from 0 to the horizon.

The path C of "From observations to log-signatures" (`sec:procedure`), without its time coordinate, which is never
stored. Paths are linear between knots, so evaluating, refining or cutting them anywhere is exact. A path must be known
up to the horizon of its series, for nothing is extrapolated; its part after the horizon is not used.
"""

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64, Int64

from logcde.errors import StreamError
from logcde.streams.faults import Places
from logcde.streams.labels import as_numbers
from logcde.streams.ragged import frozen, join_offsets, offsets_of, take
from logcde.streams.schema import listed
from logcde.streams.stamps import read_stamps

Lists: TypeAlias = Sequence | np.ndarray
"""One path, or one entry for each series."""


@dataclasses.dataclass(frozen=True, eq=False)
class Knots:
    """Knots of every series, end to end. `values` has one column for each continuous channel."""

    offsets: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "knot"]
    values: Float64[np.ndarray, "knot continuous"]

    def __post_init__(self) -> None:
        for name in ("offsets", "times", "values"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def rows(self, index: Int64[np.ndarray, "_"]) -> "Knots":
        """The knots of the chosen series."""
        offsets, positions = take(self.offsets, index)
        return Knots(offsets, self.times[positions], self.values[positions])

    def of(self, series: int) -> tuple[np.ndarray, np.ndarray]:
        """Times and values of one series."""
        part = slice(self.offsets[series], self.offsets[series + 1])
        return self.times[part], self.values[part]

    def merge(self, other: "Knots") -> "Knots":
        """The channels of both, these first, on the union of their knots in each series."""
        times: list[np.ndarray] = []
        values: list[np.ndarray] = []
        for series in range(len(self.offsets) - 1):
            (t, v), (s, w) = self.of(series), other.of(series)
            union = np.union1d(t, s)
            columns = [np.interp(union, t, column) for column in v.T] + [np.interp(union, s, column) for column in w.T]
            times.append(union)
            values.append(np.stack(columns, axis=1))
        lengths = np.array([len(t) for t in times], np.int64)
        return Knots(offsets_of(lengths), np.concatenate(times), np.concatenate(values))

    @staticmethod
    def concatenate(parts: Sequence["Knots"]) -> "Knots":
        """The series of all parts, one after another."""
        return Knots(
            join_offsets([knots.offsets for knots in parts]),
            np.concatenate([knots.times for knots in parts]),
            np.concatenate([knots.values for knots in parts]),
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Knots)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.times, other.times)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]


def read_knots(
    places: Places, horizon: Float64[np.ndarray, "series"], names: Sequence[str], times: Lists, values: Lists
) -> Knots:
    """Knots of every series, cut at its horizon, from the user's stamps and values.

    Args:
        places: Ids, schema and origins of the series.
        horizon: The horizon of each series, as time.
        names: The continuous channels.
        times: Stamps (knots,) of one path for all series, or a list with those of each series.
        values: Values (knots, channels), or a list of these.
    """
    shared, count = not _is_list(times), len(places.ids)
    if not shared and (len(times) != count or len(values) != count):
        raise StreamError(
            f"There are {count} series, but {len(times)} lists of knots and {len(values)} of their values.",
            "Give one path for each series, or one for all.",
        )
    cut_times: list[np.ndarray] = []
    cut_values: list[np.ndarray] = []
    known: dict[float, tuple[np.ndarray, np.ndarray]] = {}
    for series, end in enumerate(horizon.tolist()):
        # A shared path, cut at one horizon, is the same for all series that count from one origin.
        if not (shared and places.origins is None and end in known):
            path = (times, values) if shared else (times[series], values[series])
            known[end] = _path(places, series, end, names, *path)
        knots, heights = known[end]
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
    places: Places, series: int, horizon: float, names: Sequence[str], times: Lists, values: Lists
) -> tuple[np.ndarray, np.ndarray]:
    """One series' path, checked and cut at its horizon."""
    where = places.where(series, detail=f"continuous {listed(tuple(names))}")
    origins = None if places.origins is None else places.origins[series : series + 1]
    knots = places.schema.clock.times(read_stamps(times), origins)
    heights = as_numbers(values, lambda at: dataclasses.replace(where, detail=f"{where.detail}, knot {at[0]}"))
    heights = heights[:, None] if heights.ndim == 1 and len(names) == 1 else heights
    if knots.ndim != 1 or heights.shape != (*knots.shape, len(names)):
        raise StreamError(
            f"{where}: {knots.size} knots with values of shape {heights.shape}.",
            f"Give one row for each knot and one column for each of the {len(names)} channel(s).",
            where=where,
        )
    for what, array in (("knot", knots), ("value", heights)):
        if not np.isfinite(array).all():
            raise StreamError(
                f"{where}: there is a {what} that is missing or infinite.",
                "A path is finite at every knot.",
                where=where,
            )
    backwards = np.flatnonzero(np.diff(knots) <= 0)
    if backwards.size:
        first, second = (places.stamp(series, knots[backwards[0] + i]) for i in (0, 1))
        raise StreamError(
            f"{where}: the knot {second} follows {first}.",
            "Knots must increase: sort them, and give each once.",
            where=dataclasses.replace(where, stamp=second),
        )
    if not len(knots) or knots[0] > 0 or knots[0] < 0 or knots[-1] < horizon:
        found = (
            f"go from {places.stamp(series, knots[0])} to {places.stamp(series, knots[-1])}"
            if len(knots)
            else "are none"
        )
        raise StreamError(
            f"{where}: the knots {found}, but the path must be known from the start, {places.stamp(series, 0.0)}, to "
            f"the horizon, {places.stamp(series, horizon)}.",
            "Add the missing ends.",
            where=where,
        )
    inside = knots < horizon
    ends = np.array([np.interp(horizon, knots, column) for column in heights.T])
    return np.append(knots[inside], horizon), np.vstack([heights[inside], ends])

"""Continuous channels beside time: piecewise-linear paths, each given by its knots from 0 to the horizon.

The path C of "From observations to log-signatures" (`sec:procedure`), without its time coordinate, which is never
stored. Being piecewise linear, a path may be evaluated and refined anywhere without changing it.
"""

import dataclasses

import numpy as np
from jaxtyping import Float64, Int64

from logcde.streams.ragged import offsets_of, take


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

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Knots)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.times, other.times)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]


def merge(first: Knots, second: Knots) -> Knots:
    """Both sets of channels on the union of their knots, the first set's columns first."""
    times: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for series in range(len(first.offsets) - 1):
        (t, v), (s, w) = first.of(series), second.of(series)
        union = np.union1d(t, s)
        columns = [np.interp(union, t, column) for column in v.T] + [np.interp(union, s, column) for column in w.T]
        times.append(union)
        values.append(np.stack(columns, axis=1))
    return Knots(offsets_of(np.array([len(t) for t in times], np.int64)), np.concatenate(times), np.concatenate(values))


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view in C order; the caller's own array stays as writeable as it was."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view

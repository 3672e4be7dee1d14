"""What to expect of a channel from its last value alone."""

import dataclasses

import numpy as np
from jaxtyping import Float32, Float64

from logcde.features.recent import AGE, LAST


@dataclasses.dataclass(frozen=True, eq=False)
class ShrunkLast:
    """The last value of a channel, shrunk towards a centre by its age; the centre where there is no last value.

    Args:
        centre: What is expected of a target of which nothing is known.
        age: Ages at which the share of the last value is known, increasing.
        share: What is left of the difference between last value and centre, linear between these ages.

    >>> ShrunkLast(10.0, np.array([0.0, 2.0]), np.array([1.0, 0.0]))(np.array([14.0, np.nan]), np.array([1.0, np.nan]))
    array([12., 10.])
    """

    centre: float
    age: Float64[np.ndarray, "knot"]
    share: Float64[np.ndarray, "knot"]

    def __call__(
        self, last: Float64[np.ndarray, "question"], age: Float64[np.ndarray, "question"]
    ) -> Float64[np.ndarray, "question"]:
        """What to expect, from the last values and their ages at the time asked for."""
        known = np.isfinite(last)
        share = np.interp(np.where(known, age, 0.0), self.age, self.share)
        return self.centre + np.where(known, share * (np.where(known, last, 0.0) - self.centre), 0.0)


def last_and_age(
    rows: Float32[np.ndarray, "question feature"], channel: int | None
) -> tuple[Float64[np.ndarray, "question"], Float64[np.ndarray, "question"]]:
    """The last value of the channel in question and its age at the time asked for, NaN where there is none."""
    if channel is None:
        return np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    return rows[:, LAST].astype(np.float64), rows[:, AGE].astype(np.float64)

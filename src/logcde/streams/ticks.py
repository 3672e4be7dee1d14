"""Exact conversion between whole ticks and float64 numbers of a unit.

A stamp is an integer count of ticks. Its number is a function of the duration alone, not of the tick it was counted
in, so going back may try coarse ticks first: a stamp on the second survives in float64 even where its nanoseconds,
counted over years, would not.
"""

import dataclasses
import math
from datetime import timedelta

import numpy as np
from jaxtyping import Float64, Int64

from logcde.errors import StreamError

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


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
            raise StreamError(f"The unit of time must be a positive duration, but it is {unit!r}.")
        common = math.gcd(nanoseconds, NANOSECONDS[resolution])
        return cls(NANOSECONDS[resolution] // common, nanoseconds // common, resolution)

    def to_numbers(self, ticks: Int64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
        """Ticks as numbers. Equal durations give equal numbers, whatever the resolution."""
        if self.numerator > 1:
            limit = np.iinfo(np.int64).max // self.numerator
            if ticks.size and max(-int(ticks.min()), int(ticks.max())) > limit:
                raise StreamError(
                    "The unit of time is too small for stamps so far from the origin. Pass a larger unit."
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

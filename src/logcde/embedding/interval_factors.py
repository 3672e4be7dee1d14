"""`IntervalFactors`: what each interval is composed of, factor by factor, for models that need no coordinates.

A linear CDE of depth one or two needs the matrix of an interval, which is a short sum over its factors: see
`logcde.kernels.factors`. So the factors that an interval observes can stand for its log-signature.
"""

import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import DTypeLike

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import ranges
from logcde.kernels.records import Factors, Intervals

ENTRY, FACTOR = 3, 30
"""What an entry and a factor cost in training, in units of one coordinate that is read from an array."""


class IntervalFactors(eqx.Module):
    """The factors of intervals, interval by interval, all series one after another.

    A factor moves letters at once; time moves between factors.

    Attributes:
        letters: The letter of each entry.
        amounts: How far each entry moves its letter.
        sizes: The number of entries of each factor.
        moments: For each factor, the time before it less the time after it, in its interval.
        counts: The number of factors of each interval.
        spans: How far time, the last letter, moves in each interval; 0 where entries move it, or nothing does.
    """

    letters: Int[np.ndarray, "entry"]
    amounts: Float[np.ndarray, "entry"]
    sizes: Int[np.ndarray, "factor"]
    moments: Float[np.ndarray, "factor"]
    counts: Int[np.ndarray, "interval"]
    spans: Float[np.ndarray, "interval"]

    def __getitem__(self, intervals: Int[np.ndarray, "_"]) -> "IntervalFactors":
        """The factors of these intervals."""
        counts, sizes = self.counts.astype(np.int64), self.sizes.astype(np.int64)
        factors = ranges((np.cumsum(counts) - counts)[intervals], counts[intervals])
        entries = ranges((np.cumsum(sizes) - sizes)[factors], sizes[factors])
        return IntervalFactors(
            self.letters[entries],
            self.amounts[entries],
            self.sizes[factors],
            self.moments[factors],
            self.counts[intervals],
            self.spans[intervals],
        )

    def scaled(self, scale: Float[np.ndarray, "letter"]) -> "IntervalFactors":
        """The factors of the path with each letter multiplied by its scale."""
        amounts, time = self.amounts * scale[self.letters], scale[-1]
        return dataclasses.replace(self, amounts=amounts, moments=self.moments * time, spans=self.spans * time)

    @property
    def work(self) -> int:
        """What a step of training costs, in coordinates that are read from an array."""
        return ENTRY * len(self.letters) + FACTOR * len(self.sizes)

    @staticmethod
    def of(factors: Factors, intervals: Intervals, coordinates: Coordinates, dtype: DTypeLike) -> "IntervalFactors":
        """The factors in these intervals, with all that they move.

        >>> from logcde.embedding.factors import factors_of, intervals_of
        >>> from logcde.streams import Cuts, Streams
        >>> streams = Streams.from_arrays([[0.5]], [[[3.0]]], channels=["a"], horizon=2.0)
        >>> coordinates = Coordinates(streams.schema, depth=2, counts=True, time=True)
        >>> intervals = intervals_of(streams, Cuts(np.array([0, 2]), np.array([0.0, 2.0])))
        >>> found = IntervalFactors.of(*factors_of(streams, intervals, coordinates), coordinates, np.float64)
        >>> found.letters.tolist(), found.amounts.tolist(), found.moments.tolist(), found.spans.tolist()
        ([0, 1], [3.0, 1.0], [-1.0], [2.0])
        """
        counts = intervals.end - intervals.begin
        chosen = ranges(intervals.begin, counts)
        sizes = np.diff(factors.entry_offsets)[chosen]
        entries = ranges(factors.entry_offsets[chosen], sizes)
        letters, amounts = factors.letters[entries], factors.amounts[entries].astype(dtype)
        if coordinates.counted:  # each value is followed by its count
            value = letters < coordinates.channels
            first = np.arange(len(letters)) + np.cumsum(value) - value
            owner = np.repeat(np.arange(len(sizes)), sizes)
            sizes = sizes + np.bincount(owner[value], minlength=len(sizes))
            both, steps = np.empty(sizes.sum(), letters.dtype), np.ones(sizes.sum(), amounts.dtype)
            both[first], steps[first] = letters, amounts
            both[first[value] + 1] = letters[value] + coordinates.channels
            letters, amounts = both, steps
        moments, spans = np.zeros(len(chosen), dtype), np.zeros(len(counts), dtype)
        if coordinates.alphabet.timed:
            times, start, stop = factors.times[chosen], *(np.repeat(edge, counts) for edge in intervals[3:])
            moments[:], spans[:] = (times - start) - (stop - times), intervals.stop - intervals.start
        whole = (sizes.astype(np.int32), counts.astype(np.int32))
        return IntervalFactors(letters.astype(np.int32), amounts, whole[0], moments, whole[1], spans)

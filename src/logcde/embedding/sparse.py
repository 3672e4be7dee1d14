"""`SparseLogSignatures`: interval log-signatures that keep the coordinates of letters that move, and no others.

With hundreds of channels, an interval observes a few. All brackets with another letter are zero, so the log-signature
of an interval is that of its own few letters, in the Lyndon basis over them: at depth 2, n (n + 1) / 2 numbers for n
letters, however many channels there are. `SparseSteps` is the same for models, in arrays of one size for all series.
"""

import dataclasses
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Int, Int64

from logcde.algebra import Basis
from logcde.algebra.lyndon import witt_dimensions
from logcde.embedding.factors import ranges
from logcde.embedding.interval_factors import IntervalFactors
from logcde.embedding.logsigs import (
    EmbeddingSpec,
    InitialObservations,
    LogSignatures,
    check_same_intervals,
    padded_rows,
)
from logcde.errors import EmbeddingError

DENSE_FROM = 0.03
"""The share of kept coordinates from which models train faster on log-signatures with all their zeros."""
Form: TypeAlias = Literal["factors", "sparse", "dense"]
"""What models take for an interval: its factors, the coordinates of letters that move, or all coordinates."""
GROUP = 2**22
"""Coordinates that are moved at a time, which bounds the memory of their places."""


class SparseLogSignatures(eqx.Module):
    """Interval log-signatures of many series that keep the coordinates of letters that move.

    Interval by interval, all series one after another: interval q has the next `counts[q]` of the `letters`, in
    increasing order, and the next `values`, its coordinates in the Lyndon basis over these letters. All other
    coordinates in `basis` are zero. Slicing, saving and arithmetic are those of `LogSignatures`. Sums and multiples are
    no longer those of a path with `factors`.

    Attributes:
        values: Coordinates.
        letters: Numbers of the letters that move.
        counts: Number of letters that move in each interval.
        lengths: Number of intervals of each series.
        basis: The basis of all coordinates.
        initial: The first observations of each series, if computed by an embedding.
        spec: How the log-signatures were computed, if by an embedding.
        factors: What the intervals are composed of, if computed by an embedding of depth one or two and no event has
            higher-order terms: linear CDEs train faster on them.

    >>> basis = Basis(("pulse", "lactate", "time"), 2)
    >>> logsigs = SparseLogSignatures(np.array([0.5, 2.0, 0.1]), np.array([0, 2]), np.array([2]), np.array([1]), basis)
    >>> logsigs
    SparseLogSignatures(1 series, up to 1 intervals, 3 of 6 coordinates kept: pulse, lactate, time, ...)
    >>> logsigs.dense().values[0, 0].tolist()
    [0.5, 0.0, 2.0, 0.0, 0.1, 0.0]
    """

    values: Float[np.ndarray, "coordinate"]
    letters: Int[np.ndarray, "letter"]
    counts: Int[np.ndarray, "interval"]
    lengths: Int[np.ndarray, "series"]
    basis: Basis = eqx.field(static=True)
    initial: InitialObservations | None = None
    spec: EmbeddingSpec | None = eqx.field(static=True, default=None)
    factors: IntervalFactors | None = None

    def __check_init__(self) -> None:
        if len(self.letters) != self.counts.sum() or len(self.values) != self._sizes.sum():
            raise EmbeddingError(
                f"{len(self.letters)} letters and {len(self.values)} coordinates do not fit intervals with "
                f"{self.counts.sum()} letters and {self._sizes.sum()} coordinates."
            )

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, series: slice | np.ndarray | list) -> "SparseLogSignatures":
        """The chosen series, by slice, mask or array of positions."""
        chosen = np.arange(len(self))[series]
        lengths, first = self.lengths[chosen], starts_of(self.lengths)[chosen]
        intervals = ranges(first, lengths)
        letters = ranges(starts_of(self.counts)[intervals], self.counts[intervals])
        values = ranges(starts_of(self._sizes)[intervals], self._sizes[intervals])
        initial = jax.tree.map(lambda leaf: leaf[chosen], self.initial)
        return SparseLogSignatures(
            self.values[values],
            self.letters[letters],
            self.counts[intervals],
            lengths,
            self.basis,
            initial,
            self.spec,
            None if self.factors is None else self.factors[intervals],
        )

    def __mul__(self, factor: float) -> "SparseLogSignatures":
        return dataclasses.replace(self, values=self.values * factor, factors=None)

    __rmul__ = __mul__

    def __add__(self, other: "SparseLogSignatures") -> "SparseLogSignatures":
        """The sum, with the letters that move in either."""
        check_same_intervals(self, other)
        width, dimension = self.basis.width, self.basis.dimension
        keys = np.unique(np.concatenate([one._interval_of(one.counts) * width + one.letters for one in (self, other)]))
        counts = np.bincount(keys // width, minlength=len(self.counts))
        values = np.zeros(sizes_of(counts, self.basis.depth).sum(), np.result_type(self.values, other.values))
        letters = (keys % width).astype(np.int32)
        union = SparseLogSignatures(values, letters, counts, self.lengths, self.basis, self.initial, self.spec)
        places = union._interval_of(union._sizes) * dimension + union.positions()  # increasing
        for one in (self, other):
            own = one._interval_of(one._sizes) * dimension + one.positions()
            values[np.searchsorted(places, own)] += one.values
        return union

    def __sub__(self, other: "SparseLogSignatures") -> "SparseLogSignatures":
        return self + -1.0 * other

    def with_spec(self, initial: InitialObservations, spec: EmbeddingSpec) -> "SparseLogSignatures":
        """The same log-signatures with first observations and with how they were computed."""
        return dataclasses.replace(self, initial=initial, spec=spec)

    def level(self, level: int) -> Float[np.ndarray, "coordinate"]:
        """The kept coordinates of one level, interval by interval: 1 for increments, 2 for areas, ..."""
        wanted = self.basis.level(level)
        positions = self.positions()
        return self.values[(positions >= wanted.start) & (positions < wanted.stop)]

    def positions(self) -> Int64[np.ndarray, "coordinate"]:
        """The position in `basis` of each kept coordinate."""
        out = np.empty(len(self.values), np.int64)
        for group in self._groups():
            out[group.values] = self.basis.positions(self.letters[group.letters])
        return out

    def scaled(self, factors: Float[np.ndarray, "letter"]) -> "SparseLogSignatures":
        """The log-signatures of the path with each letter multiplied by its factor, in double precision."""
        values = np.array(self.values, np.float64)
        for group in self._groups():
            own, some = (
                factors[self.letters[group.letters]],
                Basis.of_width(group.letters.shape[1], self.basis.depth),
            )
            parts = [own[:, some.digits(level)].prod(axis=-1) for level in range(1, some.depth + 1)]
            values[group.values] *= np.concatenate(parts, axis=1)
        composed_of = None if self.factors is None else self.factors.scaled(factors)
        return dataclasses.replace(self, values=values, factors=composed_of)

    @property
    def density(self) -> float:
        """The share of coordinates that are kept."""
        intervals = len(self.counts)
        return len(self.values) / (intervals * self.basis.dimension) if intervals else 1.0

    @property
    def fastest(self) -> Form:
        """The form in which models that take all of them train fastest."""
        if self.factors is not None and self.factors.work < len(self.counts) * self.basis.dimension:
            return "factors"
        return "sparse" if self.density < DENSE_FROM else "dense"

    def dense(self) -> LogSignatures:
        """The same log-signatures with all their zeros."""
        flat = np.zeros((len(self.counts), self.basis.dimension), self.values.dtype)
        flat[self._interval_of(self._sizes), self.positions()] = self.values
        return LogSignatures(padded_rows(flat, self.lengths), self.lengths, self.basis, self.initial, self.spec)

    @staticmethod
    def of(logsigs: LogSignatures) -> "SparseLogSignatures":
        """The sparse form of log-signatures: a letter moves in an interval if some coordinate with it is not zero.

        >>> logsigs = LogSignatures(np.array([[[0.5, 0.0, 2.0, 0.0, 0.1, 0.0]]]), np.array([1]), Basis.of_width(3, 2))
        >>> SparseLogSignatures.of(logsigs).letters.tolist()
        [0, 2]
        """
        basis, lengths = logsigs.basis, np.asarray(logsigs.lengths)
        rows = np.asarray(logsigs.values)[np.arange(logsigs.values.shape[1]) < lengths[:, None]]
        interval, position = np.nonzero(rows)
        moves = np.zeros((len(rows), basis.width), bool)
        for level in range(1, basis.depth + 1):
            words = np.array(basis.words[basis.level(level)])
            chosen = (position >= basis.level(level).start) & (position < basis.level(level).stop)
            moves[interval[chosen, None], words[position[chosen] - basis.level(level).start]] = True
        counts, letters = moves.sum(axis=1), np.nonzero(moves)[1].astype(np.int32)
        values = np.empty(sizes_of(counts, basis.depth).sum(), rows.dtype)
        for group in groups_of(counts, basis.depth):
            values[group.values] = rows[group.intervals[:, None], basis.positions(letters[group.letters])]
        return SparseLogSignatures(values, letters, counts, lengths, basis, logsigs.initial, logsigs.spec)

    @property
    def _sizes(self) -> Int64[np.ndarray, "interval"]:
        return sizes_of(self.counts, self.basis.depth)

    def _groups(self) -> "Iterator[Group]":
        return groups_of(self.counts, self.basis.depth)

    def _interval_of(self, sizes: np.ndarray) -> Int64[np.ndarray, "_"]:
        """The interval of each of the numbers of which interval q has `sizes[q]`."""
        return np.repeat(np.arange(len(sizes)), sizes)

    def __repr__(self) -> str:
        shown = ", ".join(self.basis.letters[:6]) + ", ..."
        return (
            f"SparseLogSignatures({len(self)} series, up to {max(self.lengths, default=0)} intervals, "
            f"{len(self.values)} of {len(self.counts) * self.basis.dimension} coordinates kept: {shown})"
        )


class Group(NamedTuple):
    """Intervals in which equally many letters move.

    Attributes:
        intervals: The intervals.
        letters: The places of their letters, a row for each interval.
        values: The places of their coordinates, a row for each interval.
    """

    intervals: Int64[np.ndarray, "row"]
    letters: Int64[np.ndarray, "row letter"]
    values: Int64[np.ndarray, "row coordinate"]


def groups_of(counts: Int[np.ndarray, "interval"], depth: int) -> Iterator[Group]:
    """Group intervals by their number of letters; those without any have no coordinates and are left out."""
    sizes = sizes_of(counts, depth)
    first_letter, first_value = starts_of(counts), starts_of(sizes)
    order = np.argsort(counts, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
        letters, values = counts[members[:1]].sum(), sizes[members[:1]].sum()
        for start in range(0, len(members) if letters else 0, max(1, GROUP // max(values, 1))):
            some = members[start : start + max(1, GROUP // values)]
            yield Group(
                some, first_letter[some, None] + np.arange(letters), first_value[some, None] + np.arange(values)
            )


def sizes_of(counts: Int[np.ndarray, "interval"], depth: int) -> Int64[np.ndarray, "interval"]:
    """The number of coordinates of each interval, given that of its letters.

    >>> sizes_of(np.array([0, 1, 3]), depth=2)
    array([0, 1, 6])
    """
    distinct, place = np.unique(counts, return_inverse=True)
    return np.array([sum(witt_dimensions(int(n), depth)) for n in distinct], np.int64)[place]


def starts_of(sizes: Int[np.ndarray, "_"]) -> Int64[np.ndarray, "_"]:
    """Where each of several rows starts that lie one after another.

    >>> starts_of(np.array([2, 0, 3]))
    array([0, 2, 2])
    """
    return np.cumsum(sizes) - sizes

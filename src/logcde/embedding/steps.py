"""`SparseSteps`: sparse log-signatures as models take them, in arrays whose sizes the compiler knows.

The intervals of a series lie one after another, each with its own letters and coordinates; only the end of a series is
padded. Whoever needs arrays of one size for each interval pads those to the largest number of letters, `most`.
"""

import abc
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int

from logcde.algebra import Basis
from logcde.embedding.sparse import SparseLogSignatures, sizes_of, starts_of

ROUNDING = 8
"""The largest number of letters is rounded up to a multiple of this: few programs are compiled."""


class AbstractRaggedSteps(eqx.Module):
    """What drives a model in each interval of a series, one interval after another; with a leading axis, of many."""

    @property
    @abc.abstractmethod
    def dtype(self) -> np.dtype:
        """The dtype of real numbers."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The number of series, if there are many, and that of intervals, with padding."""

    @property
    def intervals(self) -> int:
        """The number of intervals, with padding."""
        return self.shape[-1]

    @abc.abstractmethod
    def needs(self, intervals: int | None = None) -> Int[np.ndarray, "size series"]:
        """Of many series, the sizes of the arrays of each, without padding; on the host.

        Args:
            intervals: Of the first intervals only.
        """

    @abc.abstractmethod
    def resized(self, series: int, intervals: int, *needs: int) -> "AbstractRaggedSteps":
        """Of many series, the same with these numbers of series and intervals and these sizes; on the host."""

    def cropped(self, intervals: int) -> "AbstractRaggedSteps":
        """Of many series, the first intervals only; on the host."""
        return self.resized(self.shape[0], intervals, *self.needs(intervals).max(axis=1, initial=0).tolist())

    @staticmethod
    @abc.abstractmethod
    def of_one_size(several: "Sequence[Any]") -> "list[Any]":
        """Each of several with as much padding as the largest of them; on the host."""

    @abc.abstractmethod
    def masked(self, length: Int[Array, ""]) -> "AbstractRaggedSteps":
        """Of one series, the same with nothing in intervals beyond its length."""

    @abc.abstractmethod
    def interval(self, number: Int[Array, ""]) -> "AbstractRaggedSteps":
        """Of one series, one interval."""

    @abc.abstractmethod
    def level_one(self) -> Float[Array, "interval letter"]:
        """Of one series, the increments of all letters, most of them zero."""

    @abc.abstractmethod
    def scaled(self, factors: Float[Array, "letter"]) -> "AbstractRaggedSteps":
        """Of one series, the same for the path with each letter multiplied by its factor."""


class SparseSteps(AbstractRaggedSteps):
    """The sparse log-signatures of one series; with a leading axis, of many.

    Attributes:
        letters: Letters that move, interval by interval, then zeros.
        values: Coordinates in the Lyndon bases over these letters, interval by interval, then zeros.
        counts: Number of letters of each interval.
        basis: The basis of all coordinates.
        most: No interval has more letters.
    """

    letters: Int[Array | np.ndarray, "*series letter"]
    values: Float[Array | np.ndarray, "*series coordinate"]
    counts: Int[Array | np.ndarray, "*series interval"]
    basis: Basis = eqx.field(static=True)
    most: int = eqx.field(static=True)

    @staticmethod
    def of(logsigs: SparseLogSignatures, dtype: DTypeLike) -> "SparseSteps":
        """The log-signatures of many series, each padded to the one with most letters and coordinates.

        >>> columns = np.ones(3), np.array([0, 2]), np.array([2]), np.array([1])
        >>> logsigs = SparseLogSignatures(*columns, Basis.of_width(3, 2))
        >>> SparseSteps.of(logsigs, np.float32).values.tolist()
        [[1.0, 1.0, 1.0]]
        """
        counts, lengths = np.asarray(logsigs.counts), np.asarray(logsigs.lengths)
        sizes = sizes_of(counts, logsigs.basis.depth)
        most = min(-(-max(counts, default=0) // ROUNDING) * ROUNDING, logsigs.basis.width)
        return SparseSteps(
            jnp.asarray(padded(np.asarray(logsigs.letters, np.int32), totals(counts, lengths))),
            jnp.asarray(padded(np.asarray(logsigs.values, dtype), totals(sizes, lengths))),
            jnp.asarray(padded(counts.astype(np.int32), lengths)),
            logsigs.basis,
            int(most),
        )

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the coordinates."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the numbers of letters."""
        return self.counts.shape

    @property
    def sizes(self) -> Int[Array, "interval"]:
        """Of one series, the number of coordinates of each interval."""
        return jnp.asarray(_local_sizes(self.most, self.basis.depth))[self.counts]

    def with_values(self, values: Float[Array | np.ndarray, "*series coordinate"]) -> "SparseSteps":
        """The same letters with other coordinates."""
        return SparseSteps(self.letters, values, self.counts, self.basis, self.most)

    def resized(self, series: int, intervals: int, *needs: int) -> "SparseSteps":
        """Of many series, the same with these numbers of series, intervals, letters of an interval, letters, values."""
        most, letters, coordinates = needs
        return SparseSteps(
            resized(self.letters, series, letters),
            resized(self.values, series, coordinates),
            resized(self.counts, series, intervals),
            self.basis,
            most,
        )

    @staticmethod
    def of_one_size(several: Sequence["SparseSteps"]) -> list["SparseSteps"]:
        """Each of several with as much padding as the largest of them; on the host."""
        letters, coordinates, intervals = largest([[steps.letters, steps.values, steps.counts] for steps in several])
        most = max(steps.most for steps in several)
        return [steps.resized(len(steps.counts), intervals, most, letters, coordinates) for steps in several]

    def needs(self, intervals: int | None = None) -> Int[np.ndarray, "3 series"]:
        """Of many series, the most letters of an interval, and all letters and coordinates of each; on the host."""
        counts = np.asarray(self.counts)[:, :intervals]
        sizes = _local_sizes(self.most, self.basis.depth)[counts]
        return np.stack([counts.max(axis=1, initial=0), counts.sum(axis=1), sizes.sum(axis=1)])

    def masked(self, length: Int[Array, ""]) -> "SparseSteps":
        """Of one series, the same without letters in intervals beyond its length."""
        valid = jnp.arange(self.intervals, dtype=length.dtype) < length
        return dataclasses.replace(self, counts=jnp.where(valid, self.counts, 0))

    def interval(self, number: Int[Array, ""]) -> "SparseSteps":
        """Of one series, one interval, padded to `most` letters."""
        sizes = _local_sizes(self.most, self.basis.depth)
        ends = jnp.cumsum(self.counts), jnp.cumsum(self.sizes)
        letters, values = (
            jax.lax.dynamic_slice(jnp.pad(array, (0, size)), (end[number] - size_of[number],), (size,))
            for array, size, end, size_of in zip(
                (self.letters, self.values), (self.most, int(sizes[-1])), ends, (self.counts, self.sizes), strict=True
            )
        )
        return SparseSteps(letters, values, self.counts[number][None], self.basis, self.most)

    def padded(self) -> tuple[Int[Array, "interval letter"], Float[Array, "interval lie"]]:
        """Of one series, the letters and coordinates of each interval, padded to `most` letters by zeros.

        Coordinates are those of the Lyndon basis over `most` letters.
        """
        number = _numbers(self.most)
        letters = _taken(self.letters, _starts(self.counts)[:, None] + number, number < self.counts[:, None])
        own = _places(self.most, self.basis.depth, jnp.asarray(self.counts)[:, None])
        return letters, _taken(self.values, _starts(self.sizes)[:, None] + own, own >= 0)

    def words(self) -> Int[Array, "coordinate digit"]:
        """Of one series, the letters in the word of each coordinate, -1 beyond its end and for padding."""
        sizes, place = self.sizes, _numbers(self.values.shape[-1])
        ends = jnp.cumsum(sizes)
        interval = jnp.minimum(jnp.searchsorted(ends, place, side="right").astype(jnp.int32), self.intervals - 1)
        own, count = place - _starts(sizes)[interval], self.counts[interval]
        digits = _digits(self.most, self.basis.depth, count, own)
        valid = (digits >= 0) & (place < ends[-1])[:, None]
        letters = _taken(self.letters, _starts(self.counts)[interval][:, None] + digits, valid)
        return jnp.where(valid, letters, -1)

    def increments(self) -> tuple[Int[Array, "letter"], Float[Array, "letter"]]:
        """Of one series, the interval of each of the `letters` and its coordinate of level one."""
        ends, place = jnp.cumsum(self.counts), _numbers(self.letters.shape[-1])
        interval = jnp.searchsorted(ends, place, side="right").astype(jnp.int32)
        known = jnp.minimum(interval, self.intervals - 1)
        at = _starts(self.sizes)[known] + place - _starts(self.counts)[known]
        return interval, _taken(self.values, at, interval < self.intervals)

    def level_one(self) -> Float[Array, "interval letter"]:
        """Of one series, the increments of all letters, most of them zero."""
        interval, amounts = self.increments()
        nothing = jnp.zeros((self.intervals, self.basis.width), self.values.dtype)
        return nothing.at[interval, self.letters].add(amounts, mode="drop")

    def scaled(self, factors: Float[Array, "letter"]) -> "SparseSteps":
        """Every coordinate multiplied by the factors of the letters in its word."""
        # The last entry is for the digits beyond the end of a word, which are -1.
        factors = jnp.concatenate([factors, jnp.ones(1, factors.dtype)])
        return self.with_values(self.values * jnp.prod(factors[self.words()], axis=-1))


def resized(array: Array | np.ndarray, series: int, size: int) -> np.ndarray:
    """The array of many series with another number of series and another size of each: cut, or filled with zeros."""
    kept = np.asarray(array)[:, :size]
    return np.pad(kept, ((0, series - len(kept)), (0, size - kept.shape[1])))


def largest(several: Sequence[Sequence[Array | np.ndarray]]) -> list[int]:
    """For arrays that several have, the largest size of a series in each."""
    return [max(array.shape[1] for array in alike) for alike in zip(*several, strict=True)]


def _numbers(count: int) -> Int[Array, "_"]:
    return jnp.arange(count, dtype=jnp.int32)


def _starts(sizes: Int[Array | np.ndarray, "interval"]) -> Int[Array, "interval"]:
    return jnp.cumsum(sizes) - sizes


def _taken(array: Array | np.ndarray, places: Array, valid: Array) -> Array:
    """Entries of an array, zero where they are not valid."""
    found = jnp.asarray(array).at[jnp.where(valid, places, 0)].get(mode="fill", fill_value=0)
    return jnp.where(valid, found, jnp.zeros((), array.dtype))


def _places(most: int, depth: int, count: Int[Array, "interval 1"]) -> Int[Array, "interval lie"]:
    """Where intervals with `count` letters keep the coordinates of the basis over `most` letters; -1 if they do not."""
    if depth > 2:
        return jnp.asarray(_tables(most, depth)[0])[count[:, 0]]
    number = _numbers(most)
    places = jnp.where(number < count, number, -1)
    if depth == 1:
        return places
    left, right = (jnp.asarray(part, jnp.int32) for part in np.triu_indices(most, 1))
    pairs = count + left * (2 * count - left - 1) // 2 + right - left - 1
    return jnp.concatenate([places, jnp.where(right < count, pairs, -1)], axis=1)


def _digits(most: int, depth: int, count: Int[Array, "row"], place: Int[Array, "row"]) -> Int[Array, "row digit"]:
    """The word of each coordinate, in numbers of the letters of its interval, -1 beyond its end."""
    if depth > 2:
        table = jnp.asarray(_tables(most, depth)[1])
        return table[count, jnp.minimum(place, table.shape[1] - 1)]
    if depth == 1:
        return place[:, None]
    # Pairs (i, j) are numbered row by row; row i starts at i (2 n - i - 1) / 2. Rounding is mended by the comparisons.
    pair, twice = jnp.maximum(place - count, 0), 2 * count - 1
    root = jnp.sqrt(jnp.maximum(twice * twice - 8 * pair, 0).astype(jnp.float32))
    left = jnp.clip(((twice.astype(jnp.float32) - root) / 2).astype(jnp.int32), 0, jnp.maximum(count - 2, 0))
    left = jnp.where(_row(left, count) > pair, left - 1, left)
    left = jnp.where(_row(left + 1, count) <= pair, left + 1, left)
    right = pair - _row(left, count) + left + 1
    letter = place < count
    return jnp.stack([jnp.where(letter, place, left), jnp.where(letter, -1, right)], axis=1)


def _row(left: Int[Array, "row"], count: Int[Array, "row"]) -> Int[Array, "row"]:
    return left * (2 * count - left - 1) // 2


@functools.cache
def _local_sizes(most: int, depth: int) -> Int[np.ndarray, "count"]:
    """The number of coordinates of intervals with 0, 1, ..., `most` letters."""
    return sizes_of(np.arange(most + 1), depth).astype(np.int32)


@functools.cache
def _tables(most: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """For each number of letters: `_places`, and the word of each coordinate."""
    whole = Basis.of_width(most, depth)
    places = np.full((most + 1, whole.dimension), -1, np.int32)
    words = np.full((most + 1, whole.dimension, depth), -1, np.int32)
    for count in range(1, most + 1):
        some = Basis.of_width(count, depth)
        places[count, whole.positions(np.arange(count))] = np.arange(some.dimension)
        for level in range(1, depth + 1):
            own = np.array(some.words[some.level(level)], np.int32).reshape(-1, level)
            words[count, some.level(level), :level] = own
    return places, words


def padded(entries: np.ndarray, sizes: Int[np.ndarray, "series"]) -> np.ndarray:
    """The entries of all series, one after another, as rows of one size."""
    out = np.zeros((len(sizes), sizes.max(initial=0)), entries.dtype)
    out[np.arange(out.shape[1]) < sizes[:, None]] = entries
    return out


def totals(sizes: Int[np.ndarray, "interval"], lengths: Int[np.ndarray, "series"]) -> Int[np.ndarray, "series"]:
    """The sum over the intervals of each series."""
    total = np.concatenate([[0], np.cumsum(sizes)])
    starts = starts_of(lengths)
    return total[starts + lengths] - total[starts]

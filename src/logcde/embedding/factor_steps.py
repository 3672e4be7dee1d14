"""`FactorSteps`: the factors of intervals as models take them, in arrays whose sizes the compiler knows."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int

from logcde.algebra import Basis
from logcde.embedding.interval_factors import IntervalFactors
from logcde.embedding.sparse import SparseLogSignatures
from logcde.embedding.steps import AbstractRaggedSteps, largest, padded, resized, totals
from logcde.errors import EmbeddingError

WIDE = 4
"""Letters are numbered anew for each series where no series has more than one of so many."""


class FactorSteps(AbstractRaggedSteps):
    """The factors of one series, interval by interval, then zeros; with a leading axis, of many.

    Attributes:
        letters: The letter of each entry, a place in `own`.
        amounts: How far each entry moves its letter.
        sizes: The number of entries of each factor.
        moments: For each factor, the time before it less the time after it, in its interval.
        counts: The number of factors of each interval.
        spans: How far time, the last of the letters, moves in each interval besides.
        own: The letters of the series, padded; the last letter of the basis comes last. None for all letters.
        scale: What each letter of the basis is multiplied by, if anything.
        basis: The basis of all coordinates.
        most: No interval has more entries, and no more factors.
    """

    letters: Int[Array | np.ndarray, "*series entry"]
    amounts: Float[Array | np.ndarray, "*series entry"]
    sizes: Int[Array | np.ndarray, "*series factor"]
    moments: Float[Array | np.ndarray, "*series factor"]
    counts: Int[Array | np.ndarray, "*series interval"]
    spans: Float[Array | np.ndarray, "*series interval"]
    own: Int[Array | np.ndarray, "*series own"] | None
    scale: Float[Array | np.ndarray, "*series letter"] | None
    basis: Basis = eqx.field(static=True)
    most: tuple[int, int] = eqx.field(static=True)

    @staticmethod
    def of(logsigs: SparseLogSignatures, dtype: DTypeLike) -> "FactorSteps":
        """The factors of many series, each padded to the one with most of them.

        >>> from logcde.embedding import Embedding
        >>> from logcde.streams import Partition, Streams
        >>> streams = Streams.from_arrays([[0.5]], [[[3.0]]], channels=["a"], horizon=2.0)
        >>> steps = FactorSteps.of(Embedding(2)(streams, Partition.uniform(1), sparse=True), np.float32)
        >>> steps.letters.tolist(), steps.amounts.tolist(), steps.moments.tolist()
        ([[0, 1]], [[3.0, 1.0]], [[-1.0]])
        """
        found, lengths = logsigs.factors, np.asarray(logsigs.lengths)
        if found is None:
            raise EmbeddingError("The factors of these log-signatures are not known.", "Use SparseSteps.of.")
        entries_of = _entries(found)
        factors, entries = totals(found.counts, lengths), totals(entries_of, lengths)
        letters, own = _renumbered(found, entries, logsigs.basis.width)
        return FactorSteps(
            padded(letters, entries),
            padded(found.amounts.astype(dtype), entries),
            padded(found.sizes, factors),
            padded(found.moments.astype(dtype), factors),
            padded(found.counts, lengths),
            padded(found.spans.astype(dtype), lengths),
            own,
            None,
            logsigs.basis,
            (int(entries_of.max(initial=0)), int(found.counts.max(initial=0))),
        )

    @property
    def dtype(self) -> np.dtype:
        """The dtype of amounts and times."""
        return self.amounts.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the numbers of factors."""
        return self.counts.shape

    def needs(self, intervals: int | None = None) -> Int[np.ndarray, "2 series"]:
        """Of many series, the numbers of entries and factors of each; on the host."""
        factors = np.asarray(self.counts)[:, :intervals].sum(axis=1, dtype=np.int64)
        ends = np.pad(np.cumsum(self.sizes, axis=1, dtype=np.int64), ((0, 0), (1, 0)))
        return np.stack([np.take_along_axis(ends, factors[:, None], axis=1)[:, 0], factors])

    def resized(self, series: int, intervals: int, *needs: int) -> "FactorSteps":
        """Of many series, the same with these numbers of series, intervals, entries and factors."""
        entries, factors = needs
        sizes = (entries, entries, factors, factors, intervals, intervals)
        arrays = {name: resized(array, series, size) for (name, array), size in zip(self._arrays, sizes, strict=True)}
        for name, array in (("own", self.own), ("scale", self.scale)):
            if array is not None:
                arrays[name] = resized(array, series, array.shape[1])
        return dataclasses.replace(self, **arrays)

    @staticmethod
    def of_one_size(several: "Sequence[FactorSteps]") -> "list[FactorSteps]":
        """Each of several with as much padding as the largest of them; on the host."""
        entries, _, factors, _, intervals, _ = largest([[array for _, array in steps._arrays] for steps in several])
        most = (max(steps.most[0] for steps in several), max(steps.most[1] for steps in several))
        alike = [steps.resized(len(steps.counts), intervals, entries, factors) for steps in several]
        if any(steps.own is not None for steps in several):
            alike = [steps._with_all_letters() for steps in alike]
        return [dataclasses.replace(steps, most=most) for steps in alike]

    def masked(self, length: Int[Array, ""]) -> "FactorSteps":
        """Of one series, the same with no factors and no time in intervals beyond its length."""
        valid = jnp.arange(self.intervals, dtype=length.dtype) < length
        counts, spans = jnp.where(valid, self.counts, 0), jnp.where(valid, self.spans, 0)
        return dataclasses.replace(self, counts=counts, spans=spans)

    def interval(self, number: Int[Array, ""]) -> "FactorSteps":
        """Of one series, one interval."""
        entries, factors = self.most
        first_factor = jnp.cumsum(self.counts)[number] - self.counts[number]
        before = jnp.where(jnp.arange(self.sizes.shape[0], dtype=jnp.int32) < first_factor, self.sizes, 0)
        first_entry = jnp.sum(before, dtype=jnp.int32)
        return dataclasses.replace(
            self,
            letters=_cut(self.letters, first_entry, entries),
            amounts=_cut(self.amounts, first_entry, entries),
            sizes=_cut(self.sizes, first_factor, factors),
            moments=_cut(self.moments, first_factor, factors),
            counts=self.counts[number][None],
            spans=self.spans[number][None],
        )

    def places(self) -> tuple[Int[Array, "factor"], Int[Array, "entry"]]:
        """Of one series, the interval of each factor, and the factor of each entry; beyond the last one for padding."""
        return owners(self.counts, len(self.sizes)), owners(self.sizes, len(self.letters))

    def named(self) -> Int[Array, "entry"]:
        """Of one series, the letter of the basis that each entry moves."""
        return jnp.asarray(self.letters) if self.own is None else jnp.asarray(self.own)[self.letters]

    def level_one(self) -> Float[Array, "interval letter"]:
        """Of one series, the increments of all letters, most of them zero."""
        of_factor, of_entry = self.places()
        interval = of_factor.at[of_entry].get(mode="fill", fill_value=self.intervals)
        moved = jnp.zeros((self.intervals, self.basis.width), self.amounts.dtype)
        moved = moved.at[interval, self.named()].add(self.amounts, mode="drop").at[:, -1].add(self.spans)
        return moved if self.scale is None else moved * self.scale

    def scaled(self, factors: Float[Array, "letter"]) -> "FactorSteps":
        """The same for the path with each letter multiplied by its factor."""
        return dataclasses.replace(self, scale=factors if self.scale is None else factors * self.scale)

    @property
    def _arrays(self) -> list[tuple[str, Array | np.ndarray]]:
        names = ("letters", "amounts", "sizes", "moments", "counts", "spans")
        return [(name, getattr(self, name)) for name in names]

    def _with_all_letters(self) -> "FactorSteps":
        """Of many series, the same with letters that are numbered as in the basis; on the host."""
        if self.own is None:
            return self
        letters = np.take_along_axis(np.asarray(self.own), np.asarray(self.letters), axis=1)
        return dataclasses.replace(self, letters=letters, own=None)


def owners(sizes: Int[Array | np.ndarray, "owner"], count: int) -> Int[Array, "part"]:
    """Which owner, of `sizes` parts each, has each of `count` parts; beyond the last one for padding.

    >>> owners(np.array([2, 1], np.int32), 4).tolist()
    [0, 0, 1, 2]
    """
    place = jnp.arange(count, dtype=jnp.int32)
    return jnp.searchsorted(jnp.cumsum(sizes), place, side="right").astype(jnp.int32)


def _entries(factors: IntervalFactors) -> Int[np.ndarray, "interval"]:
    """The number of entries of each interval."""
    ends = np.concatenate([[0], np.cumsum(factors.sizes)])
    last = np.cumsum(factors.counts)
    return ends[last] - ends[last - factors.counts]


def _renumbered(
    factors: IntervalFactors, entries: Int[np.ndarray, "series"], width: int
) -> tuple[Int[np.ndarray, "entry"], Int[np.ndarray, "series own"] | None]:
    """The letters, numbered anew where each series has few of many, and those of each series."""
    series = np.repeat(np.arange(len(entries)), entries)
    keys, place = np.unique(series * width + factors.letters, return_inverse=True)
    others = keys % width != width - 1
    counts = np.bincount(keys[others] // width, minlength=len(entries))
    size = counts.max(initial=0) + 1
    if size * WIDE > width:
        return factors.letters, None
    number = np.full(len(keys), size - 1)
    first = np.cumsum(counts) - counts
    number[others] = np.arange(counts.sum()) - np.repeat(first, counts)
    own = np.zeros((len(entries), size), np.int32)
    own[:, -1] = width - 1
    own[keys[others] // width, number[others]] = keys[others] % width
    return number[place].astype(np.int32), own


def _cut(array: Array | np.ndarray, first: Int[Array, ""], size: int) -> Array:
    return jnp.asarray(jnp.pad(array, (0, size)))[first + jnp.arange(size, dtype=jnp.int32)]

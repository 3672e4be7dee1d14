"""`LogSignatures`: one log-signature for each query interval of each series, with the basis that gives them meaning."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.opening import Opening
from logcde.errors import EmbeddingError
from logcde.streams import Partition


@dataclasses.dataclass(frozen=True)
class Source:
    """How log-signatures were made: what is needed to make more of the same kind."""

    coordinates: Coordinates
    partition: Partition


class LogSignatures(eqx.Module):
    """Interval log-signatures of many series, zero beyond a series' own number of intervals.

    If they come from an embedding, `opening` is what the series begin with and `source` how they were made.

    >>> logsigs = LogSignatures(np.ones((2, 3, 3)), np.array([3, 2]), Basis(("pulse", "time"), 2))
    >>> logsigs
    LogSignatures(2 series, up to 3 intervals, 3 coordinates: pulse, time, [pulse, time])
    >>> logsigs.level(2).shape
    (2, 3, 1)
    """

    values: Float[Array | np.ndarray, "series interval lie"]
    lengths: Int[Array | np.ndarray, "series"]
    basis: Basis = eqx.field(static=True)
    opening: Opening | None = None
    source: Source | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.values.shape[-1] != self.basis.dimension:
            raise EmbeddingError(
                f"{self.values.shape[-1]} coordinates do not fit {self.basis!r}, which has {self.basis.dimension}."
            )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, series: slice | np.ndarray | list) -> "LogSignatures":
        """The chosen series, by slice, mask or array of positions."""
        chosen, lengths, opening = jax.tree.map(lambda leaf: leaf[series], (self.values, self.lengths, self.opening))
        return LogSignatures(chosen, lengths, self.basis, opening, self.source)

    def made_from(self, opening: Opening, source: Source) -> "LogSignatures":
        """The same log-signatures, with what their series begin with and how they were made."""
        return LogSignatures(self.values, self.lengths, self.basis, opening, source)

    def level(self, level: int) -> Float[Array | np.ndarray, "series interval bracket"]:
        """The coordinates of one level: 1 for increments, 2 for areas, ..."""
        return self.values[..., self.basis.level(level)]

    def __repr__(self) -> str:
        labels = self.basis.labels
        shown = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
        series, intervals, dimension = self.values.shape
        return f"LogSignatures({series} series, up to {intervals} intervals, {dimension} coordinates: {shown})"

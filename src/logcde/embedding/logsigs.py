"""`LogSignatures`: one log-signature for each query interval of each series, with the basis that gives them meaning."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from logcde.algebra import Basis
from logcde.errors import EmbeddingError


class LogSignatures(eqx.Module):
    """Interval log-signatures of many series, zero beyond a series' own number of intervals.

    >>> logsigs = LogSignatures(np.ones((2, 3, 3)), np.array([3, 2]), Basis(("pulse", "time"), 2))
    >>> logsigs
    LogSignatures(2 series, up to 3 intervals, 3 coordinates: pulse, time, [pulse, time])
    >>> logsigs.level(2).shape
    (2, 3, 1)
    """

    values: Float[Array | np.ndarray, "series interval lie"]
    lengths: Int[Array | np.ndarray, "series"]
    basis: Basis = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.values.shape[-1] != self.basis.dimension:
            raise EmbeddingError(
                f"{self.values.shape[-1]} coordinates do not fit {self.basis!r}, which has {self.basis.dimension}."
            )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, series: slice | np.ndarray | list) -> "LogSignatures":
        """The chosen series, by slice, mask or array of positions."""
        return LogSignatures(self.values[series], self.lengths[series], self.basis)

    def level(self, level: int) -> Float[Array | np.ndarray, "series interval bracket"]:
        """The coordinates of one level: 1 for increments, 2 for areas, ..."""
        return self.values[..., self.basis.level(level)]

    def __repr__(self) -> str:
        labels = self.basis.labels
        shown = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
        series, intervals, dimension = self.values.shape
        return f"LogSignatures({series} series, up to {intervals} intervals, {dimension} coordinates: {shown})"

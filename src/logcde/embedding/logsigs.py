"""`LogSignatures`: one log-signature for each query interval of each series, with the basis that gives them meaning.

What a series begins with, for initial states that depend on it (`app:sinusoid` of the paper).
"""

import dataclasses

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.errors import EmbeddingError
from logcde.kernels import events
from logcde.streams import Partition, Streams


class InitialObservations(eqx.Module):
    """The first value of each channel, 0 where there is none.

    `seen` says which channels are observed at all, `at_start` which of the first values are stamped 0 and so are known
    from the start; the others are known only later.
    """

    first: Float[Array | np.ndarray, "*series channel"]
    seen: Bool[Array | np.ndarray, "*series channel"]
    at_start: Bool[Array | np.ndarray, "*series channel"]


@dataclasses.dataclass(frozen=True)
class EmbeddingSpec:
    """How log-signatures were made: what is needed to make more of the same kind."""

    coordinates: Coordinates
    partition: Partition


class LogSignatures(eqx.Module):
    """Interval log-signatures of many series, zero beyond a series' own number of intervals.

    If they come from an embedding, `initial` is what the series begin with and `spec` how they were made.

    >>> logsigs = LogSignatures(np.ones((2, 3, 3)), np.array([3, 2]), Basis(("pulse", "time"), 2))
    >>> logsigs
    LogSignatures(2 series, up to 3 intervals, 3 coordinates: pulse, time, [pulse, time])
    >>> logsigs.level(2).shape
    (2, 3, 1)
    """

    values: Float[Array | np.ndarray, "series interval lie"]
    lengths: Int[Array | np.ndarray, "series"]
    basis: Basis = eqx.field(static=True)
    initial: InitialObservations | None = None
    spec: EmbeddingSpec | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.values.shape[-1] != self.basis.dimension:
            raise EmbeddingError(
                f"{self.values.shape[-1]} coordinates do not fit {self.basis!r}, which has {self.basis.dimension}."
            )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, series: slice | np.ndarray | list) -> "LogSignatures":
        """The chosen series, by slice, mask or array of positions."""
        chosen, lengths, initial = jax.tree.map(lambda leaf: leaf[series], (self.values, self.lengths, self.initial))
        return LogSignatures(chosen, lengths, self.basis, initial, self.spec)

    def with_spec(self, initial: InitialObservations, spec: EmbeddingSpec) -> "LogSignatures":
        """The same log-signatures, with what their series begin with and how they were made."""
        return LogSignatures(self.values, self.lengths, self.basis, initial, spec)

    def level(self, level: int) -> Float[Array | np.ndarray, "series interval bracket"]:
        """The coordinates of one level: 1 for increments, 2 for areas, ..."""
        return self.values[..., self.basis.level(level)]

    def __repr__(self) -> str:
        labels = self.basis.labels
        shown = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
        series, intervals, dimension = self.values.shape
        return f"LogSignatures({series} series, up to {intervals} intervals, {dimension} coordinates: {shown})"


def initial_observations(streams: Streams) -> InitialObservations:
    """The openings of many series.

    >>> initial = initial_observations(Streams.from_arrays([[0.0, 1.0]], [[[5.0, np.nan], [6.0, 7.0]]]))
    >>> initial.first, initial.at_start
    (array([[5., 7.]]), array([[ True, False]]))
    """
    shape = (len(streams), len(streams.schema.channels))
    initial = InitialObservations(np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool))
    columns = (streams.offsets, streams.times, streams.obs_offsets, streams.channel, streams.value)
    events.openings(*columns, initial.first, initial.seen, initial.at_start)
    return initial

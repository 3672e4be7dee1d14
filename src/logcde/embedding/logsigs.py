"""`LogSignatures`: one log-signature for each query interval of each series, with the basis that gives them meaning.

They carry the first observation of each channel, for initial states that depend on it (`app:sinusoid` of the paper),
and the options that they were computed with. Knows nothing of the engines that compute them.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from logcde.algebra import Basis
from logcde.algebra.basis import common_basis
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import events_of
from logcde.errors import EmbeddingError
from logcde.kernels.events import first_values
from logcde.streams import Partition, Streams


class InitialObservations(eqx.Module):
    """The first observation of each channel.

    Attributes:
        first: Its value; 0 if the channel is never observed.
        seen: Whether the channel is observed at all.
        at_start: Whether the first observation is at time 0, so that it is known from the start.
    """

    first: Float[Array | np.ndarray, "*series channel"]
    seen: Bool[Array | np.ndarray, "*series channel"]
    at_start: Bool[Array | np.ndarray, "*series channel"]


def initial_observations(streams: Streams) -> InitialObservations:
    """Find the first observation of each channel of each series.

    >>> initial = initial_observations(Streams.from_arrays([[0.0, 1.0]], [[[5.0, np.nan], [6.0, 7.0]]]))
    >>> initial.first, initial.at_start
    (array([[5., 7.]]), array([[ True, False]]))
    """
    shape = (len(streams), len(streams.schema.channels))
    initial = InitialObservations(np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool))
    first_values(events_of(streams), initial.first, initial.seen, initial.at_start)
    return initial


@dataclasses.dataclass(frozen=True)
class EmbeddingSpec:
    """How log-signatures were computed: what is needed to compute the same ones of other streams."""

    coordinates: Coordinates
    partition: Partition


class LogSignatures(eqx.Module):
    """Interval log-signatures of many series.

    Attributes:
        values: Lyndon coordinates, zero beyond a series' own number of intervals.
        lengths: Number of intervals of each series.
        basis: The basis of the coordinates.
        initial: The first observations of each series, if computed by an embedding.
        spec: How the log-signatures were computed, if by an embedding.

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

    def __mul__(self, factor: float) -> "LogSignatures":
        return LogSignatures(self.values * factor, self.lengths, self.basis, self.initial, self.spec)

    __rmul__ = __mul__

    def __add__(self, other: "LogSignatures") -> "LogSignatures":
        """The sum, interval by interval."""
        check_same_intervals(self, other)
        return LogSignatures(self.values + other.values, self.lengths, self.basis, self.initial, self.spec)

    def __sub__(self, other: "LogSignatures") -> "LogSignatures":
        return self + -1.0 * other

    def with_spec(self, initial: InitialObservations, spec: EmbeddingSpec) -> "LogSignatures":
        """The same log-signatures with first observations and with how they were computed."""
        return LogSignatures(self.values, self.lengths, self.basis, initial, spec)

    def level(self, level: int) -> Float[Array | np.ndarray, "series interval bracket"]:
        """The coordinates of one level: 1 for increments, 2 for areas, ..."""
        return self.values[..., self.basis.level(level)]

    def __repr__(self) -> str:
        labels = self.basis.labels
        shown = ", ".join(labels[:6]) + (", ..." if len(labels) > 6 else "")
        series, intervals, dimension = self.values.shape
        return f"LogSignatures({series} series, up to {intervals} intervals, {dimension} coordinates: {shown})"


def padded_rows(
    rows: Float[np.ndarray, "row lie"], lengths: Int[np.ndarray, "series"]
) -> Float[np.ndarray, "series interval lie"]:
    """The rows of all series, one after another, as an array with zeros beyond a series' own rows.

    >>> padded_rows(np.ones((3, 1)), np.array([1, 2])).tolist()
    [[[1.0], [0.0]], [[1.0], [1.0]]]
    """
    if len(lengths) and (lengths == lengths[0]).all():
        return rows.reshape(len(lengths), lengths[0], rows.shape[1])
    out = np.zeros((len(lengths), lengths.max(initial=0), rows.shape[1]), rows.dtype)
    out[np.arange(out.shape[1]) < lengths[:, None]] = rows
    return out


def check_same_intervals(left: Any, right: Any) -> None:
    """Refuse to combine log-signatures of other kinds, bases or numbers of intervals."""
    if type(left) is not type(right):
        raise EmbeddingError(
            f"{type(left).__name__} and {type(right).__name__} cannot be combined.",
            "Make both sparse with SparseLogSignatures.of, or neither with .dense().",
        )
    common_basis([left.basis, right.basis])
    if not np.array_equal(left.lengths, right.lengths):
        raise EmbeddingError(
            "These log-signatures belong to other series or intervals: their numbers of intervals differ.",
            "Embed the same series with the same partition.",
        )

"""`RealisedPath`: the path Psi(x, C) of `app:proof_faithfulness`, with its auxiliary time u and its physical-time map.

The path is piecewise linear and is given by its vertices. They hold recorded numbers, not sums of changes: after an
event the coordinate of a channel is the observed value, that of time the stamp, and counts are whole numbers.
"""

import dataclasses

import numpy as np
from jaxtyping import Float64, Shaped

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.errors import EmbeddingError, Where
from logcde.streams import Schema
from logcde.streams.faults import name
from logcde.streams.ragged import frozen
from logcde.streams.schema import listed


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RealisedPath:
    """One series as a path. Created by `realise`.

    Auxiliary time advances while physical time stands still: by one unit from 0 to the first values of the continuous
    channels, and by one for each event. In between it advances as fast as physical time; on a path without time, by the
    distance that the continuous channels move.

    Vertices that are closer than float64 resolves at this u have the same u. They are still in the order of the path,
    which is why portions and decoding go by vertices.

    Attributes:
        u: Auxiliary time of each vertex.
        positions: Coordinates of each vertex.
        stamps: Physical time of each vertex, if time is not a coordinate.
        coordinates: The letters of the path.
        ids: Id of the series.
        origins: Origin of its stamps.

    >>> from logcde.embedding import Embedding
    >>> from logcde.paths.realisation import realise
    >>> from logcde.streams import Streams
    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0], [4.0]]], channels=("pulse",))
    >>> (path,) = realise(streams, Embedding())
    >>> path.basis.letters
    ('pulse', '#pulse', 'time')
    >>> path.u
    array([0. , 1. , 1.5, 2.5, 4. , 5. ])
    >>> path(2.0), path(2.5)
    (array([1.5, 0.5, 0.5]), array([3. , 1. , 0.5]))
    """

    u: Float64[np.ndarray, "vertex"]
    positions: Float64[np.ndarray, "vertex letter"]
    stamps: Float64[np.ndarray, "vertex"] | None
    coordinates: Coordinates
    ids: Shaped[np.ndarray, "1"]
    origins: Shaped[np.ndarray, "1"] | None = None

    def __post_init__(self) -> None:
        for field in ("u", "positions", "stamps"):
            array = getattr(self, field)
            object.__setattr__(self, field, None if array is None else frozen(array))

    @property
    def schema(self) -> Schema:
        """Channels of the series that was realised."""
        return self.coordinates.schema

    @property
    def basis(self) -> Basis:
        """Basis of the log-signatures of the path; its letters are the coordinates."""
        return self.coordinates.basis

    @property
    def times(self) -> Float64[np.ndarray, "vertex"]:
        """Physical time of every vertex."""
        return self.positions[:, -1] if self.stamps is None else self.stamps

    @property
    def horizon(self) -> float:
        """End of physical time."""
        return float(self.times[-1])

    def __call__(self, u: float | np.ndarray) -> Float64[np.ndarray, "... letter"]:
        """Evaluate the path at auxiliary times."""
        wanted = np.asarray(u, np.float64)
        outside = ~((wanted >= 0) & (wanted <= self.u[-1]))
        if outside.any():
            raise EmbeddingError(
                f"u = {float(wanted[outside].flat[0])!r} is not on this path, which goes from 0 to "
                f"{float(self.u[-1])!r}.",
                "To evaluate at a physical time, use path(path.a(time)).",
                where=Where(series=self.ids.tolist()[0]),
            )
        vertex = np.asarray(np.minimum(np.searchsorted(self.u, wanted, side="right"), len(self.u) - 1))
        length = self.u[vertex] - self.u[vertex - 1]
        share = np.divide(wanted - self.u[vertex - 1], length, out=np.ones_like(wanted), where=length > 0)
        return self._within(vertex, share)

    def a(self, time: float | np.ndarray) -> float | Float64[np.ndarray, "..."]:
        """a_Psi: the first auxiliary time at which the path reaches a physical time.

        >>> from logcde.embedding import Embedding
        >>> from logcde.paths.realisation import realise
        >>> from logcde.streams import Streams
        >>> (path,) = realise(Streams.from_arrays([[0.5, 2.0]], [[[3.0], [4.0]]]), Embedding())
        >>> path.a(np.array([0.0, 0.5, 1.0, 2.0])), float(path.b(2.0))
        (array([0. , 1.5, 3. , 4. ]), 5.0)
        """
        vertex, share = self._place(np.asarray(time, np.float64))
        before = self.u[np.maximum(vertex - 1, 0)]
        return np.where(share < 1, before + share * (self.u[vertex] - before), self.u[vertex])[()]

    def b(self, time: float | np.ndarray) -> float | Float64[np.ndarray, "..."]:
        """b_Psi: as `a`, but the horizon maps to the end of the path: an event there is in the last interval."""
        return np.where(np.asarray(time) == self.horizon, self.u[-1], self.a(time))[()]

    def between(self, start: float, stop: float) -> Float64[np.ndarray, "vertex letter"]:
        """Vertices of the portion over [start, stop) in physical time: the embedding is its log-signature.

        >>> from logcde.embedding import Embedding
        >>> from logcde.paths.realisation import realise
        >>> from logcde.streams import Streams
        >>> (path,) = realise(Streams.from_arrays([[0.5, 2.0]], [[[3.0], [4.0]]]), Embedding(counts=False))
        >>> path.between(0.25, 1.0).tolist()
        [[0.0, 0.25], [0.0, 0.5], [3.0, 0.5], [3.0, 1.0]]
        """
        if not start < stop:
            raise EmbeddingError(f"The interval from {start!r} to {stop!r} does not go forward in time.")
        (first, last), shares = self._place(np.array([start, stop], np.float64))
        ends = self._within(np.array([first, last]), shares)
        if self.coordinates.time:
            ends[:, -1] = start, stop
        inside = slice(first + (shares[0] == 1), last)
        if stop == self.horizon:
            return np.concatenate([ends[:1], self.positions[inside.start :]])
        return np.concatenate([ends[:1], self.positions[inside], ends[1:]])

    def deviation(self, other: "RealisedPath") -> Float64[np.ndarray, "letter"]:
        """Largest difference from another path at any u, for each coordinate: the uniform topology of the paper.

        Infinite if their auxiliary times have different lengths, because such paths are in different components.

        >>> from logcde.embedding import Embedding
        >>> from logcde.paths.realisation import realise
        >>> from logcde.streams import Streams
        >>> streams = Streams.from_arrays([[1.0], [1.5]], [[[3.0]], [[2.0]]], horizon=2.0)
        >>> realise(streams, Embedding())[0].deviation(realise(streams, Embedding())[1])
        array([2. , 0.5, 0.5])
        """
        if self.basis.letters != other.basis.letters:
            raise EmbeddingError(
                f"A path over the letters {listed(self.basis.letters)} and one over {listed(other.basis.letters)} "
                "cannot be compared.",
                "Realise both with one embedding and one schema.",
            )
        end = min(self.u[-1], other.u[-1])
        if not np.isclose(self.u[-1], other.u[-1], rtol=1e-12, atol=0):
            return np.full(self.basis.width, np.inf)
        everywhere = np.minimum(np.union1d(self.u, other.u), end)
        return np.abs(self(everywhere) - other(everywhere)).max(axis=0)

    def _place(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The vertex that ends the segment on which the path reaches a time, and the share of the segment before it."""
        times = self.times
        outside = ~((time >= 0) & (time <= times[-1]))
        if outside.any():
            raise EmbeddingError(
                f"The time {float(time[outside].flat[0])!r} is not on this path, which ends at {self.horizon!r}.",
                where=Where(series=self.ids.tolist()[0]),
            )
        vertex = np.asarray(np.searchsorted(times, time, side="left"))
        before = times[np.maximum(vertex - 1, 0)]
        length = times[vertex] - before
        share = np.divide(time - before, length, out=np.ones_like(time), where=length > 0)
        # A share of one stands for the vertex itself, so rounding must not produce it.
        return vertex, np.where(times[vertex] == time, 1.0, np.minimum(share, np.nextafter(1.0, 0.0)))

    def _within(self, vertex: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Points on the segments to these vertices; coordinates that a segment does not move stay exactly the same."""
        before, after = self.positions[np.maximum(vertex - 1, 0)], self.positions[vertex]
        return np.where(share[..., None] < 1, before + share[..., None] * (after - before), after)

    def __repr__(self) -> str:
        letters = listed(self.basis.letters)
        return f"RealisedPath(series {name(self.ids[0])}: {len(self.u)} vertices over {letters}, u to {self.u[-1]})"

"""Controls: paths through observed values that drive an NCDE, one row of numbers for each of their pieces.

`HermiteControl` is that of the NCDE in the paper's experiments, `LinearControl` and `RectilinearControl` are its usual
alternatives. Pieces end at observations and at query points, so that there can be a prediction at any time. Linear and
Hermite paths look ahead: between two observations of a channel they depend on the later one, before the first they have
its value already, and at a query point they know an observation that is stamped there. Only the rectilinear path is
causal, with the half-open intervals of the embedding.
"""

import abc

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int

from logcde.algebra import Basis
from logcde.embedding import Coordinates, Opening, opening_of
from logcde.errors import ModelError
from logcde.flows.interpolation import Points, jumps_of, knots_of, points_of, stretches_of
from logcde.streams import Cuts, Partition, Schema, Streams
from logcde.streams.ragged import offsets_of, owners


class Controls(eqx.Module):
    """The pieces of the controls of many series, zero beyond a series' own number of pieces.

    A row has the coefficients of 1, s, s^2, ... of the path's derivative, all letters for each, in time s that goes
    from 0 to 1 over a piece: for straight pieces just the increment. `ends` is the piece that ends at each query point
    and `queries` how many of these there are.
    """

    values: Float[Array | np.ndarray, "series piece entry"]
    lengths: Int[Array | np.ndarray, "series"]
    basis: Basis = eqx.field(static=True)
    opening: Opening
    ends: Int[Array | np.ndarray, "series query"]
    queries: Int[Array | np.ndarray, "series"]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, series: slice | np.ndarray | list) -> "Controls":
        """The chosen series, by slice, mask or array of positions."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    def __repr__(self) -> str:
        series, pieces, _ = self.values.shape
        return f"Controls({series} series, up to {pieces} pieces, letters {', '.join(self.basis.letters)})"


class AbstractControl(eqx.Module):
    """A way to draw a path through observations. `time` adds time as a last letter; `dtype` is that of the rows."""

    time: eqx.AbstractVar[bool]
    dtype: eqx.AbstractVar[DTypeLike]

    def basis(self, schema: Schema) -> Basis:
        """The letters of the path for streams of this schema.

        >>> HermiteControl().basis(Schema(("a", "b"))).labels
        ('a', 'b', 'time')
        """
        return Coordinates(schema, depth=1, counts=False, time=self.time).basis

    def __call__(self, streams: Streams, partition: Partition) -> Controls:
        """The path of every series from its first query point to its last, in pieces."""
        if streams.schema.continuous:
            raise ModelError(
                f"The streams have continuous channels ({', '.join(streams.schema.continuous)}), which controls do not "
                "read. Use an Embedding and a Log-NCDE, or leave them out."
            )
        cuts = partition.cuts(streams)
        points = points_of(streams, cuts)
        first, last = points.of_cuts[cuts.offsets[:-1]], points.of_cuts[cuts.offsets[1:] - 1]
        numbers = np.arange(len(points.times))
        begins = np.flatnonzero((first[points.series] <= numbers) & (numbers < last[points.series]))
        rows, keys = self.pieces(streams, points, begins, first, last)
        owner = points.series[keys // 2]
        lengths = np.bincount(owner, minlength=len(streams))
        offsets = offsets_of(lengths)
        values = np.zeros((len(streams), lengths.max(initial=0), rows.shape[1]), self.dtype)
        values[owner, np.arange(len(owner)) - offsets[owner]] = rows
        ends, queries = _ends(keys, offsets, points, cuts)
        return Controls(values, lengths, self.basis(streams.schema), opening_of(streams), ends, queries)

    @abc.abstractmethod
    def pieces(
        self, streams: Streams, points: Points, begins: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[Float[np.ndarray, "piece entry"], Int[np.ndarray, "piece"]]:
        """The rows of all pieces in order, and an increasing key for each.

        `begins` are the points where a stretch of time begins, `first` and `last` those where each series does and
        ends. The key of a piece is 2 p + 1 if it leads from point p to the next, 2 p if it happens at point p.
        """

    def _clock(self, points: Points, begins: np.ndarray) -> Float[np.ndarray, "stretch clock"]:
        """How long each stretch takes, if time is a letter."""
        return (points.times[begins + 1] - points.times[begins])[:, None][:, : int(self.time)]


class HermiteControl(AbstractControl):
    """Cubic pieces with backward differences: as smooth as a control can be that looks no further than one knot ahead.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [4.0]]], channels=["pulse"])
    >>> HermiteControl()(streams, Partition.uniform(1)).values[0, 1]  # pulse and time: of 1, of s, of s^2
    array([ 1.,  1.,  4.,  0., -3.,  0.])
    """

    time: bool = eqx.field(default=True, static=True)
    dtype: DTypeLike = eqx.field(default=np.float64, static=True)

    def pieces(
        self, streams: Streams, points: Points, begins: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[Float[np.ndarray, "piece entry"], Int[np.ndarray, "piece"]]:
        """One for each stretch: three coefficients for each letter."""
        curves = stretches_of(streams, points, begins).hermite()
        clock = np.pad(self._clock(points, begins)[:, None], ((0, 0), (0, 2), (0, 0)))
        return np.concatenate([curves, clock], axis=2).reshape(len(begins), -1), 2 * begins + 1


class LinearControl(AbstractControl):
    """Straight lines between the observations of each channel.

    >>> streams = Streams.from_arrays([[0.0, 2.0]], [[[1.0], [5.0]]], channels=["pulse"])
    >>> controls = LinearControl()(streams, Partition.at([0.0, 0.5, 2.0]))
    >>> controls.values[0], controls.ends[0]
    (array([[1. , 0.5],
           [3. , 1.5]]), array([0, 1]))
    """

    time: bool = eqx.field(default=True, static=True)
    dtype: DTypeLike = eqx.field(default=np.float64, static=True)

    def pieces(
        self, streams: Streams, points: Points, begins: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[Float[np.ndarray, "piece entry"], Int[np.ndarray, "piece"]]:
        """One for each stretch: the increment of each letter."""
        lines = stretches_of(streams, points, begins).linear()
        return np.concatenate([lines, self._clock(points, begins)], axis=1), 2 * begins + 1


class RectilinearControl(AbstractControl):
    """Time goes on while values stay, then values move while time stays: causal, from base point zero.

    An observation at a query point moves the path in the next interval, one at the horizon in the last.

    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[1.0], [5.0]]], channels=["pulse"])
    >>> RectilinearControl()(streams, Partition.uniform(1)).values[0]
    array([[0. , 0.5],
           [1. , 0. ],
           [0. , 1.5],
           [4. , 0. ]])
    """

    time: bool = eqx.field(default=True, static=True)
    dtype: DTypeLike = eqx.field(default=np.float64, static=True)

    def pieces(
        self, streams: Streams, points: Points, begins: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[Float[np.ndarray, "piece entry"], Int[np.ndarray, "piece"]]:
        """One for each stretch, in which time goes on, and one for each event."""
        events = _seen(streams, points, first, last)
        clock = self._clock(points, begins)
        channels = len(streams.schema.channels)
        still = np.pad(clock, ((0, 0), (channels, 0)))
        moves = np.pad(jumps_of(streams, events), ((0, 0), (0, clock.shape[1])))
        keys = np.concatenate([2 * begins + 1, 2 * points.of_events[events]])
        order = np.argsort(keys)
        return np.concatenate([still, moves])[order], keys[order]


class HeldControl(AbstractControl):
    """What a recurrent network is fed: no path, but a row of numbers at each event and at each query point.

    A row has the last value of each channel, 0 before the first; whether it is observed now, 1 or 0; and how long ago
    the channel was last observed before now, or the series began. At a query point nothing is observed.

    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[1.0, np.nan], [5.0, 7.0]]], channels=["pulse", "temp"])
    >>> HeldControl()(streams, Partition.uniform(1)).values[0, :, :4]
    array([[1., 0., 1., 0.],
           [1., 0., 0., 0.],
           [5., 7., 1., 1.]])
    """

    time: bool = eqx.field(default=False, init=False, static=True)
    dtype: DTypeLike = eqx.field(default=np.float64, static=True)

    def pieces(
        self, streams: Streams, points: Points, begins: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[Float[np.ndarray, "piece entry"], Int[np.ndarray, "piece"]]:
        """One for each event and one for each query point but the first, before what happens there."""
        knots = knots_of(streams, points)
        before = np.roll(knots.latest, 1, axis=0)
        before[np.diff(points.series, prepend=-1) != 0] = -1
        ago = points.times[:, None] - np.where(before >= 0, knots.times[before], 0.0)
        events = points.of_events[_seen(streams, points, first, last)]
        queried = np.zeros(len(points.times), bool)
        queried[points.of_cuts] = True
        queries = begins[queried[begins + 1]] + 1
        at_events = (knots.values[knots.latest[events]], knots.observed[events], ago[events])
        at_queries = (knots.values[before[queries]], np.zeros_like(knots.observed[queries]), ago[queries])
        rows = np.concatenate([np.concatenate(part, axis=1) for part in (at_events, at_queries)])
        keys = np.concatenate([2 * events, 2 * queries - 1])
        order = np.argsort(keys)
        return rows[order], keys[order]


def _seen(streams: Streams, points: Points, first: np.ndarray, last: np.ndarray) -> Int[np.ndarray, "event"]:
    """The events from a series' first query point to its last, without one there unless it is the horizon."""
    place, series = points.of_events, owners(streams.offsets)
    final = (place == last[series]) & (streams.times == streams.horizon[series])
    return np.flatnonzero((first[series] <= place) & ((place < last[series]) | final))


def _ends(
    keys: Int[np.ndarray, "piece"], offsets: Int[np.ndarray, "_"], points: Points, cuts: Cuts
) -> tuple[Int[np.ndarray, "series query"], Int[np.ndarray, "series"]]:
    """The piece that ends at each query point but the first, and how many of these a series has."""
    queries = np.diff(cuts.offsets) - 1
    owner = owners(cuts.offsets)
    number = np.arange(len(owner)) - cuts.offsets[owner]
    # What happens at a query point belongs to the next interval, at the last one to the last interval.
    before = 2 * points.of_cuts + (number == queries[owner])
    end = np.searchsorted(keys, before) - 1 - offsets[owner]
    ends = np.zeros((len(queries), queries.max(initial=0)), np.int64)
    inner = number > 0
    ends[owner[inner], number[inner] - 1] = end[inner]
    return ends, queries

"""Paths through observed values, cut into pieces at observations and at query points.

Every channel has knots of its own: between two observations of a channel its path does not know of those of others.
Before a channel's first observation its path is constant, at the first value where the interpolation looks ahead and at
zero where it does not; after the last it is constant, and a channel that is never observed is zero. The numbers are
those that Diffrax has for each channel alone. Its functions are not used, because they compile anew for each length,
give NaN for a channel that is never observed, and bend a channel's cubic where another channel is observed.

Controls: paths through observed values that drive an NCDE, one row of numbers for each of their pieces.

`HermiteControl` is that of the NCDE in the paper's experiments, `LinearControl` and `RectilinearControl` are its usual
alternatives. Pieces end at observations and at query points, so that there can be a prediction at any time. Linear and
Hermite paths look ahead: between two observations of a channel they depend on the later one, before the first they have
its value already, and at a query point they know an observation that is stamped there. Only the rectilinear path is
causal, with the half-open intervals of the embedding.
"""

import abc
import dataclasses

import equinox as eqx
import numpy as np
from jaxtyping import Bool, DTypeLike, Float, Float64, Int, Int64

from logcde.algebra import Basis
from logcde.embedding import Coordinates, initial_observations
from logcde.embedding.factors import increments_of
from logcde.errors import ModelError
from logcde.models.inputs import Controls
from logcde.streams import Cuts, Partition, Schema, Streams
from logcde.streams.ragged import offsets_of, owners


@dataclasses.dataclass(frozen=True)
class Points:
    """Stamps of events and query points of all series, sorted, each once; and where the events and query points are."""

    series: Int64[np.ndarray, "point"]
    times: Float64[np.ndarray, "point"]
    of_events: Int64[np.ndarray, "event"]
    of_cuts: Int64[np.ndarray, "cut"]


def points_of(streams: Streams, cuts: Cuts) -> Points:
    """All points where a piece may begin or end.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [3.0]]])
    >>> points_of(streams, Cuts(np.array([0, 3]), np.array([0.0, 1.5, 2.0]))).times
    array([0. , 1. , 1.5, 2. ])
    """
    series = np.concatenate([owners(streams.offsets), owners(cuts.offsets)])
    times = np.concatenate([streams.times, cuts.points])
    order = np.lexsort((times, series))
    series, times = series[order], times[order]
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(series) > 0) | (np.diff(times) > 0)
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(new) - 1
    return Points(series[new], times[new], *np.split(place, [len(streams.times)]))


@dataclasses.dataclass(frozen=True)
class Stretches:
    """For each stretch between two neighbouring points and each channel, the knots of the channel around it.

    `rise` is the change from the knot before to the knot after, `tangent` that which the slope at the first would make,
    `begin` where between them (0 to 1) the stretch starts and `share` how much of it there is. Where the path is
    constant, `rise` and `tangent` are zero.
    """

    rise: Float64[np.ndarray, "stretch channel"]
    tangent: Float64[np.ndarray, "stretch channel"]
    begin: Float64[np.ndarray, "stretch channel"]
    share: Float64[np.ndarray, "stretch channel"]

    def linear(self) -> Float64[np.ndarray, "stretch channel"]:
        """The increment along the straight line between the knots."""
        return self.share * self.rise

    def hermite(self) -> Float64[np.ndarray, "stretch 3 channel"]:
        """The derivative along the cubic, in time that goes from 0 to 1: coefficients of 1, s and s^2.

        The slope at each knot is that of the straight line that ends there; at the first, of the one that begins there.
        """
        # Between the knots, x' = m + 4 (r - m) s - 3 (r - m) s^2; then s = begin + share s'.
        bend = self.rise - self.tangent
        at_begin = self.tangent + bend * self.begin * (4 - 3 * self.begin)
        change = bend * (4 - 6 * self.begin)
        return np.stack([self.share * at_begin, self.share**2 * change, self.share**3 * -3 * bend], axis=1)


@dataclasses.dataclass(frozen=True)
class Knots:
    """Observations sorted by series, channel and time, so that the next one of a channel is the next row.

    One more row, the last, stands for "there is none". `latest` is the row of each channel's last observation up to and
    including each point, and `observed` whether it is at that point.
    """

    owner: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "_"]
    values: Float64[np.ndarray, "_"]
    latest: Int64[np.ndarray, "point channel"]
    observed: Bool[np.ndarray, "point channel"]


def knots_of(streams: Streams, points: Points) -> Knots:
    """Every channel's own knots, and which of them are known at each point."""
    channels = len(streams.schema.channels)
    event = owners(streams.obs_offsets)
    series = owners(streams.offsets)[event]
    order = np.lexsort((event, streams.channel, series))
    event, channel = event[order], streams.channel[order]
    owner = np.append(series[order] * channels + channel, -1)
    # Rows of a channel are numbered in the order of points, so the latest has the largest number.
    rows = np.full((len(points.times), channels), -1)
    rows[points.of_events[event], channel] = np.arange(len(event))
    latest = np.maximum.accumulate(rows, axis=0)
    latest[owner[latest] != points.series[:, None] * channels + np.arange(channels)] = -1
    times, values = np.append(streams.times[event], 0.0), np.append(streams.value[order], 0.0)
    return Knots(owner, times, values.astype(np.float64), latest, rows >= 0)


def stretches_of(streams: Streams, points: Points, begins: Int64[np.ndarray, "stretch"]) -> Stretches:
    """The knots around the stretches that begin at these points."""
    knots = knots_of(streams, points)
    follows = np.append(knots.owner[1:] == knots.owner[:-1], False)
    rise = np.where(follows, np.append(np.diff(knots.values), 0.0), 0.0)
    gap = np.where(follows, np.append(np.diff(knots.times), 1.0), 1.0)
    slope = rise / gap
    tangent = np.where(np.roll(follows, 1), np.roll(slope, 1), slope) * gap * follows
    knot = knots.latest[begins]
    start, stop = points.times[begins, None], points.times[begins + 1, None]
    return Stretches(rise[knot], tangent[knot], (start - knots.times[knot]) / gap[knot], (stop - start) / gap[knot])


def jumps_of(streams: Streams, events: Int64[np.ndarray, "jump"]) -> Float64[np.ndarray, "jump channel"]:
    """How far each channel moves at these events, since its previous observation or from zero."""
    moves = np.zeros((len(streams.times), len(streams.schema.channels)))
    moves[owners(streams.obs_offsets), streams.channel] = increments_of(streams)
    return moves[events]


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
        return Controls(values, lengths, self.basis(streams.schema), initial_observations(streams), ends, queries)

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

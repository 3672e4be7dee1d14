"""Controls: paths through observed values that drive the baselines, one row of numbers for each piece.

`HermiteControl` drives the NCDE of the paper's experiments, `LinearControl` and `RectilinearControl` are the usual
alternatives, `HeldControl` is for GRU-D. Pieces end at observations and at query points, so that there can be a
prediction at any time. Linear and Hermite paths use later observations: between two observations of a channel they
depend on the second, before the first they already have its value, and at a query point they depend on an observation
with that stamp. Only the rectilinear path is causal, with the half-open intervals of the embedding.

Every channel has knots of its own: its path between two observations does not depend on other channels. Before the
first observation the path is constant, at the first value for linear and Hermite paths and at zero for the rectilinear
one; after the last it is constant, and a channel that is never observed is zero. The numbers are those of Diffrax for
each channel alone. Its functions are not used because they compile anew for each length, give NaN for a channel that is
never observed, and bend a channel's cubic where another channel is observed.
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
    """The stamps of events and query points of all series, sorted, without repetition.

    Attributes:
        series: The series of each point.
        times: The time of each point.
        of_events: The point of each event.
        of_cuts: The point of each query point.
    """

    series: Int64[np.ndarray, "point"]
    times: Float64[np.ndarray, "point"]
    of_events: Int64[np.ndarray, "event"]
    of_cuts: Int64[np.ndarray, "cut"]


def points_of(streams: Streams, cuts: Cuts) -> Points:
    """All points where a piece may start or end.

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
    """For each stretch between two neighbouring points and each channel, the two knots that enclose it.

    Attributes:
        rise: The change of the value from the first knot to the second; zero where the path is constant.
        tangent: The change that the slope at the first knot would give; zero where the path is constant.
        begin: The start of the stretch as a share of the time between the knots.
        share: The length of the stretch as a share of the time between the knots.
    """

    rise: Float64[np.ndarray, "stretch channel"]
    tangent: Float64[np.ndarray, "stretch channel"]
    begin: Float64[np.ndarray, "stretch channel"]
    share: Float64[np.ndarray, "stretch channel"]

    def linear(self) -> Float64[np.ndarray, "stretch channel"]:
        """The increment along the straight line between the knots."""
        return self.share * self.rise

    def hermite(self) -> Float64[np.ndarray, "stretch 3 channel"]:
        """The derivative along the cubic in time s from 0 to 1: coefficients of 1, s and s^2.

        The slope at a knot is that of the line from the knot before; at the first knot, of the line to the next.
        """
        # Between the knots, x' = m + 4 (r - m) s - 3 (r - m) s^2; then s = begin + share s'.
        bend = self.rise - self.tangent
        at_begin = self.tangent + bend * self.begin * (4 - 3 * self.begin)
        change = bend * (4 - 6 * self.begin)
        return np.stack([self.share * at_begin, self.share**2 * change, self.share**3 * -3 * bend], axis=1)


@dataclasses.dataclass(frozen=True)
class Knots:
    """Observations sorted by series, channel and time, so that a channel's next one is the next row.

    Attributes:
        owner: Series times channels plus channel of each row; -1 for one more row at the end, which means "none".
        times: The time of each row.
        values: The value of each row.
        latest: The row of each channel's last observation up to and including each point.
        observed: Whether that observation is at the point itself.
    """

    owner: Int64[np.ndarray, "_"]
    times: Float64[np.ndarray, "_"]
    values: Float64[np.ndarray, "_"]
    latest: Int64[np.ndarray, "point channel"]
    observed: Bool[np.ndarray, "point channel"]


def knots_of(streams: Streams, points: Points) -> Knots:
    """The knots of every channel, and the latest one at each point."""
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
    """The stretches that start at these points."""
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
    """The change of each channel at these events, since its previous observation or from zero."""
    moves = np.zeros((len(streams.times), len(streams.schema.channels)))
    moves[owners(streams.obs_offsets), streams.channel] = increments_of(streams)
    return moves[events]


class AbstractControl(eqx.Module):
    """A rule that turns observations into a path. Subclasses give its pieces.

    Attributes:
        time: Whether time is the last letter of the path.
        dtype: The dtype of the rows.
    """

    time: eqx.AbstractVar[bool]
    dtype: eqx.AbstractVar[DTypeLike]

    def basis(self, schema: Schema) -> Basis:
        """The letters of the path for streams of this schema.

        >>> HermiteControl().basis(Schema(("a", "b"))).labels
        ('a', 'b', 'time')
        """
        return Coordinates(schema, depth=1, counts=False, time=self.time).basis

    def __call__(self, streams: Streams, partition: Partition) -> Controls:
        """The path of every series from its first query point to its last.

        Args:
            streams: The series; continuous channels other than time are refused.
            partition: The query points.
        """
        if streams.schema.continuous:
            raise ModelError(
                f"The streams have continuous channels ({', '.join(streams.schema.continuous)}), which controls do not "
                "take.",
                "Use an Embedding and a Log-NCDE, or remove these channels.",
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

        Args:
            streams: The series.
            points: All stamps.
            begins: The points where a stretch of time starts.
            first: The first query point of each series.
            last: The last query point of each series.

        Returns:
            Rows and keys. The key of a piece is 2 p + 1 if it leads from point p to the next, 2 p if it is at point p.
        """

    def _clock(self, points: Points, begins: np.ndarray) -> Float[np.ndarray, "stretch clock"]:
        """The duration of each stretch, if time is a letter."""
        return (points.times[begins + 1] - points.times[begins])[:, None][:, : int(self.time)]


class HermiteControl(AbstractControl):
    """Cubic Hermite pieces with backward differences: continuously differentiable, and at most one knot ahead.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [4.0]]], channels=["pulse"])
    >>> HermiteControl()(streams, Partition.uniform(1)).values[0, 1]  # pulse and time: of 1, of s, of s^2
    array([ 1.,  1.,  4.,  0., -3.,  0.])
    """

    time: bool = eqx.field(default=True, static=True)
    dtype: DTypeLike = eqx.field(default=np.float64, static=True)

    def pieces(
        self, streams: Streams, points: Points, begins: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[Float[np.ndarray, "piece entry"], Int[np.ndarray, "piece"]]:
        """One piece for each stretch: three coefficients for each letter."""
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
        """One piece for each stretch: the increment of each letter."""
        lines = stretches_of(streams, points, begins).linear()
        return np.concatenate([lines, self._clock(points, begins)], axis=1), 2 * begins + 1


class RectilinearControl(AbstractControl):
    """Time advances while values stay, then values jump while time stays: causal, from base point zero.

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
        """One piece for each stretch, in which time advances, and one for each event."""
        events = _seen(streams, points, first, last)
        clock = self._clock(points, begins)
        channels = len(streams.schema.channels)
        still = np.pad(clock, ((0, 0), (channels, 0)))
        moves = np.pad(jumps_of(streams, events), ((0, 0), (0, clock.shape[1])))
        keys = np.concatenate([2 * begins + 1, 2 * points.of_events[events]])
        order = np.argsort(keys)
        return np.concatenate([still, moves])[order], keys[order]


class HeldControl(AbstractControl):
    """The inputs of a recurrent network: no path, but one row for each event and each query point.

    A row has the last value of each channel, 0 before the first; whether it is observed now, 1 or 0; and the time since
    its last observation before now, or since the start of the series. At a query point nothing is observed.

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
        """One row for each event, and one for each query point but the first, before an event there."""
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
    """Events from each series' first query point up to its last; an event at the last counts at the horizon only."""
    place, series = points.of_events, owners(streams.offsets)
    final = (place == last[series]) & (streams.times == streams.horizon[series])
    return np.flatnonzero((first[series] <= place) & ((place < last[series]) | final))


def _ends(
    keys: Int[np.ndarray, "piece"], offsets: Int[np.ndarray, "_"], points: Points, cuts: Cuts
) -> tuple[Int[np.ndarray, "series query"], Int[np.ndarray, "series"]]:
    """The piece that ends at each query point but the first, and the number of these of each series."""
    queries = np.diff(cuts.offsets) - 1
    owner = owners(cuts.offsets)
    number = np.arange(len(owner)) - cuts.offsets[owner]
    # An event at a query point belongs to the next interval; at the last one, to the last interval.
    before = 2 * points.of_cuts + (number == queries[owner])
    end = np.searchsorted(keys, before) - 1 - offsets[owner]
    ends = np.zeros((len(queries), queries.max(initial=0)), np.int64)
    inner = number > 0
    ends[owner[inner], number[inner] - 1] = end[inner]
    return ends, queries

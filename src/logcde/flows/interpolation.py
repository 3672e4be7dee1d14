"""Paths through observed values, cut into pieces at observations and at query points.

Every channel has knots of its own: between two observations of a channel its path does not know of those of others.
Before a channel's first observation its path is constant, at the first value where the interpolation looks ahead and at
zero where it does not; after the last it is constant, and a channel that is never observed is zero. The numbers are
those that Diffrax has for each channel alone. Its functions are not used, because they compile anew for each length,
give NaN for a channel that is never observed, and bend a channel's cubic where another channel is observed.
"""

import dataclasses

import numpy as np
from jaxtyping import Bool, Float64, Int64

from logcde.embedding.factors import increments_of
from logcde.streams import Cuts, Streams
from logcde.streams.ragged import owners


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

"""From observations to factors: one sparse Lie element for each event, and the events of each query interval.

Implements `eq:event_increment_method` of the paper and the assignment of events to half-open intervals. Gaps of time
are left to the kernels, which know the stamps; with further continuous
channels, gaps become factors of their own.
"""

import dataclasses

import numpy as np
from jaxtyping import Float64, Int32, Int64

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.gaps import weave
from logcde.kernels.events import increments, locate
from logcde.kernels.threads import spread
from logcde.streams import Cuts, Streams


@dataclasses.dataclass(frozen=True)
class Factors:
    """Lie elements in the order in which they are composed, each with entries (letter, amount) of degree one.

    If `Coordinates.counted`, an entry of a channel's value stands for its count as well. `terms` are the coordinates
    above degree one, for those in `Coordinates.term_support`. `timed` says that gaps of time between the stamps are
    still to be composed.
    """

    times: Float64[np.ndarray, "factor"]
    entry_offsets: Int64[np.ndarray, "_"]
    letters: Int32[np.ndarray, "entry"]
    amounts: Float64[np.ndarray, "entry"]
    terms: Float64[np.ndarray, "factor support"]
    timed: bool


@dataclasses.dataclass(frozen=True)
class Intervals:
    """Query intervals of all series, one after another: factors `begin` to `end`, from `start` to `stop`."""

    series: Int64[np.ndarray, "interval"]
    begin: Int64[np.ndarray, "interval"]
    end: Int64[np.ndarray, "interval"]
    start: Float64[np.ndarray, "interval"]
    stop: Float64[np.ndarray, "interval"]

    def __len__(self) -> int:
        return len(self.series)


def intervals_of(streams: Streams, cuts: Cuts) -> Intervals:
    """Which events each interval holds; one that ends at the horizon also takes an event there.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[1.0], [2.0], [3.0]]])
    >>> found = intervals_of(streams, Cuts(np.array([0, 3]), np.array([0.0, 1.0, 2.0])))
    >>> found.begin, found.end
    (array([0, 1]), array([1, 3]))
    """
    count = len(cuts.points) - len(streams)  # every series has one point more than intervals
    found = Intervals(*np.empty((3, count), np.int64), *np.empty((2, count)))
    columns = (streams.offsets, streams.times, streams.horizon, cuts.offsets, cuts.points)
    spread(locate, np.diff(cuts.offsets), *columns, found.series, found.begin, found.end, found.start, found.stop)
    return found


def increments_of(streams: Streams, threads: int | None = None) -> Float64[np.ndarray, "obs"]:
    """Each observation's change since the previous one of its channel, from base point zero.

    >>> increments_of(Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]]))
    array([2., 7., 3.])
    """
    out = np.empty(len(streams.value))
    channels = len(streams.schema.channels)
    columns = (streams.offsets, streams.obs_offsets, streams.channel, streams.value)
    spread(increments, np.diff(streams.offsets), *columns, channels, out, threads=threads)
    return out


def entries_of(
    streams: Streams, coordinates: Coordinates, threads: int | None = None
) -> tuple[Int32[np.ndarray, "obs entry"], Float64[np.ndarray, "obs entry"]]:
    """The letters that each observation moves, and by how much; the letter of a plain count is left out.

    >>> streams = Streams.from_arrays([[0.0, 1.0]], [[[2.0, 7.0], [5.0, np.nan]]])
    >>> entries_of(streams, Coordinates(streams.schema, depth=2, counts=True, time=True))[1].tolist()
    [[2.0], [7.0], [3.0]]
    """
    change = increments_of(streams, threads)
    if coordinates.hats is None:
        return streams.channel[:, None], change[:, None]
    return coordinates.hats.entries(streams.channel, streams.value, change, threads)


def factors_of(
    streams: Streams, intervals: Intervals, coordinates: Coordinates, threads: int | None = None
) -> tuple[Factors, Intervals]:
    """All factors, and the intervals in terms of them."""
    support = coordinates.term_support
    terms = streams.terms @ coordinates.term_coordinates[:, support]
    letters, amounts = entries_of(streams, coordinates, threads)
    events = Factors(
        streams.times,
        streams.obs_offsets * letters.shape[1],
        letters.reshape(-1),
        amounts.reshape(-1),
        terms,
        timed=coordinates.time,
    )
    if streams.knots is None:
        return events, intervals
    first = coordinates.discrete
    columns, begin, end = weave(
        streams, intervals.series, intervals.begin, intervals.end, intervals.start, intervals.stop,
        events.entry_offsets, events.letters, events.amounts, events.terms, first, coordinates.time,
    )  # fmt: skip
    return Factors(*columns, timed=False), dataclasses.replace(intervals, begin=begin, end=end)

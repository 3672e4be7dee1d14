"""Named records of the arrays that kernels take together: each field is documented here, once.

Numba passes a NamedTuple between compiled functions at no cost, but a call from Python with a record of five arrays
takes more than twice as long as one with the arrays (about 1.2 instead of 0.5 microseconds). That is nothing for a call
that composes many intervals, and too much for a call that composes one event, so the entry points of
`logcde.kernels.online` and `logcde.kernels.serve` take plain arrays.
"""

from typing import NamedTuple, TypeVar

import numpy as np


class Events(NamedTuple):
    """Observations of many series, end to end.

    Attributes:
        offsets: Series s has the events `offsets[s]` to `offsets[s + 1]`.
        times: The time of each event.
        horizon: The end of each series.
        obs_offsets: Event e has the observations `obs_offsets[e]` to `obs_offsets[e + 1]`.
        channel: The channel of each observation.
        value: The value of each observation.
    """

    offsets: np.ndarray
    times: np.ndarray
    horizon: np.ndarray
    obs_offsets: np.ndarray
    channel: np.ndarray
    value: np.ndarray


class Intervals(NamedTuple):
    """Query intervals [start, stop) of all series, end to end.

    Attributes:
        series: The series of each interval.
        begin: Interval q holds the events (or factors) `begin[q]` to `end[q]`.
        end: See `begin`.
        start: Where each interval starts.
        stop: Where each interval stops.
    """

    series: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    start: np.ndarray
    stop: np.ndarray

    @property
    def size(self) -> int:
        """Number of intervals."""
        return len(self.series)

    def take(self, which: slice | np.ndarray) -> "Intervals":
        """The chosen intervals."""
        return Intervals(*(column[which] for column in self))


class Factors(NamedTuple):
    """Lie elements in the order in which they are composed, each with a few entries (letter, amount) of degree one.

    Attributes:
        times: The time of each factor. If `Alphabet.timed`, the gaps between these times are factors as well.
        entry_offsets: Factor f has the entries `entry_offsets[f]` to `entry_offsets[f + 1]`.
        letters: The letter of each entry. If `Alphabet.counted`, the value of a channel stands for its count, too.
        amounts: How far each entry moves its letter.
        terms: Coordinates above degree one, a row for each factor, with columns as in `TermMap` or in `term_area`.
    """

    times: np.ndarray
    entry_offsets: np.ndarray
    letters: np.ndarray
    amounts: np.ndarray
    terms: np.ndarray


class Alphabet(NamedTuple):
    """The letters of the driving path.

    Attributes:
        channels: Number of channels; their values are the first letters.
        counted: Whether every channel k also has a count, letter `channels + k`.
        timed: Whether time is the last letter and kernels compose the gaps between the times of factors.
        width: Number of all letters.
        depth: Depth of the truncation.
    """

    channels: int
    counted: bool
    timed: bool
    width: int
    depth: int


class TermMap(NamedTuple):
    """Where higher-order terms go in the tensor of a Lie element.

    Attributes:
        offsets: Column c of `Factors.terms` has the entries `offsets[c]` to `offsets[c + 1]`.
        position: The place of each entry in the tensor.
        coefficient: What one unit of the term adds there.
    """

    offsets: np.ndarray
    position: np.ndarray
    coefficient: np.ndarray


class LogMap(NamedTuple):
    """Which entries of a logarithm make up the Lyndon coordinates: one leading entry for each, and some more.

    Coordinate c is `lead_sign[c]` times entry `lead_position[c]`, plus `rest_coefficient[e]` times entry
    `rest_position[e]` for every e with `rest_coordinate[e] == c`; these e are neighbours.

    Attributes:
        lead_position: The place of each coordinate's leading entry.
        lead_sign: Its sign.
        rest_coordinate: The coordinate that each further entry belongs to.
        rest_position: The place of each further entry.
        rest_coefficient: Its coefficient.
    """

    lead_position: np.ndarray
    lead_sign: np.ndarray
    rest_coordinate: np.ndarray
    rest_position: np.ndarray
    rest_coefficient: np.ndarray


class Layout(NamedTuple):
    """How the levels of a tensor lie in one array: see `logcde.kernels.depth_n`.

    Attributes:
        width: Number of letters.
        depth: Depth of the truncation.
        power: `power[n]` is the length of a whole level n.
        offset: `offset[n]` is where level n begins; the last one is the length of the array.
    """

    width: int
    depth: int
    power: np.ndarray
    offset: np.ndarray


class LaneGroup(NamedTuple):
    """Intervals that are composed together, one in each lane: `order[first]` to `order[first + live]`.

    Attributes:
        order: All intervals, sorted by their number of events.
        first: The place of the group in this order.
        live: Number of lanes in use.
    """

    order: np.ndarray
    first: int
    live: int


class TreeQueries(NamedTuple):
    """Products over ranges of leaves, with an element of its own at either end.

    Attributes:
        left: The element before the leaves of each query.
        low: Query q multiplies the leaves `low[q]` to `high[q]`.
        high: See `low`.
        right: The element after the leaves of each query.
    """

    left: np.ndarray
    low: np.ndarray
    high: np.ndarray
    right: np.ndarray


Record = TypeVar("Record", bound=tuple[np.ndarray, ...])


def read_only(record: Record) -> Record:
    """A record of arrays that are contiguous and cannot be written, as views where they are contiguous already.

    Kernels are compiled once for each combination of such properties, of which a record of five arrays has many.

    >>> factors = Factors(np.zeros(2), np.zeros(3, np.int64), np.zeros(4, np.int32), np.zeros(8)[::2], np.zeros((2, 0)))
    >>> {(array.flags.writeable, array.flags.c_contiguous) for array in read_only(factors)}
    {(False, True)}
    """
    views = [np.ascontiguousarray(array).view() for array in record]
    for view in views:
        view.flags.writeable = False
    return type(record)(*views)

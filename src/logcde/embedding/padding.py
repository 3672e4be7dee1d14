"""From ragged streams to arrays of one shape, for the engine in `logcde.embedding.device`.

Everything that is a decision is made here, on the host: which event falls into which interval, what the previous
observation of a channel is, in which order events, query points and knots come (`sec:procedure` in the paper). What is
left for the device is arithmetic on real numbers, which can be traced and differentiated. Padding is the identity:
events that observe nothing and steps that go nowhere. NaN never enters.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float, Int

from logcde.embedding.coordinates import Coordinates
from logcde.streams import Cuts, Streams
from logcde.streams.ragged import owners


class Steps(eqx.Module):
    """The way from the first query point to the last: each step crosses a gap and may end with an event.

    `before` and `after` number the points between which the gap lies: events first, then query points, then knots,
    and last the base point of the continuous channels. `event` is the number of the event, or -1. `starts` marks the
    first step of each interval.
    """

    before: Int[Array, "*series step"]
    after: Int[Array, "*series step"]
    event: Int[Array, "*series step"]
    starts: Bool[Array, "*series step"]


class PaddedStreams(eqx.Module):
    """Streams and their query points as arrays, with a leading axis for series unless it is mapped over.

    To differentiate, replace `values`, `terms`, `times`, `cuts` or the knots with `eqx.tree_at` and keep their order.
    """

    times: Float[Array, "*series event"]
    values: Float[Array, "*series event channel"]
    observed: Bool[Array, "*series event channel"]
    previous: Int[Array, "*series event channel"]
    terms: Float[Array, "*series event term"]
    cuts: Float[Array, "*series cut"]
    knot_times: Float[Array, "*series knot"]
    knot_values: Float[Array, "*series knot continuous"]
    segments: Int[Array, "*series point"]
    steps: Steps
    ends: Int[Array, "*series interval"]
    lengths: Int[Array, "*series"]
    coordinates: Coordinates = eqx.field(static=True)

    def __getitem__(self, series: int | slice | Int[Array | np.ndarray, "_"]) -> "PaddedStreams":
        """The chosen series, as padded as before, so that all batches have one shape."""
        return jax.tree.map(lambda leaf: leaf[series], self)


def pad(streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike = np.float64) -> PaddedStreams:
    """Streams and their query points as arrays of one shape, as large as the largest series needs.

    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5], [0.2, 1.0]], [[[3.0]], [[4.0], [5.0]]])
    >>> coordinates = Coordinates(streams.schema, depth=2, counts=True, time=True)
    >>> padded = pad(streams, Partition.uniform(2).cuts(streams), coordinates)
    >>> padded.values.shape, padded.previous[1, :, 0].tolist()
    ((2, 2, 1), [-1, 0])
    """
    events = _Rows.of(streams.offsets, least=1)
    points = _Rows.of(cuts.offsets)
    knots = _Rows.of(np.zeros(len(streams) + 1, np.int64) if streams.knots is None else streams.knots.offsets)
    knot_times = np.zeros(0) if streams.knots is None else streams.knots.times
    knot_values = np.zeros((0, 0)) if streams.knots is None else streams.knots.values
    path = _walk(streams, events, points, knots, cuts.points, knot_times)

    obs_event = owners(streams.obs_offsets)
    places = (events.series[obs_event], events.place[obs_event], streams.channel)
    shape = (*events.shape, coordinates.channels)
    numbers = {
        "times": events.fill(streams.times),
        "values": _dense(shape, places, streams.value),
        "terms": events.fill(streams.terms),
        "cuts": points.fill(cuts.points),
        "knot_times": knots.fill(knot_times),
        "knot_values": knots.fill(knot_values),
    }
    indices = {
        "previous": _dense(shape, places, _previous(streams, events, obs_event), -1),
        "segments": path.segments,
        "ends": path.ends,
        "lengths": np.diff(cuts.offsets) - 1,
    }
    return PaddedStreams(
        **{name: jnp.asarray(array.astype(dtype)) for name, array in numbers.items()},
        **{name: jnp.asarray(array.astype(np.int32)) for name, array in indices.items()},
        observed=jnp.asarray(_dense(shape, places, True)),
        steps=path.steps,
        coordinates=coordinates,
    )


class _Rows(NamedTuple):
    """For elements of ragged rows: their series, their place in it, and the shape of the padded array."""

    series: np.ndarray
    place: np.ndarray
    shape: tuple[int, int]

    @staticmethod
    def of(offsets: np.ndarray, least: int = 0) -> "_Rows":
        series = owners(offsets)
        longest = np.diff(offsets).max(initial=least)
        return _Rows(series, np.arange(len(series)) - offsets[series], (len(offsets) - 1, int(longest)))

    def fill(self, elements: np.ndarray) -> np.ndarray:
        return _dense((*self.shape, *elements.shape[1:]), (self.series, self.place), elements)


class _Walk(NamedTuple):
    steps: Steps
    ends: np.ndarray
    segments: np.ndarray


def _walk(
    streams: Streams, events: _Rows, points: _Rows, knots: _Rows, cuts: np.ndarray, knot_times: np.ndarray
) -> _Walk:
    """Merge events, query points and knots of every series into one sequence of steps."""
    begins, finishes = events.shape[1], events.shape[1] + points.shape[1]
    base = finishes + knots.shape[1]
    series = np.concatenate([events.series, points.series, knots.series])
    number = np.concatenate([events.place, begins + points.place, finishes + knots.place])
    times = np.concatenate([streams.times, cuts, knot_times])
    is_event, is_cut = number < begins, (number >= begins) & (number < finishes)
    # At one time: knots, then the query point that ends the interval, then the event, which belongs to the next one.
    # Only at the horizon there is no next one.
    rank = np.where(is_event, 2, np.where(is_cut, 1, 0)) + 2 * (is_cut & (times == streams.horizon[series]))
    order = np.lexsort((rank, times, series))
    series, number, is_event, is_cut = series[order], number[order], is_event[order], is_cut[order]

    first = np.searchsorted(series, np.arange(len(streams)))
    segment = _running(number >= finishes, first, series) - 1
    last_segment = np.bincount(knots.series, minlength=len(streams))[series] - 2
    segments = _dense((len(streams), base), (series, number), np.maximum(np.minimum(segment, last_segment), 0))

    # The base point of the continuous channels is where the first step starts if that is at time zero; as a step of
    # its own, from 0 to C_0, it is the factor B_C. Time starts at zero and needs none.
    passed = _running(is_cut, first, series)
    opening = is_cut & (passed == 1)
    rooted = opening & (times[order] == 0) & bool(streams.schema.continuous)
    intervals = np.bincount(points.series, minlength=len(streams))[series] - 1
    inside = rooted | (~opening & (passed >= 1) & (passed - is_cut <= intervals))
    kept = np.flatnonzero(inside)
    rows = _Rows.of(np.searchsorted(series[kept], np.arange(len(streams) + 1)))
    ending = is_cut[kept] & ~rooted[kept]
    before = np.where(rooted[kept], base, number[kept - 1])
    steps = Steps(
        before=jnp.asarray(rows.fill(before).astype(np.int32)),
        after=jnp.asarray(rows.fill(number[kept]).astype(np.int32)),
        event=jnp.asarray(_dense(rows.shape, rows[:2], np.where(is_event, number, -1)[kept], -1).astype(np.int32)),
        starts=jnp.asarray(rows.fill(np.concatenate([[True], ending])[: len(ending)])),
    )
    places = (rows.series[ending], number[kept][ending] - begins - 1)
    ends = _dense((len(streams), points.shape[1] - 1), places, rows.place[ending])
    return _Walk(steps, ends, segments)


def _previous(streams: Streams, events: _Rows, obs_event: np.ndarray) -> np.ndarray:
    """For every observation the event, counted in its series, that last observed its channel; -1 if none did."""
    series = events.series[obs_event]
    order = np.lexsort((obs_event, streams.channel, series))
    same = (np.diff(series[order]) == 0) & (np.diff(streams.channel[order]) == 0)
    previous = np.full(len(order), -1)
    previous[order[1:][same]] = events.place[obs_event[order[:-1][same]]]
    return previous


def _running(flags: np.ndarray, first: np.ndarray, series: np.ndarray) -> np.ndarray:
    """How many flags are set up to and including each element, within its series."""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[1:] - total[first[series]]


def _dense(shape: tuple[int, ...], places: tuple[np.ndarray, ...], elements, fill: int = 0) -> np.ndarray:
    array = np.full(shape, fill, dtype=np.asarray(elements).dtype)
    array[places] = elements
    return array

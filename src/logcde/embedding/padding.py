"""Streams and query points as arrays of one size, and all decisions about them, taken on the host (`sec:procedure`).

Which event falls into which interval, which observation of a channel is the previous one, in which order events, query
points and knots come. Differences of numbers are taken here as well, in double precision: single precision holds the
change from 100,000,000.25 to 100,000,000.5, but neither of the two. Padding is the identity: events that observe
nothing and steps that do not move. NaN never enters. Knows nothing of how factors are composed.
"""

import warnings
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float, Int

from logcde.embedding.coordinates import Coordinates
from logcde.embedding.factors import increments_of, pieces_of
from logcde.errors import EmbeddingError, LogcdeWarning, Remedy
from logcde.streams import Cuts, Streams
from logcde.streams.faults import Places
from logcde.streams.ragged import owners

LARGE_START = 1e4
"""How many times all changes of a channel its first value may be before single precision cannot carry both."""


class PaddedSteps(eqx.Module):
    """Steps from the first query point to the last: each crosses a gap and may end with an event.

    Points are numbered: events, then query points, then knots, and last the base point of the continuous channels.

    Attributes:
        before: The point at which the gap of each step starts.
        after: The point at which it ends.
        event: The event at the end of each step, or -1.
        starts: Whether the step is the first of an interval.
    """

    before: Int[Array, "*series step"]
    after: Int[Array, "*series step"]
    event: Int[Array, "*series step"]
    starts: Bool[Array, "*series step"]


class Movable(NamedTuple):
    """The numbers of `PaddedStreams` that may be replaced, fields of the same names."""

    values: Float[Array, "*series event channel"]
    times: Float[Array, "*series event"]
    cuts: Float[Array, "*series cut"]
    knot_times: Float[Array, "*series knot"]
    knot_values: Float[Array, "*series knot continuous"]


class Differences(eqx.Module):
    """Differences of the numbers of `PaddedStreams` as they were before they were rounded.

    They hold where these numbers are those in `of`. A number that was replaced is taken as it is, and so are its
    differences.

    Attributes:
        changes: Each observation's change since the previous one of its channel.
        distances: How far each observation is above the knots of its channel's soft bins.
        gaps: Time between the two points of each step.
        spans: Time from each knot of the continuous channels to the next.
        rises: The change of the continuous channels from each knot to the next.
        of: The numbers that these are the differences of.
    """

    changes: Float[Array, "*series event channel"]
    distances: Float[Array, "*series event bin"]
    gaps: Float[Array, "*series step"]
    spans: Float[Array, "*series piece"]
    rises: Float[Array, "*series piece continuous"]
    of: Movable


class PaddedStreams(eqx.Module):
    """Streams and their query points as arrays, with a leading axis for series unless it is mapped over.

    To differentiate, replace `values`, `terms`, `times`, `cuts` or the knots with `eqx.tree_at`, keeping the order of
    times, and leave the `differences` as they are.

    Attributes:
        times: Time of each event.
        values: Value of each channel at each event, 0 if not observed.
        observed: Whether each channel is observed at each event.
        previous: The event that last observed each channel before each event, or -1.
        terms: Amounts of the higher-order terms of each event.
        cuts: Query points.
        knot_times: Times of the knots of the continuous channels.
        knot_values: Values of the continuous channels at the knots.
        segments: The knot at or before each event, query point and knot.
        steps: The steps between these points.
        ends: The last step of each interval.
        lengths: Number of intervals.
        differences: Differences of these numbers, from before they were rounded.
        coordinates: The letters of the path.
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
    steps: PaddedSteps
    ends: Int[Array, "*series interval"]
    lengths: Int[Array, "*series"]
    differences: Differences
    coordinates: Coordinates = eqx.field(static=True)

    def __getitem__(self, series: int | slice | Int[Array | np.ndarray, "_"]) -> "PaddedStreams":
        """The chosen series, with the same padding, so that all batches have one shape."""
        return jax.tree.map(lambda leaf: leaf[series], self)

    def scaled(self, share: Float[Array, ""]) -> "PaddedStreams":
        """The same streams with this share of every value; differences are scaled, not taken anew."""
        differences, hat_basis = self.differences, self.coordinates.hat_basis
        distances = share * differences.distances
        if hat_basis is not None:
            distances = distances + (share - 1) * hat_basis.knots.astype(distances.dtype)
        values = share * self.values
        return eqx.tree_at(
            lambda one: (one.values, one.differences.of.values, one.differences.changes, one.differences.distances),
            self,
            (values, values, share * differences.changes, distances),
        )


def pad(streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike = np.float64) -> PaddedStreams:
    """Pad streams and their query points to the size of the largest series.

    Differences are exact to the precision of the result, however large values and stamps are, but for the first value
    of a channel, which is a change from 0: single precision holds it, but not its products with small changes, so that
    the interval in which a channel is first observed is not exact then; a warning says so. Double precision needs
    `jax.config.update("jax_enable_x64", True)`; without it the result is in single precision, with a warning.

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
    merged = _merge(streams, events, points, knots, cuts.points, knot_times)

    obs_event = owners(streams.obs_offsets)
    places = (events.series[obs_event], events.place[obs_event], streams.channel)
    shape = (*events.shape, coordinates.channels)
    values = _dense(shape, places, streams.value.astype(np.float64, copy=False))
    spans, rises = pieces_of(streams)
    distances = (
        np.zeros((*events.shape, 0)) if coordinates.hat_basis is None else coordinates.hat_basis.distances(values)
    )
    if _precision(dtype) == np.float32:
        _warn_of_large_first_values(streams)
    cast = _Cast(_precision(dtype), Places(streams.ids, streams.schema, streams.origins), events.fill(streams.times))
    movable = Movable(
        values=cast(values, "value", observations=True),
        times=cast(events.fill(streams.times), "stamp"),
        cuts=cast(points.fill(cuts.points), "query point"),
        knot_times=cast(knots.fill(knot_times), "stamp of a knot"),
        knot_values=cast(knots.fill(knot_values), "value of a knot"),
    )
    differences = Differences(
        changes=cast(_dense(shape, places, increments_of(streams)), "change", observations=True),
        distances=cast(distances, "distance from a soft bin"),
        gaps=cast(merged.gaps, "gap"),
        spans=cast(knots.fill(spans)[:, :-1], "time between two knots"),
        rises=cast(knots.fill(rises)[:, :-1], "change between two knots"),
        of=movable,
    )
    indices = {
        "previous": _dense(shape, places, _previous(streams, events, obs_event), -1),
        "segments": merged.segments,
        "ends": merged.ends,
        "lengths": np.diff(cuts.offsets) - 1,
    }
    return PaddedStreams(
        **movable._asdict(),
        **{name: jnp.asarray(array.astype(np.int32)) for name, array in indices.items()},
        terms=cast(events.fill(streams.terms), "term"),
        observed=jnp.asarray(_dense(shape, places, True)),
        steps=merged.steps,
        differences=differences,
        coordinates=coordinates,
    )


def _precision(dtype: DTypeLike) -> np.dtype:
    """The precision of arrays of this type, which JAX may not have been set to."""
    found = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    if found != np.dtype(dtype):
        warnings.warn(
            f"JAX is set to single precision, so these streams are padded in {found} instead of {np.dtype(dtype)}. "
            'Set jax.config.update("jax_enable_x64", True), or ask for float32.',
            stacklevel=4,
        )
    return found


def _warn_of_large_first_values(streams: Streams) -> None:
    """Warn of channels whose first values dwarf all later changes, of which single precision then loses a part."""
    change, count = np.abs(increments_of(streams)), len(streams.schema.channels)
    event = owners(streams.obs_offsets)
    first = np.ones(len(change), bool)
    order = np.lexsort((event, streams.channel, owners(streams.offsets)[event]))
    series, channel = owners(streams.offsets)[event][order], streams.channel[order]
    first[order[1:]] = (series[1:] != series[:-1]) | (channel[1:] != channel[:-1])
    start, moved = np.zeros(count), np.zeros(count)
    np.maximum.at(start, streams.channel[first], change[first])
    np.maximum.at(moved, streams.channel[~first], change[~first])
    lost = np.flatnonzero((moved > 0) & (start > LARGE_START * moved))
    if lost.size:
        name = streams.schema.channels[lost[0]]
        found = (
            f"The first values of {name!r}, up to {start[lost[0]]:.6g}, are so large beside its changes, up to "
            f"{moved[lost[0]]:.6g}, that single precision loses these in the interval that has the first value."
        )
        warnings.warn(LogcdeWarning(found, "Subtract a typical value, or pad with dtype=np.float64."), stacklevel=4)


class _Cast(NamedTuple):
    """Arrays in the precision of the device; numbers beyond its range are refused."""

    dtype: np.dtype
    places: Places
    times: np.ndarray

    def __call__(self, array: np.ndarray, what: str, observations: bool = False) -> Array:
        with np.errstate(over="ignore"):
            rounded = array.astype(self.dtype)
        bad = np.argwhere(~np.isfinite(rounded))
        if len(bad):
            where = self.places.where(bad[0, 0])
            if observations:
                where = self.places.where(bad[0, 0], self.times[tuple(bad[0, :2])], bad[0, 2])
            raise EmbeddingError(
                f"{where}: a {what} of {array[tuple(bad[0])]} is beyond the range of {self.dtype}.",
                Remedy.TOO_LARGE,
                where=where,
            )
        return jnp.asarray(rounded)


class _Rows(NamedTuple):
    """Elements of ragged rows: their series, their place in it, and the shape of the padded array."""

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


class _Merged(NamedTuple):
    """The fields of `PaddedStreams` of the same names, and the length of the gap of each step."""

    steps: PaddedSteps
    ends: np.ndarray
    segments: np.ndarray
    gaps: np.ndarray


def _merge(
    streams: Streams, events: _Rows, points: _Rows, knots: _Rows, cuts: np.ndarray, knot_times: np.ndarray
) -> _Merged:
    """Merge events, query points and knots of every series into one sequence of steps."""
    first_cut, first_knot = events.shape[1], events.shape[1] + points.shape[1]
    base = first_knot + knots.shape[1]
    series = np.concatenate([events.series, points.series, knots.series])
    number = np.concatenate([events.place, first_cut + points.place, first_knot + knots.place])
    times = np.concatenate([streams.times, cuts, knot_times])
    is_event, is_cut = number < first_cut, (number >= first_cut) & (number < first_knot)
    # At one time: knots, then the query point that ends the interval, then the event, which belongs to the next one,
    # except at the horizon, where there is no next one.
    rank = np.where(is_event, 2, np.where(is_cut, 1, 0)) + 2 * (is_cut & (times == streams.horizon[series]))
    order = np.lexsort((rank, times, series))
    series, number, is_event, is_cut = series[order], number[order], is_event[order], is_cut[order]

    first = np.searchsorted(series, np.arange(len(streams)))
    segment = _running(number >= first_knot, first, series) - 1
    last_segment = np.bincount(knots.series, minlength=len(streams))[series] - 2
    segments = _dense((len(streams), base), (series, number), np.maximum(np.minimum(segment, last_segment), 0))

    # If the first interval starts at time zero, its first step leads from the base point 0 of the continuous channels
    # to C_0: the factor B_C. Time itself starts at zero and needs none.
    passed = _running(is_cut, first, series)
    first_point = is_cut & (passed == 1)
    from_base = first_point & (times[order] == 0) & bool(streams.schema.continuous)
    intervals = np.bincount(points.series, minlength=len(streams))[series] - 1
    inside = from_base | (~first_point & (passed >= 1) & (passed - is_cut <= intervals))
    kept = np.flatnonzero(inside)
    rows = _Rows.of(np.searchsorted(series[kept], np.arange(len(streams) + 1)))
    ending = is_cut[kept] & ~from_base[kept]
    before = np.where(from_base[kept], base, number[kept - 1])
    gaps = np.where(from_base[kept], 0.0, times[order][kept] - times[order][kept - 1])
    steps = PaddedSteps(
        before=jnp.asarray(rows.fill(before).astype(np.int32)),
        after=jnp.asarray(rows.fill(number[kept]).astype(np.int32)),
        event=jnp.asarray(_dense(rows.shape, rows[:2], np.where(is_event, number, -1)[kept], -1).astype(np.int32)),
        starts=jnp.asarray(rows.fill(np.concatenate([[True], ending])[: len(ending)])),
    )
    places = (rows.series[ending], number[kept][ending] - first_cut - 1)
    ends = _dense((len(streams), points.shape[1] - 1), places, rows.place[ending])
    return _Merged(steps, ends, segments, rows.fill(gaps))


def _previous(streams: Streams, events: _Rows, obs_event: np.ndarray) -> np.ndarray:
    """For every observation, the event of its series that last observed its channel; -1 if there is none."""
    series = events.series[obs_event]
    order = np.lexsort((obs_event, streams.channel, series))
    same = (np.diff(series[order]) == 0) & (np.diff(streams.channel[order]) == 0)
    previous = np.full(len(order), -1)
    previous[order[1:][same]] = events.place[obs_event[order[:-1][same]]]
    return previous


def _running(flags: np.ndarray, first: np.ndarray, series: np.ndarray) -> np.ndarray:
    """Number of flags that are set up to and including each element, within its series."""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[1:] - total[first[series]]


def _dense(shape: tuple[int, ...], places: tuple[np.ndarray, ...], elements, fill: int = 0) -> np.ndarray:
    array = np.full(shape, fill, dtype=np.asarray(elements).dtype)
    array[places] = elements
    return array

"""The JAX engine: interval log-signatures of padded streams, traced, mapped and differentiated like any JAX function.

`eq:event_increment_method` and `eq:interval_log_signature_method` of the paper. One series is one example; `vmap` maps
over many. The host engine computes the same from ragged data, without derivatives; both agree to rounding.

`pad` takes all decisions, on the host: which event falls into which interval, which observation of a channel is the
previous one, in which order events, query points and knots come (`sec:procedure`). The device is left with arithmetic
on real numbers. Padding is the identity: events that observe nothing and steps that do not move. NaN never enters.
"""

from typing import ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float, Int

from logcde.algebra import SparseMap, levels
from logcde.algebra.levels import Levels
from logcde.algebra.lie import apply, project_levels
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.logsigs import LogSignatures
from logcde.scans import AbstractComposition, AbstractScan, Sequential
from logcde.streams import Cuts, Streams
from logcde.streams.ragged import owners


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


class PaddedStreams(eqx.Module):
    """Streams and their query points as arrays, with a leading axis for series unless it is mapped over.

    To differentiate, replace `values`, `terms`, `times`, `cuts` or the knots with `eqx.tree_at`, keeping the order of
    times.

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
    coordinates: Coordinates = eqx.field(static=True)

    def __getitem__(self, series: int | slice | Int[Array | np.ndarray, "_"]) -> "PaddedStreams":
        """The chosen series, with the same padding, so that all batches have one shape."""
        return jax.tree.map(lambda leaf: leaf[series], self)


def pad(streams: Streams, cuts: Cuts, coordinates: Coordinates, dtype: DTypeLike = np.float64) -> PaddedStreams:
    """Pad streams and their query points to the size of the largest series.

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
        "segments": merged.segments,
        "ends": merged.ends,
        "lengths": np.diff(cuts.offsets) - 1,
    }
    return PaddedStreams(
        **{name: jnp.asarray(array.astype(dtype)) for name, array in numbers.items()},
        **{name: jnp.asarray(array.astype(np.int32)) for name, array in indices.items()},
        observed=jnp.asarray(_dense(shape, places, True)),
        steps=merged.steps,
        coordinates=coordinates,
    )


def embed(
    streams: Streams,
    cuts: Cuts,
    coordinates: Coordinates,
    dtype: DTypeLike = np.float64,
    scan: AbstractScan = Sequential(),
) -> LogSignatures:
    """Compute one log-signature for each interval between the query points of each series, on JAX's default device.

    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5], [0.2, 1.0]], [[[3.0]], [[4.0], [5.0]]])
    >>> coordinates = Coordinates(streams.schema, depth=1, counts=True, time=True)
    >>> embed(streams, Partition.uniform(2).cuts(streams), coordinates).values[1].tolist()
    [[4.0, 1.0, 0.5], [1.0, 1.0, 0.5]]
    """
    padded = pad(streams, cuts, coordinates, dtype)
    return LogSignatures(_embed_all(padded, scan), padded.lengths, coordinates.basis)


def logsignatures(padded: PaddedStreams, scan: AbstractScan = Sequential()) -> Float[Array, "interval lie"]:
    """Compute the log-signatures of one padded series, zero beyond its own number of intervals.

    Differentiable in the real numbers of `padded`: in values (except at knots of soft bins), terms and knots; in times
    where no event, query point or knot coincides with another, because there the order of the factors changes.

    Args:
        padded: One series, without the leading axis.
        scan: How factors are composed.

    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5, 1.0]], [[[3.0], [4.0]]])
    >>> coordinates = Coordinates(streams.schema, depth=2, counts=False, time=True)
    >>> padded = pad(streams, Partition.uniform(1).cuts(streams), coordinates)
    >>> jax.jit(logsignatures)(padded[0]).tolist()
    [[4.0, 1.0, -0.5]]
    """
    basis = padded.coordinates.basis
    composition = _Signatures(basis.width, basis.depth, padded.values.dtype)
    has_gaps = basis.width > padded.coordinates.discrete
    factors = (*((_gap_increments(padded),) if has_gaps else ()), _event_increments(padded))
    signatures = scan(composition, (factors, padded.steps.starts), composition.unit())
    at_ends = tuple(level[padded.ends] for level in signatures)
    logs = project_levels(levels.log((jnp.ones_like(at_ends[0][..., :1]), *at_ends)), basis)
    return jnp.where((jnp.arange(len(padded.ends), dtype=padded.lengths.dtype) < padded.lengths)[:, None], logs, 0)


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
    """The fields of `PaddedStreams` of the same names."""

    steps: PaddedSteps
    ends: np.ndarray
    segments: np.ndarray


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
    steps = PaddedSteps(
        before=jnp.asarray(rows.fill(before).astype(np.int32)),
        after=jnp.asarray(rows.fill(number[kept]).astype(np.int32)),
        event=jnp.asarray(_dense(rows.shape, rows[:2], np.where(is_event, number, -1)[kept], -1).astype(np.int32)),
        starts=jnp.asarray(rows.fill(np.concatenate([[True], ending])[: len(ending)])),
    )
    places = (rows.series[ending], number[kept][ending] - first_cut - 1)
    ends = _dense((len(streams), points.shape[1] - 1), places, rows.place[ending])
    return _Merged(steps, ends, segments)


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


@eqx.filter_jit
def _embed_all(padded: PaddedStreams, scan: AbstractScan) -> Float[Array, "series interval lie"]:
    return jax.vmap(lambda one: logsignatures(one, scan))(padded)


_Started: TypeAlias = tuple[Levels, Bool[Array, "*step"]]
"""Signatures since the last start of an interval, and whether there was one."""
_Factors: TypeAlias = tuple[tuple[Levels, ...], Bool[Array, "*step"]]
"""A few Lie elements, each by its lowest levels, and whether an interval starts with them."""


class _Signatures(AbstractComposition):
    """Signatures without their constant term one. A step is one or two Lie elements, given by their lowest levels."""

    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)
    recompute: ClassVar[bool] = False

    def unit(self) -> Levels:
        return tuple(jnp.zeros(self.width**level, self.dtype) for level in range(1, self.depth + 1))

    def prepare(self, steps: _Factors) -> _Factors:
        return steps

    def append(self, state: Levels, step: _Factors) -> Levels:
        increments, start = step
        return _times(_where(start, self.unit(), state), increments)

    def lift(self, steps: _Factors, state: Levels) -> _Started:
        (first, *others), starts = steps
        return _times(levels.exp(first, self.depth)[1:], tuple(others)), starts

    def combine(self, earlier: _Started, later: _Started) -> _Started:
        (left, left_started), (right, right_started) = earlier, later
        return _where(right_started, right, _product(left, right)), left_started | right_started

    def act(self, elements: _Started, state: Levels) -> Levels:
        signatures, started = elements
        return _where(started, signatures, _product(state, signatures))

    def read(self, state: Levels, step: _Factors) -> Levels:
        return state


def _times(element: Levels, increments: tuple[Levels, ...]) -> Levels:
    for increment in increments:
        element = levels.multiply_exp(_with_one(element), increment)[1:]
    return element


def _product(earlier: Levels, later: Levels) -> Levels:
    return levels.product(_with_one(earlier), _with_one(later))[1:]


def _where(flags: Bool[Array, "*step"], chosen: Levels, otherwise: Levels) -> Levels:
    def select(a: Array, b: Array) -> Array:
        return jnp.where(flags.reshape(flags.shape + (1,) * (b.ndim - flags.ndim)), a, b)

    return jax.tree.map(select, chosen, otherwise)


def _with_one(element: Levels) -> Levels:
    return (jnp.ones_like(element[0][..., :1]), *element)


def _gap_increments(padded: PaddedStreams) -> Levels:
    """Level one of each step's gap: the increment of time and the continuous channels between its two points."""
    coordinates, steps = padded.coordinates, padded.steps
    times = jnp.concatenate([padded.times, padded.cuts, padded.knot_times])
    columns = times[:, None] if coordinates.time else times[:, None][:, :0]
    if coordinates.schema.continuous:
        left, right = padded.segments, padded.segments + 1
        start, stop = padded.knot_times[left], padded.knot_times[right]
        share = ((times - start) / (stop - start))[:, None]
        path = (1 - share) * padded.knot_values[left] + share * padded.knot_values[right]
        columns = jnp.concatenate([path, columns], axis=1)
    # The base point, at which every continuous channel is zero, is the last point.
    columns = jnp.concatenate([columns, jnp.zeros_like(columns[:1])])
    return (jnp.pad(columns[steps.after] - columns[steps.before], ((0, 0), (coordinates.discrete, 0))),)


def _event_increments(padded: PaddedStreams) -> Levels:
    """Lowest levels of each step's event, zero where there is none: letters, then higher-order terms."""
    coordinates, basis = padded.coordinates, padded.coordinates.basis
    before = jnp.take_along_axis(padded.values, jnp.maximum(padded.previous, 0), axis=0)
    change = padded.values - jnp.where(padded.previous >= 0, before, 0)
    parts = [jnp.where(padded.observed, change, 0)]
    if coordinates.hat_basis is not None:
        hat_basis = coordinates.hat_basis
        parts.append(jnp.where(padded.observed[:, hat_basis.channel], hat_basis.weights(padded.values), 0))
    elif coordinates.counts:
        parts.append(padded.observed.astype(change.dtype))
    if coordinates.roughness:
        parts.append(jnp.where(padded.observed & (padded.previous >= 0), change**2, 0))
    letters = jnp.pad(jnp.concatenate(parts, axis=1), ((0, 0), (0, basis.width - coordinates.discrete)))
    increments = (letters, *(apply(term_map, padded.terms) for term_map in _term_maps(coordinates)))
    event = padded.steps.event
    return tuple(jnp.where((event >= 0)[:, None], level[jnp.maximum(event, 0)], 0) for level in increments)


def _term_maps(coordinates: Coordinates) -> list[SparseMap]:
    """Maps from terms to words, for each level from the second to the highest degree of a term."""
    basis, terms = coordinates.basis, coordinates.schema.terms
    expanded = [basis.expand(term.bracket) for term in terms]
    highest = max((degree for degree, _ in expanded if degree <= basis.depth), default=1)
    maps = []
    for level in range(2, highest + 1):
        entries = [
            (word, column, amount)
            for column, (degree, words) in enumerate(expanded)
            if degree == level
            for word, amount in words.items()
        ]
        shape = (basis.width**level, len(terms))
        maps.append(SparseMap.collect(*np.array(entries, dtype=np.int64).reshape(-1, 3).T, shape=shape))
    return maps

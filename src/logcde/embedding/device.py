"""The JAX engine: interval log-signatures of padded streams, traced, mapped and differentiated like any JAX function.

`eq:event_increment_method` and `eq:interval_log_signature_method` of the paper. One series is one example; `vmap` maps
over many. The host engine computes the same from ragged data, without derivatives; both agree to rounding.

`logcde.embedding.padding` has taken all decisions. The device is left with arithmetic on real numbers.
"""

from typing import ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, DTypeLike, Float

from logcde.algebra import SparseMap, levels
from logcde.algebra.levels import Levels
from logcde.algebra.lie import apply, project_levels
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.logsigs import LogSignatures
from logcde.embedding.padding import PaddedStreams, pad
from logcde.errors import EmbeddingError, Remedy
from logcde.scans import AbstractComposition, AbstractScan, Sequential
from logcde.streams import Cuts, Streams
from logcde.streams.faults import Places


def embed(
    streams: Streams,
    cuts: Cuts,
    coordinates: Coordinates,
    dtype: DTypeLike = np.float64,
    scan: AbstractScan = Sequential(),
) -> LogSignatures:
    """Compute one log-signature for each interval between the query points of each series, on JAX's default device.

    The computation is in double precision and rounded in the end, as in the host engine: the change of a channel from
    the base point to a large first value, times a small change, is beyond single precision. Where JAX is set to single
    precision and `dtype` is double, the result is an array of NumPy, since JAX would round it.

    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5], [0.2, 1.0]], [[[3.0]], [[4.0], [5.0]]])
    >>> coordinates = Coordinates(streams.schema, depth=1, counts=True, time=True)
    >>> embed(streams, Partition.uniform(2).cuts(streams), coordinates).values[1].tolist()
    [[4.0, 1.0, 0.5], [1.0, 1.0, 0.5]]
    """
    double, known = np.dtype(dtype) == np.float64, jax.dtypes.canonicalize_dtype(np.float64) == np.float64
    with jax.enable_x64(True):
        padded = pad(streams, cuts, coordinates)
        values = _embed_all(padded, scan).astype(dtype)
        finite = jnp.isfinite(values).all(axis=(1, 2))
    if not finite.all():
        where = Places(streams.ids, streams.schema, streams.origins).where(int(jnp.argmin(finite)))
        raise EmbeddingError(
            f"{where}: a coordinate is beyond the range of {np.dtype(dtype)}.", Remedy.TOO_LARGE, where=where
        )
    return LogSignatures(np.asarray(values) if double and not known else values, padded.lengths, coordinates.basis)


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


def _exactly(
    rounded: Float[Array, "*entry"], exact: Float[Array, "*entry"], same: Bool[Array, "*entry"]
) -> Float[Array, "*entry"]:
    """The exact difference where nothing was replaced, with the derivatives of the rounded one."""
    return jnp.where(same, exact + (rounded - jax.lax.stop_gradient(rounded)), rounded)


def _gap_increments(padded: PaddedStreams) -> Levels:
    """Level one of each step's gap: the increment of time and the continuous channels between its two points."""
    coordinates, steps, known = padded.coordinates, padded.steps, padded.differences
    # The base point, at which every continuous channel and time are zero, is the last point.
    zero = jnp.zeros_like(padded.cuts[:1])
    times = jnp.concatenate([padded.times, padded.cuts, padded.knot_times, zero])
    same = times == jnp.concatenate([known.of.times, known.of.cuts, known.of.knot_times, zero])
    gaps = _exactly(times[steps.after] - times[steps.before], known.gaps, same[steps.after] & same[steps.before])
    columns = gaps[:, None] if coordinates.time else gaps[:, None][:, :0]
    if coordinates.schema.continuous:
        columns = jnp.concatenate([_along(padded, times, gaps), columns], axis=1)
    return (jnp.pad(columns, ((0, 0), (coordinates.discrete, 0))),)


def _along(
    padded: PaddedStreams, times: Float[Array, "point"], gaps: Float[Array, "step"]
) -> Float[Array, "step continuous"]:
    """How far the continuous channels move in each step, which is within one piece of their path."""
    steps, known = padded.steps, padded.differences
    knots, values = padded.knot_times, padded.knot_values
    same = knots == known.of.knot_times
    spans = _exactly(knots[1:] - knots[:-1], known.spans, same[1:] & same[:-1])
    same = values == known.of.knot_values
    rises = _exactly(values[1:] - values[:-1], known.rises, same[1:] & same[:-1])
    from_base = steps.before == len(times) - 1
    piece = padded.segments[jnp.where(from_base, steps.after, steps.before)]
    # From the base point to C_0: where the first knot is, and from there as far as the first query point is after it.
    start = jnp.where(from_base[:, None], values[piece], 0)
    length = jnp.where(from_base, times[steps.after] - knots[piece], gaps)
    return start + rises[piece] * (length / spans[piece])[:, None]


def _event_increments(padded: PaddedStreams) -> Levels:
    """Lowest levels of each step's event, zero where there is none: letters, then higher-order terms."""
    coordinates, basis, known = padded.coordinates, padded.coordinates.basis, padded.differences
    last, has_last = jnp.maximum(padded.previous, 0), padded.previous >= 0
    before = jnp.take_along_axis(padded.values, last, axis=0)
    same = padded.values == known.of.values
    both = same & (jnp.take_along_axis(same, last, axis=0) | ~has_last)
    change = _exactly(padded.values - jnp.where(has_last, before, 0), known.changes, both)
    parts = [jnp.where(padded.observed, change, 0)]
    if coordinates.hat_basis is not None:
        hat_basis = coordinates.hat_basis
        distances = _exactly(hat_basis.distances(padded.values), known.distances, same[:, hat_basis.knot_channel])
        parts.append(jnp.where(padded.observed[:, hat_basis.channel], hat_basis.weights_at(distances), 0))
    elif coordinates.counts:
        parts.append(padded.observed.astype(change.dtype))
    if coordinates.roughness:
        parts.append(jnp.where(padded.observed & has_last, change**2, 0))
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

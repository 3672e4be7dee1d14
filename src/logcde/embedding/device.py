"""The JAX engine: interval log-signatures of padded streams, traced, mapped and differentiated like any JAX function.

`eq:event_increment_method` and `eq:interval_log_signature_method` of the paper. One series is one example; `vmap` gives
many. The host engine does the same on ragged data and does not differentiate; both agree to rounding.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float

from logcde.algebra import SparseMap, levels
from logcde.algebra.levels import Levels
from logcde.algebra.lie import apply, project_levels
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.logsigs import LogSignatures
from logcde.embedding.padding import PaddedStreams, pad
from logcde.embedding.scan import AbstractComposition, AbstractScan, Sequential
from logcde.streams import Cuts, Streams


def embed(
    streams: Streams,
    cuts: Cuts,
    coordinates: Coordinates,
    dtype: DTypeLike = np.float64,
    scan: AbstractScan = Sequential(),
) -> LogSignatures:
    """One log-signature for each interval that `cuts` makes of each series, computed on JAX's default device.

    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5], [0.2, 1.0]], [[[3.0]], [[4.0], [5.0]]])
    >>> coordinates = Coordinates(streams.schema, depth=1, counts=True, time=True)
    >>> embed(streams, Partition.uniform(2).cuts(streams), coordinates).values[1].tolist()
    [[4.0, 1.0, 0.5], [1.0, 1.0, 0.5]]
    """
    padded = pad(streams, cuts, coordinates, dtype)
    return LogSignatures(_embed_all(padded, scan), padded.lengths, coordinates.basis)


def logsignatures(padded: PaddedStreams, scan: AbstractScan = Sequential()) -> Float[Array, "interval lie"]:
    """Log-signatures of one padded series, zero beyond its own number of intervals.

    Differentiable in the real numbers of `padded`: values, terms and knots anywhere, but for values that are exactly at
    one of the embedding's levels; times where no event, query point or knot meets another, because beyond such a
    meeting the order of the factors changes.

    >>> from logcde.streams import Partition
    >>> streams = Streams.from_arrays([[0.5, 1.0]], [[[3.0], [4.0]]])
    >>> coordinates = Coordinates(streams.schema, depth=2, counts=False, time=True)
    >>> padded = pad(streams, Partition.uniform(1).cuts(streams), coordinates)
    >>> jax.jit(logsignatures)(padded[0]).tolist()
    [[4.0, 1.0, -0.5]]
    """
    basis = padded.coordinates.basis
    composition = _Signatures(basis.width, basis.depth, padded.values.dtype)
    factors = (
        (_gap_increments(padded), _event_increments(padded)) if _has_gaps(padded) else (_event_increments(padded),)
    )
    signatures = scan(composition, factors, padded.steps.starts)
    at_ends = tuple(level[padded.ends] for level in signatures)
    logs = project_levels(levels.log((jnp.ones_like(at_ends[0][..., :1]), *at_ends)), basis)
    return jnp.where((jnp.arange(len(padded.ends), dtype=padded.lengths.dtype) < padded.lengths)[:, None], logs, 0)


@eqx.filter_jit
def _embed_all(padded: PaddedStreams, scan: AbstractScan) -> Float[Array, "series interval lie"]:
    return jax.vmap(lambda one: logsignatures(one, scan))(padded)


class _Signatures(AbstractComposition):
    """Signatures without their constant term, which is one; a step is a few Lie elements, each by its lowest levels."""

    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    dtype: np.dtype = eqx.field(static=True)

    def unit(self) -> Levels:
        return tuple(jnp.zeros(self.width**level, self.dtype) for level in range(1, self.depth + 1))

    def append(self, element: Levels, step: tuple[Levels, ...]) -> Levels:
        for increment in step:
            element = levels.multiply_exp(_with_one(element), increment)[1:]
        return element

    def lift(self, steps: tuple[Levels, ...]) -> Levels:
        first, *others = steps
        return self.append(levels.exp(first, self.depth)[1:], tuple(others))

    def combine(self, earlier: Levels, later: Levels) -> Levels:
        return levels.product(_with_one(earlier), _with_one(later))[1:]


def _with_one(element: Levels) -> Levels:
    return (jnp.ones_like(element[0][..., :1]), *element)


def _has_gaps(padded: PaddedStreams) -> bool:
    return padded.coordinates.basis.width > padded.coordinates.discrete


def _gap_increments(padded: PaddedStreams) -> Levels:
    """Level one of each step's gap: what time and the continuous channels do between its two points."""
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
    """Lowest levels of each step's event, zero where there is none: changes and counts, then higher-order terms."""
    coordinates, basis = padded.coordinates, padded.coordinates.basis
    before = jnp.take_along_axis(padded.values, jnp.maximum(padded.previous, 0), axis=0)
    change = padded.values - jnp.where(padded.previous >= 0, before, 0)
    parts = [jnp.where(padded.observed, change, 0)]
    if coordinates.hats is not None:
        parts.append(
            jnp.where(padded.observed[:, coordinates.hats.channel], coordinates.hats.weights(padded.values), 0)
        )
    elif coordinates.counts:
        parts.append(padded.observed.astype(change.dtype))
    letters = jnp.pad(jnp.concatenate(parts, axis=1), ((0, 0), (0, basis.width - coordinates.discrete)))
    increments = (letters, *(apply(term_map, padded.terms) for term_map in _term_maps(coordinates)))
    event = padded.steps.event
    return tuple(jnp.where((event >= 0)[:, None], level[jnp.maximum(event, 0)], 0) for level in increments)


def _term_maps(coordinates: Coordinates) -> list[SparseMap]:
    """From terms to words, for each level from the second to the highest that some term reaches."""
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

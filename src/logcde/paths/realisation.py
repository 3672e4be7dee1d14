"""From observations to the path Psi(x, C) on [0, T + m + 1], as `app:proof_faithfulness` constructs it.

Without counts, an event that changes nothing has no segment, so that the path really is the same with and without it.
Without time, a gap lasts as long as the continuous channels move in it (`app:invariances`): not at all without any.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from logcde.algebra import Basis
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.embedding import Embedding
from logcde.paths.loops import polygon
from logcde.paths.path import RealisedPath
from logcde.streams import Streams, Term
from logcde.streams.ragged import offsets_of, owners


def realise(streams: Streams, embedding: Embedding) -> tuple[RealisedPath, ...]:
    """Each series as a path whose interval log-signatures are those of the embedding.

    >>> streams = Streams.from_arrays([[0.5, 2.0]], [[[3.0], [4.0]]], channels=("pulse",))
    >>> (path,) = realise(streams, Embedding())
    >>> path
    RealisedPath(series 0: 6 vertices over 'pulse', '#pulse', 'time', u to 5.0)
    >>> path.positions[:, 0], path.times
    (array([0., 0., 0., 3., 3., 4.]), array([0. , 0. , 0.5, 0.5, 2. , 2. ]))
    """
    coordinates = embedding.coordinates(streams.schema)
    return tuple(_realise(series, coordinates) for series in coordinates.scaled(streams))


def _realise(series: Streams, coordinates: Coordinates) -> RealisedPath:
    states, loops, kept = _events(series, coordinates)
    stamps = series.times[kept]
    knots = np.array([0.0, series.horizon[0]]) if series.knots is None else series.knots.times
    moments = np.union1d(stamps, knots)
    continuous = _continuous(series, moments, coordinates.time)
    gaps = moments if coordinates.time else _distance(continuous)

    # At every moment one vertex where the gap ends, and more where an event moves on from there.
    done = np.searchsorted(stamps, moments, side="left")
    at = np.searchsorted(moments, stamps)
    sizes = np.ones(len(moments), np.int64)
    sizes[at] += 1
    for event, loop in loops.items():
        sizes[at[event]] += len(loop.shares)
    first = offsets_of(sizes)
    moment = owners(first)
    u = 1 + done[moment] + gaps[moment]
    positions = np.concatenate([states[done[moment]], continuous[moment]], axis=1)
    for event, loop in loops.items():
        inner = slice(first[at[event]] + 1, first[at[event] + 1] - 1)
        u[inner] = 1 + event + loop.shares + gaps[at[event]]
        positions[inner, : coordinates.discrete] = loop.states
    u[first[at + 1] - 1] = 2 + np.arange(len(at)) + gaps[at]
    positions[first[at + 1] - 1, : coordinates.discrete] = states[1:]

    return RealisedPath(
        np.append(0.0, u),
        np.concatenate([np.zeros((1, coordinates.basis.width)), positions]),
        None if coordinates.time else np.append(0.0, moments[moment]),
        coordinates,
        series.ids,
        series.origins,
    )


class _Loops(NamedTuple):
    """Vertices inside an event's segment: at what share of it, and where the discrete letters are."""

    shares: Float64[np.ndarray, "vertex"]
    states: Float64[np.ndarray, "vertex letter"]


class _Events(NamedTuple):
    """Where the discrete letters are, first and after each event that moves them; and the loops of curved ones."""

    states: Float64[np.ndarray, "event+1 letter"]
    loops: dict[int, _Loops]
    kept: Int64[np.ndarray, "event"]


def _events(series: Streams, coordinates: Coordinates) -> _Events:
    count, channels = len(series.times), coordinates.channels
    event = owners(series.obs_offsets)
    table = np.zeros((count + 1, channels))
    table[event + 1, series.channel] = series.value
    observed = np.zeros((count + 1, channels), bool)
    observed[event + 1, series.channel] = True
    last = np.maximum.accumulate(np.where(observed, np.arange(count + 1)[:, None], 0), axis=0)
    states = np.take_along_axis(table, last, axis=0)
    if coordinates.hats is not None:
        weights = np.where(observed[:, coordinates.hats.channel], coordinates.hats.weights(table), 0.0)
        states = np.concatenate([states, np.cumsum(weights, axis=0)], axis=1)
    elif coordinates.counts:
        states = np.concatenate([states, np.cumsum(observed, axis=0)], axis=1)

    reached = np.array([term.degree <= coordinates.depth for term in series.schema.terms], bool)
    amounts = np.where(reached, series.terms, 0.0)
    curved = (amounts @ coordinates.term_coordinates != 0).any(axis=1)
    kept = np.flatnonzero((states[1:] != states[:-1]).any(axis=1) | curved)
    loops = {
        number: _bend(states[i], states[i + 1], amounts[i], coordinates)
        for number, i in enumerate(kept.tolist())
        if curved[i]
    }
    return _Events(states[np.append(0, kept + 1)], loops, kept)


def _bend(before: np.ndarray, after: np.ndarray, amounts: np.ndarray, coordinates: Coordinates) -> _Loops:
    """An event with higher-order terms, at constant speed: straight to where it ends, then the loops."""
    terms = tuple(term for term, amount in zip(coordinates.schema.terms, amounts, strict=True) if amount)
    named = {letter for term in terms for letter in term.letters}
    letters = coordinates.letters[: coordinates.discrete]
    used = np.flatnonzero([name in named for name in letters] | (after != before))
    basis, rows = _local(tuple(letters[i] for i in used), coordinates.depth, terms)
    element = amounts[amounts != 0] @ rows
    element[: len(used)] = (after - before)[used]
    steps = polygon(element, basis)
    lengths = np.cumsum(np.linalg.norm(steps, axis=1))
    states = np.repeat(after[None], len(steps) - 1, axis=0)
    states[1:, used] += np.cumsum(steps[1:-1], axis=0)
    return _Loops(lengths[:-1] / lengths[-1], states)


@functools.lru_cache(1024)
def _local(letters: tuple[str, ...], depth: int, terms: tuple[Term, ...]) -> tuple[Basis, np.ndarray]:
    """A basis over the letters of one event, and its terms in it: much smaller than the basis of all letters."""
    basis = Basis(letters, depth)
    return basis, np.array([basis.coordinates(term.bracket) for term in terms], np.float64)


def _continuous(series: Streams, moments: np.ndarray, time: bool) -> Float64[np.ndarray, "moment letter"]:
    columns = [] if series.knots is None else [np.interp(moments, series.knots.times, c) for c in series.knots.values.T]
    columns += [moments] if time else []
    return np.stack(columns, axis=1) if columns else np.zeros((len(moments), 0))


def _distance(points: np.ndarray) -> np.ndarray:
    """How far the continuous channels have moved, all together, at every moment."""
    return np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))

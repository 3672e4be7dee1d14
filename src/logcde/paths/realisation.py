"""From observations to the path Psi(x, C) on [0, T + m + 1], as constructed in `app:proof_faithfulness`.

Without counts, an event that changes nothing has no segment, so that the path is the same with and without it. Without
time, a gap lasts as long as the continuous channels move in it (`app:invariances`), and has no length without any.

An event with higher-order terms becomes a polygon with a given log-signature, to any depth: the event path eta of the
proof. A Lie element Delta = delta + A, with delta of degree one, is realised by one straight step delta and then by
loops, level by level. The loops have to realise the group element R with exp(delta) R = exp(Delta). The lowest level
k >= 2 of R is a Lie element that commutes with everything up to level k, so each of its brackets can be realised by a
loop of its own: nested group commutators u v u' v' of steps of size |c|^(1/k) have c [u, v] as their lowest level.
Removing the loops from R leaves levels above k.

Tensors are small and in NumPy rather than in `logcde.algebra`: paths are float64 whatever precision JAX is set to, and
every event would be another shape to compile.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from logcde.algebra import Basis, SparseMap
from logcde.embedding.coordinates import Coordinates
from logcde.embedding.embedding import Embedding
from logcde.embedding.factors import squared_increments_of
from logcde.paths.path import RealisedPath
from logcde.streams import Streams, Term
from logcde.streams.ragged import offsets_of, owners

NEGLIGIBLE = 4 * np.finfo(np.float64).eps
"""Coordinates below this share of the largest of their level are rounding errors and get no loop."""

Levels = list[np.ndarray]


def realise(streams: Streams, embedding: Embedding) -> tuple[RealisedPath, ...]:
    """Realise each series as a path whose interval log-signatures are those of the embedding.

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

    # At every moment one vertex where the gap ends, and further ones if there is an event.
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
    """Vertices inside an event's segment: their share of its length, and the discrete letters there."""

    shares: Float64[np.ndarray, "vertex"]
    states: Float64[np.ndarray, "vertex letter"]


class _Events(NamedTuple):
    """Events that move the path.

    Attributes:
        states: The discrete letters at the start and after each of these events.
        loops: The loops of those with higher-order terms.
        kept: Which events of the series these are.
    """

    states: Float64[np.ndarray, "event+1 letter"]
    loops: dict[int, _Loops]
    kept: Int64[np.ndarray, "event"]


def _events(series: Streams, coordinates: Coordinates) -> _Events:
    count, channels = len(series.times), coordinates.channels
    event = owners(series.obs_offsets)
    values = np.zeros((count + 1, channels))
    values[event + 1, series.channel] = series.value
    observed = np.zeros((count + 1, channels), bool)
    observed[event + 1, series.channel] = True
    last = np.maximum.accumulate(np.where(observed, np.arange(count + 1)[:, None], 0), axis=0)
    states = np.take_along_axis(values, last, axis=0)
    if coordinates.hat_basis is not None:
        weights = np.where(observed[:, coordinates.hat_basis.channel], coordinates.hat_basis.weights(values), 0.0)
        states = np.concatenate([states, np.cumsum(weights, axis=0)], axis=1)
    elif coordinates.counts:
        states = np.concatenate([states, np.cumsum(observed, axis=0)], axis=1)
    if coordinates.roughness:
        squares = np.zeros((count + 1, channels))
        squares[event + 1, series.channel] = squared_increments_of(series)
        states = np.concatenate([states, np.cumsum(squares, axis=0)], axis=1)

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
    """An event with higher-order terms, at constant speed: straight to its end, then the loops."""
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
    """A basis over the letters of one event, and its terms in it: much smaller than the basis over all letters."""
    basis = Basis(letters, depth)
    return basis, np.array([basis.coordinates(term.bracket) for term in terms], np.float64)


def _continuous(series: Streams, moments: np.ndarray, time: bool) -> Float64[np.ndarray, "moment letter"]:
    columns = [] if series.knots is None else [np.interp(moments, series.knots.times, c) for c in series.knots.values.T]
    columns += [moments] if time else []
    return np.stack(columns, axis=1) if columns else np.zeros((len(moments), 0))


def _distance(points: np.ndarray) -> np.ndarray:
    """Distance that the continuous channels have travelled, together, at every moment."""
    return np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))


def polygon(element: Float64[np.ndarray, "lie"], basis: Basis) -> Float64[np.ndarray, "step letter"]:
    """Steps of a polygon whose log-signature is the given Lie element: a straight one first, then those of loops.

    The steps of loops add up to zero. All depend continuously on the element.

    >>> polygon(np.array([1.0, 2.0, -0.25]), Basis(("a", "b"), 2)).tolist()
    [[1.0, 2.0], [0.0, 0.5], [0.5, 0.0], [0.0, -0.5], [-0.5, 0.0]]
    """
    width, depth = basis.width, basis.depth
    straight = element[:width]
    rest = _remainder(straight, _expand(element, basis))
    steps = [straight[None]]
    for level in range(2, depth + 1):
        amounts = _apply(basis.projection(level), rest[level])
        present = np.flatnonzero(np.abs(amounts) > NEGLIGIBLE * np.abs(amounts).max(initial=0.0))
        for place in present.tolist():
            letters, signs = _loop(width, depth, basis.level(level).start + place, bool(amounts[place] < 0))
            sizes = signs * np.abs(amounts[place]) ** (1 / level)
            loop = np.zeros((len(letters), width))
            loop[np.arange(len(letters)), letters] = sizes
            steps.append(loop)
            if level < depth:
                for letter, size in zip(letters.tolist(), sizes.tolist(), strict=True):
                    rest = _take_out(rest, letter, size, width)
        rest[level] = np.zeros_like(rest[level])
    return np.concatenate(steps)


def log_signature(steps: Float64[np.ndarray, "step letter"], basis: Basis) -> Float64[np.ndarray, "lie"]:
    """Log-signature of a polygon with these steps, by Chen's identity.

    >>> log_signature(np.array([[1.0, 0.0], [0.0, 1.0]]), Basis(("a", "b"), 2)).tolist()
    [1.0, 1.0, 0.5]
    """
    total = _unit(basis.width, basis.depth)
    for step in steps:
        factor = [np.ones(1)]
        for level in range(1, basis.depth + 1):
            factor.append(_outer(factor[-1], step) / level)
        total = _product(total, factor)
    excess = [np.zeros(1), *total[1:]]
    power, logarithm = excess, excess
    for exponent in range(2, basis.depth + 1):
        power = _product(power, excess)
        logarithm = [a + (-1) ** (exponent + 1) / exponent * b for a, b in zip(logarithm, power, strict=True)]
    return np.concatenate([_apply(basis.projection(n), logarithm[n]) for n in range(1, basis.depth + 1)])


def _remainder(straight: np.ndarray, higher: Levels) -> Levels:
    """R = exp(-delta) exp(delta + A), without the cancellation of powers of delta that this product would cause.

    R is the value at s = 1 of R(s) = exp(-s delta) exp(s (delta + A)). It solves R'(s) = X(s) R(s) with the polynomial
    X(s) = exp(-s delta) A exp(s delta), whose coefficients are nested brackets of delta with A.
    """
    depth = len(higher) - 1
    drift = [higher]
    for order in range(1, depth - 1):
        before = drift[-1]
        brackets = (_outer(level, straight) - _outer(straight, level) for level in before[:-1])
        drift.append([np.zeros(1), *(bracket / order for bracket in brackets)])
    orders = [_unit(len(straight), depth)]
    for order in range(1, depth):
        terms = [_product(drift[j], orders[order - 1 - j]) for j in range(min(order, len(drift)))]
        orders.append([np.sum(levels, axis=0) / order for levels in zip(*terms, strict=True)])
    return [np.sum(levels, axis=0) for levels in zip(*orders, strict=True)]


def _take_out(element: Levels, letter: int, size: float, width: int) -> Levels:
    """exp(-size letter) times the element: only words that start with the letter change."""
    result = [level.copy() for level in element]
    factor, prefix = 1.0, 0
    for power in range(1, len(element)):
        factor *= -size / power
        prefix = prefix * width + letter
        for level in range(power, len(element)):
            block = width ** (level - power)
            result[level][prefix * block : (prefix + 1) * block] += factor * element[level - power]
    return result


@functools.cache
def _loop(width: int, depth: int, place: int, reverse: bool) -> tuple[Int64[np.ndarray, "step"], np.ndarray]:
    """Letters and directions of the loop of one bracket, or of its negative."""
    left, right = Basis.of_width(width, depth).brackets[place].tolist()
    if left < 0:
        return np.array([place]), np.array([1.0])
    first, second = _loop(width, depth, left, False), _loop(width, depth, right, False)
    if reverse:
        first, second = second, first
    letters = (first[0], second[0], first[0][::-1], second[0][::-1])
    signs = (first[1], second[1], -first[1][::-1], -second[1][::-1])
    return np.concatenate(letters), np.concatenate(signs)


def _unit(width: int, depth: int) -> Levels:
    return [np.ones(1), *(np.zeros(width**level) for level in range(1, depth + 1))]


def _outer(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.multiply.outer(left, right).reshape(-1)


def _product(left: Levels, right: Levels) -> Levels:
    return [np.sum([_outer(left[k], right[level - k]) for k in range(level + 1)], axis=0) for level in range(len(left))]


def _expand(element: np.ndarray, basis: Basis) -> Levels:
    """The levels above the first, as a tensor."""
    levels = range(2, basis.depth + 1)
    higher = [_apply(basis.expansion(level), element[basis.level(level)]) for level in levels]
    return [np.zeros(1), np.zeros(basis.width), *higher]


def _apply(sparse: SparseMap, vector: np.ndarray) -> np.ndarray:
    return np.bincount(sparse.rows, sparse.coefficients * vector[sparse.cols], minlength=sparse.shape[0])

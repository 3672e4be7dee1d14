"""Polygons with a given log-signature, to any depth: the event paths eta of `app:proof_faithfulness`.

A Lie element Delta = delta + A, with delta of degree one, is realised by one straight step delta and then by loops,
level after level. What is still missing is the group element R with exp(delta) R = exp(Delta). Its lowest level k >= 2
is a Lie element that commutes with everything up to level k, so each of its brackets can be had by a loop of its own:
nested group commutators u v u' v' of steps of size |c|^(1/k) have c [u, v] as their lowest level. Taking the loops out
of R leaves levels above k.

Small tensors in NumPy rather than `logcde.algebra`: paths are float64 whatever the precision that JAX was set to, and
every event would be one more shape to compile.
"""

import functools

import numpy as np
from jaxtyping import Float64, Int64

from logcde.algebra import Basis, SparseMap

NEGLIGIBLE = 4 * np.finfo(np.float64).eps
"""Coordinates this much smaller than the largest of their level are its rounding and get no loop."""

Levels = list[np.ndarray]


def polygon(element: Float64[np.ndarray, "lie"], basis: Basis) -> Float64[np.ndarray, "step letter"]:
    """Steps whose signature is the exponential of this Lie element: a straight one first, then those of loops.

    All steps but the first add up to zero. They depend continuously on the element.

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
    """The log-signature of a polygon with these steps, by Chen's identity.

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
    """R = exp(-delta) exp(delta + A), without the cancellation of powers of delta that this product would bring.

    R is what R(s) = exp(-s delta) exp(s (delta + A)) comes to at s = 1, and R'(s) = X(s) R(s) with the polynomial
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
    """exp(-size letter) times the element: words that begin with the letter change, and no others."""
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
    """Letters and directions of the loop of one bracket, or of minus this bracket."""
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
    """The levels above the first as a tensor."""
    levels = range(2, basis.depth + 1)
    higher = [_apply(basis.expansion(level), element[basis.level(level)]) for level in levels]
    return [np.zeros(1), np.zeros(basis.width), *higher]


def _apply(sparse: SparseMap, vector: np.ndarray) -> np.ndarray:
    return np.bincount(sparse.rows, sparse.coefficients * vector[sparse.cols], minlength=sparse.shape[0])

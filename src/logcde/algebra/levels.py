"""Truncated tensor algebra on bare tuples of levels, for use inside scans.

The product, exponential and logarithm of the paper's section "Tensor algebra, signatures, and log-signatures". An
element of depth N is a tuple of arrays, level k of shape (*batch, d**k) for k = 0..N, words in C order. An *increment*
is a tuple of levels 1..k with k <= N: its constant term and its levels beyond k are zero and cost nothing. No basis is
checked here; `logcde.algebra.tensor` and `logcde.algebra.lie` wrap these functions for elements that carry their basis.
"""

from collections.abc import Sequence
from math import factorial
from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Array

Levels: TypeAlias = tuple[Array, ...]


def outer(left: Array, right: Array) -> Array:
    """Concatenate words: (*batch, m) and (*batch, n) to (*batch, m * n)."""
    pairs = left[..., :, None] * right[..., None, :]
    return pairs.reshape(*pairs.shape[:-2], left.shape[-1] * right.shape[-1])


def product(left: Levels, right: Levels) -> Levels:
    """Truncated tensor product of two elements of the same depth."""
    return tuple(_convolve(left, right[level::-1]) for level in range(len(left)))


def multiply_exp(element: Levels, increment: Levels) -> Levels:
    """Multiply element (x) exp(increment) in one Horner sweep, without the powers of the increment.

    With a = element and x = increment: a + (a + (a + ... x/3) x/2) x. Round j is needed up to level j only, so a
    degree-one increment costs little more than one multiplication for each number of the result.
    """
    depth = len(element) - 1
    result = element[:1]
    for reached in range(1, depth + 1):
        scaled = tuple(level / (depth - reached + 1) for level in increment[:reached])
        higher = (element[level] + _convolve(result[level - 1 :: -1], scaled) for level in range(1, reached + 1))
        result = (element[0], *higher)
    return result


def power_series(increment: Levels, coefficients: Sequence[float]) -> Levels:
    """c_0 + c_1 x + ... + c_N x^N at the increment x, to depth N = len(coefficients) - 1, by Horner's rule."""
    one = jnp.ones_like(increment[0][..., :1])
    result = (coefficients[-1] * one,)
    for coefficient in coefficients[-2::-1]:
        # Every remaining round multiplies by the increment once more: higher levels are not needed yet.
        higher = (_convolve(increment, result[level - 1 :: -1]) for level in range(1, len(result) + 1))
        result = (coefficient * one, *higher)
    return result


def exp(increment: Levels, depth: int) -> Levels:
    """Exponential of an increment, to the given depth."""
    return power_series(increment, [1 / factorial(power) for power in range(depth + 1)])


def log(element: Levels) -> Levels:
    """Levels 1..N of the logarithm of an element with constant term one."""
    depth = len(element) - 1
    return power_series(element[1:], [0.0] + [(-1.0) ** (power + 1) / power for power in range(1, depth + 1)])[1:]


def inverse(element: Levels) -> Levels:
    """Inverse of an element with constant term one."""
    return power_series(element[1:], [(-1.0) ** power for power in range(len(element))])


def _convolve(left: Levels, right: Levels) -> Array:
    """Sum of the outer products of pairs of levels, up to the end of the shorter tuple."""
    first, *others = map(outer, left, right)
    return sum(others, start=first)

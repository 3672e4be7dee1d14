"""The exponential of small blocks, without control flow, for any device.

exp(A) - 1 is a Taylor polynomial at A / 2^s, then squared s times in the form E <- 2 E + E E, which, unlike squaring
1 + E, loses nothing when A is small: so s is the same for all matrices, and nothing has to be looked at. With |.| the
1-norm, the relative backward error of the polynomial is below x^m / (m + 1)! for x = |A| / 2^s: less than the rounding
of the type up to |A| = 1000, where it is 4e-8 in single precision (s = 12, m = 6) and 1e-19 in double precision
(s = 11, m = 16).
"""

import functools
import math
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.flows.blocks import identity, matmul

SINGLE = (12, 3, 2)
DOUBLE = (11, 4, 4)
"""Squarings; the polynomial has degree q r: r groups of q powers."""


def expm1(blocks: Float[Array, "*batch row column block"]) -> Float[Array, "*batch row column block"]:
    """exp(A) - 1, accurate also where A is small.

    >>> float(expm1(jnp.full((1, 1, 1), 1e-6))[0, 0, 0] * 1e6)
    1.0000005...
    """
    squarings, group, groups = DOUBLE if blocks.dtype == jnp.float64 else SINGLE
    powers = [blocks * 2.0**-squarings]
    for _ in range(group - 1):
        powers.append(matmul(powers[-1], powers[0]))

    def part(k: int) -> Float[Array, "*batch row column block"]:
        """Terms k q + 1 to k q + q of the series, divided by A^(k q)."""
        terms = [power / math.factorial(k * group + i) for i, power in enumerate(powers, start=1)]
        return functools.reduce(operator.add, terms)

    # E = part(0) + A^q (part(1) + A^q (...)), since A^q divides every later group.
    value = part(groups - 1)
    for k in range(groups - 2, -1, -1):
        value = part(k) + matmul(powers[-1], value)
    return jax.lax.fori_loop(0, squarings, lambda _, value: 2 * value + matmul(value, value), value)


def expm(blocks: Float[Array, "*batch row column block"]) -> Float[Array, "*batch row column block"]:
    """exp(A) of every block.

    >>> expm(jnp.zeros((2, 2, 1)))[:, :, 0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return expm1(blocks) + identity(blocks.shape[-2], blocks[..., 0, 0, :])

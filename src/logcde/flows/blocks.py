"""Small square matrices, many at once, as arrays "... row column block": the axis that vectorises is the last.

A block-diagonal matrix is one such array: entry (i, j, k) is row i and column j of block k. Dense is a single block,
diagonal is blocks of one. Vectors are "row block". Products of blocks up to `UNROLLED` are written out as sums of
products over the last axis, which compilers vectorise; above it they are matrix multiplications.

`expm` has no control flow, for any device. exp(A) is a Taylor polynomial at A / 2^s, squared s times. All matrices take
the same steps; each keeps those squarings that it needs, s being the least number for which the 1-norm of A / 2^s is
below x. The relative backward error of the polynomial is then below x^m / (m + 1)!, less than rounding: 5e-8 in single
precision (x = 1/4, m = 6) and 3e-17 in double precision (x = 3/4, m = 16). The squarings suffice for norms up to 1000;
above that the error grows.

`bracket_matrices` are what the coordinates of a log-signature multiply in a linear CDE. Solutions of linear CDEs
multiply matrices in the opposite order of signatures, so the matrix of a bracket [u, v] is A_v A_u - A_u A_v,
recursively on matrices that are flipped already.
"""

import functools
import math
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.algebra import Basis

UNROLLED = 8


def matmul(
    left: Float[Array, "*#batch row column block"], right: Float[Array, "*#batch column other block"]
) -> Float[Array, "*batch row other block"]:
    """Multiply matrices, block by block."""
    size = left.shape[-2]
    if size > UNROLLED:
        return jnp.einsum("...ijk,...jlk->...ilk", left, right)
    total = left[..., :, 0, None, :] * right[..., None, 0, :, :]
    for j in range(1, size):
        total = total + left[..., :, j, None, :] * right[..., None, j, :, :]
    return total


def matvec(
    matrix: Float[Array, "*#batch row column block"], vector: Float[Array, "*#batch column block"]
) -> Float[Array, "*batch row block"]:
    """Multiply matrices and vectors, block by block."""
    size = matrix.shape[-2]
    if size > UNROLLED:
        return jnp.einsum("...ijk,...jk->...ik", matrix, vector)
    total = matrix[..., :, 0, :] * vector[..., None, 0, :]
    for j in range(1, size):
        total = total + matrix[..., :, j, :] * vector[..., None, j, :]
    return total


def identity(size: int, like: Float[Array, "*batch block"]) -> Float[Array, "row column #block"]:
    """The identity matrix, which broadcasts against blocks."""
    return jnp.eye(size, dtype=like.dtype)[:, :, None]


def as_matrix(blocks: Float[Array, "*batch row column block"]) -> Float[Array, "*batch hidden hidden"]:
    """The plain matrix: entry i of block k of a vector is at i * blocks + k."""
    *batch, size, _, count = blocks.shape
    whole = blocks[..., :, None, :, :] * jnp.eye(count, dtype=blocks.dtype)[:, None, :]
    return whole.reshape(*batch, size * count, size * count)


SINGLE = (12, 0.25, 3, 2)
DOUBLE = (11, 0.75, 4, 4)
"""Squarings; the norm below which there are none; the polynomial has degree q r: r groups of q powers."""


def expm(blocks: Float[Array, "*batch row column block"]) -> Float[Array, "*batch row column block"]:
    """The exponential of every block.

    >>> expm(jnp.zeros((2, 2, 1)))[:, :, 0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    most, small, group, groups = DOUBLE if blocks.dtype == jnp.float64 else SINGLE
    norm = jax.lax.stop_gradient(jnp.max(jnp.sum(jnp.abs(blocks), axis=-3), axis=-2))
    squarings = jnp.clip(jnp.ceil(jnp.log2(norm / small)), 0, most).astype(jnp.int32)[..., None, None, :]
    powers = [blocks * jnp.ldexp(jnp.ones((), blocks.dtype), -squarings)]
    for _ in range(group - 1):
        powers.append(matmul(powers[-1], powers[0]))

    def part(k: int) -> Float[Array, "*batch row column block"]:
        """Terms k q + 1 to k q + q of the series, divided by A^(k q)."""
        terms = [power / math.factorial(k * group + i) for i, power in enumerate(powers, start=1)]
        return functools.reduce(operator.add, terms)

    # exp(A) = 1 + part(0) + A^q (part(1) + A^q (...)), since A^q divides every later group.
    value = part(groups - 1)
    for k in range(groups - 2, -1, -1):
        value = part(k) + matmul(powers[-1], value)

    def square(number: Array, value: Array) -> Array:
        wanted = number < squarings
        # Zero where no squaring is needed: an overflow there would make derivatives NaN.
        source = jnp.where(wanted, value, 0)
        return jnp.where(wanted, matmul(source, source), value)

    return jax.lax.fori_loop(0, most, square, value + identity(blocks.shape[-2], blocks[..., 0, 0, :]))


def bracket_matrices(
    letters: Float[Array, "letter row column block"], basis: Basis
) -> Float[Array, "lie row column block"]:
    """One block-diagonal matrix for each coordinate of the basis, computed level by level.

    >>> basis = Basis(("a", "b"), 2)
    >>> a, b = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.array([[0.0, 0.0], [1.0, 0.0]])
    >>> bracket_matrices(jnp.stack([a, b])[..., None], basis)[2, :, :, 0].tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    matrices = letters
    for level in range(2, basis.depth + 1):
        left, right = basis.brackets[basis.level(level)].T
        u, v = matrices[left], matrices[right]
        matrices = jnp.concatenate([matrices, matmul(v, u) - matmul(u, v)])
    return matrices

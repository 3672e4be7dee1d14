"""Small square matrices, many at once, as arrays "... row column block": the axis that vectorises is the last.

A block-diagonal matrix is one such array: entry (i, j, k) is row i and column j of block k. Dense is a single block,
diagonal is blocks of one. Vectors are "row block". Products of blocks up to `UNROLLED` are written out as sums of
products over the last axis, which compilers vectorise; above it they are matrix multiplications.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

UNROLLED = 8


def matmul(
    left: Float[Array, "*#batch row column block"], right: Float[Array, "*#batch column other block"]
) -> Float[Array, "*batch row other block"]:
    """Products, block by block."""
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
    """Products with vectors, block by block."""
    size = matrix.shape[-2]
    if size > UNROLLED:
        return jnp.einsum("...ijk,...jk->...ik", matrix, vector)
    total = matrix[..., :, 0, :] * vector[..., None, 0, :]
    for j in range(1, size):
        total = total + matrix[..., :, j, :] * vector[..., None, j, :]
    return total


def identity(size: int, like: Float[Array, "*batch block"]) -> Float[Array, "row column #block"]:
    """The identity, which broadcasts against blocks."""
    return jnp.eye(size, dtype=like.dtype)[:, :, None]


def as_matrix(blocks: Float[Array, "*batch row column block"]) -> Float[Array, "*batch hidden hidden"]:
    """The whole matrix: entry i of block k of a vector is at i * blocks + k."""
    *batch, size, _, count = blocks.shape
    whole = blocks[..., :, None, :, :] * jnp.eye(count, dtype=blocks.dtype)[:, None, :]
    return whole.reshape(*batch, size * count, size * count)

"""Matrices of iterated brackets: what a coordinate of the log-signature multiplies in a linear CDE.

Solutions of linear CDEs multiply matrices in the opposite order of signatures, so the matrix of a bracket [u, v] is
A_v A_u - A_u A_v, recursively on matrices that are flipped already.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.algebra import Basis
from logcde.flows.blocks import matmul


def bracket_matrices(
    letters: Float[Array, "letter row column block"], basis: Basis
) -> Float[Array, "lie row column block"]:
    """One block-diagonal matrix for each coordinate of the basis, level by level.

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

"""Exponentials applied along a sequence without being formed: a truncated Taylor series on the state itself."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.flows.blocks import matvec


def act(
    matrices: Float[Array, "interval row column block"], hidden: Float[Array, "row block"], exact: bool
) -> Float[Array, "interval row block"]:
    """The state after every interval; `exact` for exponentials, otherwise 1 + A."""
    degree = (18 if matrices.dtype == jnp.float64 else 10) if exact else 1

    def extend(state: Array, matrix: Array) -> tuple[Array, Array]:
        term = state
        for k in range(1, degree + 1):
            term = matvec(matrix, term) / k
            state = state + term
        return state, state

    return jax.lax.scan(extend, hidden, matrices)[1]

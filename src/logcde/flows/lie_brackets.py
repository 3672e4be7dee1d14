"""The vector field of the Log-ODE method: iterated Lie brackets of any depth, without forming any.

A field f acts on functions of the state by (f g)(h) = D g(h) f(h), and the bracket of the protocol,
[f_a, f_b] = J_{f_b} f_a - J_{f_a} f_b, is the commutator of these operators applied to the identity. So with l^w the
coefficients of the log-signature as a tensor over words w = i_1 ... i_k, the sum over all brackets of a Lyndon basis is

    sum_w l^w f_{i_1} ... f_{i_k} Id,

where the common first letter of many words is one directional derivative. The last two letters need no derivative by
JAX at all: sum_ij l^ij f_i f_j Id = sum_j D f_j (sum_i l^ij f_i).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.algebra import Basis
from logcde.algebra.levels import Levels
from logcde.algebra.lie import expand_levels
from logcde.flows.neural import AbstractVectorField


def words_of(logsigs: Float[Array, "*interval lie"], basis: Basis) -> Levels:
    """Log-signatures as tensors: one array for each level k, with k axes of letters.

    >>> words_of(jnp.array([1.0, 2.0, 0.5]), Basis.of_width(2, 2))[1].tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    levels = expand_levels(logsigs, basis)
    return tuple(
        array.reshape(*array.shape[:-1], *[basis.width] * level) for level, array in enumerate(levels, start=1)
    )


def drift(field: AbstractVectorField, hidden: Float[Array, "hidden"], words: Levels) -> Float[Array, "hidden"]:
    """The sum over all words of their coefficient times the iterated derivative that they stand for."""
    if len(words) == 1:
        return words[0] @ field(hidden)
    values, push = field.linearise(hidden)
    if len(words) == 2:
        return words[0] @ values + push(words[1].T @ values)

    def along(direction: Float[Array, "hidden"], rest: Levels) -> Float[Array, "hidden"]:
        return jax.jvp(lambda state: drift(field, state, rest), (hidden,), (direction,))[1]

    return words[0] @ values + jnp.sum(jax.vmap(along)(values, words[1:]), axis=0)

"""Plain rows as the input of deep stacks: an affine map of each row, which connects no two rows.

Rows are features of intervals, for example of windows. Each is limited softly first, so that a row far outside those of
training moves what follows by a bounded amount.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.flows.dynamics import AbstractDropoutDynamics, Carry

LIMIT = 8.0


class RowEncoder(AbstractDropoutDynamics):
    """The state after an interval is a linear map of its row, shifted by the initial state.

    Args:
        inputs: The size of a row.
        features: The size of the state.
        limit: Entries are limited softly to this size; rows are standardised, so that few come near it.
        dropout: The share of the entries of a row that is dropped in training.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> encoder = RowEncoder(inputs=3, features=4, key=jax.random.key(0))
    >>> encoder.unroll(jnp.zeros(4, jnp.float32), jnp.ones((5, 3), jnp.float32), jnp.asarray(5)).shape
    (5, 4)
    """

    weight: Float[Array, "features row"]
    limit: float = eqx.field(static=True)
    dropout: float = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        features: int,
        *,
        limit: float = LIMIT,
        dropout: float = 0.0,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        self.weight = jax.random.normal(key, (features, inputs), dtype) * max(inputs, 1) ** -0.5
        self.limit, self.dropout = limit, dropout

    @property
    def hidden(self) -> int:
        """The size of the state."""
        return len(self.weight)

    @property
    def features(self) -> int:
        """The size of the state."""
        return len(self.weight)

    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """One state for each row; the last one stays."""
        return self._along(hidden, soft_limit(logsigs, self.limit), length)

    def unroll_train(
        self,
        hidden: Float[Array, "hidden"],
        logsigs: Float[Array, "interval lie"],
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "interval features"]:
        """The same with dropout."""
        rows = eqx.nn.Dropout(self.dropout)(soft_limit(logsigs, self.limit), key=key)
        return self._along(hidden, rows, length)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The initial state, twice: as what shifts all rows, and as the state."""
        return hidden, hidden

    def advance(self, carry: Carry, logsig: Float[Array, "lie"]) -> Carry:
        """The state of the new row."""
        hidden, _ = carry
        return hidden, self.weight @ soft_limit(logsig, self.limit) + hidden

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state of the last row."""
        return carry[1]

    def penalty(self) -> Float[Array, ""]:
        """Zero: there is no vector field."""
        return jnp.zeros((), self.weight.dtype)

    def _along(self, hidden: Array, rows: Array, length: Int[Array, ""]) -> Float[Array, "interval features"]:
        return held(hidden, rows @ self.weight.T + hidden, length)


def soft_limit(values: Float[Array, "*any"], limit: float) -> Float[Array, "*any"]:
    """Numbers within plus and minus `limit`; those much smaller than it hardly change, and order is kept.

    >>> soft_limit(jnp.array([0.1, -1e6]), 5.0).round(3).tolist() == jnp.array([0.1, -5.0]).tolist()
    True
    """
    return limit * jnp.tanh(values / limit)


def held(
    start: Float[Array, "features"], states: Float[Array, "interval features"], length: Int[Array, ""]
) -> Float[Array, "interval features"]:
    """The states, of which the last one that counts is repeated after it; `start` if none counts."""
    last = jnp.concatenate([start[None], states])[length]
    valid = jnp.arange(len(states), dtype=length.dtype) < length
    return jnp.where(valid[:, None], states, last)

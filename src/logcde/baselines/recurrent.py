"""GRU-D: a gated recurrent unit whose state and whose missing inputs fade with the time since they were observed.

After Che et al., "Recurrent Neural Networks for Multivariate Time Series with Missing Values" (2018). What it is fed
are the rows of `HeldControl`. A value that is not observed now is taken to fade from the last one towards zero, the
mean of inputs that were standardised; the hidden state fades in a way of its own.

Recurrent models, for comparison: what is commonly used where observations are irregular.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, Carry
from logcde.models.initial import AbstractInitial, InitialState, LearntInitial, channels_of
from logcde.models.model import SequenceModel
from logcde.models.readout import AbstractReadout, ReadoutHead, Terminal
from logcde.models.scaling import NoScaling


class FadingGRU(AbstractDynamics):
    """One step of the unit for each row.

    >>> dynamics = FadingGRU(channels=2, hidden=4, key=jax.random.key(0))
    >>> dynamics.unroll(jnp.ones(4, jnp.float32), jnp.ones((5, 6), jnp.float32), jnp.asarray(5)).shape
    (5, 4)
    """

    cell: eqx.nn.GRUCell
    fade_values: Float[Array, "channel"]
    fade_hidden: Float[Array, "hidden channel"]
    delay: Float[Array, "hidden"]

    def __init__(self, channels: int, hidden: int, *, dtype: DTypeLike = jnp.float32, key: PRNGKeyArray) -> None:
        if min(channels, hidden) < 1:
            raise ModelError(f"A unit with {channels} channels and a hidden state of {hidden} cannot be built.")
        for_cell, for_values, for_hidden = jax.random.split(key, 3)
        bound = channels**-0.5
        self.cell = eqx.nn.GRUCell(2 * channels, hidden, dtype=dtype, key=for_cell)
        self.fade_values = jax.random.uniform(for_values, (channels,), dtype, 0, bound)
        self.fade_hidden = jax.random.uniform(for_hidden, (hidden, channels), dtype, -bound, bound)
        self.delay = jnp.zeros(hidden, dtype)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return len(self.delay)

    @property
    def features(self) -> int:
        """That of the hidden state."""
        return self.hidden

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state after every row."""
        valid = jnp.arange(len(steps), dtype=length.dtype) < length
        # What does not depend on the state is computed for all rows at once: the loop is left with one product.
        seen, faded = jax.vmap(self._seen)(steps)
        driven = seen @ self.cell.weight_ih.T

        def extend(state: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            state = jnp.where(row[2], self._step(state, row[0], row[1]), state)
            return state, state

        return jax.lax.scan(extend, hidden, (driven, faded, valid))[1]

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The state."""
        return hidden

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The state after one more row."""
        seen, faded = self._seen(step)
        return self._step(carry, self.cell.weight_ih @ seen, faded)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The norm of the recurrent weights."""
        return jnp.linalg.norm(self.cell.weight_hh)

    def _seen(self, row: Float[Array, "lie"]) -> tuple[Float[Array, "entry"], Float[Array, "hidden"]]:
        """What the unit is fed, and how much of its state is left by now."""
        if len(row) != 3 * len(self.fade_values):
            raise ModelError(
                f"A row has {len(row)} numbers, but {len(self.fade_values)} channels need three each. Give the model "
                "what a HeldControl makes of the streams."
            )
        last, observed, ago = jnp.split(row, 3)
        known = observed + (1 - observed) * jnp.exp(-jax.nn.relu(self.fade_values * ago))
        return jnp.concatenate([known * last, observed]), jnp.exp(-jax.nn.relu(self.fade_hidden @ ago + self.delay))

    def _step(
        self, hidden: Float[Array, "hidden"], driven: Float[Array, "gates"], faded: Float[Array, "hidden"]
    ) -> Float[Array, "hidden"]:
        """The equations of `eqx.nn.GRUCell`, whose product with the input is given."""
        bias, new_bias = self.cell.bias, self.cell.bias_n
        assert bias is not None
        assert new_bias is not None
        hidden = faded * hidden
        reset_in, update_in, new_in = jnp.split(driven + bias, 3)
        reset_h, update_h, new_h = jnp.split(self.cell.weight_hh @ hidden, 3)
        reset, update = jax.nn.sigmoid(reset_in + reset_h), jax.nn.sigmoid(update_in + update_h)
        new = jnp.tanh(new_in + reset * (new_h + new_bias))
        return new + update * (hidden - new)


def gru_d(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Terminal(),
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """A gated recurrent unit on forward-filled values, with masks and time gaps; `basis` is that of a `HeldControl`.

    >>> from logcde import Inputs, Partition, Streams
    >>> from logcde.baselines import HeldControl
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> held = HeldControl()(streams, Partition.uniform(2))
    >>> gru_d(held.basis, hidden=16, outputs=2, key=jax.random.key(0))(Inputs.of(held)[0]).shape
    (2,)
    """
    keys = jax.random.split(key, 3)
    channels = channels_of(basis)
    return SequenceModel(
        basis=None,
        scaling=NoScaling(),
        initial=InitialState(initial, channels, static, hidden, dtype=dtype, key=keys[1]),
        dynamics=FadingGRU(channels, hidden, dtype=dtype, key=keys[0]),
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=keys[2]),
    )

"""GRU-D: a gated recurrent unit whose missing inputs and whose state decay with the time since the last observation.

After Che et al., "Recurrent Neural Networks for Multivariate Time Series with Missing Values" (2018). Its inputs are
the rows of `HeldControl`. A missing value decays from the last one towards zero, the mean of standardised inputs; the
hidden state has decay rates of its own.
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
    """A gated recurrent unit with decay, one step for each row of a `HeldControl`.

    Args:
        channels: The number of channels.
        hidden: The size of the hidden state.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

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
            raise ModelError(
                f"A unit with {channels} channels and a hidden state of {hidden} cannot be built.",
                "Both are 1 or more.",
            )
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
        """The size of the hidden state."""
        return self.hidden

    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state after every row."""
        valid = jnp.arange(len(logsigs), dtype=length.dtype) < length
        # What does not depend on the state is computed for all rows at once, which leaves one product to the loop.
        seen, faded = jax.vmap(self._seen)(logsigs)
        driven = seen @ self.cell.weight_ih.T

        def extend(state: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            state = jnp.where(row[2], self._step(state, row[0], row[1]), state)
            return state, state

        return jax.lax.scan(extend, hidden, (driven, faded, valid))[1]

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The carry is the hidden state itself, before the first row the initial one."""
        return hidden

    def advance(self, carry: Carry, logsig: Float[Array, "lie"]) -> Carry:
        """The state after one more row."""
        seen, faded = self._seen(logsig)
        return self._step(carry, self.cell.weight_ih @ seen, faded)

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The carry is the hidden state itself."""
        return carry

    def penalty(self) -> Float[Array, ""]:
        """The norm of the recurrent weights."""
        return jnp.linalg.norm(self.cell.weight_hh)

    def _seen(self, row: Float[Array, "lie"]) -> tuple[Float[Array, "entry"], Float[Array, "hidden"]]:
        """The input of the unit, and the share of its state that is left."""
        if len(row) != 3 * len(self.fade_values):
            raise ModelError(
                f"A row has {len(row)} numbers, but {len(self.fade_values)} channels need three each.",
                "Give the model the rows of a HeldControl.",
            )
        last, observed, ago = jnp.split(row, 3)
        known = observed + (1 - observed) * jnp.exp(-jax.nn.relu(self.fade_values * ago))
        return jnp.concatenate([known * last, observed]), jnp.exp(-jax.nn.relu(self.fade_hidden @ ago + self.delay))

    def _step(
        self, hidden: Float[Array, "hidden"], driven: Float[Array, "gates"], faded: Float[Array, "hidden"]
    ) -> Float[Array, "hidden"]:
        """The equations of `eqx.nn.GRUCell`, given its product with the input."""
        bias, new_bias = self.cell.bias, self.cell.bias_n
        assert bias is not None
        assert new_bias is not None
        hidden = faded * hidden
        reset_in, update_in, new_in = jnp.split(driven + bias, 3)
        reset_h, update_h, new_h = jnp.split(self.cell.weight_hh @ hidden, 3)
        reset, update = jax.nn.sigmoid(reset_in + reset_h), jax.nn.sigmoid(update_in + update_h)
        new = jnp.tanh(new_in + reset * (new_h + new_bias))
        return new + update * (hidden - new)


def gru_d(
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
    """GRU-D: a gated recurrent unit on forward-filled values, masks and time gaps.

    Args:
        basis: The basis of the `HeldControl`.
        hidden: The size of the hidden state.
        outputs: The number of outputs; for classifiers, of classes.
        initial: What the initial state depends on.
        readout: Which states are read, and by which layers.
        static: The number of static features.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

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

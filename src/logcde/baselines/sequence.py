"""Recurrent models of the paper's comparison, S5, LRU, S6 and Mamba: stacks of like layers on the values of the path.

The row of an interval is the position of the driving path at its end. With an embedding of depth one, without counts,
and one interval for each event (`Partition.every_events(1)`), rows are the observed values themselves; a channel that
is not observed at an event keeps its last value, and is zero before its first.

Batch statistics stay in this package: `Recurrent` has them, and `RecurrentModel` presents them to the training step.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.baselines.mixing import AbstractMixer
from logcde.baselines.norms import AbstractNorm
from logcde.baselines.units import S5, AbstractUnit
from logcde.embedding import EmbeddingSpec, InitialObservations
from logcde.errors import ModelError
from logcde.flows import AbstractDynamics
from logcde.flows.dynamics import Carry
from logcde.models.initial import AbstractInitial, InitialState, LearntInitial, channels_of
from logcde.models.inputs import Inputs
from logcde.models.model import AbstractBatchModel, AbstractOnlineModel, BatchStats, SequenceModel
from logcde.models.readout import AbstractReadout, Mean, ReadoutHead, Tally
from logcde.models.scaling import AbstractScaling, NoScaling
from logcde.scans import AbstractScan, Auto


class Layer(eqx.Module):
    """x + dropout(GLU(dropout(GELU(mix(norm(x)))))): only the mixer connects rows."""

    norm: AbstractNorm
    mixer: AbstractMixer
    gate: eqx.nn.Linear
    dropout: eqx.nn.Dropout

    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """The rows after this layer."""
        return rows + jax.vmap(self._gated)(jax.nn.gelu(self.mixer(self.norm(rows))))

    def apply_train(
        self, rows: Float[Array, "interval features"], length: Int[Array, ""], key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "interval features"], AbstractNorm | None]:
        """The rows after this layer in training, and the norm with the statistics of the batch."""
        first, second = jax.random.split(key)
        valid = jnp.arange(len(rows), dtype=length.dtype) < length
        normal, norm = self.norm.apply_train(rows, valid, axes)
        mixed = self.dropout(jax.nn.gelu(self.mixer(normal)), key=first)
        return rows + self.dropout(jax.vmap(self._gated)(mixed), key=second), norm

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """What the mixer keeps after one more row, and that row after this layer."""
        carry, mixed = self.mixer.advance(carry, self.norm(row))
        return carry, row + self._gated(jax.nn.gelu(mixed))

    def _gated(self, row: Float[Array, "features"]) -> Float[Array, "features"]:
        return jax.nn.glu(self.gate(row))


class Recurrent(AbstractDynamics):
    """A stack of layers on a linear map of the path's position; the initial state shifts that map.

    Args:
        letters: The number of letters of the path.
        features: The size of the rows of all layers.
        mixers: The mixer of each layer.
        norms: The norm of each layer.
        dropout: The share of entries that is dropped in training.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> from logcde.baselines.norms import LayerNorm
    >>> from logcde.baselines.state_space import LinearRecurrentUnit
    >>> unit = LinearRecurrentUnit(features=4, state=8, key=jax.random.key(0))
    >>> stack = Recurrent(letters=3, features=4, mixers=[unit], norms=[LayerNorm(4)], key=jax.random.key(1))
    >>> stack.unroll(jnp.zeros(4, jnp.float32), jnp.ones((5, 6), jnp.float32), jnp.asarray(5)).shape
    (5, 4)
    """

    encode: Float[Array, "features letter"]
    layers: tuple[Layer, ...]

    def __init__(
        self,
        letters: int,
        features: int,
        mixers: Sequence[AbstractMixer],
        norms: Sequence[AbstractNorm],
        *,
        dropout: float = 0.0,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        for_encode, *keys = jax.random.split(key, 1 + len(mixers))
        bound = letters**-0.5
        self.encode = jax.random.uniform(for_encode, (features, letters), dtype, -bound, bound)
        self.layers = tuple(
            Layer(norm, mixer, eqx.nn.Linear(features, 2 * features, dtype=dtype, key=k), eqx.nn.Dropout(dropout))
            for norm, mixer, k in zip(norms, mixers, keys, strict=True)
        )

    @property
    def hidden(self) -> int:
        """The size of the rows of all layers."""
        return len(self.encode)

    @property
    def features(self) -> int:
        """The size of the rows of all layers."""
        return len(self.encode)

    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The rows of the last layer."""
        rows = self._rows(hidden, logsigs)
        for layer in self.layers:
            rows = layer(rows)
        return rows

    def apply_train(
        self,
        hidden: Float[Array, "hidden"],
        logsigs: Float[Array, "interval lie"],
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
        axes: tuple[str, ...],
    ) -> tuple[Float[Array, "interval features"], BatchStats]:
        """`unroll` in training, for one series of a batch with these axes, and the norms with its statistics."""
        rows = self._rows(hidden, logsigs)
        norms = []
        for layer, k in zip(self.layers, jax.random.split(key, len(self.layers)), strict=True):
            rows, norm = layer.apply_train(rows, length, k, axes)
            norms.append(norm)
        return rows, tuple(norms)

    def with_batch_stats(self, batch_stats: BatchStats) -> "Recurrent":
        """The same layers with these norms, where there are some."""
        norms = [layer.norm if norm is None else norm for layer, norm in zip(self.layers, batch_stats, strict=True)]
        return eqx.tree_at(lambda stack: [layer.norm for layer in stack.layers], self, norms)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The shift, the path at the origin, what the mixers keep, and the last row."""
        origin = jnp.zeros(self.encode.shape[1], self.encode.dtype)
        return hidden, origin, tuple(layer.mixer.start() for layer in self.layers), jnp.zeros_like(hidden)

    def advance(self, carry: Carry, logsig: Float[Array, "lie"]) -> Carry:
        """The same after one more interval."""
        hidden, position, kept, _ = carry
        position = position + logsig[: len(position)]
        row = self.encode @ position + hidden
        after = []
        for layer, mine in zip(self.layers, kept, strict=True):
            mine, row = layer.advance(mine, row)
            after.append(mine)
        return hidden, position, tuple(after), row

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The output of the top layer for the last interval, which is the last part of the carry."""
        return carry[-1]

    def penalty(self) -> Float[Array, ""]:
        """Zero: there is no vector field."""
        return jnp.zeros((), self.encode.dtype)

    def _rows(self, hidden: Float[Array, "hidden"], logsigs: Float[Array, "interval lie"]) -> Array:
        letters = self.encode.shape[1]
        return jnp.cumsum(logsigs[:, :letters], axis=0) @ self.encode.T + hidden


class RecurrentModel(AbstractBatchModel, AbstractOnlineModel):
    """A `SequenceModel` with `Recurrent` dynamics, whose batch statistics and dropout training uses.

    Args:
        model: The model, as it predicts after training.
    """

    model: SequenceModel
    basis: Basis | None = eqx.field(static=True, init=False)
    spec: EmbeddingSpec | None = eqx.field(static=True, init=False)

    def __init__(self, model: SequenceModel) -> None:
        if not isinstance(model.dynamics, Recurrent):
            raise ModelError(
                f"The dynamics are {type(model.dynamics).__name__}, not Recurrent.", "Use the model itself."
            )
        self.model, self.basis, self.spec = model, model.basis, model.spec

    @property
    def dynamics(self) -> Recurrent:
        """The stack of layers."""
        assert isinstance(self.model.dynamics, Recurrent)
        return self.model.dynamics

    @property
    def initial_rules(self) -> tuple[AbstractInitial, ...]:
        """What the initial state depends on."""
        return self.model.initial_rules

    @property
    def statics(self) -> int:
        """The number of static features."""
        return self.model.statics

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """Predict with the statistics of past batches."""
        if key is not None:
            raise ModelError(
                "A model with batch statistics cannot be trained as a part of another model.",
                "Train it by itself, then add it with Sum.mean.",
            )
        return self.model(inputs)

    def apply_train(
        self, inputs: Inputs, *, key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "*interval output"], BatchStats]:
        """Predict with the statistics of this batch and with dropout."""
        hidden = self.model.initial(inputs.initial, inputs.static)
        logsigs: Any = self.model.scaled(inputs.rows)
        states, batch_stats = self.dynamics.apply_train(hidden, logsigs, inputs.length, key=key, axes=axes)
        return self.model.read(hidden, states, inputs, jax.random.fold_in(key, 0)), batch_stats

    def with_batch_stats(self, batch_stats: BatchStats) -> "RecurrentModel":
        """The model with updated norms."""
        dynamics = self.dynamics.with_batch_stats(batch_stats)
        return RecurrentModel(dataclasses.replace(self.model, dynamics=dynamics))

    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> tuple[Carry, Tally]:
        """What is kept before the first interval."""
        return self.model.start(initial, static)

    def advance(self, kept: tuple[Carry, Tally], logsig: Float[Array, "lie"]) -> tuple[Carry, Tally]:
        """What is kept after one more interval."""
        return self.model.advance(kept, logsig)

    def predict(self, kept: tuple[Carry, Tally]) -> Float[Array, "output"]:
        """The prediction for a series that ends here."""
        return self.model.predict(kept)

    def penalty(self) -> Float[Array, ""]:
        """Zero: there is no vector field."""
        return self.model.penalty()

    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "RecurrentModel":
        """Fit the scaling of the inner model; there is nothing else to fit."""
        return RecurrentModel(self.model.fit_preprocessing(inputs, spec))


def ssm(
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    unit: AbstractUnit = S5(),
    layers: int = 2,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Mean(),
    scaling: AbstractScaling = NoScaling(),
    scan: AbstractScan = Auto(),
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> RecurrentModel:
    """State-space layers on the values of the path.

    Args:
        basis: The basis of the log-signatures; only level one is read.
        hidden: The size of the rows of all layers.
        outputs: The number of outputs.
        unit: `S5()`, `LRU()`, `S6()` or `Mamba()`.
        layers: The number of layers.
        initial: What the initial state depends on, which shifts all rows.
        readout: Which rows are read, and by which layers.
        scaling: What log-signatures are scaled by; `fit` fits it.
        scan: How the recurrence of each layer is run.
        static: The number of static features.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> from logcde import Embedding, Partition, Streams
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> rows = Embedding(depth=1, counts=False, time=False)(streams, Partition.every_events(1))
    >>> model = ssm(rows.basis, hidden=8, outputs=2, unit=S5(state=4), key=jax.random.key(0))
    >>> model(Inputs.of(rows)[0]).shape
    (2,)
    """
    if layers < 1:
        raise ModelError(f"A stack of {layers} layers cannot be built.", "Give at least one layer.")
    for_stack, for_initial, for_readout, *keys = jax.random.split(key, 3 + layers)
    dynamics = Recurrent(
        basis.width,
        hidden,
        [unit.mixer(hidden, scan, dtype, k) for k in keys],
        [unit.norm(hidden, dtype) for _ in keys],
        dropout=unit.dropout,
        dtype=dtype,
        key=for_stack,
    )
    model = SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=for_initial),
        dynamics=dynamics,
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=for_readout),
    )
    return RecurrentModel(model)

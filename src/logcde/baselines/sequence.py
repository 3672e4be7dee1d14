"""A stack of recurrent layers on the values of the driving path: what S5, LRU, S6 and Mamba have in common.

The row of an interval is where the path is at its end. With one interval for each event these are the observed values
themselves, and of channels that were not observed just then the last ones; before a channel's first value it is zero.

Recurrent models of the paper's comparison: S5, LRU, S6 and Mamba, stacks of like layers.

They read where the driving path is at the end of each interval. With an embedding of depth one, without counts and with
one interval for each event (`Partition.every_events(1)`), they see the observed rows one after another, as they are.
"""

import abc
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.baselines.mixing import AbstractMixer, RecurrenceScan
from logcde.baselines.norms import AbstractNorm, BatchNorm, LayerNorm
from logcde.baselines.selective import Gated, Selective
from logcde.baselines.state_space import LinearRecurrentUnit, SimplifiedStateSpace
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractBatchDynamics, BatchStats, Carry
from logcde.models.initial import AbstractInitial, InitialState, LearntInitial, channels_of
from logcde.models.model import SequenceModel
from logcde.models.readout import AbstractReadout, Mean, ReadoutHead
from logcde.models.scaling import AbstractScaling, NoScaling
from logcde.scans import Auto


class Layer(eqx.Module):
    """x + dropout(GLU(dropout(GELU(mix(norm(x)))))): nothing but the mixing looks at more than one row."""

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
        """The rows after this layer in training, and the norm that remembers the batch."""
        first, second = jax.random.split(key)
        valid = jnp.arange(len(rows), dtype=length.dtype) < length
        normal, batch_stats = self.norm.apply_train(rows, valid, axes)
        mixed = self.dropout(jax.nn.gelu(self.mixer(normal)), key=first)
        return rows + self.dropout(jax.vmap(self._gated)(mixed), key=second), batch_stats

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """What the mixer keeps after one more row, and that row after this layer."""
        carry, mixed = self.mixer.advance(carry, self.norm(row))
        return carry, row + self._gated(jax.nn.gelu(mixed))

    def _gated(self, row: Float[Array, "features"]) -> Float[Array, "features"]:
        return jax.nn.glu(self.gate(row))


class Recurrent(AbstractBatchDynamics):
    """Layers on top of each other, above a linear map of where the path is; the initial state shifts that map.

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
        """The size of the rows that all layers have."""
        return len(self.encode)

    @property
    def features(self) -> int:
        """The size of the rows that all layers have."""
        return len(self.encode)

    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The rows of the last layer."""
        rows = self._rows(hidden, steps)
        for layer in self.layers:
            rows = layer(rows)
        return rows

    def apply_train(
        self,
        hidden: Float[Array, "hidden"],
        steps: Float[Array, "interval lie"],
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
        axes: tuple[str, ...],
    ) -> tuple[Float[Array, "interval features"], BatchStats]:
        """The rows of the last layer in training, and the norms of all layers that remember the batch."""
        rows = self._rows(hidden, steps)
        batch_stats = []
        for layer, k in zip(self.layers, jax.random.split(key, len(self.layers)), strict=True):
            rows, norm = layer.apply_train(rows, length, k, axes)
            batch_stats.append(norm)
        return rows, tuple(batch_stats)

    def with_batch_stats(self, batch_stats: BatchStats) -> "Recurrent":
        """With the norms that remember."""
        norms = [layer.norm if norm is None else norm for layer, norm in zip(self.layers, batch_stats, strict=True)]
        return eqx.tree_at(lambda stack: [layer.norm for layer in stack.layers], self, norms)

    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """The shift, where the path is, what the mixers keep, and the last row."""
        origin = jnp.zeros(self.encode.shape[1], self.encode.dtype)
        return hidden, origin, tuple(layer.mixer.start() for layer in self.layers), jnp.zeros_like(hidden)

    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """The same after one more interval."""
        hidden, place, kept, _ = carry
        place = place + step[: len(place)]
        row = self.encode @ place + hidden
        after = []
        for layer, mine in zip(self.layers, kept, strict=True):
            mine, row = layer.advance(mine, row)
            after.append(mine)
        return hidden, place, tuple(after), row

    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The last row."""
        return carry[-1]

    def penalty(self) -> Float[Array, ""]:
        """Nothing: there is no vector field."""
        return jnp.zeros((), self.encode.dtype)

    def _rows(self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"]) -> Array:
        letters = self.encode.shape[1]
        return jnp.cumsum(steps[:, :letters], axis=0) @ self.encode.T + hidden


class AbstractUnit(eqx.Module):
    """What the layers of an `ssm` are."""

    dropout: eqx.AbstractVar[float]

    @abc.abstractmethod
    def mixer(self, features: int, scan: RecurrenceScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """What mixes rows over time."""

    @abc.abstractmethod
    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """What normalises them before."""


class S5(AbstractUnit):
    """Diagonal state spaces of size `state` that begin as HiPPO's in `blocks` equal blocks; batch normalisation."""

    state: int = eqx.field(default=16, static=True)
    blocks: int = eqx.field(default=1, static=True)
    dropout: float = eqx.field(default=0.05, static=True)

    def mixer(self, features: int, scan: RecurrenceScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A state space."""
        return SimplifiedStateSpace(features, self.state, self.blocks, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Over the batch."""
        return BatchNorm(features, dtype=dtype)


class LRU(AbstractUnit):
    """Linear recurrent units with factors in the unit circle; batch normalisation."""

    state: int = eqx.field(default=16, static=True)
    dropout: float = eqx.field(default=0.1, static=True)

    def mixer(self, features: int, scan: RecurrenceScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A linear recurrent unit."""
        return LinearRecurrentUnit(features, self.state, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Over the batch."""
        return BatchNorm(features, dtype=dtype)


class S6(AbstractUnit):
    """Selective state spaces, without what Mamba puts around them; layer normalisation."""

    state: int = eqx.field(default=16, static=True)
    dropout: float = eqx.field(default=0.1, static=True)

    def mixer(self, features: int, scan: RecurrenceScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A selective state space."""
        return Selective(features, self.state, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Over the entries of each row."""
        return LayerNorm(features, dtype=dtype)


class Mamba(AbstractUnit):
    """Selective state spaces on `expansion` times the features, with a convolution over `width` rows and a gate."""

    state: int = eqx.field(default=16, static=True)
    width: int = eqx.field(default=4, static=True)
    expansion: int = eqx.field(default=2, static=True)
    dropout: float = eqx.field(default=0.1, static=True)

    def mixer(self, features: int, scan: RecurrenceScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A gated selective state space."""
        return Gated(features, self.state, width=self.width, expansion=self.expansion, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Over the entries of each row."""
        return LayerNorm(features, dtype=dtype)


def ssm(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    unit: AbstractUnit = S5(),
    layers: int = 2,
    initial: AbstractInitial = LearntInitial(),
    readout: AbstractReadout = Mean(),
    scaling: AbstractScaling = NoScaling(),
    scan: RecurrenceScan = Auto(),
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> SequenceModel:
    """State-space layers on the values of the path: `unit` is `S5()`, `LRU()`, `S6()` or `Mamba()`.

    >>> from logcde import Embedding, Inputs, Partition, Streams
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> rows = Embedding(depth=1, counts=False, time=False)(streams, Partition.every_events(1))
    >>> model = ssm(rows.basis, hidden=8, outputs=2, unit=LRU(state=4), key=jax.random.key(0))
    >>> model(Inputs.of(rows)[0]).shape
    (2,)
    """
    if layers < 1:
        raise ModelError(f"A stack of {layers} layers was asked for. It has at least one.")
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
    return SequenceModel(
        basis=basis,
        scaling=scaling,
        initial=InitialState(initial, channels_of(basis), static, hidden, dtype=dtype, key=for_initial),
        dynamics=dynamics,
        readout=ReadoutHead(readout, hidden, outputs, dtype=dtype, key=for_readout),
    )

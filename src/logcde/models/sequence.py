"""Recurrent models of the paper's comparison: S5, LRU, S6 and Mamba, stacks of like layers.

They read where the driving path is at the end of each interval. With an embedding of depth one, without counts and with
one interval for each event (`Partition.every_events(1)`), they see the observed rows one after another, as they are.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows import Fastest, Recurrent
from logcde.flows.mixing import AbstractMixer
from logcde.flows.norms import AbstractNorm, BatchNorm, LayerNorm
from logcde.flows.recurrence import RecurrenceScan
from logcde.flows.selective import Gated, Selective
from logcde.flows.state_space import LinearRecurrentUnit, SimplifiedStateSpace
from logcde.models.initial import AbstractLook, Initial, Learnt, channels_of
from logcde.models.model import CDE
from logcde.models.readout import AbstractReading, Mean, Readout
from logcde.models.scaling import AbstractScaling, Unscaled


class AbstractUnit(eqx.Module):
    """What the layers of an `SSM` are."""

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


def SSM(  # noqa: N802
    basis: Basis,
    hidden: int,
    outputs: int,
    *,
    unit: AbstractUnit = S5(),
    layers: int = 2,
    initial: AbstractLook = Learnt(),
    readout: AbstractReading = Mean(),
    scaling: AbstractScaling = Unscaled(),
    scan: RecurrenceScan = Fastest(),
    static: int = 0,
    dtype: DTypeLike = jnp.float32,
    key: PRNGKeyArray,
) -> CDE:
    """State-space layers on the values of the path: `unit` is `S5()`, `LRU()`, `S6()` or `Mamba()`.

    >>> from logcde import Embedding, Inputs, Partition, Streams
    >>> streams = Streams.from_arrays([[0.0, 1.0, 3.0]], [[[5.0], [6.0], [4.0]]], channels=["pulse"])
    >>> rows = Embedding(depth=1, counts=False, time=False)(streams, Partition.every_events(1))
    >>> model = SSM(rows.basis, hidden=8, outputs=2, unit=LRU(state=4), key=jax.random.key(0))
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
    return CDE(
        basis=basis,
        scaling=scaling,
        initial=Initial(initial, channels_of(basis), static, hidden, dtype=dtype, key=for_initial),
        dynamics=dynamics,
        readout=Readout(readout, hidden, outputs, dtype=dtype, key=for_readout),
    )

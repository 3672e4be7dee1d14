"""What the layers of an `ssm` are made of: S5, LRU, S6 and Mamba, each a mixer and a norm with its own defaults."""

import abc

import equinox as eqx
from jaxtyping import DTypeLike, PRNGKeyArray

from logcde.baselines.mixing import AbstractMixer
from logcde.baselines.norms import AbstractNorm, BatchNorm, LayerNorm
from logcde.baselines.selective import Gated, Selective
from logcde.baselines.state_space import LinearRecurrentUnit, SimplifiedStateSpace
from logcde.scans import AbstractScan


class AbstractUnit(eqx.Module):
    """What the layers of an `ssm` are made of.

    Attributes:
        dropout: The share of entries that every layer drops in training.
    """

    dropout: eqx.AbstractVar[float]

    @abc.abstractmethod
    def mixer(self, features: int, scan: AbstractScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """The mixer of one layer."""

    @abc.abstractmethod
    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """The norm of one layer."""


class S5(AbstractUnit):
    """Diagonal state spaces initialised as HiPPO's, with batch normalisation.

    Args:
        state: The size of the state.
        blocks: The number of equal blocks of the initial state matrix.
        dropout: The share of entries that is dropped in training.
    """

    state: int = eqx.field(default=16, static=True)
    blocks: int = eqx.field(default=1, static=True)
    dropout: float = eqx.field(default=0.05, static=True)

    def mixer(self, features: int, scan: AbstractScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A `SimplifiedStateSpace`."""
        return SimplifiedStateSpace(features, self.state, self.blocks, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Batch normalisation."""
        return BatchNorm(features, dtype=dtype)


class LRU(AbstractUnit):
    """Linear recurrent units with factors in the unit circle, with batch normalisation.

    Args:
        state: The size of the state.
        dropout: The share of entries that is dropped in training.
    """

    state: int = eqx.field(default=16, static=True)
    dropout: float = eqx.field(default=0.1, static=True)

    def mixer(self, features: int, scan: AbstractScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A `LinearRecurrentUnit`."""
        return LinearRecurrentUnit(features, self.state, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Batch normalisation."""
        return BatchNorm(features, dtype=dtype)


class S6(AbstractUnit):
    """Selective state spaces, without the convolution and the gate of Mamba, with layer normalisation.

    Args:
        state: The size of the state of each feature.
        dropout: The share of entries that is dropped in training.
    """

    state: int = eqx.field(default=16, static=True)
    dropout: float = eqx.field(default=0.1, static=True)

    def mixer(self, features: int, scan: AbstractScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A `Selective` state space."""
        return Selective(features, self.state, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Layer normalisation."""
        return LayerNorm(features, dtype=dtype)


class Mamba(AbstractUnit):
    """Selective state spaces with a convolution and a gate, with layer normalisation.

    Args:
        state: The size of the state of each feature.
        width: The number of rows that the convolution reads.
        expansion: The size of the state space in multiples of the features.
        dropout: The share of entries that is dropped in training.
    """

    state: int = eqx.field(default=16, static=True)
    width: int = eqx.field(default=4, static=True)
    expansion: int = eqx.field(default=2, static=True)
    dropout: float = eqx.field(default=0.1, static=True)

    def mixer(self, features: int, scan: AbstractScan, dtype: DTypeLike, key: PRNGKeyArray) -> AbstractMixer:
        """A `Gated` selective state space."""
        return Gated(features, self.state, width=self.width, expansion=self.expansion, scan=scan, dtype=dtype, key=key)

    def norm(self, features: int, dtype: DTypeLike) -> AbstractNorm:
        """Layer normalisation."""
        return LayerNorm(features, dtype=dtype)

"""The models of the UEA experiment: their inputs from a data set, and their construction (`app:uea-experiments`).

What the published runs did and the paper does not say is a field here.
"""

import dataclasses
from typing import Literal, TypeAlias

import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import PRNGKeyArray

from logcde.algebra import Basis
from logcde.baselines import LRU, S5, S6, HermiteControl, Mamba, ncde, ssm
from logcde.datasets import Classification, Split, windows
from logcde.embedding import Embedding, LogSignatures
from logcde.flows import Euler, Exponential, Identity
from logcde.models import AbstractModel, FirstValueInitial, Inputs, Mean, SequenceModel, log_ncde, log_slice
from logcde.streams import ChannelScaler, MinMaxScaler, Partition, Streams, with_time_channel

FLOWS = {"exponential": Exponential(), "euler": Euler()}


@dataclasses.dataclass(frozen=True)
class Given:
    """A data set, its streams after dropping, and its split."""

    data: Classification
    left: Streams
    split: Split

    def path(self, time: bool) -> Streams:
        """The streams after dropping; with `time`, also time as a channel observed at every original stamp."""
        return with_time_channel(self.left, self.data.streams) if time else self.left


class LinearPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="slice"):
    """A linear CDE on log-signatures of windows of `step` samples, read by the mean of its states.

    Channels are scaled to [-1, 1] by their minimum and maximum in the training series, or in `all` series as in the
    published runs. `divide` divides all levels of the log-signatures; `skip_first` leaves out the first window, as in
    the published runs.
    """

    hidden: int
    block: int
    depth: int
    step: int
    time: bool
    divide: float = 1.0
    flow: Literal["exponential", "euler"] = "exponential"
    scaled_by: Literal["train", "all"] = "train"
    skip_first: bool = False

    def inputs(self, given: Given) -> tuple[Inputs, Basis]:
        """Log-signatures of the windows."""
        which = given.split.train if self.scaled_by == "train" else np.arange(len(given.data))
        path = given.path(self.time)
        logsigs = _embedded(ChannelScaler.fit(path[which], MinMaxScaler())(path), given, self.depth, self.step)
        inputs = Inputs.of(logsigs)
        rows, length = inputs.rows / self.divide, inputs.length
        if self.skip_first:
            rows, length = rows[:, 1:], jnp.maximum(length - 1, 0)
        return dataclasses.replace(inputs, logsigs=rows, length=length), logsigs.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> SequenceModel:
        """Diagonal, block-diagonal or dense."""
        return log_slice(
            basis,
            self.hidden,
            outputs,
            block=self.block,
            initial=FirstValueInitial(Identity()),
            readout=Mean(initial=True),
            flow=FLOWS[self.flow],
            key=key,
        )


class NeuralPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="log-ncde"):
    """A Log-NCDE on log-signatures of windows of `step` samples, each solved with `solver_steps` steps of Heun."""

    hidden: int
    depth: int
    step: int
    time: bool
    layers: int
    width: int
    solver_steps: int = 1

    def inputs(self, given: Given) -> tuple[Inputs, Basis]:
        """Log-signatures of the windows, of raw values."""
        logsigs = _embedded(given.path(self.time), given, self.depth, self.step)
        return Inputs.of(logsigs), logsigs.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> SequenceModel:
        """The Log-NCDE."""
        return log_ncde(
            basis,
            self.hidden,
            outputs,
            width=self.width,
            layers=self.layers,
            initial=FirstValueInitial(Identity()),
            steps=self.solver_steps,
            key=key,
        )


class Spline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ncde"):
    """An NCDE along Hermite cubics through the remaining observations, a step of Heun's method for each stamp."""

    hidden: int
    time: bool
    layers: int
    width: int

    def inputs(self, given: Given) -> tuple[Inputs, Basis]:
        """The pieces of the path."""
        controls = HermiteControl(time=self.time, dtype=np.float32)(given.left, windows(given.data.length, 1))
        return Inputs.of(controls), controls.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> SequenceModel:
        """The NCDE."""
        return ncde(basis, self.hidden, outputs, width=self.width, layers=self.layers, key=key)


class StateSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ssm"):
    """A recurrent model on the remaining rows; `time` adds their stamps as a channel."""

    unit: Literal["s5", "lru", "s6", "mamba"]
    hidden: int
    layers: int
    state: int
    time: bool
    blocks: int = 1
    convolution: int = 4
    expansion: int = 2

    def inputs(self, given: Given) -> tuple[Inputs, Basis]:
        """Increments from one row to the next."""
        rows = with_time_channel(given.left) if self.time else given.left
        logsigs = _embedding(1)(rows, Partition.every_events(1))
        return Inputs.of(logsigs), logsigs.basis

    def model(self, basis: Basis, outputs: int, key: PRNGKeyArray) -> AbstractModel:
        """The stack."""
        units = {
            "s5": S5(self.state, self.blocks),
            "lru": LRU(self.state),
            "s6": S6(self.state),
            "mamba": Mamba(self.state, self.convolution, self.expansion),
        }
        return ssm(basis, self.hidden, outputs, unit=units[self.unit], layers=self.layers, key=key)


UeaModel: TypeAlias = LinearPath | NeuralPath | Spline | StateSpace


def _embedding(depth: int) -> Embedding:
    return Embedding(depth=depth, counts=False, time=False, dtype=np.float32)


def _embedded(streams: Streams, given: Given, depth: int, step: int) -> LogSignatures:
    return _embedding(depth)(streams, windows(given.data.length, step))

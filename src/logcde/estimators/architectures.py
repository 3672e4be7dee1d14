"""Models that estimators can be made of: sizes, and how they become a model for the basis of its inputs."""

import abc
import dataclasses
from typing import TypeAlias

import jax
from jaxtyping import PRNGKeyArray

from logcde.algebra import Basis
from logcde.models import Mean, PerInterval, SequenceModel, Terminal, TimeZeroInitial, log_ncde, log_slice
from logcde.scans import Auto, MatrixFree

Reading: TypeAlias = type[Terminal] | type[Mean] | type[PerInterval]
"""Which states of a series are read."""


class AbstractArchitecture(abc.ABC):
    """How a model is built. A class of your own is a frozen dataclass; register it to save estimators that have it."""

    @abc.abstractmethod
    def __call__(self, basis: Basis, outputs: int, reading: Reading, key: PRNGKeyArray) -> SequenceModel:
        """A causal model with its parameters at the start, and without scaling, which is added when it is trained."""


@dataclasses.dataclass(frozen=True)
class Slice(AbstractArchitecture):
    """A block-diagonal Log-SLiCE, read by an MLP with hidden layers of these `widths`.

    `scale` is the size of its vector field at the start.

    >>> Slice(hidden=128)
    Slice(hidden=128, block=4, widths=(64,), scale=0.05)
    """

    hidden: int = 64
    block: int = 4
    widths: tuple[int, ...] = (64,)
    scale: float = 0.05

    def __call__(self, basis: Basis, outputs: int, reading: Reading, key: PRNGKeyArray) -> SequenceModel:
        """A linear CDE."""
        return log_slice(
            basis,
            self.hidden,
            outputs,
            block=self.block,
            initial=TimeZeroInitial(),
            readout=reading(self.widths),
            # What `Auto` comes to on a CPU, where tracing the other ways as well would take longer than small fits.
            scan=MatrixFree() if jax.default_backend() == "cpu" else Auto(),
            init_scale=self.scale,
            key=key,
        )


@dataclasses.dataclass(frozen=True)
class Neural(AbstractArchitecture):
    """A Log-NCDE whose vector field has `layers` hidden layers of `width`: slower to train than `Slice`.

    >>> Neural(width=32)
    Neural(hidden=32, width=32, layers=2, widths=())
    """

    hidden: int = 32
    width: int = 64
    layers: int = 2
    widths: tuple[int, ...] = ()

    def __call__(self, basis: Basis, outputs: int, reading: Reading, key: PRNGKeyArray) -> SequenceModel:
        """A neural CDE, solved by the Log-ODE method."""
        return log_ncde(
            basis,
            self.hidden,
            outputs,
            width=self.width,
            layers=self.layers,
            initial=TimeZeroInitial(),
            readout=reading(self.widths),
            key=key,
        )

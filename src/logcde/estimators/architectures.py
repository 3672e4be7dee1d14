"""Architectures of estimators: sizes only, until the basis of the inputs is known and a model can be built."""

import abc
import dataclasses
from typing import TypeAlias

import jax
from jaxtyping import PRNGKeyArray

from logcde.algebra import Basis
from logcde.models import Mean, PerInterval, SequenceModel, Terminal, TimeZeroInitial, log_ncde, log_slice
from logcde.scans import Auto, MatrixFree

ReadoutType: TypeAlias = type[Terminal] | type[Mean] | type[PerInterval]
"""A readout class; the architecture chooses the widths of its hidden layers."""


class AbstractArchitecture(abc.ABC):
    """Builds the model of an estimator.

    Subclass it as a frozen dataclass, so that scikit-learn can clone and compare it. To save estimators with your own
    architecture, pass the class to `logcde.register`.
    """

    @abc.abstractmethod
    def __call__(self, basis: Basis, outputs: int, readout: ReadoutType, key: PRNGKeyArray) -> SequenceModel:
        """Build an untrained causal model. It has no scaling: `fit` adds that after training.

        Args:
            basis: Basis of the log-signatures.
            outputs: Number of classes, or of predicted values.
            readout: Class of the readout, which depends on the estimator.
            key: Key of the initial parameters.
        """


@dataclasses.dataclass(frozen=True)
class Slice(AbstractArchitecture):
    """A block-diagonal Log-SLiCE with an MLP readout. Fast to train.

    Args:
        hidden: Size of the hidden state.
        block: Size of the blocks.
        widths: Widths of the hidden layers of the readout.
        init_scale: Factor of the initial vector field.

    >>> Slice(hidden=128)
    Slice(hidden=128, block=4, widths=(64,), init_scale=0.05)
    """

    hidden: int = 64
    block: int = 4
    widths: tuple[int, ...] = (64,)
    init_scale: float = 0.05

    def __call__(self, basis: Basis, outputs: int, readout: ReadoutType, key: PRNGKeyArray) -> SequenceModel:
        """Build the linear CDE."""
        return log_slice(
            basis,
            self.hidden,
            outputs,
            block=self.block,
            initial=TimeZeroInitial(),
            readout=readout(self.widths),
            # What `Auto` selects on a CPU; tracing its other branches as well would take longer than small fits.
            scan=MatrixFree() if jax.default_backend() == "cpu" else Auto(),
            init_scale=self.init_scale,
            key=key,
        )


@dataclasses.dataclass(frozen=True)
class Neural(AbstractArchitecture):
    """A Log-NCDE with an MLP vector field. Slower to train than `Slice`.

    Args:
        hidden: Size of the hidden state.
        width: Width of the hidden layers of the vector field.
        layers: Number of hidden layers of the vector field.
        widths: Widths of the hidden layers of the readout.

    >>> Neural(width=32)
    Neural(hidden=32, width=32, layers=2, widths=())
    """

    hidden: int = 32
    width: int = 64
    layers: int = 2
    widths: tuple[int, ...] = ()

    def __call__(self, basis: Basis, outputs: int, readout: ReadoutType, key: PRNGKeyArray) -> SequenceModel:
        """Build the neural CDE, which the Log-ODE method solves."""
        return log_ncde(
            basis,
            self.hidden,
            outputs,
            width=self.width,
            layers=self.layers,
            initial=TimeZeroInitial(),
            readout=readout(self.widths),
            key=key,
        )

"""The contract of all models, and `SequenceModel`, the class behind every CDE: initial state, dynamics, readout."""

import abc
import dataclasses
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from logcde import artefact
from logcde.algebra import Basis
from logcde.embedding import AbstractRaggedSteps, EmbeddingSpec, InitialObservations, SparseLogSignatures
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractDynamics, AbstractFittedDynamics, Carry, Step, unroll_with
from logcde.models.initial import AbstractInitial, InitialState, channels_of
from logcde.models.inputs import Inputs
from logcde.models.readout import ReadoutHead, Tally
from logcde.models.scaling import AbstractScaling, SomeSteps

BatchStats: TypeAlias = PyTree[Any]
"""Statistics of a batch that a model keeps, other than by gradients."""


class AbstractModel(eqx.Module):
    """A map from the inputs of one series to its prediction, or to one prediction for each query interval.

    `predict` gives the predictions of many series.

    Attributes:
        spec: How the log-signatures of the training series were made; None before training.
    """

    spec: eqx.AbstractVar[EmbeddingSpec | None]

    @abc.abstractmethod
    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """Predict one series. Training passes a `key`, for dropout; without one, predictions are deterministic."""

    @abc.abstractmethod
    def penalty(self) -> Float[Array, ""]:
        """The norm that `fit(penalty=...)` keeps small."""

    @abc.abstractmethod
    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "AbstractModel":
        """Fit all scaling to the training inputs and keep their `spec`. `fit` calls this once, before training."""

    def save(
        self, path: str | os.PathLike, *, summary: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> None:
        """Write the model to a directory, which `logcde.load` reads.

        Args:
            path: The directory.
            summary: Facts about the training, stored with the model.
            overwrite: Replace a model that is there.
        """
        artefact.save(self, path, summary=summary, overwrite=overwrite)


class AbstractBatchModel(AbstractModel):
    """A model with batch statistics: in training a prediction depends on the whole batch.

    The training step calls `apply_train` and `with_batch_stats` on such a model instead of the model itself.
    """

    @abc.abstractmethod
    def apply_train(
        self, inputs: Inputs, *, key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "*interval output"], BatchStats]:
        """Predict one series of a batch in training.

        Args:
            inputs: The inputs of the series.
            key: For dropout.
            axes: The names of the axes of the batch, over which statistics are taken.

        Returns:
            The prediction, and statistics for `with_batch_stats`, which are the same for all series of the batch.
        """

    @abc.abstractmethod
    def with_batch_stats(self, batch_stats: BatchStats) -> "AbstractBatchModel":
        """The model with updated statistics."""


class AbstractOnlineModel(AbstractModel):
    """A model that can also go one interval at a time, with the same predictions: what a `Predictor` needs.

    Attributes:
        basis: The basis of the log-signatures; None for models that are driven by other rows.
    """

    basis: eqx.AbstractVar[Basis | None]

    @property
    @abc.abstractmethod
    def initial_rules(self) -> tuple[AbstractInitial, ...]:
        """What the initial states of the model and of its parts depend on."""

    @property
    def causal(self) -> bool:
        """Whether predictions use past observations only."""
        return all(rule.causal for rule in self.initial_rules)

    @property
    @abc.abstractmethod
    def statics(self) -> int:
        """The number of static features."""

    @abc.abstractmethod
    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> Any:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def advance(self, kept: Any, logsig: Float[Array, "lie"]) -> Any:
        """What is kept after one more interval."""

    @abc.abstractmethod
    def predict(self, kept: Any) -> Float[Array, "output"]:
        """The prediction for a series that ends here."""


class SequenceModel(AbstractOnlineModel):
    """A controlled differential equation: scaling, initial state, dynamics over intervals, readout.

    Every NCDE of the paper is one, with its own dynamics; `log_slice`, `log_ncde` and the other factories build them.

    Attributes:
        basis: The basis of the log-signatures; None for rows of other kinds, which are not scaled.
        scaling: Applied to the log-signatures first.
        initial: The hidden state before the first interval.
        dynamics: How the hidden state moves over an interval.
        readout: Which states are read, and the layers that read them.
        spec: How the log-signatures of the training series were made; None before training.
    """

    basis: Basis | None = eqx.field(static=True)
    scaling: AbstractScaling
    initial: InitialState
    dynamics: AbstractDynamics
    readout: ReadoutHead
    spec: EmbeddingSpec | None = eqx.field(static=True, default=None)

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """One prediction for the series, or one for each query interval, depending on the readout."""
        hidden = self.initial(inputs.initial, inputs.static)
        own = None if key is None else jax.random.fold_in(key, 0)
        states = unroll_with(self.dynamics, hidden, self.scaled(inputs.logsigs), inputs.length, own)
        return self.read(hidden, states, inputs, key)

    @property
    def initial_rules(self) -> tuple[AbstractInitial, ...]:
        """What the initial state depends on."""
        return (self.initial.rule,)

    @property
    def statics(self) -> int:
        """The number of static features of the initial state."""
        channels = 0 if self.basis is None else channels_of(self.basis)
        return self.initial.weight.shape[1] - self.initial.rule.size(channels)

    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> tuple[Carry, Tally]:
        """What dynamics and readout keep before the first interval."""
        carry = self.dynamics.start(self.initial(initial, static))
        return carry, self.readout.rule.start(self.dynamics.state(carry))

    def advance(self, kept: tuple[Carry, Tally], logsig: Step) -> tuple[Carry, Tally]:
        """What dynamics and readout keep after one more interval."""
        carry, tally = kept
        step: Any = self.scaled(logsig)
        carry = self.dynamics.advance(carry, step)
        return carry, self.readout.rule.add(tally, self.dynamics.state(carry))

    def predict(self, kept: tuple[Carry, Tally]) -> Float[Array, "output"]:
        """The prediction for a series that ends here."""
        return self.readout.online(kept[1])

    def penalty(self) -> Float[Array, ""]:
        """The size of the vector field."""
        return self.dynamics.penalty()

    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "SequenceModel":
        """Fit the scaling, then dynamics that have constants to fit, on scaled log-signatures."""
        scaling = self.scaling if self.basis is None else self.scaling.fit(inputs.logsigs, self.basis)
        fitted = dataclasses.replace(self, scaling=scaling, spec=spec or self.spec)
        if not isinstance(self.dynamics, AbstractFittedDynamics):
            return fitted
        logsigs = inputs.logsigs
        scaled = (
            jax.vmap(fitted.scaled)(logsigs) if isinstance(logsigs, AbstractRaggedSteps) else fitted.scaled(logsigs)
        )
        dynamics = self.dynamics.fit_preprocessing(scaled)
        return dataclasses.replace(fitted, dynamics=dynamics)

    def scaled(self, logsigs: SomeSteps) -> SomeSteps:
        """Log-signatures as the dynamics take them."""
        return logsigs if self.basis is None else self.scaling(logsigs, self.basis)

    def read(
        self,
        hidden: Float[Array, "hidden"],
        states: Float[Array, "interval features"],
        inputs: Inputs,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "*interval output"]:
        """The prediction, given the initial state and the states after all rows of the inputs."""
        if inputs.ends is not None:
            states = states[inputs.ends]
        start = self.dynamics.state(self.dynamics.start(hidden))
        return self.readout.offline(start, states, inputs.outputs, key)


def suited_to(model: AbstractModel, data: Any) -> Any:
    """The data in a form that the whole model takes: sparse log-signatures with factors, without, or dense ones."""
    if not isinstance(data, SparseLogSignatures):
        return data
    kinds = AbstractDynamics | AbstractScaling
    parts = jax.tree.leaves(model, is_leaf=lambda part: isinstance(part, kinds))
    dynamics = [part for part in parts if isinstance(part, AbstractDynamics)]
    if not all(part.sparse for part in dynamics):
        return data.dense()
    by_letters = all(part.by_letters for part in parts if isinstance(part, AbstractScaling))
    if data.factors is None or (by_letters and all(part.factored for part in dynamics)):
        return data
    return dataclasses.replace(data, factors=None)


def dtype_of(model: AbstractModel) -> np.dtype:
    """The dtype of a model's parameters."""
    dtypes = {jnp.finfo(leaf.dtype).dtype for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)}
    if not dtypes:
        raise ModelError("The model has no parameters.")
    return np.result_type(*dtypes)

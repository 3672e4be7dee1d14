"""The contract of all models, and the one class behind every NCDE: initial state, dynamics, readout."""

import abc
import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from logcde import artefact
from logcde.algebra import Basis
from logcde.embedding import EmbeddingSpec, InitialObservations, LogSignatures
from logcde.errors import ModelError
from logcde.flows.dynamics import AbstractBatchDynamics, AbstractDynamics, BatchStats, Carry
from logcde.models.initial import AbstractInitial, InitialState, channels_of
from logcde.models.inputs import Controls, Inputs
from logcde.models.readout import ReadoutHead, Tally
from logcde.models.scaling import AbstractScaling


class AbstractModel(eqx.Module):
    """From the inputs of one series to its prediction, or to one for each interval. `jax.vmap` gives many.

    `spec` says how the log-signatures that it was trained on were made, once it was.
    """

    spec: eqx.AbstractVar[EmbeddingSpec | None]

    @abc.abstractmethod
    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """Predict. A `key` is for models that are random in training; without one they are not."""

    @abc.abstractmethod
    def penalty(self) -> Float[Array, ""]:
        """What a regulariser would keep small."""

    @abc.abstractmethod
    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "AbstractModel":
        """The model before training on these inputs: its scaling fitted, its source noted."""

    def save(
        self, path: str | os.PathLike, *, summary: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> None:
        """Write the model as a directory, which `logcde.load` reads. `summary`: what to know of its training."""
        artefact.save(self, path, summary=summary, overwrite=overwrite)


class AbstractBatchModel(AbstractModel):
    """A model that may be other in training: by statistics of the whole batch, some of which it remembers."""

    @abc.abstractmethod
    def apply_train(
        self, inputs: Inputs, *, key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "*interval output"], BatchStats]:
        """Predict in training, as one series of a batch whose axes have these names, and say what to remember of it.

        What is remembered is the same for all series of the batch.
        """

    @abc.abstractmethod
    def with_batch_stats(self, batch_stats: BatchStats) -> "AbstractBatchModel":
        """The same model with that remembered."""


class AbstractOnlineModel(AbstractModel):
    """A model that can also go one interval at a time, with the same numbers: what a `Predictor` needs."""

    basis: eqx.AbstractVar[Basis | None]

    @property
    @abc.abstractmethod
    def initials(self) -> tuple[AbstractInitial, ...]:
        """What its initial state depends on, or its initial states."""

    @property
    def causal(self) -> bool:
        """Whether it knows of nothing that has not happened yet."""
        return all(look.causal for look in self.initials)

    @property
    @abc.abstractmethod
    def statics(self) -> int:
        """How many static features it reads."""

    @abc.abstractmethod
    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> Any:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def advance(self, kept: Any, step: Float[Array, "lie"]) -> Any:
        """What is kept after one more interval."""

    @abc.abstractmethod
    def predict(self, kept: Any) -> Float[Array, "output"]:
        """The prediction if this were the end."""


class SequenceModel(AbstractBatchModel, AbstractOnlineModel):
    """A controlled differential equation: where it starts, how it moves over an interval, how it is read.

    Every NCDE family of the paper is this with other dynamics. `start`, `advance` and `predict` are the same model one
    interval at a time.
    """

    basis: Basis | None = eqx.field(static=True)
    scaling: AbstractScaling
    initial: InitialState
    dynamics: AbstractDynamics
    readout: ReadoutHead
    spec: EmbeddingSpec | None = eqx.field(static=True, default=None)

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """One prediction for the series, or one for each query interval, as the readout says."""
        hidden = self.initial(inputs.initial, inputs.static)
        states = self.dynamics.unroll(hidden, self._scaled(inputs.steps), inputs.length)
        return self._read(hidden, states, inputs, key)

    def apply_train(
        self, inputs: Inputs, *, key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "*interval output"], BatchStats]:
        """As its dynamics do; its readout may leave out a part at random."""
        if not isinstance(self.dynamics, AbstractBatchDynamics):
            return self(inputs, key=key), None
        hidden = self.initial(inputs.initial, inputs.static)
        steps = self._scaled(inputs.steps)
        states, batch_stats = self.dynamics.apply_train(hidden, steps, inputs.length, key=key, axes=axes)
        return self._read(hidden, states, inputs, jax.random.fold_in(key, 0)), batch_stats

    @property
    def initials(self) -> tuple[AbstractInitial, ...]:
        """What its initial state depends on."""
        return (self.initial.look,)

    @property
    def statics(self) -> int:
        """What its initial state reads beside channels."""
        channels = 0 if self.basis is None else channels_of(self.basis)
        return self.initial.weight.shape[1] - self.initial.look.size(channels)

    def with_batch_stats(self, batch_stats: BatchStats) -> "SequenceModel":
        """With dynamics that remember it."""
        if not isinstance(self.dynamics, AbstractBatchDynamics):
            return self
        return dataclasses.replace(self, dynamics=self.dynamics.with_batch_stats(batch_stats))

    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> tuple[Carry, Tally]:
        """What is kept before the first interval."""
        carry = self.dynamics.start(self.initial(initial, static))
        return carry, self.readout.reading.start(self.dynamics.state(carry))

    def advance(self, kept: tuple[Carry, Tally], step: Float[Array, "lie"]) -> tuple[Carry, Tally]:
        """What is kept after one more interval."""
        carry, tally = kept
        carry = self.dynamics.advance(carry, self._scaled(step))
        return carry, self.readout.reading.add(tally, self.dynamics.state(carry))

    def predict(self, kept: tuple[Carry, Tally]) -> Float[Array, "output"]:
        """The prediction if this were the end."""
        return self.readout.online(kept[1])

    def penalty(self) -> Float[Array, ""]:
        """The size of the vector field."""
        return self.dynamics.penalty()

    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "SequenceModel":
        """The same model with its scaling and its dynamics fitted and its source noted."""
        scaling = self.scaling if self.basis is None else self.scaling.fit(inputs.steps, self.basis)
        fitted = dataclasses.replace(self, scaling=scaling, spec=spec or self.spec)
        dynamics = self.dynamics.fit_preprocessing(lambda: fitted._scaled(inputs.steps))
        return dataclasses.replace(fitted, dynamics=dynamics)

    def _read(
        self,
        hidden: Float[Array, "hidden"],
        states: Float[Array, "interval features"],
        inputs: Inputs,
        key: PRNGKeyArray | None,
    ) -> Float[Array, "*interval output"]:
        if inputs.ends is not None:
            states = states[inputs.ends]
        start = self.dynamics.state(self.dynamics.start(hidden))
        return self.readout.offline(start, states, inputs.outputs, key)

    def _scaled(self, steps: Float[Array, "*interval lie"]) -> Float[Array, "*interval lie"]:
        return steps if self.basis is None else self.scaling(steps, self.basis)


def predict(model: AbstractModel, inputs: Inputs | LogSignatures | Controls) -> Float[Array, "series *interval output"]:
    """The predictions of many series, compiled.

    Log-signatures and controls are taken in the precision of the model; with static features, give `Inputs`.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis(("pulse", "time"), 2)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=2, key=jax.random.key(0))
    >>> predict(model, LogSignatures(np.ones((5, 3, 3)), np.full(5, 3), basis)).shape
    (5, 2)
    """
    return _mapped(model, inputs if isinstance(inputs, Inputs) else Inputs.of(inputs, dtype=dtype_of(model)))


def predict_prefixes(
    model: AbstractOnlineModel, inputs: Inputs | LogSignatures
) -> Float[Array, "series interval output"]:
    """What would be predicted if series ended after each of their intervals: a model one interval at a time, compiled.

    Whatever a model reads of its states, this is what it says while they come in. Beyond a series' own number of
    intervals the numbers mean nothing.

    >>> from logcde import Basis, log_slice
    >>> basis = Basis(("pulse", "time"), 2)
    >>> model = log_slice(basis, hidden=4, block=1, outputs=2, key=jax.random.key(0))
    >>> logsigs = LogSignatures(np.ones((5, 3, 3)), np.full(5, 3), basis)
    >>> bool(jnp.allclose(predict_prefixes(model, logsigs)[:, -1], predict(model, logsigs), atol=1e-5))
    True
    """
    given = inputs if isinstance(inputs, Inputs) else Inputs.of(inputs, dtype=dtype_of(model))
    if given.ends is not None:
        raise ModelError("Pieces of a path between query points are no intervals. Give log-signatures of intervals.")
    return _mapped_along(model, given)


def dtype_of(model: AbstractModel) -> np.dtype:
    """The dtype of a model's numbers."""
    dtypes = {jnp.finfo(leaf.dtype).dtype for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)}
    if not dtypes:
        raise ModelError("The model has no parameters.")
    return np.result_type(*dtypes)


@eqx.filter_jit
def _mapped(model: AbstractModel, inputs: Inputs) -> Float[Array, "series *interval output"]:
    return jax.vmap(lambda one: model(one))(inputs)


@eqx.filter_jit
def _mapped_along(model: AbstractOnlineModel, inputs: Inputs) -> Float[Array, "series interval output"]:
    def along(one: Inputs) -> Float[Array, "interval output"]:
        def extend(kept: Any, step: Float[Array, "lie"]) -> tuple[Any, Float[Array, "output"]]:
            kept = model.advance(kept, step)
            return kept, model.predict(kept)

        return jax.lax.scan(extend, model.start(one.initial, one.static), one.steps)[1]

    return jax.vmap(along)(inputs)

"""Models side by side whose predictions are added up: a plain one and what corrects it, or an ensemble."""

import dataclasses
from collections.abc import Sequence
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from logcde.algebra import Basis
from logcde.embedding import EmbeddingSpec, InitialObservations
from logcde.errors import ModelError
from logcde.flows.dynamics import BatchStats
from logcde.models.initial import AbstractInitial
from logcde.models.inputs import Inputs
from logcde.models.model import AbstractBatchModel, AbstractOnlineModel


class Sum(AbstractBatchModel, AbstractOnlineModel):
    """The sum of the predictions of several models, times `weight`.

    Trained as one model, each learns what the others leave over. Trained one by one and put together with
    `Sum.mean`, they are an ensemble.

    >>> from logcde import log_slice
    >>> basis = Basis(("pulse", "#pulse", "time"), 1)
    >>> members = [log_slice(basis, hidden=4, outputs=1, key=jax.random.key(seed)) for seed in range(3)]
    >>> Sum.mean(members).weight == 1 / 3
    True
    """

    models: tuple[AbstractOnlineModel, ...]
    weight: float = eqx.field(static=True)
    spec: EmbeddingSpec | None = eqx.field(static=True)
    basis: Basis | None = eqx.field(static=True, init=False)

    def __init__(
        self, models: Sequence[AbstractOnlineModel], weight: float = 1.0, spec: EmbeddingSpec | None = None
    ) -> None:
        bases = {model.basis for model in models}
        if not bases:
            raise ModelError("There are no models to add up. Give at least one.")
        if len(bases) > 1:
            raise ModelError(
                f"The models read log-signatures in {len(bases)} different bases, so they cannot be given the same "
                "ones. Build all of them with the basis of one embedding."
            )
        self.models, self.weight, self.spec = tuple(models), weight, spec
        self.basis = models[0].basis

    @classmethod
    def mean(cls, models: Sequence[AbstractOnlineModel]) -> "Sum":
        """The mean of their predictions; of classifiers, of their logits. All were trained on like log-signatures."""
        return cls(models, 1 / max(len(models), 1), models[0].spec if models else None)

    @property
    def initials(self) -> tuple[AbstractInitial, ...]:
        """Those of all models."""
        return tuple(look for model in self.models for look in model.initials)

    @property
    def statics(self) -> int:
        """The same for all models."""
        return self.models[0].statics

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """The sum."""
        return self._added([model(inputs, key=own) for model, own in zip(self.models, self._keys(key), strict=True)])

    def apply_train(
        self, inputs: Inputs, *, key: PRNGKeyArray, axes: tuple[str, ...]
    ) -> tuple[Float[Array, "*interval output"], BatchStats]:
        """The sum, and what each remembers."""
        found = [
            model.apply_train(inputs, key=own, axes=axes)
            if isinstance(model, AbstractBatchModel)
            else (model(inputs, key=own), None)
            for model, own in zip(self.models, jax.random.split(key, len(self.models)), strict=True)
        ]
        return self._added([prediction for prediction, _ in found]), tuple(batch_stats for _, batch_stats in found)

    def with_batch_stats(self, batch_stats: BatchStats) -> "Sum":
        """Each with what it remembers."""
        pairs = zip(self.models, batch_stats, strict=True)
        models = (
            model.with_batch_stats(one) if isinstance(model, AbstractBatchModel) else model for model, one in pairs
        )
        return dataclasses.replace(self, models=tuple(models))

    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> tuple:
        """What each keeps."""
        return tuple(model.start(initial, static) for model in self.models)

    def advance(self, kept: tuple, step: Float[Array, "lie"]) -> tuple:
        """What each keeps after one more interval."""
        return tuple(model.advance(one, step) for model, one in zip(self.models, kept, strict=True))

    def predict(self, kept: tuple) -> Float[Array, "output"]:
        """The sum."""
        return self._added([model.predict(one) for model, one in zip(self.models, kept, strict=True)])

    def penalty(self) -> Float[Array, ""]:
        """The sum of all."""
        return jnp.sum(jnp.stack([model.penalty() for model in self.models]))

    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "Sum":
        """Each with its scaling fitted."""
        models = tuple(cast(AbstractOnlineModel, model.fit_preprocessing(inputs, spec)) for model in self.models)
        return dataclasses.replace(self, models=models, spec=spec or self.spec)

    def _keys(self, key: PRNGKeyArray | None) -> Sequence[PRNGKeyArray | None]:
        return [None] * len(self.models) if key is None else list(jax.random.split(key, len(self.models)))

    def _added(self, predictions: list[Float[Array, "*interval output"]]) -> Float[Array, "*interval output"]:
        return self.weight * jnp.sum(jnp.stack(predictions), axis=0)

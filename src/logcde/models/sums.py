"""Sums of models: a simple model and a CDE that learns what it leaves over, or an ensemble."""

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
from logcde.models.initial import AbstractInitial
from logcde.models.inputs import Inputs
from logcde.models.model import AbstractOnlineModel


class Sum(AbstractOnlineModel):
    """The sum of the predictions of several models, times `weight`.

    Trained as one model, each part learns what the others leave over. Models that were trained one by one become an
    ensemble with `Sum.mean`; models with batch statistics, such as `baselines.ssm`, can only be added in this way.

    Args:
        models: The models, all in one basis.
        weight: What the sum is multiplied by.
        spec: How the log-signatures of the training series were made.

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
            raise ModelError("There are no models to add up.", "Give at least one.")
        if len(bases) > 1:
            raise ModelError(
                f"The models take log-signatures in {len(bases)} different bases.",
                "Build all of them with the basis of one embedding.",
            )
        self.models, self.weight, self.spec = tuple(models), weight, spec
        self.basis = models[0].basis

    @classmethod
    def mean(cls, models: Sequence[AbstractOnlineModel]) -> "Sum":
        """The mean of the predictions; of classifiers, of their logits. Models were trained on like log-signatures."""
        return cls(models, 1 / max(len(models), 1), models[0].spec if models else None)

    @property
    def initial_rules(self) -> tuple[AbstractInitial, ...]:
        """The rules of all models."""
        return tuple(rule for model in self.models for rule in model.initial_rules)

    @property
    def statics(self) -> int:
        """The number of static features, which is the same for all models."""
        return self.models[0].statics

    def __call__(self, inputs: Inputs, *, key: PRNGKeyArray | None = None) -> Float[Array, "*interval output"]:
        """The sum of the predictions; in training every model has a key of its own."""
        return self._added([model(inputs, key=own) for model, own in zip(self.models, self._keys(key), strict=True)])

    def start(self, initial: InitialObservations, static: Float[Array, "static"]) -> tuple:
        """What each model keeps before the first interval."""
        return tuple(model.start(initial, static) for model in self.models)

    def advance(self, kept: tuple, logsig: Float[Array, "lie"]) -> tuple:
        """What each model keeps after one more interval."""
        return tuple(model.advance(one, logsig) for model, one in zip(self.models, kept, strict=True))

    def predict(self, kept: tuple) -> Float[Array, "output"]:
        """The sum of the predictions for a series that ends here."""
        return self._added([model.predict(one) for model, one in zip(self.models, kept, strict=True)])

    def penalty(self) -> Float[Array, ""]:
        """The sum of the penalties."""
        return jnp.sum(jnp.stack([model.penalty() for model in self.models]))

    def fit_preprocessing(self, inputs: Inputs, spec: EmbeddingSpec | None) -> "Sum":
        """Fit the preprocessing of each model."""
        models = tuple(cast(AbstractOnlineModel, model.fit_preprocessing(inputs, spec)) for model in self.models)
        return dataclasses.replace(self, models=models, spec=spec or self.spec)

    def _keys(self, key: PRNGKeyArray | None) -> Sequence[PRNGKeyArray | None]:
        return [None] * len(self.models) if key is None else list(jax.random.split(key, len(self.models)))

    def _added(self, predictions: list[Float[Array, "*interval output"]]) -> Float[Array, "*interval output"]:
        return self.weight * jnp.sum(jnp.stack(predictions), axis=0)

"""Attribution: how much every single observation moves a prediction.

Integrated gradients (Sundararajan et al., "Axiomatic attribution for deep networks", 2017) through embedding and model,
along the straight line from a series with the same stamps and ordinary values to the series itself. The prediction for
ordinary values is not attributed: it is due to which channels are observed when, and to the static features.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64

from logcde._typing import Numbers
from logcde.embedding import InitialObservations, PaddedStreams, initial_observations, logsignatures, pad
from logcde.errors import ModelError
from logcde.models.inputs import Inputs
from logcde.models.model import AbstractModel, dtype_of
from logcde.models.series import AbstractSeriesModel, EmbeddedModel
from logcde.streams import Streams

Of: TypeAlias = Callable[[Float[Array, "*interval output"]], Float[Array, ""]]
"""Selects the number to be explained from a prediction."""


@dataclasses.dataclass(frozen=True, eq=False)
class Attribution:
    """How much each observation of a series moves a number that a model predicts.

    Attributes:
        amounts: One for each observation, in the order of the series; they add up to `prediction - ordinary`, except
            for the error of the integral.
        prediction: The number for the series itself.
        ordinary: The number for a series with the same stamps and ordinary values.
    """

    amounts: Float64[np.ndarray, "obs"]
    prediction: float
    ordinary: float


def log_odds(prediction: Float[Array | np.ndarray, "*interval output"]) -> Any:
    """The only output, or the log-odds of the second of two classes."""
    if prediction.shape == (1,):
        return prediction[0]
    if prediction.shape == (2,):
        return prediction[1] - prediction[0]
    raise ModelError(
        f"The model predicts numbers of shape {prediction.shape}.",
        "Select the number to be explained with of=, for example of=lambda prediction: prediction[3].",
    )


def attribute(
    model: AbstractModel | AbstractSeriesModel,
    streams: Streams,
    *,
    static: Numbers | None = None,
    of: Of = log_odds,
    pieces: int = 64,
) -> Attribution:
    """Attribute a trained model's prediction for one series to its observations.

    Ordinary values are zero in the units of the embedding: with a `ChannelScaler`, each channel's median or mean.

    Args:
        model: A model that was trained on the log-signatures of an `Embedding`, also as an estimator's `model_`.
        streams: One series.
        static: Its static features.
        of: Selects the number to be explained from the prediction.
        pieces: The number of points at which the integral is evaluated.

    >>> from logcde import Embedding, log_slice, Partition
    >>> streams = Streams.from_arrays([[0.5, 1.0]], [[[3.0, np.nan], [4.0, 1.0]]], channels=["pulse", "temp"])
    >>> logsigs = Embedding(depth=2)(streams, Partition.uniform(2))
    >>> model = log_slice(logsigs.basis, hidden=4, outputs=1, key=jax.random.key(0)).fit_preprocessing(
    ...     Inputs.of(logsigs), logsigs.spec
    ... )
    >>> found = attribute(model, streams)
    >>> len(found.amounts), bool(abs(found.amounts.sum() - found.prediction + found.ordinary) < 1e-3)
    (3, True)
    """
    if isinstance(model, EmbeddedModel):
        model = model.sequence
    if isinstance(model, AbstractSeriesModel):
        raise ModelError(
            f"A {type(model).__name__} has no gradients with respect to observations.",
            "Use the estimator's `explain`, or a network such as LogSLiCE().",
        )
    if model.spec is None:
        raise ModelError(
            "The model has no record of how its log-signatures are made.",
            "Train it on the log-signatures of an Embedding, or load a model that was.",
        )
    if len(streams) != 1:
        raise ModelError(f"There are {len(streams)} series.", "Give one, for example streams[[0]].")
    if pieces < 1:
        raise ModelError(f"The integral cannot be cut into {pieces} pieces.", "Give at least 1.")
    coordinates, dtype = model.spec.coordinates, dtype_of(model)
    padded = pad(coordinates.scaled(streams), model.spec.partition.cuts(streams), coordinates, dtype)[0]
    features = jnp.asarray(np.zeros(0) if static is None else np.atleast_1d(np.asarray(static, np.float64)), dtype)
    at_start = jnp.asarray(initial_observations(streams).at_start[0])
    slopes, prediction, ordinary = _integrated(model, padded, at_start, features, of, pieces)
    amounts = np.asarray(padded.values * slopes, np.float64)[np.asarray(padded.observed)]
    return Attribution(amounts, float(prediction), float(ordinary))


@eqx.filter_jit
def _integrated(
    model: AbstractModel,
    padded: PaddedStreams,
    at_start: Bool[Array, "channel"],
    static: Float[Array, "static"],
    of: Of,
    pieces: int,
) -> tuple[Float[Array, "event channel"], Float[Array, ""], Float[Array, ""]]:
    """The mean slopes along the line, and the number at its end and at its start."""
    seen = jnp.any(padded.observed, axis=0)
    first = jnp.argmax(padded.observed, axis=0)[None]

    def explained(values: Float[Array, "event channel"], share: Float[Array, ""]) -> Float[Array, ""]:
        begins = jnp.where(seen, jnp.take_along_axis(values, first, axis=0)[0], 0)
        logsigs = logsignatures(eqx.tree_at(lambda tree: tree.values, padded.scaled(share), values))
        return of(model(Inputs(logsigs, padded.lengths, InitialObservations(begins, seen, at_start), static)))

    def add(total: Float[Array, "event channel"], share: Float[Array, ""]) -> tuple[Array, None]:
        return total + jax.grad(explained)(share * padded.values, share), None

    shares = (jnp.arange(pieces, dtype=padded.values.dtype) + 0.5) / pieces
    slopes = jax.lax.scan(add, jnp.zeros_like(padded.values), shares)[0] / pieces
    one, zero = jnp.ones((), shares.dtype), jnp.zeros((), shares.dtype)
    return slopes, explained(padded.values, one), explained(jnp.zeros_like(padded.values), zero)

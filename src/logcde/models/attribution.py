"""What a prediction is made of: how much every single observation moves it.

Integrated gradients (Sundararajan et al., "Axiomatic attribution for deep networks", 2017) through embedding and model,
along the straight way from a series with the same stamps and ordinary values to the series as it is. What is left is
the prediction for ordinary values: what the measuring itself and the static features say.
"""

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

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
from logcde.streams import Streams

Of: TypeAlias = Callable[[Float[Array, "*interval output"]], Float[Array, ""]]
"""The number to be explained, of what a model predicts."""


@dataclasses.dataclass(frozen=True, eq=False)
class Attribution:
    """By how much each observation moves a number, in the order of the observations of the series.

    `amounts` add up to `prediction - ordinary`, but for the error of the integral.
    """

    amounts: Float64[np.ndarray, "obs"]
    prediction: float
    ordinary: float


def log_odds(prediction: Float[Array, "*interval output"]) -> Float[Array, ""]:
    """Of the second of two classes, or the only output."""
    if prediction.shape == (1,):
        return prediction[0]
    if prediction.shape == (2,):
        return prediction[1] - prediction[0]
    raise ModelError(
        f"The model predicts numbers of shape {prediction.shape}. Say by of= which number is to be explained, for "
        "example of=lambda prediction: prediction[3]."
    )


def attribute(
    model: AbstractModel, streams: Streams, *, static: Numbers | None = None, of: Of = log_odds, pieces: int = 64
) -> Attribution:
    """Explain what a trained model says of one series.

    Ordinary values are zero in the units of the embedding: with `ChannelScaler`, the median or the mean of each channel. `of`
    picks the number to be explained, `pieces` is how finely the integral is computed.

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
    if model.spec is None:
        raise ModelError(
            "It is not known how this model's log-signatures are made. Train it on what an Embedding gives, or load a "
            "model that was."
        )
    if len(streams) != 1:
        raise ModelError(f"There are {len(streams)} series. Give one, for example streams[[0]].")
    if pieces < 1:
        raise ModelError(f"The integral cannot be cut into {pieces} pieces. Give at least 1.")
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
    """The mean of the slopes over the way, and the number at its end and at its beginning."""
    seen = jnp.any(padded.observed, axis=0)
    first = jnp.argmax(padded.observed, axis=0)[None]

    def explained(values: Float[Array, "event channel"]) -> Float[Array, ""]:
        begins = jnp.where(seen, jnp.take_along_axis(values, first, axis=0)[0], 0)
        steps = logsignatures(eqx.tree_at(lambda tree: tree.values, padded, values))
        return of(model(Inputs(steps, padded.lengths, InitialObservations(begins, seen, at_start), static)))

    def add(total: Float[Array, "event channel"], share: Float[Array, ""]) -> tuple[Array, None]:
        return total + jax.grad(explained)(share * padded.values), None

    shares = (jnp.arange(pieces, dtype=padded.values.dtype) + 0.5) / pieces
    slopes = jax.lax.scan(add, jnp.zeros_like(padded.values), shares)[0] / pieces
    return slopes, explained(padded.values), explained(jnp.zeros_like(padded.values))

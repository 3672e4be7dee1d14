"""Example inputs for any model: series of different lengths, intervals without an event, channels that start late."""

import jax.numpy as jnp
import numpy as np

from logcde.algebra import Basis
from logcde.embedding import Coordinates, InitialObservations
from logcde.embedding.coordinates import time_of, values_of
from logcde.errors import ModelError
from logcde.models import AbstractModel, AbstractOnlineModel, Inputs
from logcde.models.initial import channels_of
from logcde.models.model import dtype_of
from logcde.streams import Schema

LENGTHS = (5, 1, 3, 4)


def example_inputs(model: AbstractModel, seed: int = 0) -> Inputs:
    """Random series for any model that takes log-signatures in a basis, in the precision of the model.

    >>> import jax, logcde
    >>> model = logcde.log_slice(logcde.Basis.of_width(3, 2), hidden=4, outputs=1, key=jax.random.key(0))
    >>> example_inputs(model).logsigs.shape
    (4, 5, 6)
    """
    if not isinstance(model, AbstractOnlineModel) or model.basis is None:
        raise ModelError(
            "The model does not take log-signatures in a basis, so no inputs can be made for it.",
            "Pass `inputs`, a batch of series of different lengths.",
        )
    rng = np.random.default_rng(seed)
    dtype = dtype_of(model)
    basis, series = model.basis, len(LENGTHS)
    channels = channels_of(basis)
    logsigs = 0.3 * rng.normal(size=(series, max(LENGTHS), basis.dimension))
    time = time_of(basis.letters)
    if time is not None:
        logsigs[..., time] = np.abs(logsigs[..., time])
    logsigs[0, 2] = 0.0  # an interval without an event or time
    logsigs *= (np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None])[..., None]
    at_start = rng.integers(0, 2, (series, channels)) > 0
    first = rng.normal(size=(series, channels))
    return Inputs(
        jnp.asarray(logsigs, dtype),
        jnp.asarray(LENGTHS, jnp.int32),
        InitialObservations(jnp.asarray(first, dtype), jnp.ones((series, channels), bool), jnp.asarray(at_start)),
        jnp.asarray(rng.normal(size=(series, model.statics)), dtype),
    )


def coordinates_of(basis: Basis) -> Coordinates | None:
    """The coordinates of an embedding with these letters; None if no embedding has them.

    >>> coordinates_of(Basis(("a", "#a", "time"), 2)).counts
    True
    """
    names = tuple(basis.letters[place] for place in values_of(basis.letters))
    counts, roughness = (any(letter.startswith(mark) for letter in basis.letters) for mark in "#~")
    if not names:
        return None
    coordinates = Coordinates(Schema(names), basis.depth, counts, "time" in basis.letters, roughness=roughness)
    return coordinates if coordinates.basis == basis else None

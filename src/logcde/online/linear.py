"""Linear models on the host without JAX: their generators are computed once, then one compiled call predicts.

All arithmetic is in double precision, whatever the model's own is; predictions have the model's.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from logcde.embedding import Opening
from logcde.flows import Euler, Exponential, LinearDynamics
from logcde.kernels import serve
from logcde.kernels._simd import EIGHT
from logcde.models import CDE, EachInterval, Mean, Terminal, UnitIncrements, Unscaled
from logcde.models.readout import Readout
from logcde.online.serving import AbstractServed, CompiledModel, Kept, Steps


def served(model: CDE) -> AbstractServed:
    """The fastest way to serve a model."""
    return LinearModel(model) if _is_plain(model) else CompiledModel(model)


def _is_plain(model: CDE) -> bool:
    """Whether every part of the model is one that the kernel knows."""
    dynamics, readout = model.dynamics, model.readout
    return (
        type(dynamics) is LinearDynamics
        and type(dynamics.flow) in (Exponential, Euler)
        and type(model.scaling) in (Unscaled, UnitIncrements)
        and type(readout) is Readout
        and type(readout.reading) in (Terminal, EachInterval, Mean)
        and all(layer.bias is not None for layer in readout.layers)
    )


class LinearModel(AbstractServed):
    """A linear CDE with an affine or MLP readout, by `logcde.kernels.serve`."""

    def __init__(self, model: CDE) -> None:
        dynamics, basis = model.dynamics, model.basis
        assert isinstance(dynamics, LinearDynamics)
        assert basis is not None
        generators = np.asarray(dynamics.field.generators(), np.float64)
        read, rows, columns, blocks = generators.shape
        scale = np.asarray(model.scaling(jnp.ones(basis.dimension, model.initial.bias.dtype), basis), np.float64)
        generators = generators * scale[:read, None, None, None]
        # A state of the model is (row, block); the inner axis of the kernel is the longer of both.
        across = blocks >= rows
        places = np.arange(rows * blocks).reshape(rows, blocks)
        if not across:
            generators, places = generators.transpose(0, 3, 2, 1), places.T
        outer, inner = places.shape
        padded = -(-inner // EIGHT) * EIGHT
        generators = np.pad(generators, ((0, 0), (0, 0), (0, 0), (0, padded - inner)))
        tiles = generators.reshape(read, -1, EIGHT).transpose(1, 0, 2)
        # Where each number of the kernel's state is in the model's, which has one more number: zero, for padding.
        self._places = np.pad(places, ((0, 0), (0, padded - inner)), constant_values=rows * blocks).reshape(-1)
        layers = model.readout.layers
        weights = [np.asarray(layer.weight, np.float64) for layer in layers]
        weights[0] = np.pad(weights[0], ((0, 0), (0, 1)))[:, self._places]
        biases = [np.asarray(layer.bias, np.float64) for layer in layers]
        packed = np.concatenate([np.append(w.T, b) for w, b in zip(weights, biases, strict=True)])
        sizes = np.array([weights[0].shape[1], *(len(b) for b in biases)])
        self._reading = serve.MEAN if isinstance(model.readout.reading, Mean) else serve.LAST
        exact = isinstance(dynamics.flow, Exponential)
        self._moving = np.ascontiguousarray(tiles), (outer, columns, padded), across, exact, self._reading
        self._all = *self._moving, packed, sizes
        self._counted = isinstance(model.readout.reading, Mean) and model.readout.reading.initial
        self._initial, self._outputs, self._dtype = model.initial, len(biases[-1]), np.dtype(model.initial.bias.dtype)

    def start(self, opening: Opening, static: Float64[np.ndarray, "static"]) -> Kept:
        """The state; for a mean also a sum and how many it has."""
        first = Opening(jnp.asarray(opening.first, self._dtype), opening.seen, opening.at_start)
        hidden = np.asarray(self._initial(first, jnp.asarray(static, self._dtype)), np.float64)
        state = np.append(hidden, 0.0)[self._places]
        if self._reading == serve.LAST:
            return (state,)
        return (np.concatenate([state, state * self._counted, [self._counted]]),)

    def advance(self, kept: Kept, steps: Steps) -> Kept:
        """By the kernel."""
        moved = kept[0].copy()
        serve.advance(moved, steps, *self._moving)
        return (moved,)

    def predict(self, kept: Kept, steps: Steps) -> Float[np.ndarray, "output"]:
        """By the kernel."""
        out = np.empty(self._outputs, self._dtype)
        serve.predict(kept[0], steps, *self._all, out)
        return out

    def predict_many(self, kept: list[Kept], steps: list[Steps]) -> Float[np.ndarray, "series output"]:
        """By the kernel, one series after another."""
        out = np.empty((len(kept), self._outputs), self._dtype)
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in steps])])
        serve.predict_many(np.stack([state for (state,) in kept]), np.concatenate(steps), offsets, *self._all, out)
        return out

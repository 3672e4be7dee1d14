"""Linear models on the host without JAX: their generators are computed once, then one compiled call predicts.

Flows are those of training, in the model's own precision.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from logcde.embedding import Opening
from logcde.flows import Euler, Exponential, LinearDynamics
from logcde.kernels import serve
from logcde.kernels.flow import DOUBLE, SINGLE, WIDEST
from logcde.models import CDE, AbstractOnlineModel, EachInterval, Mean, Terminal, UnitIncrements, Unscaled
from logcde.models.readout import Readout
from logcde.online.serving import AbstractServed, CompiledModel, Kept, Steps


def served(model: AbstractOnlineModel) -> AbstractServed:
    """The fastest way to serve a model."""
    return LinearModel(model) if isinstance(model, CDE) and _is_plain(model) else CompiledModel(model)


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
        dynamics, basis, readout = model.dynamics, model.basis, model.readout
        assert isinstance(dynamics, LinearDynamics)
        assert basis is not None
        self._initial, self._dtype = model.initial, np.dtype(model.initial.bias.dtype)
        generators = np.asarray(dynamics.field.generators())
        count, rows, _, blocks = generators.shape
        scale = np.asarray(model.scaling(jnp.ones(basis.dimension, self._dtype), basis))
        generators = generators * scale[:count, None, None, None]
        # The model's states are (row, block). Large blocks go one by one, and so come first.
        places, shape = np.arange(rows * blocks).reshape(rows, blocks), (1, rows, blocks)
        if rows > WIDEST:
            generators, places, shape = np.moveaxis(generators, -1, 1), places.T, (blocks, rows, 1)
        self._places = places.reshape(-1)
        reach = SINGLE if self._dtype == np.float32 else DOUBLE
        exact = isinstance(dynamics.flow, Exponential)
        self._moving = np.ascontiguousarray(generators).reshape(count, -1), shape, reach, exact
        weights = [np.asarray(layer.weight, np.float64) for layer in readout.layers]
        weights[0] = weights[0][:, self._places]
        biases = [np.asarray(layer.bias, np.float64) for layer in readout.layers]
        packed = np.concatenate([np.append(w.T, b) for w, b in zip(weights, biases, strict=True)])
        self._reading = packed, np.array([rows * blocks, *(len(b) for b in biases)])
        self._mean = readout.reading if isinstance(readout.reading, Mean) else None
        self._outputs, self._server = len(biases[-1]), serve.server(rows)

    def start(self, opening: Opening, static: Float64[np.ndarray, "static"]) -> Kept:
        """The state; for a mean also a sum and how many it has."""
        first = Opening(jnp.asarray(opening.first, self._dtype), opening.seen, opening.at_start)
        state = np.asarray(self._initial(first, jnp.asarray(static, self._dtype)))[self._places]
        if self._mean is None:
            return state, np.zeros(0)
        return state, np.append(state, 1.0) * float(self._mean.initial)

    def advance(self, kept: Kept, steps: Steps) -> Kept:
        """By the kernel."""
        state, total = kept[0].copy(), kept[1].copy()
        self._server.advance(state, total, steps, *self._moving)
        return state, total

    def advance_many(self, kept: list[Kept], steps: list[Steps]) -> list[Kept]:
        """By the kernel, one series after another."""
        return [self.advance(*series) for series in zip(kept, steps, strict=True)]

    def predict(self, kept: Kept, steps: Steps) -> Float[np.ndarray, "output"]:
        """By the kernel."""
        out = np.empty(self._outputs, self._dtype)
        self._server.predict(*kept, steps, *self._moving, *self._reading, out)
        return out

    def predict_many(self, kept: list[Kept], steps: list[Steps]) -> Float[np.ndarray, "series output"]:
        """By the kernel, one series after another."""
        out = np.empty((len(kept), self._outputs), self._dtype)
        states, totals = (np.stack(part) for part in zip(*kept, strict=True))
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in steps])])
        moving, reading = self._moving, self._reading
        self._server.predict_many(states, totals, np.concatenate(steps), offsets, *moving, *reading, out)
        return out

"""A model as predictors use it: on plain arrays of the host, one series or many at a time.

What is kept of a series is a tuple of arrays. Any model goes through `CompiledModel`; `logcde.online.serving` has a
faster way for linear ones.

Linear models on the host without JAX: their generators are computed once, then one compiled call predicts.

Flows are those of training, in the model's own precision.

What all series of a predictor share: the model, how events are embedded, where intervals end.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeAlias, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, PyTree

from logcde.embedding import Coordinates, Embedding, InitialObservations
from logcde.errors import ModelError, StreamError
from logcde.flows import Euler, Exponential, LinearDynamics
from logcde.kernels import serve
from logcde.kernels.flow import DOUBLE, SINGLE, WIDEST
from logcde.models import (
    AbstractOnlineModel,
    IncrementRMSScaling,
    Mean,
    NoScaling,
    PerInterval,
    SequenceModel,
    Terminal,
)
from logcde.models.model import dtype_of
from logcde.models.readout import ReadoutHead
from logcde.streams import Partition, Schema
from logcde.streams.stamps import read_stamps

Kept: TypeAlias = tuple[np.ndarray, ...]
Steps: TypeAlias = Float64[np.ndarray, "_interval lie"]


class AbstractServed(abc.ABC):
    """A model that serves predictions."""

    @abc.abstractmethod
    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> Kept:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def advance(self, kept: Kept, steps: Steps) -> Kept:
        """What is kept after more intervals."""

    @abc.abstractmethod
    def advance_many(self, kept: list[Kept], steps: list[Steps]) -> list[Kept]:
        """The same for many series."""

    @abc.abstractmethod
    def predict(self, kept: Kept, steps: Steps) -> Float[np.ndarray, "output"]:
        """The prediction after more intervals, perhaps none."""

    @abc.abstractmethod
    def predict_many(self, kept: list[Kept], steps: list[Steps]) -> Float[np.ndarray, "series output"]:
        """The same for many series."""


class CompiledModel(AbstractServed):
    """Any model that can go one interval at a time, compiled by JAX. Many series are mapped."""

    def __init__(self, model: AbstractOnlineModel) -> None:
        leaves, structure = jax.tree.flatten(model)
        self._arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
        self._run = _compiled(structure, tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves))
        self._dtype = dtype_of(model)

    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> Kept:
        """What is kept before the first interval."""
        known = InitialObservations(initial.first.astype(self._dtype), initial.seen, initial.at_start)
        kept = self._run.start(self._arrays, known, static.astype(self._dtype))
        leaves, self._treedef = jax.tree.flatten(kept)
        return tuple(np.asarray(leaf) for leaf in leaves)

    def advance(self, kept: Kept, steps: Steps) -> Kept:
        """One interval after another."""
        tree = self._tree(kept)
        for step in steps.astype(self._dtype):
            tree = self._run.advance(self._arrays, tree, step)
        return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(tree))

    def advance_many(self, kept: list[Kept], steps: list[Steps]) -> list[Kept]:
        """All series together."""
        if len(kept) == 1:
            return [self.advance(kept[0], steps[0])]
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(self._run.advance_many(*self._together(kept, steps)))]
        return [tuple(np.array(leaf[number]) for leaf in leaves) for number in range(len(kept))]

    def predict(self, kept: Kept, steps: Steps) -> Float[np.ndarray, "output"]:
        """All intervals but the last, then the last."""
        if not len(steps):
            return np.asarray(self._run.predict(self._arrays, self._tree(kept)))
        tree = self._tree(self.advance(kept, steps[:-1]) if len(steps) > 1 else kept)
        return np.asarray(self._run.ahead(self._arrays, tree, steps[-1].astype(self._dtype)))

    def predict_many(self, kept: list[Kept], steps: list[Steps]) -> Float[np.ndarray, "series output"]:
        """All series together."""
        return np.asarray(self._run.predict_many(*self._together(kept, steps)))[: len(kept)]

    def _together(self, kept: list[Kept], steps: list[Steps]) -> tuple[list[Array], PyTree, np.ndarray, np.ndarray]:
        """What the compiled functions of many series take, padded to powers of two so that few shapes are compiled."""
        lengths = np.array([len(part) for part in steps])
        series, longest = _rounded(len(kept)), _rounded(int(lengths.max()))
        padded = np.zeros((series, longest, steps[0].shape[1]), self._dtype)
        for row, part in zip(padded, steps, strict=False):
            row[: len(part)] = part
        stacked = [np.stack([*leaves, *[leaves[0]] * (series - len(kept))]) for leaves in zip(*kept, strict=True)]
        lengths = np.concatenate([lengths, np.zeros(series - len(kept), np.int64)])
        return self._arrays, self._tree(tuple(stacked)), padded, lengths

    def _tree(self, kept: Kept) -> PyTree:
        return jax.tree.unflatten(self._treedef, kept)


class _Functions(NamedTuple):
    """The steps of a model, each compiled, as functions of its arrays and of what is kept."""

    start: Callable[..., Any]
    advance: Callable[..., Any]
    predict: Callable[..., Any]
    ahead: Callable[..., Any]
    advance_many: Callable[..., Any]
    predict_many: Callable[..., Any]


@functools.lru_cache(maxsize=64)
def _compiled(structure: Hashable, others: tuple[Any, ...]) -> _Functions:
    """Compiled once for all models of one structure. `others` has None where a leaf is an array."""

    def whole(arrays: list[Array]) -> AbstractOnlineModel:
        rest = iter(arrays)
        return jax.tree.unflatten(cast(Any, structure), [next(rest) if leaf is None else leaf for leaf in others])

    def extended(arrays: list[Array], kept: PyTree, steps: Array, length: Array) -> PyTree:
        model = whole(arrays)

        def over(kept: PyTree, numbered: tuple[Array, Array]) -> tuple[PyTree, None]:
            step, number = numbered
            moved = model.advance(kept, step)
            return jax.tree.map(lambda new, old: jnp.where(number < length, new, old), moved, kept), None

        return jax.lax.scan(over, kept, (steps, jnp.arange(len(steps))))[0]

    return _Functions(
        start=jax.jit(lambda arrays, initial, static: whole(arrays).start(initial, static)),
        advance=jax.jit(lambda arrays, kept, step: whole(arrays).advance(kept, step)),
        predict=jax.jit(lambda arrays, kept: whole(arrays).predict(kept)),
        ahead=jax.jit(lambda arrays, kept, step: whole(arrays).predict(whole(arrays).advance(kept, step))),
        advance_many=jax.jit(jax.vmap(extended, in_axes=(None, 0, 0, 0))),
        predict_many=jax.jit(
            jax.vmap(lambda arrays, *series: whole(arrays).predict(extended(arrays, *series)), in_axes=(None, 0, 0, 0))
        ),
    )


def _rounded(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def served(model: AbstractOnlineModel) -> AbstractServed:
    """The fastest way to serve a model."""
    return LinearModel(model) if isinstance(model, SequenceModel) and _is_plain(model) else CompiledModel(model)


def _is_plain(model: SequenceModel) -> bool:
    """Whether every part of the model is one that the kernel knows."""
    dynamics, readout = model.dynamics, model.readout
    return (
        type(dynamics) is LinearDynamics
        and type(dynamics.flow) in (Exponential, Euler)
        and type(model.scaling) in (NoScaling, IncrementRMSScaling)
        and type(readout) is ReadoutHead
        and type(readout.rule) in (Terminal, PerInterval, Mean)
        and all(layer.bias is not None for layer in readout.layers)
    )


class LinearModel(AbstractServed):
    """A linear CDE with an affine or MLP readout, by `logcde.kernels.serve`."""

    def __init__(self, model: SequenceModel) -> None:
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
        self._mean = readout.rule if isinstance(readout.rule, Mean) else None
        self._outputs, self._server = len(biases[-1]), serve.server(rows)

    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> Kept:
        """The state; for a mean also a sum and how many it has."""
        first = InitialObservations(jnp.asarray(initial.first, self._dtype), initial.seen, initial.at_start)
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


@dataclasses.dataclass(frozen=True)
class Service:
    """A model ready to serve; `window` is how late events may come."""

    model: AbstractServed
    coordinates: Coordinates
    partition: Partition | None
    window: float | None

    @staticmethod
    def of(
        model: AbstractOnlineModel,
        schema: Schema | None,
        embedding: Embedding | None,
        partition: Partition | None,
        reorder: object,
    ) -> "Service":
        """From what a user gives; what is not given comes from the model's source."""
        ahead = next((rule for rule in model.initial_rules if not rule.causal), None)
        if ahead is not None:
            raise ModelError(
                f"The initial state of this model looks ahead: {type(ahead).__name__} reads the first value of every "
                "channel, also of those that are not observed yet. Train it with initial=TimeZeroInitial() or LearntInitial(), "
                "which do not."
            )
        if (schema is None) != (embedding is None):
            raise ModelError("Give the schema and the embedding together: one means nothing without the other.")
        if schema is not None and embedding is not None:
            coordinates = embedding.coordinates(schema)
        elif model.spec is not None:
            coordinates = model.spec.coordinates
        else:
            raise ModelError(
                "This model does not say how its log-signatures were made. Give the predictor the schema, the "
                "embedding and the partition of its training data."
            )
        if coordinates.basis != model.basis:
            raise ModelError(f"The model reads {model.basis!r}, but events are embedded in {coordinates.basis!r}.")
        if coordinates.schema.continuous:
            raise ModelError(
                "The schema has continuous channels beside time, of which a predictor would have to know where they "
                "are at every end of an interval. Use logcde.OnlineEmbedding and the model's own start, advance and predict."
            )
        rule = partition if partition is not None or model.spec is None else model.spec.partition
        service = Service(served(model), coordinates, rule, None)
        window = None if reorder is None else service.time(reorder)
        return dataclasses.replace(service, window=window)

    def time(self, stamp: object) -> float:
        """A stamp of the user's clock as time."""
        return float(self.coordinates.schema.clock.times(read_stamps([stamp]))[0])

    def check(self, time: float, row: np.ndarray) -> None:
        """Refuse an event that could never be one."""
        if not math.isfinite(time):
            raise StreamError(f"The stamp of an event is {time}. Stamps are finite.")
        if row.shape != (self.coordinates.channels,) or np.isinf(row).any():
            raise StreamError(
                f"The event at {time} has the values {row.tolist()}. Give one finite number for each of the "
                f"{self.coordinates.channels} channels, NaN = not observed."
            )

"""Models on plain host arrays, as predictors use them, and the setup that all series of a predictor share.

Linear models are served without JAX: their generators are computed once, then one compiled kernel call predicts, with
the flows of training in the model's own precision; so are ensembles of them. Any other model is compiled by JAX.
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
from logcde.errors import ModelError, StreamError, Where
from logcde.flows import Euler, Exponential, LinearDynamics
from logcde.kernels import serve
from logcde.kernels.flow import WIDEST
from logcde.kernels.flow_ffi import FORWARD, function_of
from logcde.models import (
    AbstractOnlineModel,
    AbstractScaling,
    Ensemble,
    Mean,
    PerInterval,
    SequenceModel,
    SoftLimit,
    Terminal,
)
from logcde.models.model import dtype_of
from logcde.models.readout import ReadoutHead
from logcde.online.watching import RangeWatch, watch_of
from logcde.streams import Partition, Schema, TrainingRanges
from logcde.streams.ragged import offsets_of
from logcde.streams.series_clock import length_on

ModelState: TypeAlias = tuple[np.ndarray, ...]
"""What a model keeps of one series between intervals."""
IntervalLogsigs: TypeAlias = Float64[np.ndarray, "_interval lie"]
"""Log-signatures of a few intervals of one series, one row each."""


@dataclasses.dataclass(frozen=True)
class PredictorSetup:
    """What all series of a predictor share.

    Attributes:
        model: The model, ready to serve.
        coordinates: How events are embedded.
        partition: The rule by which intervals end, None if the user closes them.
        window: How late events may arrive, None if not at all.
        watch: Compares series with what the model was trained on, None if that is not known.
    """

    model: "AbstractServingModel"
    coordinates: Coordinates
    partition: Partition | None
    window: float | None
    watch: RangeWatch | None = None

    @staticmethod
    def of(
        model: AbstractOnlineModel,
        schema: Schema | None = None,
        embedding: Embedding | None = None,
        partition: Partition | None = None,
        reorder: object = None,
        ranges: TrainingRanges | None = None,
    ) -> "PredictorSetup":
        """Check the arguments of a predictor; those left out come from `model.spec`."""
        ahead = next((rule for rule in model.initial_rules if not rule.causal), None)
        if ahead is not None:
            raise ModelError(
                f"The initial state of this model looks ahead: {type(ahead).__name__} reads the first value of every "
                "channel, also of channels that are not observed yet.",
                "Train the model with initial=TimeZeroInitial() or initial=LearntInitial().",
            )
        if (schema is None) != (embedding is None):
            raise ModelError("Only one of schema and embedding was given.", "Give both or neither.")
        if schema is not None and embedding is not None:
            coordinates = embedding.coordinates(schema)
        elif model.spec is not None:
            coordinates = model.spec.coordinates
        else:
            raise ModelError(
                "This model does not record how its log-signatures were computed.",
                "Pass the schema, the embedding and the partition of its training data to the predictor.",
            )
        if coordinates.basis != model.basis:
            raise ModelError(
                f"The model takes log-signatures in {model.basis!r}, but events are embedded in {coordinates.basis!r}.",
                "Give the schema and the embedding of its training data.",
            )
        rule = partition if partition is not None or model.spec is None else model.spec.partition
        watch = watch_of(ranges, coordinates.schema)
        setup = PredictorSetup(serving_model(model), coordinates, rule, None, watch)
        window = None if reorder is None else length_on(coordinates.schema.clock, reorder)
        return dataclasses.replace(setup, window=window)

    def check(self, time: float, row: np.ndarray) -> None:
        """Refuse an event with an infinite stamp, infinite values or the wrong number of values."""
        if not math.isfinite(time):
            raise StreamError(f"The stamp of an event is {time}.", "Stamps are finite.", where=Where(stamp=time))
        if row.shape != (self.coordinates.channels,) or np.isinf(row).any():
            raise StreamError(
                f"The event at {time} has the values {row.tolist()}.",
                f"Give one finite number for each of the {self.coordinates.channels} channels, NaN = not observed.",
                where=Where(stamp=time),
            )


class AbstractServingModel(abc.ABC):
    """A model on plain host arrays, for one series or many."""

    @abc.abstractmethod
    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> ModelState:
        """The state before the first interval."""

    @abc.abstractmethod
    def advance(self, state: ModelState, logsigs: IntervalLogsigs) -> ModelState:
        """The state after these intervals."""

    @abc.abstractmethod
    def advance_many(self, states: list[ModelState], logsigs: list[IntervalLogsigs]) -> list[ModelState]:
        """The states of many series after their intervals."""

    @abc.abstractmethod
    def predict(self, state: ModelState, logsigs: IntervalLogsigs) -> Float[np.ndarray, "output"]:
        """The prediction after these intervals, of which there may be none."""

    @abc.abstractmethod
    def predict_many(
        self, states: list[ModelState], logsigs: list[IntervalLogsigs]
    ) -> Float[np.ndarray, "series output"]:
        """The predictions of many series after their intervals."""


def serving_model(model: AbstractOnlineModel) -> AbstractServingModel:
    """The fastest way to serve a model: kernels if they support every part of it, JAX otherwise."""
    if isinstance(model, SequenceModel) and _has_kernel(model):
        return LinearServingModel(model)
    if isinstance(model, Ensemble) and isinstance(model.models[0], SequenceModel) and _has_kernel(model.models[0]):
        return EnsembleServingModel(model)
    return CompiledServingModel(model)


def _has_kernel(model: SequenceModel) -> bool:
    dynamics, readout = model.dynamics, model.readout
    return (
        type(dynamics) is LinearDynamics
        and type(dynamics.flow) in (Exponential, Euler)
        and _unlimited(model.scaling).by_letters
        and type(readout) is ReadoutHead
        and type(readout.rule) in (Terminal, PerInterval, Mean)
        and all(layer.bias is not None for layer in readout.layers)
    )


def _unlimited(scaling: AbstractScaling) -> AbstractScaling:
    return scaling.scaling if isinstance(scaling, SoftLimit) else scaling


class LinearServingModel(AbstractServingModel):
    """A linear CDE with an affine or MLP readout, served by the kernels of `logcde.kernels.serve`."""

    def __init__(self, model: SequenceModel) -> None:
        dynamics, basis, readout = model.dynamics, model.basis, model.readout
        assert isinstance(dynamics, LinearDynamics)
        assert basis is not None
        self._initial, self._dtype = model.initial, np.dtype(model.initial.bias.dtype)
        generators = np.asarray(dynamics.field.generators())
        count, rows, _, blocks = generators.shape
        scale = np.asarray(_unlimited(model.scaling)(jnp.ones(basis.dimension, self._dtype), basis))
        self._limit = model.scaling.limit if isinstance(model.scaling, SoftLimit) else None
        self._scale = scale.astype(np.float64)
        if self._limit is None:
            generators = generators * scale[:count, None, None, None]
        # The model's states are (row, block). Kernels take large blocks one by one, so these come first.
        places, shape = np.arange(rows * blocks).reshape(rows, blocks), (1, rows, blocks)
        if rows > WIDEST:
            generators, places, shape = np.moveaxis(generators, -1, 1), places.T, (blocks, rows, 1)
        self._places = places.reshape(-1)
        act, exact = function_of(FORWARD, rows, self._dtype), int(isinstance(dynamics.flow, Exponential))
        self._flow_arguments = np.ascontiguousarray(generators).reshape(count, -1), shape, act, exact
        weights = [np.asarray(layer.weight, np.float64) for layer in readout.layers]
        # A field may have constants 1 after the hidden state, which no readout sees.
        self._constants = np.ones(rows * blocks - dynamics.hidden, self._dtype)
        weights[0] = np.pad(weights[0], ((0, 0), (0, len(self._constants))))[:, self._places]
        biases = [np.asarray(layer.bias, np.float64) for layer in readout.layers]
        packed = np.concatenate([np.append(w.T, b) for w, b in zip(weights, biases, strict=True)])
        self._readout_arguments = packed, np.array([rows * blocks, *(len(b) for b in biases)])
        self._mean = readout.rule if isinstance(readout.rule, Mean) else None
        self._outputs = len(biases[-1])

    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> ModelState:
        """The hidden state; for a mean over intervals also the sum of hidden states and their number."""
        first = InitialObservations(jnp.asarray(initial.first, self._dtype), initial.seen, initial.at_start)
        hidden = np.asarray(self._initial(first, jnp.asarray(static, self._dtype)))
        hidden = np.concatenate([hidden, self._constants])[self._places]
        if self._mean is None:
            return hidden, np.zeros(0)
        return hidden, np.append(hidden, 1.0) * float(self._mean.initial)

    def advance(self, state: ModelState, logsigs: IntervalLogsigs) -> ModelState:
        """Copy the state and move the copy by the kernel."""
        hidden, total = state[0].copy(), state[1].copy()
        serve.advance(hidden, total, self._limited(logsigs), *self._flow_arguments)
        return hidden, total

    def advance_many(self, states: list[ModelState], logsigs: list[IntervalLogsigs]) -> list[ModelState]:
        """One kernel call for all series."""
        hidden, totals, rows, offsets = self._together(states, logsigs)
        serve.advance_many(hidden, totals, rows, offsets, *self._flow_arguments)
        # Copies, because a view of one series would keep the states of all in memory.
        return [(one.copy(), total.copy()) for one, total in zip(hidden, totals, strict=True)]

    def predict(self, state: ModelState, logsigs: IntervalLogsigs) -> Float[np.ndarray, "output"]:
        """One kernel call."""
        out = np.empty(self._outputs, self._dtype)
        serve.predict(*state, self._limited(logsigs), *self._flow_arguments, *self._readout_arguments, out)
        return out

    def predict_many(
        self, states: list[ModelState], logsigs: list[IntervalLogsigs]
    ) -> Float[np.ndarray, "series output"]:
        """One kernel call for all series."""
        out = np.empty((len(states), self._outputs), self._dtype)
        serve.predict_many(*self._together(states, logsigs), *self._flow_arguments, *self._readout_arguments, out)
        return out

    def _together(
        self, states: list[ModelState], logsigs: list[IntervalLogsigs]
    ) -> tuple[np.ndarray, np.ndarray, IntervalLogsigs, np.ndarray]:
        """Hidden states and totals of many series, one row each, and their intervals end to end, with offsets."""
        hidden, totals = (np.concatenate(part).reshape(len(states), -1) for part in zip(*states, strict=True))
        offsets = offsets_of(np.array([len(part) for part in logsigs]))
        return hidden, totals, self._limited(np.concatenate(logsigs)), offsets

    def _limited(self, logsigs: IntervalLogsigs) -> IntervalLogsigs:
        """Scaled and limited softly; without a limit, the scale is part of the generators."""
        return logsigs if self._limit is None else self._limit * np.tanh(logsigs * self._scale / self._limit)


class EnsembleServingModel(AbstractServingModel):
    """An ensemble of linear CDEs: kernels serve its members, one after another, and JAX averages."""

    def __init__(self, model: Ensemble) -> None:
        self._members = [LinearServingModel(one) for one in model.models if isinstance(one, SequenceModel)]
        self._average = jax.jit(model.average)

    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> ModelState:
        """The states of all members, one after another."""
        return tuple(part for member in self._members for part in member.start(initial, static))

    def advance(self, state: ModelState, logsigs: IntervalLogsigs) -> ModelState:
        """One kernel call per member."""
        pairs = zip(self._members, self._states(state), strict=True)
        return tuple(part for member, own in pairs for part in member.advance(own, logsigs))

    def advance_many(self, states: list[ModelState], logsigs: list[IntervalLogsigs]) -> list[ModelState]:
        """One kernel call per member for all series."""
        by_member = zip(*map(self._states, states), strict=True)
        pairs = zip(self._members, by_member, strict=True)
        each = [member.advance_many(list(own), logsigs) for member, own in pairs]
        return [tuple(part for own in series for part in own) for series in zip(*each, strict=True)]

    def predict(self, state: ModelState, logsigs: IntervalLogsigs) -> Float[np.ndarray, "output"]:
        """One kernel call per member."""
        pairs = zip(self._members, self._states(state), strict=True)
        return np.asarray(self._average(np.stack([member.predict(own, logsigs) for member, own in pairs])))

    def predict_many(
        self, states: list[ModelState], logsigs: list[IntervalLogsigs]
    ) -> Float[np.ndarray, "series output"]:
        """One kernel call per member for all series."""
        by_member = zip(*map(self._states, states), strict=True)
        pairs = zip(self._members, by_member, strict=True)
        each = np.stack([member.predict_many(list(own), logsigs) for member, own in pairs])
        missing = _round_up_to_power_of_two(len(states)) - len(states)  # few shapes are compiled
        return np.asarray(self._average(np.pad(each, ((0, 0), (0, missing), (0, 0)))))[: len(states)]

    def _states(self, state: ModelState) -> list[ModelState]:
        """The state of each member."""
        width = len(state) // len(self._members)
        return [state[start : start + width] for start in range(0, len(state), width)]


class CompiledServingModel(AbstractServingModel):
    """Any online model, compiled by JAX; many series are mapped."""

    def __init__(self, model: AbstractOnlineModel) -> None:
        leaves, structure = jax.tree.flatten(model)
        self._arrays = [leaf for leaf in leaves if eqx.is_array(leaf)]
        self._functions = _compiled(structure, tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves))
        self._dtype = dtype_of(model)

    def start(self, initial: InitialObservations, static: Float64[np.ndarray, "static"]) -> ModelState:
        """The leaves of the model's own state."""
        first = InitialObservations(initial.first.astype(self._dtype), initial.seen, initial.at_start)
        state = self._functions.start(self._arrays, first, static.astype(self._dtype))
        leaves, self._treedef = jax.tree.flatten(state)
        return tuple(np.asarray(leaf) for leaf in leaves)

    def advance(self, state: ModelState, logsigs: IntervalLogsigs) -> ModelState:
        """One compiled call per interval."""
        tree = self._tree(state)
        for logsig in logsigs.astype(self._dtype):
            tree = self._functions.advance(self._arrays, tree, logsig)
        return tuple(np.asarray(leaf) for leaf in jax.tree.leaves(tree))

    def advance_many(self, states: list[ModelState], logsigs: list[IntervalLogsigs]) -> list[ModelState]:
        """One compiled call for all series."""
        if len(states) == 1:
            return [self.advance(states[0], logsigs[0])]
        advanced = self._functions.advance_many(*self._padded(states, logsigs))
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(advanced)]
        return [tuple(np.array(leaf[number]) for leaf in leaves) for number in range(len(states))]

    def predict(self, state: ModelState, logsigs: IntervalLogsigs) -> Float[np.ndarray, "output"]:
        """All intervals but the last one by one, then the last interval and the prediction in one call."""
        if not len(logsigs):
            return np.asarray(self._functions.predict(self._arrays, self._tree(state)))
        tree = self._tree(self.advance(state, logsigs[:-1]) if len(logsigs) > 1 else state)
        return np.asarray(self._functions.advance_and_predict(self._arrays, tree, logsigs[-1].astype(self._dtype)))

    def predict_many(
        self, states: list[ModelState], logsigs: list[IntervalLogsigs]
    ) -> Float[np.ndarray, "series output"]:
        """One compiled call for all series."""
        return np.asarray(self._functions.predict_many(*self._padded(states, logsigs)))[: len(states)]

    def _padded(
        self, states: list[ModelState], logsigs: list[IntervalLogsigs]
    ) -> tuple[list[Array], PyTree, np.ndarray, np.ndarray]:
        """Arguments of the functions of many series, padded to powers of two so that few shapes are compiled."""
        lengths = np.array([len(part) for part in logsigs])
        series, longest = _round_up_to_power_of_two(len(states)), _round_up_to_power_of_two(int(lengths.max()))
        padded = np.zeros((series, longest, logsigs[0].shape[1]), self._dtype)
        for row, part in zip(padded, logsigs, strict=False):
            row[: len(part)] = part
        stacked = [np.stack([*leaves, *[leaves[0]] * (series - len(states))]) for leaves in zip(*states, strict=True)]
        lengths = np.concatenate([lengths, np.zeros(series - len(states), np.int64)])
        return self._arrays, self._tree(tuple(stacked)), padded, lengths

    def _tree(self, state: ModelState) -> PyTree:
        return jax.tree.unflatten(self._treedef, state)


class _CompiledFunctions(NamedTuple):
    """The methods of a model, each compiled, as functions of its arrays and of its state."""

    start: Callable[..., Any]
    advance: Callable[..., Any]
    predict: Callable[..., Any]
    advance_and_predict: Callable[..., Any]
    advance_many: Callable[..., Any]
    predict_many: Callable[..., Any]


@functools.lru_cache(maxsize=64)
def _compiled(structure: Hashable, others: tuple[Any, ...]) -> _CompiledFunctions:
    """Compile once for all models of one structure. `others` has None where a leaf is an array."""

    def model_of(arrays: list[Array]) -> AbstractOnlineModel:
        rest = iter(arrays)
        return jax.tree.unflatten(cast(Any, structure), [next(rest) if leaf is None else leaf for leaf in others])

    def advance(arrays: list[Array], state: PyTree, logsigs: Array, length: Array) -> PyTree:
        model = model_of(arrays)

        def over_interval(state: PyTree, numbered: tuple[Array, Array]) -> tuple[PyTree, None]:
            logsig, number = numbered
            advanced = model.advance(state, logsig)
            return jax.tree.map(lambda new, old: jnp.where(number < length, new, old), advanced, state), None

        return jax.lax.scan(over_interval, state, (logsigs, jnp.arange(len(logsigs))))[0]

    return _CompiledFunctions(
        start=jax.jit(lambda arrays, initial, static: model_of(arrays).start(initial, static)),
        advance=jax.jit(lambda arrays, state, logsig: model_of(arrays).advance(state, logsig)),
        predict=jax.jit(lambda arrays, state: model_of(arrays).predict(state)),
        advance_and_predict=jax.jit(
            lambda arrays, state, logsig: model_of(arrays).predict(model_of(arrays).advance(state, logsig))
        ),
        advance_many=jax.jit(jax.vmap(advance, in_axes=(None, 0, 0, 0))),
        predict_many=jax.jit(
            jax.vmap(
                lambda arrays, *series: model_of(arrays).predict(advance(arrays, *series)), in_axes=(None, 0, 0, 0)
            )
        ),
    )


def _round_up_to_power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()

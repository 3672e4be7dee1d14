"""The two compiled programs of training: many optimiser steps in one call, and evaluation on many series.

Data are on the device and rows are gathered there. The number of steps of a call is an argument, not part of the
program: calls of any length give the same bits. Every device takes its part of each batch; sums of values, weights and
gradients are added over devices, and divided only then.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from logcde._compiler import training_options
from logcde.models import AbstractBatchModel, AbstractModel, BatchStats, predict
from logcde.train.data import Examples, buckets_of, cut_into_batches
from logcde.train.losses import AbstractMeasure, WeightedValue, total_over_series
from logcde.train.options import Batching
from logcde.train.parallel import AXIS, put_on_mesh, round_up_to_devices

Parameters: TypeAlias = PyTree[Any]
ROWS = "rows"
"""The axis of a batch on one device; `AXIS` is that of the devices."""


class StepState(eqx.Module):
    """What an optimiser step changes."""

    parameters: Parameters
    optimiser: PyTree[Any]
    step: Int[Array, ""]


class TrainStep(eqx.Module):
    """One optimiser step, as a function of the state and a batch.

    Attributes:
        rest: The model without its parameters.
        loss: What to minimise.
        optimiser: Turns gradients into updates.
        clip: Largest norm of a gradient over all parameters.
        penalty: Factor of the model's own penalty.
        mesh: The devices.
        slowdown: Factor of all updates after a recovery; None, which is another program, before the first.
    """

    rest: Parameters
    loss: AbstractMeasure
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    clip: float | None = eqx.field(static=True)
    penalty: float = eqx.field(static=True)
    mesh: Mesh = eqx.field(static=True)
    slowdown: Float[Array | np.ndarray, ""] | None = None

    def model(self, parameters: Parameters) -> AbstractModel:
        """The model with these parameters."""
        return eqx.combine(parameters, self.rest)

    def initial_state(self, parameters: Parameters) -> StepState:
        """The state before the first step."""
        with jax.numpy_dtype_promotion("standard"):
            optimiser = jax.tree.map(jnp.asarray, self.optimiser.init(parameters))
        return StepState(parameters, optimiser, jnp.zeros((), jnp.int32))

    def optimise(
        self, state: StepState, gradient: Parameters, loss: Float[Array, ""]
    ) -> tuple[Parameters, PyTree[Any]]:
        """The new parameters and the new state of the optimiser."""
        with jax.numpy_dtype_promotion("standard"):  # which Optax relies on
            if self.clip is not None:
                gradient, _ = optax.clip_by_global_norm(self.clip).update(gradient, optax.EmptyState())
            update = optax.with_extra_args_support(self.optimiser).update
            updates, optimiser = update(gradient, state.optimiser, state.parameters, value=loss)
            if self.slowdown is not None:
                slowdown = jnp.asarray(self.slowdown)
                updates = jax.tree.map(lambda leaf: slowdown.astype(leaf.dtype) * leaf, updates)
            return optax.apply_updates(state.parameters, updates), optimiser

    def loss_and_gradient(
        self, parameters: Parameters, batch: Examples, counted: Bool[Array, "row"], keys: Key[Array, "row"]
    ) -> tuple[WeightedValue, Parameters, BatchStats]:
        """Sums of the loss and its gradient over the rows of this device, and batch statistics over all devices."""

        def value(parameters: Parameters) -> tuple[Float[Array, ""], tuple[Float[Array, ""], BatchStats]]:
            predictions, batch_stats = self._predict(parameters, batch, keys)
            total, weight = total_over_series(
                self.loss, predictions, batch.targets, batch.predicted, counted, batch.weights
            )
            return total, (weight, batch_stats)

        (total, (weight, batch_stats)), gradient = jax.value_and_grad(value, has_aux=True)(parameters)
        return (total, weight), gradient, batch_stats

    def _predict(self, parameters: Parameters, batch: Examples, keys: Key[Array, "row"]) -> tuple[Array, BatchStats]:
        model = self.model(parameters)
        if not isinstance(model, AbstractBatchModel):
            return jax.vmap(lambda one, key: model(one, key=key))(batch.inputs, keys), None
        apply_train = jax.vmap(
            lambda one, key: model.apply_train(one, key=key, axes=(ROWS, AXIS)), axis_name=ROWS, out_axes=(0, None)
        )
        return apply_train(batch.inputs, keys)

    def _with_batch_stats(self, parameters: Parameters, batch_stats: BatchStats) -> Parameters:
        model = self.model(parameters)
        return (
            eqx.filter(model.with_batch_stats(batch_stats), eqx.is_inexact_array)
            if isinstance(model, AbstractBatchModel)
            else parameters
        )

    def update(
        self, state: StepState, summed: WeightedValue, gradient: Parameters, batch_stats: BatchStats
    ) -> tuple[StepState, Float[Array, ""], Bool[Array, ""]]:
        """The state after a step, its loss, and whether all numbers are finite; if not, the state is unchanged."""
        total, weight = summed
        weight = jnp.where(weight > 0, weight, 1)
        loss = total / weight
        # JAX's gradient of a real function of complex parameters is the conjugate of the direction of ascent.
        gradient = jax.tree.map(lambda leaf: jnp.conj(leaf) / weight, gradient)
        if self.penalty:
            size, slope = jax.value_and_grad(lambda parameters: self.model(parameters).penalty())(state.parameters)
            loss = loss + self.penalty * size
            gradient = jax.tree.map(lambda a, b: a + self.penalty * jnp.conj(b), gradient, slope)
        parameters, optimiser = self.optimise(state, gradient, loss)
        parameters = self._with_batch_stats(parameters, batch_stats)
        finite = jnp.isfinite(loss)
        for leaf in jax.tree.leaves(parameters):
            finite = finite & jnp.isfinite(leaf).all()
        after = StepState(parameters, optimiser, state.step + 1)
        return jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, state), loss, finite


class StepBatches(NamedTuple):
    """The mini-batches of one call of `run_steps`.

    Attributes:
        buckets: The training data.
        bucket: The bucket of each step.
        rows: The rows of each step in its bucket, -1 for padding.
        number: How many steps to run.
        key: Key of the run, from which each step and series gets its own.
    """

    buckets: tuple[Examples, ...]
    bucket: Int[Array, "longest"]
    rows: Int[Array, "longest row"]
    number: Int[Array, ""]
    key: PRNGKeyArray


StepsOutcome: TypeAlias = tuple[StepState, Float[Array, "longest"], Int[Array, ""]]
"""The state, the losses, and how many steps were finite."""
Carry: TypeAlias = tuple[Int[Array, ""], Bool[Array, ""], StepState, Float[Array, "longest"]]
"""Steps done, whether all were finite, the state, and the losses so far."""


def run_steps(fixed: tuple[TrainStep, StepBatches], state: StepState) -> StepsOutcome:
    """Run several steps; ends before the first step that is not finite. The state is donated, `fixed` is kept."""
    return _compiled_steps()(fixed, state)


@functools.cache
def _compiled_steps() -> Callable[..., StepsOutcome]:
    options: dict[str, Any] = {"compiler_options": training_options()}
    return eqx.filter_jit(_steps, donate="all-except-first", **options)


def _steps(fixed: tuple[TrainStep, StepBatches], state: StepState) -> StepsOutcome:
    train_step, batches = fixed
    on_each_device = jax.shard_map(
        lambda state, *batches: _run_on_device(train_step, StepBatches(*batches), state),
        mesh=train_step.mesh,
        in_specs=(P(), P(), P(), P(None, AXIS), P(), P()),
        out_specs=P(),
        check_vma=False,
    )
    return on_each_device(state, *batches)


def _run_on_device(train_step: TrainStep, batches: StepBatches, state: StepState) -> StepsOutcome:
    width = batches.rows.shape[1]
    places = jax.lax.axis_index(AXIS) * width + jnp.arange(width, dtype=jnp.int32)

    def gradient_in(bucket: Examples) -> Callable[..., tuple[WeightedValue, Parameters, BatchStats]]:
        def loss_and_gradient(
            parameters: Parameters, rows: Int[Array, "row"], key: PRNGKeyArray
        ) -> tuple[WeightedValue, Parameters, BatchStats]:
            # A series has the same key however many devices share its batch.
            keys = jax.vmap(lambda place: jax.random.fold_in(key, place))(places)
            return train_step.loss_and_gradient(parameters, gather_rows(bucket, rows), rows >= 0, keys)

        return loss_and_gradient

    branches = [gradient_in(bucket) for bucket in batches.buckets]

    def goes_on(carry: Carry) -> Bool[Array, ""]:
        done, finite, _, _ = carry
        return finite & (done < batches.number)

    def step(carry: Carry) -> Carry:
        done, _, state, losses = carry
        key = jax.random.fold_in(batches.key, state.step)
        *local, batch_stats = jax.lax.switch(batches.bucket[done], branches, state.parameters, batches.rows[done], key)
        summed, gradient = jax.lax.psum(local, AXIS)
        state, loss, finite = train_step.update(state, summed, gradient, batch_stats)
        return done + finite.astype(done.dtype), finite, state, losses.at[done].set(loss.astype(losses.dtype))

    losses = jnp.zeros(len(batches.bucket), jax.tree.leaves(state.parameters)[0].real.dtype)
    start = (jnp.zeros((), batches.number.dtype), jnp.asarray(True), state, losses)
    done, _, state, losses = jax.lax.while_loop(goes_on, step, start)
    return state, losses, done


def gather_rows(bucket: Examples, rows: Int[Array, "row"]) -> Examples:
    """Gather rows of a bucket; padding (-1) becomes row 0 with length 0."""
    batch = jax.tree.map(lambda leaf: leaf[jnp.maximum(rows, 0)], bucket)
    length = jnp.where(rows >= 0, batch.inputs.length, 0)
    return eqx.tree_at(lambda tree: tree.inputs.length, batch, length)


class AbstractEvaluator(abc.ABC):
    """Computes measures on validation series."""

    @property
    @abc.abstractmethod
    def series(self) -> int:
        """Number of series."""

    @abc.abstractmethod
    def __call__(self, parameters: Parameters) -> dict[str, float]:
        """The measures of a model with these parameters, by name."""


@dataclasses.dataclass(frozen=True)
class Evaluator(AbstractEvaluator):
    """Computes measures on a fixed set of examples, which are on all devices.

    Attributes:
        rest: The model without its parameters.
        measures: What to compute.
        buckets: The examples.
        rows: The rows of each batch, for each bucket.
        mesh: The devices.
    """

    rest: Parameters
    measures: tuple[AbstractMeasure, ...]
    buckets: tuple[Examples, ...]
    rows: tuple[Int[Array, "_ row"], ...]
    mesh: Mesh

    @staticmethod
    def of(
        rest: Parameters, measures: tuple[AbstractMeasure, ...], examples: Examples, batching: Batching, mesh: Mesh
    ) -> "Evaluator":
        """Sort examples into buckets, cut these into batches, and put them on the devices."""
        buckets = buckets_of(examples, batching)
        sizes = tuple(len(bucket) for bucket in buckets)
        return Evaluator.of_buckets(rest, measures, put_on_mesh(mesh, buckets), sizes, batching, mesh)

    @staticmethod
    def of_buckets(
        rest: Parameters,
        measures: tuple[AbstractMeasure, ...],
        buckets: tuple[Examples, ...],
        sizes: tuple[int, ...],
        batching: Batching,
        mesh: Mesh,
    ) -> "Evaluator":
        """Cut the first series of each bucket, as many as `sizes` says, into batches. Buckets are on the devices."""
        width = round_up_to_devices(batching.size, mesh)
        rows = tuple(cut_into_batches(np.arange(size), batching.size, width) for size in sizes)
        return Evaluator(rest, measures, buckets, put_on_mesh(mesh, rows, None, AXIS), mesh)

    @property
    def series(self) -> int:
        """Number of series."""
        return sum(map(len, self.buckets))

    def __call__(self, parameters: Parameters) -> dict[str, float]:
        """The measures of a model with these parameters, by name."""
        return {name: value / (weight or 1.0) for name, (value, weight) in self.sums(parameters).items()}

    def sums(self, parameters: Parameters) -> dict[str, tuple[float, float]]:
        """Sums of values and of weights over all series, by the name of the measure."""
        sums = _measure_all(self.rest, self.measures, self.mesh, parameters, self.buckets, self.rows)
        return {
            measure.name: (float(value), float(weight))
            for measure, (value, weight) in zip(self.measures, sums, strict=True)
        }


@eqx.filter_jit
def _measure_all(
    rest: Parameters,
    measures: tuple[AbstractMeasure, ...],
    mesh: Mesh,
    parameters: Parameters,
    buckets: tuple[Examples, ...],
    rows: tuple[Int[Array, "_ row"], ...],
) -> tuple[WeightedValue, ...]:
    """Sums of values and of weights over all series, for each measure."""

    def on_each_device(
        parameters: Parameters, buckets: tuple[Examples, ...], rows: tuple[Array, ...]
    ) -> tuple[WeightedValue, ...]:
        model = eqx.combine(parameters, rest)

        def measure(bucket: Examples, rows: Int[Array, "row"]) -> tuple[WeightedValue, ...]:
            batch = gather_rows(bucket, rows)
            predictions = predict(model, batch.inputs)
            return tuple(
                total_over_series(m, predictions, batch.targets, batch.predicted, rows >= 0, batch.weights)
                for m in measures
            )

        parts = [
            jax.lax.map(lambda one, bucket=bucket: measure(bucket, one), many)
            for bucket, many in zip(buckets, rows, strict=True)
        ]
        local = jax.tree.map(lambda *leaves: sum(leaf.sum() for leaf in leaves), *parts)
        return jax.lax.psum(local, AXIS)

    mapped = jax.shard_map(
        on_each_device, mesh=mesh, in_specs=(P(), P(), P(None, AXIS)), out_specs=P(), check_vma=False
    )
    return mapped(parameters, buckets, rows)

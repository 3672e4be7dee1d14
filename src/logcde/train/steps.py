"""The compiled program of training: many steps in one call.

Data are on the device and rows are gathered there; the number of steps of a call is not part of the program, so that
calls can be as long as is convenient and give the same bits however they are cut. Every device takes its part of each
batch; sums of values, weights and gradients are added over devices, and divided only then.

The compiled program that measures how well a model does on many series.
"""

import dataclasses
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

from logcde.models import AbstractBatchModel, AbstractModel, BatchStats, predict
from logcde.train.data import Examples, batched, buckets_of
from logcde.train.losses import AbstractMeasure, Share, totals
from logcde.train.parallel import AXIS, place, whole

Parameters: TypeAlias = PyTree[Any]
ROWS = "rows"
"""The axis of a batch on one device; `AXIS` is that of the devices."""


class State(eqx.Module):
    """What a step changes."""

    parameters: Parameters
    optimiser: PyTree[Any]
    step: Int[Array, ""]


class Task(eqx.Module):
    """What training computes: everything about a step except its numbers. `rest` is the model without parameters."""

    rest: Parameters
    loss: AbstractMeasure
    optimiser: optax.GradientTransformation = eqx.field(static=True)
    clip: float | None = eqx.field(static=True)
    penalty: float = eqx.field(static=True)
    mesh: Mesh = eqx.field(static=True)

    def model(self, parameters: Parameters) -> AbstractModel:
        """The whole model."""
        return eqx.combine(parameters, self.rest)

    def begin(self, parameters: Parameters) -> State:
        """Before the first step."""
        with jax.numpy_dtype_promotion("standard"):
            optimiser = jax.tree.map(jnp.asarray, self.optimiser.init(parameters))
        return State(parameters, optimiser, jnp.zeros((), jnp.int32))

    def optimise(self, state: State, gradient: Parameters, loss: Float[Array, ""]) -> tuple[Parameters, PyTree[Any]]:
        """New parameters and the new state of the optimiser."""
        with jax.numpy_dtype_promotion("standard"):  # which Optax relies on
            if self.clip is not None:
                gradient, _ = optax.clip_by_global_norm(self.clip).update(gradient, optax.EmptyState())
            update = optax.with_extra_args_support(self.optimiser).update
            updates, optimiser = update(gradient, state.optimiser, state.parameters, value=loss)
            return optax.apply_updates(state.parameters, updates), optimiser

    def loss_and_gradient(
        self, parameters: Parameters, batch: Examples, counted: Bool[Array, "row"], keys: Key[Array, "row"]
    ) -> tuple[Share, Parameters, BatchStats]:
        """Sums over the rows of this device, and what the model remembers of the rows of all devices."""

        def value(parameters: Parameters) -> tuple[Float[Array, ""], tuple[Float[Array, ""], BatchStats]]:
            predictions, batch_stats = self._predict(parameters, batch, keys)
            total, weight = totals(self.loss, predictions, batch.targets, batch.predicted, counted)
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

    def _noting(self, parameters: Parameters, batch_stats: BatchStats) -> Parameters:
        model = self.model(parameters)
        return (
            eqx.filter(model.with_batch_stats(batch_stats), eqx.is_inexact_array)
            if isinstance(model, AbstractBatchModel)
            else parameters
        )

    def update(
        self, state: State, share: Share, gradient: Parameters, batch_stats: BatchStats
    ) -> tuple[State, Float[Array, ""], Bool[Array, ""]]:
        """The state after a step, its loss, and whether all of it is finite; if not, the state is as it was."""
        total, weight = share
        weight = jnp.where(weight > 0, weight, 1)
        loss = total / weight
        # The gradient of a real number by complex ones is the conjugate of the way uphill.
        gradient = jax.tree.map(lambda leaf: jnp.conj(leaf) / weight, gradient)
        if self.penalty:
            size, slope = jax.value_and_grad(lambda parameters: self.model(parameters).penalty())(state.parameters)
            loss = loss + self.penalty * size
            gradient = jax.tree.map(lambda a, b: a + self.penalty * jnp.conj(b), gradient, slope)
        parameters, optimiser = self.optimise(state, gradient, loss)
        parameters = self._noting(parameters, batch_stats)
        finite = jnp.isfinite(loss)
        for leaf in jax.tree.leaves(parameters):
            finite = finite & jnp.isfinite(leaf).all()
        after = State(parameters, optimiser, state.step + 1)
        return jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, state), loss, finite


Outcome: TypeAlias = tuple[State, Float[Array, "longest"], Int[Array, ""]]
Carry: TypeAlias = tuple[Int[Array, ""], Bool[Array, ""], State, Float[Array, "longest"]]
"""Steps that are done, whether all was finite, the state, and the losses so far."""


class Call(NamedTuple):
    """What a call of `run` is about: the data, the rows of each step, how many steps, and the key of the run."""

    buckets: tuple[Examples, ...]
    bucket: Int[Array, "longest"]
    rows: Int[Array, "longest row"]
    number: Int[Array, ""]
    key: PRNGKeyArray


@eqx.filter_jit(donate="all-except-first")
def run(fixed: tuple[Task, Call], state: State) -> Outcome:
    """The state after so many steps, or before the first that is not finite; losses; how many steps were good."""
    task, call = fixed
    on_each = jax.shard_map(
        lambda state, *call: _run(task, Call(*call), state),
        mesh=task.mesh,
        in_specs=(P(), P(), P(), P(None, AXIS), P(), P()),
        out_specs=P(),
        check_vma=False,
    )
    return on_each(state, *call)


def _run(task: Task, call: Call, state: State) -> Outcome:
    width = call.rows.shape[1]
    places = jax.lax.axis_index(AXIS) * width + jnp.arange(width, dtype=jnp.int32)

    def learn_from(bucket: Examples) -> Callable[..., tuple[Share, Parameters, BatchStats]]:
        def apply_train(
            parameters: Parameters, rows: Int[Array, "row"], key: PRNGKeyArray
        ) -> tuple[Share, Parameters, BatchStats]:
            # A series has the same key however many devices share its batch.
            keys = jax.vmap(lambda place: jax.random.fold_in(key, place))(places)
            return task.loss_and_gradient(parameters, gather(bucket, rows), rows >= 0, keys)

        return apply_train

    branches = [learn_from(bucket) for bucket in call.buckets]

    def go_on(carry: Carry) -> Bool[Array, ""]:
        done, finite, _, _ = carry
        return finite & (done < call.number)

    def step(carry: Carry) -> Carry:
        done, _, state, losses = carry
        key = jax.random.fold_in(call.key, state.step)
        *local, batch_stats = jax.lax.switch(call.bucket[done], branches, state.parameters, call.rows[done], key)
        share, gradient = jax.lax.psum(local, AXIS)
        state, loss, finite = task.update(state, share, gradient, batch_stats)
        return done + finite.astype(done.dtype), finite, state, losses.at[done].set(loss.astype(losses.dtype))

    losses = jnp.zeros(len(call.bucket), jax.tree.leaves(state.parameters)[0].real.dtype)
    begin = (jnp.zeros((), call.number.dtype), jnp.asarray(True), state, losses)
    done, _, state, losses = jax.lax.while_loop(go_on, step, begin)
    return state, losses, done


def gather(bucket: Examples, rows: Int[Array, "row"]) -> Examples:
    """These rows; the first one in place of those that fill, without any interval that could be taken into account."""
    batch = jax.tree.map(lambda leaf: leaf[jnp.maximum(rows, 0)], bucket)
    length = jnp.where(rows >= 0, batch.inputs.length, 0)
    return eqx.tree_at(lambda tree: tree.inputs.length, batch, length)


@dataclasses.dataclass(frozen=True)
class Evaluator:
    """Examples on all devices, and what to measure on them. `rest` is the model without parameters."""

    rest: Parameters
    measures: tuple[AbstractMeasure, ...]
    buckets: tuple[Examples, ...]
    rows: tuple[Int[Array, "_ row"], ...]
    mesh: Mesh

    @staticmethod
    def of(
        rest: Parameters, measures: tuple[AbstractMeasure, ...], examples: Examples, batch: int, most: int, mesh: Mesh
    ) -> "Evaluator":
        """In batches, in at most so many shapes."""
        buckets = buckets_of(examples, batch, most)
        rows = tuple(batched(np.arange(len(bucket)), batch, whole(batch, mesh)) for bucket in buckets)
        return Evaluator(rest, measures, place(mesh, buckets), place(mesh, rows, None, AXIS), mesh)

    def __call__(self, parameters: Parameters) -> dict[str, float]:
        """The measures by their names."""
        shares = _totals(self.rest, self.measures, self.mesh, parameters, self.buckets, self.rows)
        return {
            measure.name: float(value) / (float(weight) or 1.0)
            for measure, (value, weight) in zip(self.measures, shares, strict=True)
        }


@eqx.filter_jit
def _totals(
    rest: Parameters,
    measures: tuple[AbstractMeasure, ...],
    mesh: Mesh,
    parameters: Parameters,
    buckets: tuple[Examples, ...],
    rows: tuple[Int[Array, "_ row"], ...],
) -> tuple[Share, ...]:
    """Sums of values and of weights over all series, for each measure."""

    def on_each(parameters: Parameters, buckets: tuple[Examples, ...], rows: tuple[Array, ...]) -> tuple[Share, ...]:
        model = eqx.combine(parameters, rest)

        def measure(bucket: Examples, rows: Int[Array, "row"]) -> tuple[Share, ...]:
            batch = gather(bucket, rows)
            predictions = predict(model, batch.inputs)
            return tuple(totals(m, predictions, batch.targets, batch.predicted, rows >= 0) for m in measures)

        parts = [
            jax.lax.map(lambda one, bucket=bucket: measure(bucket, one), many)
            for bucket, many in zip(buckets, rows, strict=True)
        ]
        here = jax.tree.map(lambda *leaves: sum(leaf.sum() for leaf in leaves), *parts)
        return jax.lax.psum(here, AXIS)

    mapped = jax.shard_map(on_each, mesh=mesh, in_specs=(P(), P(), P(None, AXIS)), out_specs=P(), check_vma=False)
    return mapped(parameters, buckets, rows)

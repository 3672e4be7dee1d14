"""From log-signatures and targets to a trained model, in programs that are compiled once for all fits of like shape.

What differs from one data set to the next, such as the size of increments, is no part of the compiled program:
log-signatures are scaled on the host, the model is trained without knowing of that, and gets its scaling and its
source when it is done.

Predictions of many series, each of which depends on that series and on nothing else, to the last bit.

A series is computed by a program that its own length chooses, and by itself: one after another in a compiled loop. How
many there are, in which order and beside which others, changes nothing.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Float32, Int, Int64, Num, PRNGKeyArray, PyTree

from logcde.algebra import Basis
from logcde.embedding import LogSignatures
from logcde.estimators.architectures import AbstractArchitecture, Reading
from logcde.models import IncrementRMSScaling, Inputs, NoScaling, SequenceModel, predict
from logcde.train import Checkpoints, Result, Steps, fit
from logcde.train.losses import AbstractMeasure

LOOKS = 20
"""How often a model in training is looked at."""
WARMUP = 0.05
ADAM = optax.scale_by_adam()


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How a model is trained: so many steps at a rate that rises, then falls to zero, and which series are held out."""

    steps: int
    rate: float
    batch: int
    held_out: Int64[np.ndarray, "_"] | None
    patience: int | None
    checkpoints: Checkpoints | None
    progress: bool
    seed: int


@dataclasses.dataclass(frozen=True)
class Queries:
    """Which intervals end where something is asked for, and how many of these each series has."""

    ends: Int64[np.ndarray, "series query"]
    count: Int64[np.ndarray, "series"]


def train(
    build: AbstractArchitecture,
    reading: Reading,
    logsigs: LogSignatures,
    queries: Queries | None,
    targets: Num[np.ndarray, "series ..."],
    outputs: int,
    loss: AbstractMeasure,
    metrics: tuple[AbstractMeasure, ...],
    schedule: Schedule,
) -> tuple[SequenceModel, Result]:
    """The last of the best models on the series that are held out, the last one if none are, and how it came about."""
    training = logsigs if schedule.held_out is None else logsigs[np.delete(np.arange(len(logsigs)), schedule.held_out)]
    scaling = _unit_steps(training)
    for_model, for_training = jax.random.split(jax.random.key(schedule.seed))
    result = fit(
        _built(build, logsigs.basis, outputs, reading, for_model),
        inputs_of(logsigs, scaling, queries),
        targets,
        loss=loss,
        metrics=metrics,
        validation=schedule.held_out,
        optimiser=optax.GradientTransformation(_Begin(schedule.steps, schedule.rate), _update),
        batch=schedule.batch,
        duration=Steps(schedule.steps),
        every=Steps(max(1, schedule.steps // LOOKS)),
        patience=schedule.patience,
        latest=True,
        checkpoints=schedule.checkpoints,
        progress=schedule.progress,
        key=for_training,
    )
    assert isinstance(result.model, SequenceModel)
    return dataclasses.replace(result.model, scaling=scaling, spec=logsigs.spec), result


def _unit_steps(logsigs: LogSignatures) -> IncrementRMSScaling:
    """Unit increments of the path as a whole: with many letters, each moves less, and models start and learn alike."""
    each = IncrementRMSScaling().fit(jnp.asarray(logsigs.values, jnp.float32), logsigs.basis)
    assert isinstance(each, IncrementRMSScaling)
    assert each.factors is not None
    return IncrementRMSScaling(tuple(factor / len(each.factors) ** 0.5 for factor in each.factors))


def inputs_of(logsigs: LogSignatures, scaling: IncrementRMSScaling, queries: Queries | None) -> Inputs:
    """What a model without scaling sees."""
    scaled = logsigs.values * scaling.scale(logsigs.basis)
    inputs = Inputs.of(eqx.tree_at(lambda tree: tree.values, logsigs, scaled))
    if queries is None:
        return inputs
    ends, count = (jnp.asarray(part, jnp.int32) for part in (queries.ends, queries.count))
    return dataclasses.replace(inputs, ends=ends, queries=count)


def in_units(
    model: SequenceModel, centre: Float[np.ndarray, "output"], spread: Float[np.ndarray, "output"]
) -> SequenceModel:
    """A model that was trained on targets (y - centre) / spread, as one that predicts y."""
    last = model.readout.layers[-1]
    assert last.bias is not None
    size, shift = (np.asarray(part, last.bias.dtype) for part in (spread, centre))
    return eqx.tree_at(
        lambda tree: (tree.readout.layers[-1].weight, tree.readout.layers[-1].bias),
        model,
        (last.weight * size[:, None], last.bias * size + shift),
    )


def cooled(model: SequenceModel, temperature: float) -> SequenceModel:
    """A model whose outputs are divided by a number, as part of its readout: no more work, and no other program."""
    last = jax.tree.map(lambda leaf: leaf / temperature, model.readout.layers[-1])
    return eqx.tree_at(lambda tree: tree.readout.layers[-1], model, last)


@eqx.filter_jit
def _built(
    build: AbstractArchitecture, basis: Basis, outputs: int, reading: Reading, key: PRNGKeyArray
) -> SequenceModel:
    return build(basis, outputs, reading, key)


class _Place(NamedTuple):
    """Where an optimiser is in its schedule."""

    adam: PyTree
    step: Int[Array, ""]
    steps: Float[Array, ""]
    rate: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class _Begin:
    """The first state of an optimiser. All are equal: what they differ in is in the state, and not in the program."""

    steps: int = dataclasses.field(compare=False)
    rate: float = dataclasses.field(compare=False)

    def __call__(self, params: PyTree) -> _Place:
        steps, rate = (jnp.asarray(number, jnp.float32) for number in (self.steps, self.rate))
        return _Place(ADAM.init(params), jnp.zeros((), jnp.int32), steps, rate)


def _update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, _Place]:
    """Adam, at a rate that rises for some of the steps and then falls to zero as a cosine does."""
    updates, adam = ADAM.update(updates, state.adam, params)
    done = state.step.astype(state.steps.dtype) / state.steps
    falling = 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip((done - WARMUP) / (1 - WARMUP), 0, 1)))
    rate = state.rate * jnp.minimum(done / WARMUP, 1) * falling
    updates = jax.tree.map(lambda leaf: -rate.astype(leaf.dtype) * leaf, updates)
    return updates, state._replace(adam=adam, step=state.step + 1)


def bare(model: SequenceModel) -> SequenceModel:
    """The model without what differs between data sets, so that one compiled program serves all."""
    return dataclasses.replace(model, scaling=NoScaling(), spec=None)


def predictions(model: SequenceModel, inputs: Inputs) -> Float32[np.ndarray, "series *interval output"]:
    """What a model says about inputs that are scaled already; rows beyond a series' own mean nothing."""
    return np.asarray(predict(bare(model), inputs, independent=True))

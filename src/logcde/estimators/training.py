"""Training of the estimators' networks, in programs that are compiled once for all data of like shape.

Numbers that differ between data sets, such as the scaling of increments, are not constants of the compiled programs:
log-signatures are scaled on the host, the model is trained without scaling, and gets its scaling and embedding spec
afterwards.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int64, Num, PRNGKeyArray

from logcde.algebra import Basis
from logcde.embedding import LogSignatures
from logcde.estimators.architectures import AbstractArchitecture, ReadoutType
from logcde.models import IncrementRMSScaling, SequenceModel
from logcde.models.series import QueryIntervals, scaled_inputs
from logcde.train import Batching, Checkpoints, ProgressBar, Result, Selection, Steps, fit, one_cycle_adamw
from logcde.train.losses import AbstractMeasure

EVALUATIONS = 20
"""Evaluations in one training run."""


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Settings of one training run.

    Args:
        steps: Number of steps.
        rate: Peak learning rate; it rises linearly at first and then falls to zero as a cosine.
        batch: Series in one step.
        held_out: Validation series, or None.
        patience: Evaluations without improvement after which training stops, or None.
        weights: Weight of each series, or None.
        checkpoints: Where to save the state of training, or None.
        progress: Whether to show a progress bar.
        seed: Seed of the initial parameters and of the batches.
    """

    steps: int
    rate: float
    batch: int
    held_out: Int64[np.ndarray, "_"] | None
    patience: int | None
    weights: Float64[np.ndarray, "series"] | None
    checkpoints: Checkpoints | None
    progress: bool
    seed: int


def train(
    build: AbstractArchitecture,
    readout: ReadoutType,
    logsigs: LogSignatures,
    queries: QueryIntervals | None,
    targets: Num[np.ndarray, "series ..."],
    outputs: int,
    loss: AbstractMeasure,
    schedule: Schedule,
) -> tuple[SequenceModel, Result]:
    """Build and train a model.

    Returns:
        The best model on the held-out series, the latest of equally good ones; without held-out series, the last model.
        And the result of `fit`.
    """
    training = logsigs if schedule.held_out is None else logsigs[np.delete(np.arange(len(logsigs)), schedule.held_out)]
    scaling = _fit_scaling(training)
    for_model, for_training = jax.random.split(jax.random.key(schedule.seed))
    result = fit(
        _built(build, logsigs.basis, outputs, readout, for_model),
        scaled_inputs(logsigs, scaling, queries),
        targets,
        loss=loss,
        weights=schedule.weights,
        optimiser=one_cycle_adamw(schedule.rate, schedule.steps),
        batching=Batching(size=schedule.batch),
        duration=Steps(schedule.steps),
        selection=Selection(
            validation=schedule.held_out,
            every=Steps(max(1, schedule.steps // EVALUATIONS)),
            patience=schedule.patience,
            latest=True,
        ),
        checkpoints=schedule.checkpoints,
        callbacks=(ProgressBar(),) if schedule.progress else (),
        key=for_training,
    )
    assert isinstance(result.model, SequenceModel)
    return dataclasses.replace(result.model, scaling=scaling, spec=logsigs.spec), result


def _fit_scaling(logsigs: LogSignatures) -> IncrementRMSScaling:
    """Scale to unit RMS of the whole increment instead of each letter, so that any number of letters trains alike."""
    each = IncrementRMSScaling().fit(jnp.asarray(logsigs.values, jnp.float32), logsigs.basis)
    assert isinstance(each, IncrementRMSScaling)
    assert each.factors is not None
    return IncrementRMSScaling(tuple(factor / len(each.factors) ** 0.5 for factor in each.factors))


def with_target_units(
    model: SequenceModel, centre: Float[np.ndarray, "output"], spread: Float[np.ndarray, "output"]
) -> SequenceModel:
    """Turn a model of the targets (y - centre) / spread into one of y, by changing its last layer."""
    last = model.readout.layers[-1]
    assert last.bias is not None
    size, shift = (np.asarray(part, last.bias.dtype) for part in (spread, centre))
    return eqx.tree_at(
        lambda tree: (tree.readout.layers[-1].weight, tree.readout.layers[-1].bias),
        model,
        (last.weight * size[:, None], last.bias * size + shift),
    )


def with_temperature(model: SequenceModel, temperature: float) -> SequenceModel:
    """Divide the logits of a model by a temperature, by changing its last layer."""
    last = jax.tree.map(lambda leaf: leaf / temperature, model.readout.layers[-1])
    return eqx.tree_at(lambda tree: tree.readout.layers[-1], model, last)


@eqx.filter_jit
def _built(
    build: AbstractArchitecture, basis: Basis, outputs: int, readout: ReadoutType, key: PRNGKeyArray
) -> SequenceModel:
    return build(basis, outputs, readout, key)

"""Training of the estimators' networks, in programs that are compiled once for all data of like shape.

Numbers that differ between data sets, such as the scaling of increments, are not constants of the compiled programs:
log-signatures are scaled on the host, the model is trained without scaling, and gets its scaling and embedding spec
afterwards.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Float64, Int64, Num, PRNGKeyArray

from logcde.models import AbstractOnlineModel, Ensemble, Inputs, MeanOutput, MeanProbability, SequenceModel
from logcde.models.series import map_networks
from logcde.train import Batching, Checkpoints, ProgressBar, Result, Selection, Steps, fit, losses, one_cycle_adamw
from logcde.train.losses import AbstractMeasure

EVALUATIONS = 20
"""Evaluations in one training run."""


@dataclasses.dataclass(frozen=True)
class Regularisation:
    """What keeps a network from learning its training series by heart.

    Args:
        copies: Further versions of the training series: the fraction of the observations that each drops. Whenever a
            series is in a mini-batch, one of its versions is drawn, itself among them. There are none for forecasts and
            for partitions that depend on observations, and fewer of large data sets.
        dropout: The share of what layers add, and of what readouts read, that is dropped in training.
        decay: Weight decay: a step takes the fraction rate * decay of each weight away.
        smoothing: The share of the target that is spread evenly over all classes.

    >>> Regularisation(dropout=0.5).copies
    (0.3, 0.3, 0.3, 0.3)
    """

    copies: tuple[float, ...] = (0.3,) * 4
    dropout: float = 0.3
    decay: float = 0.05
    smoothing: float = 0.1


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Settings of one training run.

    Args:
        steps: Number of steps.
        rate: Peak learning rate; it rises linearly at first and then falls to zero as a cosine.
        decay: Weight decay.
        batch: Series in one step.
        held_out: Validation series, or None.
        patience: Evaluations without improvement after which training stops, or None.
        weights: Weight of each series, or None.
        checkpoints: Where to save the state of training, or None.
        progress: Whether to show a progress bar.
        seed: Seed of the initial parameters and of the batches.
        members: Number of networks, which are trained one after another and predict as one.
    """

    steps: int
    rate: float
    decay: float
    batch: int
    held_out: Int64[np.ndarray, "_"] | None
    patience: int | None
    weights: Float64[np.ndarray, "series"] | None
    checkpoints: Checkpoints | None
    progress: bool
    seed: int
    members: int


def train(
    build: Callable[[PRNGKeyArray], SequenceModel],
    inputs: Inputs,
    copies: Sequence[Inputs],
    targets: Num[np.ndarray, "series ..."],
    loss: AbstractMeasure,
    measure: AbstractMeasure,
    schedule: Schedule,
) -> tuple[AbstractOnlineModel, Result]:
    """Build and train networks.

    Args:
        build: From a key to an untrained network.
        inputs: The series.
        copies: Further versions of them.
        targets: Targets of each series.
        loss: What training makes small.
        measure: What selects a network on held-out series.
        schedule: Settings.

    Returns:
        The best network on the held-out series, the latest of equally good ones; without held-out series, the last one.
        Of several members, their ensemble. And the result of `fit` for the first member.
    """
    members, results = [], []
    for number in range(schedule.members):
        key = jax.random.key(schedule.seed)
        for_model, for_training = jax.random.split(key if not number else jax.random.fold_in(key, number))
        result = fit(
            build(for_model),
            inputs,
            targets,
            loss=loss,
            weights=schedule.weights,
            copies=copies,
            optimiser=one_cycle_adamw(schedule.rate, schedule.steps, decay=schedule.decay),
            batching=Batching(size=min(schedule.batch, len(targets))),
            duration=Steps(schedule.steps),
            selection=Selection(
                validation=schedule.held_out,
                metrics=() if measure == loss else (measure,),
                every=Steps(max(1, schedule.steps // EVALUATIONS)),
                patience=schedule.patience,
                latest=True,
            ),
            checkpoints=_checkpoints_of(schedule.checkpoints, number),
            callbacks=(ProgressBar(),) if schedule.progress else (),
            key=for_training,
        )
        assert isinstance(result.model, SequenceModel)
        members.append(result.model)
        results.append(result)
    if len(members) == 1:
        return members[0], results[0]
    average = MeanProbability() if isinstance(loss, losses.CrossEntropy) else MeanOutput()
    return Ensemble(members, average), results[0]


def _checkpoints_of(given: Checkpoints | None, member: int) -> Checkpoints | None:
    """Those of the first member are in the folder itself."""
    if given is None or not member:
        return given
    return dataclasses.replace(given, folder=Path(given.folder) / f"member{member + 1}")


def with_target_units(
    model: AbstractOnlineModel, centre: Float[np.ndarray, "output"], spread: Float[np.ndarray, "output"]
) -> AbstractOnlineModel:
    """Turn a model of the targets (y - centre) / spread into one of y, by changing the last layer of each network."""

    def changed(one: SequenceModel) -> SequenceModel:
        last = one.readout.layers[-1]
        assert last.bias is not None
        size, shift = (np.asarray(part, last.bias.dtype) for part in (spread, centre))
        return eqx.tree_at(
            lambda tree: (tree.readout.layers[-1].weight, tree.readout.layers[-1].bias),
            one,
            (last.weight * size[:, None], last.bias * size + shift),
        )

    return map_networks(changed, model)


def with_temperature(model: AbstractOnlineModel, temperature: float) -> AbstractOnlineModel:
    """Divide the logits of each network by a temperature, by changing its last layer."""

    def changed(one: SequenceModel) -> SequenceModel:
        last = jax.tree.map(lambda leaf: leaf / temperature, one.readout.layers[-1])
        return eqx.tree_at(lambda tree: tree.readout.layers[-1], one, last)

    return map_networks(changed, model)

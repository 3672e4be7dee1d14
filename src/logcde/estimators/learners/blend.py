"""Blends: several learners compared on the series that each left out, and mixed by what helps."""

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64
from scipy.optimize import nnls

from logcde.errors import TrainingError
from logcde.estimators.choosing import Choice, brief
from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.estimators.learners.boosting import WindowBoosting
from logcde.estimators.learners.networks import LogSLiCE
from logcde.estimators.learners.ridge import WindowRidge
from logcde.estimators.learners.trees import WindowTrees
from logcde.features.features import MOST
from logcde.features.smoothing import GaussianProcess
from logcde.models.series import Mixture, mixed
from logcde.streams import Streams

ROUNDS = 200
"""Rounds of the search for weights."""
NEGLIGIBLE = 0.03
"""A learner with a smaller weight is left out."""
DEEPER = WindowBoosting(leaves=15, fewest=30, share=0.3)
"""Boosting of numbers, each of which says more than a class does."""
FOREST = WindowTrees(trees=100)
"""Trees whose predictions are means of targets, for numbers with long tails, which a squared error boosts badly."""
BOOSTED = 10
"""Most classes for which trees are boosted, one in each round for each; of more, forests are grown."""
WORK, LEAST_RANK = 20_000_000_000, 20
"""Windows times squared components of a smoother across channels: seconds; and the fewest components."""
MANY = 500
"""Series from which on trees are boosted, and nothing is smoothed across channels: that takes milliseconds for each."""


@dataclasses.dataclass(frozen=True)
class Blend(AbstractLearner):
    """Several learners, mixed with the weights that have the least loss on series left out.

    Args:
        learners: The learners.
    """

    learners: tuple[AbstractLearner, ...]

    def __post_init__(self) -> None:
        if not self.learners:
            raise TrainingError("A blend of no learners cannot be trained.", "Give at least one.")

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Train all learners, then find their weights."""
        return blend(self.learners, task, math.inf, held_out)


@dataclasses.dataclass(frozen=True)
class Auto(AbstractLearner):
    """The default: compares a few learners on series left out, and mixes those that help.

    Args:
        learners: Learners to compare, in this order. By default ridge on random units with two smoothers, and trees on
            statistics, for numbers ridge on statistics too. From 500 series on ridge on random units, ridge on
            statistics, and boosting; trees instead of boosting for more than ten classes, and as well for numbers.
            Series with continuous channels or higher-order terms, which windows do not read, get a network.
        budget: Seconds after which no further learner is begun. By default there is no limit, so that the same data and
            seed give the same model on a slow machine.
    """

    learners: tuple[AbstractLearner, ...] | None = None
    budget: float = math.inf

    def __post_init__(self) -> None:
        if not self.budget >= 0:
            raise TrainingError(f"Auto(budget={self.budget!r}) is not possible.", "Give seconds, at least 0.")
        if self.learners is not None and not self.learners:
            raise TrainingError("Auto(learners=()) has nothing to compare.", "Give at least one, or leave it out.")

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Train learners until the budget is spent, then find their weights."""
        learners = default_learners(task) if self.learners is None else self.learners
        return blend(learners, task, self.budget, held_out)


def default_learners(task: Task) -> tuple[AbstractLearner, ...]:
    """What `Auto` compares for a task."""
    if task.streams.schema.continuous or task.streams.schema.terms:
        return (LogSLiCE(),)
    if len(task.targets) >= MANY:
        ridge = WindowRidge(), WindowRidge(units=0)
        if task.classes is None:
            return *ridge, DEEPER, FOREST
        return *ridge, WindowBoosting() if task.classes <= BOOSTED else WindowTrees()
    few = WindowRidge(), WindowRidge(smoother=_affordable(task.streams)), WindowTrees()
    return few if task.classes is not None else (*few, WindowRidge(units=0))


def _affordable(streams: Streams) -> GaussianProcess:
    """A smoother across channels, with fewer components the more windows have to be smoothed."""
    smoother = GaussianProcess()
    cells = min(len(streams.value), len(streams) * len(streams.schema.channels) * MOST)
    return GaussianProcess(rank=min(smoother.rank, max(LEAST_RANK, math.isqrt(WORK // max(1, cells)))))


def blend(learners: Sequence[AbstractLearner], task: Task, budget: float, held_out: bool) -> Learnt:
    """Train learners one after another within a budget of seconds, and mix them."""
    if len(learners) == 1:
        return learners[0].fit(task, held_out=held_out)
    began, found = time.monotonic(), []
    for learner in learners:
        if found and time.monotonic() - began > budget:
            break
        start = time.monotonic()
        learnt = learner.fit(_with_own_checkpoints(task, len(found)), held_out=True)
        assert learnt.held_out is not None
        found.append((learner, learnt, time.monotonic() - start))
    outputs = [learnt.held_out for _, learnt, _ in found]
    weight = weights_of(outputs, task)
    names = _names([learner for learner, _, _ in found])
    measure = "log loss" if task.classes else "squared error"
    choices = {
        name: Choice(
            name,
            round(float(share), 3),
            f"weight; {measure} {task.loss(learnt.held_out):.4g} left out, {seconds:.1f} s",
        )
        for name, share, (_, learnt, seconds) in zip(names, weight, found, strict=True)
    }
    kept = np.flatnonzero(weight > 0)
    chosen = [found[place][1] for place in kept]
    if len(chosen) == 1:
        return dataclasses.replace(chosen[0], choices={**choices, **chosen[0].choices})
    model = Mixture(tuple(learnt.model for learnt in chosen), weight[kept], task.classes is not None)
    unseen = mixed([outputs[place] for place in kept], weight[kept], task.classes is not None)
    return Learnt(model, unseen, choices)


def weights_of(outputs: list[Float64[np.ndarray, "series output"]], task: Task) -> Float64[np.ndarray, "model"]:
    """Weights, at least 0 and 1 in sum, with the least loss of the mixture; a prior of one series keeps them mixed."""
    count = len(outputs)
    if task.classes is None:
        errors = np.sqrt(task.weight)[:, None] * (np.concatenate(outputs, axis=1) - task.targets[:, None])
        size = np.sqrt(np.mean(np.square(errors))) or 1.0
        # Each row but the last is zero for a perfect mixture, whatever the sum of the weights, which the last row
        # keeps from being zero. So the weights of any sum, divided by it, are the best with sum 1.
        rows = [errors, size * (np.eye(count) - 1 / count), size * np.ones((1, count))]
        weight = nnls(np.concatenate(rows), np.append(np.zeros(len(errors) + count), size))[0]
        weight /= weight.sum()
    else:
        likely = np.exp(-np.stack([task.losses(one) for one in outputs]))
        weight = np.full(count, 1 / count)
        for _ in range(ROUNDS):
            share = weight[:, None] * likely
            share *= task.weight / np.maximum(share.sum(axis=0), 1e-300)
            weight = (share.sum(axis=1) + 1.0) / (share.sum() + count)
    weight = np.where(weight < NEGLIGIBLE, 0.0, weight)
    return weight / weight.sum()


def _with_own_checkpoints(task: Task, number: int) -> Task:
    if task.checkpoints is None:
        return task
    folder = Path(task.checkpoints.folder) / f"learner{number + 1}"
    return dataclasses.replace(task, checkpoints=dataclasses.replace(task.checkpoints, folder=folder))


def _names(learners: Sequence[AbstractLearner]) -> list[str]:
    """Classes with what is not default, numbered where one is used several times."""
    names = [brief(learner) for learner in learners]
    return [
        name if names.count(name) == 1 else f"{name} {names[:place].count(name) + 1}"
        for place, name in enumerate(names)
    ]

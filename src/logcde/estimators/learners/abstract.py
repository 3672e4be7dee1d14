"""What a learner is given, and what it returns."""

import abc
import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int64, Num

from logcde.estimators.choosing import Choice
from logcde.models.bounds import AbstractBounds, ClassBounds, NumberBounds
from logcde.models.heads import LEAST
from logcde.models.series import AbstractSeriesModel
from logcde.streams import Streams
from logcde.train import Checkpoints, Evaluation

CAUTION = 0.1
"""How many series the class frequencies count for in every probability."""
ROOM = 0.25
"""How far numbers may lie beyond the targets, as a share of the distance of these from their median."""


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """Series and what to predict for each.

    Args:
        streams: The training series.
        targets: The class of each series as 0, 1, ...; or a number for each.
        classes: Number of classes, None for numbers.
        weight: Weight of each series, 1 on average.
        gap: Typical time between two events of a series.
        seed: Seed of everything random.
        checkpoints: Where networks save the state of training, or None.
        progress: Whether to show progress bars.
    """

    streams: Streams
    targets: Num[np.ndarray, "series"]
    classes: int | None
    weight: Float64[np.ndarray, "series"]
    gap: float
    seed: int
    checkpoints: Checkpoints | None = None
    progress: bool = False

    def __getitem__(self, chosen: Int64[np.ndarray, "_"]) -> "Task":
        """The same task for some of the series."""
        return dataclasses.replace(
            self, streams=self.streams[chosen], targets=self.targets[chosen], weight=self.weight[chosen]
        )

    @property
    def outputs(self) -> int:
        """Number of outputs of a model."""
        return 1 if self.classes is None else self.classes

    @property
    def wanted(self) -> Float64[np.ndarray, "series output"]:
        """Targets as a matrix: one column for each class, with 1 for the class of a series and 0 elsewhere."""
        if self.classes is None:
            return self.targets.astype(np.float64)[:, None]
        return np.eye(self.classes)[self.targets]

    @property
    def prior(self) -> Float64[np.ndarray, "output"]:
        """Share of each class, or the mean of the numbers."""
        return np.average(self.wanted, axis=0, weights=self.weight)

    @property
    def constant(self) -> Float64[np.ndarray, "output"]:
        """Outputs that use no observation: logits of the shares of the classes, or the mean."""
        return self.prior if self.classes is None else np.log(np.maximum(self.prior, LEAST))

    @property
    def bounds(self) -> AbstractBounds:
        """Limits of what a model may say after these series.

        A class keeps a little of its frequency, so that one series with a wrong label costs a few nats. Numbers may lie
        beyond the targets by a share of the way there from their median, so that those with a long tail on one side get
        no room on the other.
        """
        if self.classes is not None:
            return ClassBounds(self.prior, CAUTION / len(self.targets))
        low, middle, high = (float(one) for one in np.quantile(self.targets, [0.0, 0.5, 1.0]))
        return NumberBounds(low - ROOM * (middle - low), high + ROOM * (high - middle))

    def bounded(self, outputs: Float64[np.ndarray, "series output"]) -> Float64[np.ndarray, "series output"]:
        """Outputs within the bounds, for series like those of training."""
        return self.bounds(outputs, np.zeros(len(outputs)))

    def loss(self, outputs: Float64[np.ndarray, "series output"]) -> float:
        """Weighted mean of the losses."""
        return float(np.average(self.losses(outputs), weights=self.weight))

    def best_factor(
        self, scores: Float64[np.ndarray, "series class"], candidates: Float64[np.ndarray, "candidate"]
    ) -> float:
        """The factor of scores that gives logits with the least loss."""
        return float(candidates[int(np.argmin([self.loss(scores * one) for one in candidates]))])

    def losses(self, outputs: Float64[np.ndarray, "series output"]) -> Float64[np.ndarray, "series"]:
        """Log loss of the logits of each series, or squared error of its number."""
        if self.classes is None:
            return np.square(outputs[:, 0] - self.targets)
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        own = np.take_along_axis(shifted, self.targets[:, None], axis=1)[:, 0]
        return np.log(np.exp(shifted).sum(axis=1)) - own


@dataclasses.dataclass(frozen=True, eq=False)
class Learnt:
    """A trained model, and what models trained without a series predict for it.

    Args:
        model: Trained on all series.
        held_out: For each series, the outputs of a model that was trained without it; None if not asked for.
        choices: Settings that were chosen from the data, by name.
        history: Evaluations during training by gradients.
        steps: Steps of training by gradients.
    """

    model: AbstractSeriesModel
    held_out: Float64[np.ndarray, "series output"] | None
    choices: Mapping[str, Choice] = dataclasses.field(default_factory=dict)
    history: tuple[Evaluation, ...] = ()
    steps: int = 0


class AbstractLearner(abc.ABC):
    """Trains a model for a task.

    Subclass it as a frozen dataclass, so that scikit-learn can clone and compare it. To save estimators with your own
    learner, pass its class and that of its model to `logcde.register`.
    """

    @abc.abstractmethod
    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Train on all series.

        Args:
            task: The series and their targets.
            held_out: Also predict each series by a model that was trained without it.
        """

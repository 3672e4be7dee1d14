"""How long training lasts, how often it is looked at, and how many steps go into one call.

What is known about a training run while it goes on and when it is over; all of it but the model is plain JSON.
"""

import dataclasses
from typing import TypeAlias

import numpy as np

from logcde.errors import TrainingError
from logcde.models import AbstractModel

SECONDS = 0.5
GROWTH = 8


@dataclasses.dataclass(frozen=True)
class Steps:
    """A number of steps, each on one mini-batch."""

    count: int

    def __post_init__(self) -> None:
        _check(self.count, "steps")

    def steps(self, per_epoch: int) -> int:
        """That many."""
        return self.count


@dataclasses.dataclass(frozen=True)
class Epochs:
    """A number of times that every training series is seen.

    >>> Epochs(3).steps(per_epoch=10)
    30
    """

    count: int

    def __post_init__(self) -> None:
        _check(self.count, "epochs")

    def steps(self, per_epoch: int) -> int:
        """As many as these epochs have."""
        return self.count * per_epoch


Duration: TypeAlias = Steps | Epochs


class Pace:
    """How many steps one call does: as many as take about half a second, found by trying.

    >>> pace = Pace(longest=1000)
    >>> pace.saw(1, seconds=3.0)  # the first call compiles, and says nothing
    >>> pace.saw(1, seconds=0.01)
    >>> pace.count
    8
    """

    def __init__(self, longest: int) -> None:
        self.count = 1
        self._longest = longest
        self._compiled = False

    def saw(self, count: int, seconds: float) -> None:
        """A call of `count` steps took so long."""
        if self._compiled:
            fitting = int(SECONDS * count / max(seconds, 1e-9))
            self.count = max(1, min(fitting, GROWTH * count, self._longest))
        self._compiled = True


def _check(count: int, what: str) -> None:
    if count < 1:
        raise TrainingError(f"{count} {what} are too few. Give at least 1.")


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One look at a model in training.

    `loss` is the mean over the steps since the last look, penalty included. `validation` has the loss and the metrics
    on the validation series, None for what is not a finite number. `best` says whether it is the best so far.
    """

    step: int
    epoch: float
    seconds: float
    loss: float
    validation: dict[str, float | None]
    best: bool


@dataclasses.dataclass(frozen=True)
class Journal:
    """Where a run is: all that a resumed one has to know beside arrays.

    `total` and `counted` are the sum and the number of losses since the last evaluation, `waited` the evaluations since
    the last that was better than all before.
    """

    step: int = 0
    seconds: float = 0.0
    total: float = 0.0
    counted: int = 0
    waited: int = 0
    best_step: int = 0
    best_score: float | None = None
    history: tuple[Evaluation, ...] = ()

    def after(self, losses: list[float], seconds: float) -> "Journal":
        """Some steps later.

        >>> Journal().after([1.0, 2.0], seconds=0.5).after([3.0], seconds=0.1).total
        6.0
        """
        total = self.total
        for loss in losses:  # one by one: the sum does not depend on how steps were cut into calls
            total += loss
        return dataclasses.replace(
            self,
            step=self.step + len(losses),
            seconds=self.seconds + seconds,
            total=total,
            counted=self.counted + len(losses),
        )

    def looked(
        self, epoch: float, validation: dict[str, float | None], score: float | None, *, maximise: bool, latest: bool
    ) -> "Journal":
        """With one more evaluation. The best is the earliest of equal ones, or the `latest`; a tie is still no gain.

        >>> first = Journal(step=1).looked(1.0, {}, 0.5, maximise=True, latest=False)
        >>> dataclasses.replace(first, step=2).looked(2.0, {}, 0.5, maximise=True, latest=False).best_step
        1
        """
        before = self.best_score
        better = score is not None and (before is None or (score > before if maximise else score < before))
        best = better or (latest and score is not None and score == before)
        mean = self.total / max(self.counted, 1)
        return dataclasses.replace(
            self,
            total=0.0,
            counted=0,
            waited=0 if better else self.waited + 1,
            best_step=self.step if best else self.best_step,
            best_score=score if best else before,
            history=(*self.history, Evaluation(self.step, epoch, round(self.seconds, 3), mean, validation, best)),
        )


@dataclasses.dataclass(frozen=True)
class Summary:
    """A run in a few numbers. `best_step` is the step that the result's model is from."""

    steps: int
    epochs: float
    seconds: float
    training_series: int
    validation_series: int
    parameters: int
    loss: str
    metric: str
    best_step: int
    best_score: float | None
    stopped_early: bool


@dataclasses.dataclass(frozen=True)
class Result:
    """What training gives.

    `model` is the best one on the validation series, and the last one if there are none; `last` is the last in any
    case. `held_out` are the positions of the series that were drawn for validation.
    """

    model: AbstractModel
    last: AbstractModel
    history: tuple[Evaluation, ...]
    summary: Summary
    held_out: np.ndarray | None

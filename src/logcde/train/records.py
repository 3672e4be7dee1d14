"""Records of a training run, while it goes on and when it is over. All but the models in `Result` are plain JSON."""

import dataclasses

import numpy as np

from logcde.models import AbstractModel


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """One evaluation of a model in training.

    Attributes:
        step: Optimiser steps so far.
        epoch: Passes over the training series so far.
        seconds: Time spent in training and evaluation so far.
        loss: Mean training loss over the steps since the evaluation before, penalty included.
        validation: Loss and metrics on the validation series by name; None where the number is not finite.
        best: Whether this evaluation has the best score so far.
    """

    step: int
    epoch: float
    seconds: float
    loss: float
    validation: dict[str, float | None]
    best: bool


@dataclasses.dataclass(frozen=True)
class RunProgress:
    """How far a run has come: all that a resumed run needs besides arrays.

    Attributes:
        step: Optimiser steps so far.
        seconds: Time spent in training and evaluation so far.
        loss_sum: Sum of the training losses since the last evaluation.
        loss_count: Number of these losses.
        evaluations_without_gain: Evaluations since the last that was better than all before.
        best_step: Step of the selected model.
        best_score: Score of the selected model, None before the first finite score.
        history: All evaluations.
        recoveries: How often the run went on from its last good state after a number that was not finite.
    """

    step: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0
    evaluations_without_gain: int = 0
    best_step: int = 0
    best_score: float | None = None
    history: tuple[Evaluation, ...] = ()
    recoveries: int = 0

    def after_steps(self, losses: list[float], seconds: float) -> "RunProgress":
        """The progress after these further losses.

        >>> RunProgress().after_steps([1.0, 2.0], seconds=0.5).after_steps([3.0], seconds=0.1).loss_sum
        6.0
        """
        total = self.loss_sum
        for loss in losses:  # one by one: the sum does not depend on how steps were cut into calls
            total += loss
        return dataclasses.replace(
            self,
            step=self.step + len(losses),
            seconds=self.seconds + seconds,
            loss_sum=total,
            loss_count=self.loss_count + len(losses),
        )

    def after_evaluation(
        self, epoch: float, validation: dict[str, float | None], score: float | None, *, maximise: bool, latest: bool
    ) -> "RunProgress":
        """The progress after one more evaluation.

        Of equal scores the earliest is the best, or the `latest`. Either way an equal score is no gain.

        >>> first = RunProgress(step=1).after_evaluation(1.0, {}, 0.5, maximise=True, latest=False)
        >>> second = dataclasses.replace(first, step=2)
        >>> second.after_evaluation(2.0, {}, 0.5, maximise=True, latest=False).best_step
        1
        """
        before = self.best_score
        better = score is not None and (before is None or (score > before if maximise else score < before))
        best = better or (latest and score is not None and score == before)
        mean = self.loss_sum / max(self.loss_count, 1)
        return dataclasses.replace(
            self,
            loss_sum=0.0,
            loss_count=0,
            evaluations_without_gain=0 if better else self.evaluations_without_gain + 1,
            best_step=self.step if best else self.best_step,
            best_score=score if best else before,
            history=(*self.history, Evaluation(self.step, epoch, round(self.seconds, 3), mean, validation, best)),
        )

    def after_recovery(self, step: int) -> "RunProgress":
        """The progress after going back to an earlier step; what was evaluated later is forgotten, the best score not.

        >>> progress = RunProgress(step=9, loss_sum=4.0, loss_count=9).after_recovery(0)
        >>> progress.step, progress.loss_count, progress.recoveries
        (0, 0, 1)
        """
        history = tuple(one for one in self.history if one.step <= step)
        forgotten = len(self.history) - len(history)
        return dataclasses.replace(
            self,
            step=step,
            loss_sum=0.0,
            loss_count=0,
            evaluations_without_gain=max(self.evaluations_without_gain - forgotten, 0),
            history=history,
            recoveries=self.recoveries + 1,
        )


@dataclasses.dataclass(frozen=True)
class Summary:
    """A finished run in a few numbers.

    Attributes:
        steps: Optimiser steps.
        epochs: Passes over the training series.
        seconds: Time spent in training and evaluation, that before a resumption included.
        training_series: Number of series trained on.
        validation_series: Number of series validated on.
        parameters: Number of trained parameters.
        loss: Name of the loss.
        metric: Name of the measure that selected the model.
        best_step: Step of the selected model.
        best_score: Score of the selected model, None without validation.
        stopped_early: Whether patience ended the run.
        recoveries: How often the run met a number that was not finite and went on from its last good state at half
            the learning rate.
    """

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
    recoveries: int = 0


@dataclasses.dataclass(frozen=True)
class Result:
    """What `fit` returns.

    Attributes:
        model: The model with the best score on the validation series; the last one if there are none.
        last: The model after the last step.
        history: All evaluations, in order.
        summary: The run in a few numbers.
        held_out: Positions of the series held out for validation; None if none of the given series were.
    """

    model: AbstractModel
    last: AbstractModel
    history: tuple[Evaluation, ...]
    summary: Summary
    held_out: np.ndarray | None

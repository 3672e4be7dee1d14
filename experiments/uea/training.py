"""Train a classifier with early stopping and select the latest of the best on validation series."""

from pathlib import Path

import msgspec
import numpy as np

from experiments.runner.abstract import Tell
from experiments.runner.recipes import Telling, constant_adam, keys_of
from experiments.uea.models import Given, UeaModel
from logcde.train import Batching, Checkpoints, Selection, Steps, fit, losses, score


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Adam with a constant learning rate, evaluated on validation series after `every` steps.

    Training ends after `patience` evaluations without improvement, or after `most` steps.
    """

    rate: float
    penalty: float = 0.0
    every: int = 1000
    patience: int = 11
    most: int = 100_000
    batch: int = 32


class Classified(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracies of the selected model, and its training.

    `constant` is the accuracy of always predicting the most frequent class of the training series. `capped`: training
    ended at the limit on steps. `history` has the step and the validation accuracy of each evaluation.
    """

    accuracy: float
    validation: float
    series: int
    tests: int
    steps: int
    best_step: int
    capped: bool
    parameters: int
    train_seconds: float
    history: list[tuple[int, float]]
    constant: float | None = None


def classify(given: Given, model: UeaModel, training: Schedule, seed: int, tell: Tell, scratch: Path) -> Classified:
    """Train and test; checkpoints in `scratch` resume an interrupted run."""
    inputs, basis = model.inputs(given)
    for_model, for_training = keys_of(seed)
    labels, split = given.data.labels, given.split
    train, validation, test = ((inputs[which], labels[which]) for which in (split.train, split.validation, split.test))
    del inputs  # may be large
    result = fit(
        model.model(basis, len(given.data.classes), for_model),
        *train,
        loss=losses.cross_entropy,
        optimiser=constant_adam(training.rate),
        clip=None,
        penalty=training.penalty,
        batching=Batching(size=training.batch, buckets=1),
        duration=Steps(training.most),
        selection=Selection(
            validation=validation,
            metrics=(losses.accuracy,),
            every=Steps(training.every),
            patience=training.patience,
            latest=True,
        ),
        recoveries=0,
        checkpoints=Checkpoints(scratch),
        callbacks=(Telling(tell),),
        key=for_training,
    )
    summary = result.summary
    return Classified(
        accuracy=score(result.model, *test, losses.accuracy),
        validation=summary.best_score or 0.0,
        series=len(labels),
        tests=len(split.test),
        steps=summary.steps,
        best_step=summary.best_step,
        capped=not summary.stopped_early,
        parameters=summary.parameters,
        train_seconds=summary.seconds,
        constant=float(np.mean(test[1] == np.bincount(train[1]).argmax())),
        history=[(look.step, round(look.validation["accuracy"] or 0.0, 5)) for look in result.history],
    )

"""Option objects of `fit`: how long to train, how series form mini-batches, how the best model is selected."""

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from logcde.errors import TrainingError
from logcde.train.losses import AbstractMeasure


def _check_at_least_one(option: str, name: str, number: int) -> None:
    if number < 1:
        raise TrainingError(f"{option}({name}={number}) is too small.", "Give at least 1.")


@dataclasses.dataclass(frozen=True)
class Steps:
    """A number of optimiser steps, each on one mini-batch."""

    count: int

    def __post_init__(self) -> None:
        _check_at_least_one("Steps", "count", self.count)

    def steps(self, per_epoch: int) -> int:
        """The same number, however many steps an epoch has."""
        return self.count


@dataclasses.dataclass(frozen=True)
class Epochs:
    """A number of passes over the training series.

    >>> Epochs(3).steps(per_epoch=10)
    30
    """

    count: int

    def __post_init__(self) -> None:
        _check_at_least_one("Epochs", "count", self.count)

    def steps(self, per_epoch: int) -> int:
        """The number of steps in these epochs."""
        return self.count * per_epoch


Duration: TypeAlias = Steps | Epochs


@dataclasses.dataclass(frozen=True)
class Batching:
    """How series form mini-batches.

    Series are sorted by their number of intervals into buckets, shuffled within each bucket in every epoch, and padded
    only to the longest series of their bucket. The last batch of a bucket may be smaller than the others.

    Args:
        size: Series in a mini-batch.
        buckets: Largest number of buckets. Each bucket is one shape to compile; 1 pads all series to the longest.
    """

    size: int = 32
    buckets: int = 4

    def __post_init__(self) -> None:
        _check_at_least_one("Batching", "size", self.size)
        _check_at_least_one("Batching", "buckets", self.buckets)


Validation: TypeAlias = float | int | np.ndarray | Sequence
"""A fraction of the series, their positions, a Boolean mask, or a pair (logsigs, targets) of other series."""


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
    """Which model `fit` returns, and when it stops early.

    Args:
        validation: Series to validate on: a fraction of all series, drawn at random; positions or a Boolean mask of
            series; a pair (logsigs, targets) of other series; or None to train on all series and return the last
            model.
        metrics: Measures to compute on the validation series, besides the loss. The first one selects the model;
            without any, the loss does.
        every: Steps or epochs between two evaluations. The end of training is always evaluated.
        patience: Stop after this many evaluations in a row without a new best score; None never stops early.
        latest: Among equal scores, select the latest model instead of the earliest.
    """

    validation: Validation | None = 0.15
    metrics: Sequence[AbstractMeasure] = ()
    every: Duration = Epochs(1)
    patience: int | None = 20
    latest: bool = False

"""The options that say how a model is trained, and how the series are divided."""

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from logcde.cli.cutting import of_length
from logcde.errors import TrainingError

if TYPE_CHECKING:
    from logcde.cli.tasks import AbstractTask
    from logcde.streams.clock import Clock
    from logcde.train import Checkpoints

NAMES = {
    "partition": ("intervals", "--every"),
    "units": ("units", ""),
    "counts": ("counts", ""),
    "depth": ("depth", "--depth"),
    "model": ("model", "--model, --hidden"),
    "validation_fraction": ("validation", "--validation"),
    "max_iter": ("steps", "--steps"),
}
"""Names for what an estimator chooses, and the options that say otherwise."""


@dataclasses.dataclass(frozen=True)
class Learning:
    """How a model is trained. What is not given is chosen from the data."""

    every: str | None = None
    """Length of the intervals that a series is cut into: a number in the units of time, or a duration such as 90min."""
    depth: int | None = None
    """Levels of the log-signature of an interval: 1 has increments only, 2 also the order of events."""
    model: Literal["slice", "neural"] = "slice"
    """A block-diagonal linear model, which is fast, or a neural one, which is slow."""
    hidden: int | None = None
    """Size of the state of the model."""
    steps: int | None = None
    """Steps of training."""
    rate: float = 0.01
    """Learning rate at its highest; it falls to zero."""
    batch: int = 32
    """Series in one step."""
    holdout: float = 0.2
    """Share of the series that training never sees, to tell how good the model is; 0 trains on all."""
    validation: float | None = None
    """Share of the training series to choose the best moment of training by; from 1,000 series on 0.15."""
    patience: int | None = None
    """Stop after so many looks at these without gain; there are 20 looks."""
    seed: int = 0
    """Seed of all that is random: the same seed on the same machine gives the same model."""

    def estimator(
        self, task: "AbstractTask", clock: "Clock", *, checkpoints: "Checkpoints | None", progress: bool
    ) -> Any:
        """An estimator to be fitted."""
        from logcde import estimators

        architectures = {"slice": estimators.Slice, "neural": estimators.Neural}
        model = None
        if self.hidden is not None or self.model != "slice":
            make = architectures[self.model]
            model = make() if self.hidden is None else make(hidden=self.hidden)
        return getattr(estimators, task.estimator)(
            partition=None if self.every is None else of_length(self.every, clock),
            depth=self.depth,
            model=model,
            max_iter=self.steps,
            learning_rate=self.rate,
            batch_size=self.batch,
            validation_fraction=self.validation,
            patience=self.patience,
            checkpoints=checkpoints,
            verbose=progress,
            random_state=self.seed,
        )

    def check(self) -> None:
        """Refuse numbers that mean nothing, before anything is read."""
        for name in ("depth", "hidden", "steps", "batch", "patience"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise TrainingError(f"--{name} is {number}. Give at least 1.")
        if not 0 < self.rate < np.inf:
            raise TrainingError(f"--rate is {self.rate}. Give a small positive number, such as 0.01.")
        for name in ("holdout", "validation"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise TrainingError(f"--{name} is {share}. Give a share of at least 0 and less than 1, such as 0.2.")
        if not 0 <= self.seed < 2**32:
            raise TrainingError(f"--seed is {self.seed}. Give a whole number from 0 to {2**32 - 1}.")

    def divide(self, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the series to train on and of those to hold out: the same share of every stratum.

        >>> training, held_out = Learning().divide(np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]))
        >>> len(training), len(held_out)
        (8, 2)
        """
        order = np.random.default_rng(self.seed).permutation(len(strata))
        rank = np.empty(len(strata))
        for one in np.unique(strata):
            members = order[strata[order] == one]
            rank[members] = (np.arange(len(members)) + 0.5) / len(members)
        # Of every stratum one stays at least; of what is left over, those that are furthest behind in theirs go first.
        count = min(round(self.holdout * len(strata)), len(strata) - max(2, len(np.unique(strata))))
        firsts = [order[strata[order] == one][0] for one in np.unique(strata)]
        rank[firsts] = -1.0
        held_out = np.sort(order[np.argsort(rank[order], kind="stable")][len(strata) - max(0, count) :])
        return np.setdiff1d(np.arange(len(strata)), held_out), held_out

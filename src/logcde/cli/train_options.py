"""Options of the model and its training, and the split into training and held-out series."""

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from logcde.cli.partition_options import every_partition
from logcde.errors import TrainingError

if TYPE_CHECKING:
    from logcde.cli.tasks import AbstractTask
    from logcde.streams.clock import Clock
    from logcde.train import Checkpoints

LARGEST = {"hidden": 8192, "block": 8192, "steps": 10**9, "patience": 10**9}
"""The largest numbers that make sense; far beyond them a network does not fit into memory."""
FASTEST = 1000.0
"""The largest learning rate; far larger ones do not fit into single precision."""
EMBEDDING = ("depth", "partition")
"""Options of networks on log-signatures only."""


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """The model and its training; what is not given is chosen from the data."""

    every: str | None = None
    """slice and ncde: length of the query intervals, a number in units of time or a duration such as 90min."""
    depth: int | None = None
    """slice and ncde: depth of the log-signatures, 1 has increments only, 2 also the order of events."""
    learner: Literal["auto", "ridge", "trees", "boosting", "deep", "slice", "ncde"] = "auto"
    """What learns: auto compares some of the others on series left out and mixes what helps; ridge, trees and boosting
    use features of windows; deep, slice and ncde are networks, slice the fastest. Forecasts take auto, slice or ncde;
    auto learns changes against the last value. With options of networks, auto is slice."""
    class_weight: Literal["balanced"] | None = None
    """With --task classify, balanced gives all classes the same weight in sum, however rare they are."""
    hidden: int | None = None
    """Networks: size of the hidden state."""
    block: int | None = None
    """slice: size of the blocks of its matrices, which divides --hidden; larger ones mix more of the state."""
    paper: bool = False
    """slice: the network of the paper, with counts of observations, flows that may grow its state, and nothing dropped
    in training. Better for forecasts at many times; not for feeds that become denser than in training."""
    steps: int | None = None
    """Networks: training steps."""
    rate: float | None = None
    """Networks: peak learning rate, which decays to zero."""
    batch: int | None = None
    """Networks: series per training step."""
    holdout: float = 0.2
    """Fraction of the series to hold out from training and score the model on; 0 trains on all."""
    validation: float | None = None
    """Networks: fraction of the training series to select the best step on, by default 0.15 from 1,000 series on."""
    patience: int | None = None
    """Networks: stop after this many evaluations without improvement, of 20 evaluations in all."""
    seed: int = 0
    """Random seed: the same seed on the same machine gives the same model."""

    def check(self) -> None:
        """Refuse numbers out of range, before any file is read."""
        for name in ("depth", "hidden", "block", "steps", "batch", "patience"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise TrainingError(f"--{name} is {number}.", "Give at least 1.")
            if number is not None and number > LARGEST.get(name, number):
                raise TrainingError(f"--{name} is {number:,}.", f"Give at most {LARGEST[name]:,}.")
        if self.rate is not None and not 0 < self.rate <= FASTEST:
            raise TrainingError(f"--rate is {self.rate}.", "Give a small positive number, such as 0.01.")
        for name in ("holdout", "validation"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise TrainingError(
                    f"--{name} is {share}.", "Give a fraction of at least 0 and less than 1, such as 0.2."
                )
        if not 0 <= self.seed < 2**32:
            raise TrainingError(f"--seed is {self.seed}.", f"Give an integer from 0 to {2**32 - 1}.")

    def estimator(
        self, task: "AbstractTask", clock: "Clock", *, checkpoints: "Checkpoints | None", progress: bool
    ) -> Any:
        """An unfitted estimator of `logcde.estimators` with these options."""
        from logcde import estimators

        weighted = {} if self.class_weight is None else {"class_weight": self.class_weight}
        if weighted and task.name != "classify":
            raise TrainingError(f"--class-weight is given, but the task is {task.name}.", "Leave it out.")
        return getattr(estimators, task.estimator)(
            learner=self._learner(task, clock),
            checkpoints=checkpoints,
            verbose=progress,
            random_state=self.seed,
            **weighted,
        )

    def _learner(self, task: "AbstractTask", clock: "Clock") -> Any:
        from logcde import estimators

        names = ("depth", "hidden", "block", "steps", "rate", "batch", "validation", "patience")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.every is not None:
            given["partition"] = every_partition(self.every, clock)
        networks = {"deep": estimators.DeepSLiCE, "slice": estimators.LogSLiCE, "ncde": estimators.LogNCDE}
        others = {
            "auto": lambda: None,  # the default of the estimator
            "ridge": estimators.WindowRidge,
            "trees": estimators.WindowTrees,
            "boosting": estimators.WindowBoosting,
        }
        chosen = "slice" if self.learner == "auto" and (given or self.paper) else self.learner
        for name in ("block", "paper"):
            if chosen != "slice" and getattr(self, name):
                raise TrainingError(f"--{name} is an option of --learner slice only.", "Leave it out.")
        if self.paper:
            nothing = estimators.Regularisation(copies=(), dropout=0.0, decay=0.0, smoothing=0.0)
            given |= {"counts": True, "stable": False, "regularisation": nothing}
        unread = [name for name in given if chosen not in networks or (chosen == "deep" and name in EMBEDDING)]
        if chosen in networks and not unread:
            return networks[chosen](**given)
        if unread:
            option = "every" if "partition" in unread else unread[0]
            raise TrainingError(
                f"--{option} is an option of networks{' on log-signatures' * (chosen == 'deep')}, but the learner is "
                f"{chosen}.",
                f"Leave out --{option}, or choose --learner slice or --learner ncde.",
            )
        return others[chosen]()

    def split(self, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices of training series and of held-out series: the same share of every stratum.

        >>> training, held_out = TrainOptions().split(np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]))
        >>> len(training), len(held_out)
        (8, 2)
        """
        order = np.random.default_rng(self.seed).permutation(len(strata))
        rank = np.empty(len(strata))
        for one in np.unique(strata):
            members = order[strata[order] == one]
            rank[members] = (np.arange(len(members)) + 0.5) / len(members)
        # At least one series of every stratum stays in training; of the others, the highest ranks are held out.
        count = min(round(self.holdout * len(strata)), len(strata) - max(2, len(np.unique(strata))))
        firsts = [order[strata[order] == one][0] for one in np.unique(strata)]
        rank[firsts] = -1.0
        held_out = np.sort(order[np.argsort(rank[order], kind="stable")][len(strata) - max(0, count) :])
        return np.setdiff1d(np.arange(len(strata)), held_out), held_out

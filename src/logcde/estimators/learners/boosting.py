"""Gradient boosting on statistics of windows, with folds for predictions of series left out."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Num
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from logcde.errors import check_positive, check_whole
from logcde.estimators.choosing import Choice
from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.estimators.learners.folds import folds_of
from logcde.estimators.learners.ridge import statistics_of
from logcde.features.smoothing import AbstractSmoother, Shrinkage
from logcde.models.heads import CalibratedHead, PairHead, TreesHead, pair_logits
from logcde.models.series import FeatureModel

SHARES = np.array([0.02, 0.05, 0.08, 0.12, 0.17, 0.25, 0.35, 0.5, 0.7, 1.0])
"""Candidates of the boosting rounds, as a share of the most."""
BEYOND = 2.0
"""Further folds are boosted this many times as long as was best for those before them."""
FACTORS = np.linspace(0.3, 1.3, 41)
"""Candidates of the number that scales logits."""
MOST = 2**24
"""Numbers of a table of statistics above which it is a lean one."""


@dataclasses.dataclass(frozen=True)
class WindowBoosting(AbstractLearner):
    """Histogram gradient boosting on statistics of windows, for many series.

    Many small trees that each see a few of the features: statistics of one channel resemble each other. How many of
    them help is chosen on series left out.

    Args:
        rounds: Most boosting rounds.
        rate: Learning rate.
        leaves: Most leaves of a tree.
        fewest: Fewest series in a leaf, or a twentieth of all series if that is less.
        share: Share of the features that are tried at a split.
        folds: Parts of the training series; each is predicted by a model of the others.
        smoother: How the observations of windows become signals.
    """

    rounds: int = 600
    rate: float = 0.03
    leaves: int = 6
    fewest: int = 40
    share: float = 0.1
    folds: int = 4
    smoother: AbstractSmoother = Shrinkage()

    def __post_init__(self) -> None:
        check_whole("WindowBoosting", "rounds", self.rounds)
        check_positive("WindowBoosting", "rate", self.rate)
        check_whole("WindowBoosting", "leaves", self.leaves, least=2)
        check_whole("WindowBoosting", "fewest", self.fewest)
        check_positive("WindowBoosting", "share", self.share)
        check_whole("WindowBoosting", "folds", self.folds, least=2)

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Boost once for each fold, and then on all series for as many rounds as have the least loss left out."""
        features, rows = statistics_of(task.streams, self.smoother, MOST, nan_unobserved=True)
        candidates = np.unique(np.maximum(np.rint(SHARES * self.rounds), 1).astype(np.int64))
        unseen = np.tile(task.constant, (len(candidates), len(rows), 1))
        for training, rest in folds_of(task, self.folds):
            trees = self._boosted(rows[training], task, training, int(candidates[-1]))
            found = trees.staged(rows[rest], candidates * len(trees.bias))
            unseen[:, rest] = pair_logits(found) if task.classes == 2 else found
            losses = [task[rest].loss(outputs) for outputs in unseen[:, rest]]
            useful = candidates <= BEYOND * candidates[int(np.argmin(losses))]
            candidates, unseen = candidates[useful], unseen[useful]
        best = int(np.argmin([task.loss(outputs) for outputs in unseen]))
        rounds, left_out = int(candidates[best]), unseen[best]
        trees = self._boosted(rows, task, np.arange(len(rows)), rounds)
        head = PairHead(trees) if task.classes == 2 else trees
        choices = {"rounds": Choice("rounds", rounds, "least loss on series left out")}
        if task.classes is None:
            return Learnt(FeatureModel(features, head, task.bounds), task.bounded(left_out), choices)
        factor = task.best_factor(left_out, FACTORS)
        model = FeatureModel(features, CalibratedHead(head, factor), task.bounds)
        return Learnt(model, task.bounded(left_out * factor), choices)

    def _boosted(
        self, rows: Float[np.ndarray, "series feature"], task: Task, chosen: np.ndarray, rounds: int
    ) -> TreesHead:
        options: Any = {
            "max_iter": rounds, "learning_rate": self.rate, "max_leaf_nodes": self.leaves,
            "min_samples_leaf": min(self.fewest, 1 + len(task.targets) // 20), "max_features": self.share,
            "l2_regularization": 1.0, "early_stopping": False, "random_state": task.seed,
        }  # fmt: skip
        if task.classes is None:
            booster: Any = HistGradientBoostingRegressor(**options)
        else:
            booster = HistGradientBoostingClassifier(**options)
        weight = task.weight[chosen]
        # Weights make scikit-learn find the bins of each feature in a slower way.
        return boosted(booster, rows, task.targets[chosen], None if (weight == weight[0]).all() else weight)


def boosted(
    booster: Any,
    rows: Float[np.ndarray, "series feature"],
    targets: Num[np.ndarray, "series"],
    weight: Float64[np.ndarray, "series"] | None = None,
) -> TreesHead:
    """Fit a booster of scikit-learn, which refuses features that have no two values; the trees read whole rows."""
    kept = np.flatnonzero(varied(rows))
    table = rows[:, kept] if len(kept) else np.zeros((len(rows), 1))
    head = booster_head(booster.fit(table, targets, weight))
    return dataclasses.replace(head, feature=np.append(kept, -1)[head.feature].astype(np.int32))  # -1 for leaves


def varied(rows: Float[np.ndarray, "series feature"]) -> Bool[np.ndarray, "feature"]:
    """Which features have at least two values."""
    return np.fmin.reduce(rows, axis=0) < np.fmax.reduce(rows, axis=0)


def booster_head(booster: Any) -> TreesHead:
    """The trees of a fitted booster of scikit-learn as arrays; they add up to its raw predictions."""
    trees = [(k, tree.nodes) for round_ in booster._predictors for k, tree in enumerate(round_)]
    sizes = [len(nodes) for _, nodes in trees]
    first = np.concatenate([[0], np.cumsum(sizes)])
    nodes, shift = np.concatenate([nodes for _, nodes in trees]), np.repeat(first[:-1], sizes)
    leaf = nodes["is_leaf"].astype(bool)
    baseline: Float64[np.ndarray, "output"] = np.ravel(booster._baseline_prediction).astype(np.float64)
    return TreesHead(
        roots=first[:-1].astype(np.int32),
        output=np.array([k for k, _ in trees], np.int32),
        feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
        threshold=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, 0, nodes["left"] + shift).astype(np.int32),
        right=np.where(leaf, 0, nodes["right"] + shift).astype(np.int32),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        value=nodes["value"].astype(np.float64)[:, None],
        bias=baseline,
    )

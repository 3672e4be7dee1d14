"""Gradient boosting on statistics of windows, with folds for predictions of series left out."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.estimators.learners.folds import folds_of
from logcde.features import WindowFeatures
from logcde.features.smoothing import AbstractSmoother, Shrinkage
from logcde.models.heads import AbstractHead, CalibratedHead, PairHead, TreesHead
from logcde.models.series import FeatureModel

FACTORS = np.linspace(0.3, 1.3, 41)
"""Candidates of the number that scales logits."""


@dataclasses.dataclass(frozen=True)
class WindowBoosting(AbstractLearner):
    """Histogram gradient boosting on statistics of windows, for many series.

    Args:
        rounds: Number of boosting rounds.
        rate: Learning rate.
        leaves: Most leaves of a tree.
        folds: Parts of the training series; each is predicted by a model of the others.
        smoother: How the observations of windows become signals.
    """

    rounds: int = 150
    rate: float = 0.05
    leaves: int = 15
    folds: int = 4
    smoother: AbstractSmoother = Shrinkage()

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Boost once for each fold and once on all series."""
        features = WindowFeatures(smoother=self.smoother, units=0).fit(task.streams)
        rows = features(task.streams)
        unseen = np.tile(task.constant, (len(rows), 1))
        for training, rest in folds_of(task, self.folds):
            unseen[rest] = self._boosted(rows[training], task, training)(rows[rest])
        head = self._boosted(rows, task, np.arange(len(rows)))
        if task.classes is None:
            return Learnt(FeatureModel(features, head), unseen)
        factor = task.best_factor(unseen, FACTORS)
        return Learnt(FeatureModel(features, CalibratedHead(head, factor)), unseen * factor)

    def _boosted(self, rows: Float[np.ndarray, "series feature"], task: Task, chosen: np.ndarray) -> AbstractHead:
        options: Any = {
            "max_iter": self.rounds, "learning_rate": self.rate, "max_leaf_nodes": self.leaves, "max_features": 0.3,
            "l2_regularization": 1.0, "early_stopping": False, "random_state": task.seed,
        }  # fmt: skip
        if task.classes is None:
            booster: Any = HistGradientBoostingRegressor(**options)
        else:
            booster = HistGradientBoostingClassifier(**options)
        booster.fit(rows, task.targets[chosen], task.weight[chosen])
        head = booster_head(booster)
        return PairHead(head) if task.classes == 2 else head


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

"""Extremely randomised trees on statistics of windows. Every series is predicted by the trees that did not see it."""

import dataclasses
import warnings
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from logcde.estimators.learners.abstract import AbstractLearner, Learnt, Task
from logcde.features import WindowFeatures
from logcde.features.smoothing import AbstractSmoother, Shrinkage
from logcde.models.heads import ProbabilityHead, TreesHead, sharpen
from logcde.models.series import FeatureModel

SHARES = np.array([0.002, 0.01, 0.03, 0.1, 0.3])
POWERS = np.linspace(0.6, 3.0, 13)
"""Candidates for the calibration of probabilities."""


@dataclasses.dataclass(frozen=True)
class WindowTrees(AbstractLearner):
    """Extremely randomised trees on statistics of windows.

    Args:
        trees: Number of trees.
        smoother: How the observations of windows become signals.
    """

    trees: int = 300
    smoother: AbstractSmoother = Shrinkage()

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Grow trees on bootstrap samples."""
        features = WindowFeatures(smoother=self.smoother, units=0).fit(task.streams)
        rows = features(task.streams)
        options: Any = {
            "n_estimators": self.trees, "bootstrap": True, "oob_score": True, "random_state": task.seed, "n_jobs": 1
        }  # fmt: skip
        forest: Any = ExtraTreesRegressor(**options) if task.classes is None else ExtraTreesClassifier(**options)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
            forest.fit(rows, task.targets, task.weight)
        prior, some = task.prior, left_out(forest, len(rows))[:, None]
        if task.classes is None:
            unseen = np.where(some, forest.oob_prediction_[:, None], prior)
            return Learnt(FeatureModel(features, forest_head(forest)), unseen)
        unseen = np.where(some, forest.oob_decision_function_, prior)
        share, power = calibration_of(unseen, prior, task)
        head = ProbabilityHead(forest_head(forest), prior, share, power)
        return Learnt(FeatureModel(features, head), sharpen(unseen, prior, share, power))


def left_out(forest: Any, series: int) -> Bool[np.ndarray, "series"]:
    """Whether any tree of a forest was grown without a series."""
    every = np.arange(series)
    return np.any([~np.isin(every, sample) for sample in forest.estimators_samples_], axis=0)


def calibration_of(
    probabilities: Float64[np.ndarray, "series class"], prior: Float64[np.ndarray, "class"], task: Task
) -> tuple[float, float]:
    """The share of the prior and the power that give the least loss."""
    tried = [(share, power) for share in SHARES for power in POWERS]
    losses = [task.loss(sharpen(probabilities, prior, *one)) for one in tried]
    share, power = tried[int(np.argmin(losses))]
    return float(share), float(power)


def forest_head(forest: Any) -> TreesHead:
    """The trees of a fitted forest of scikit-learn as arrays; their values add up to the forest's mean."""
    trees = [one.tree_ for one in forest.estimators_]
    sizes = [tree.node_count for tree in trees]
    first = np.concatenate([[0], np.cumsum(sizes)])
    outputs = trees[0].value.shape[2] if hasattr(forest, "classes_") else 1
    values = np.concatenate([tree.value[:, 0, :] for tree in trees]) / len(trees)
    leaf = np.concatenate([tree.children_left for tree in trees]) < 0
    shift = np.repeat(first[:-1], sizes)
    return TreesHead(
        roots=first[:-1].astype(np.int32),
        output=np.zeros(len(trees), np.int32),
        feature=np.where(leaf, -1, np.concatenate([tree.feature for tree in trees])).astype(np.int32),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=np.where(leaf, 0, np.concatenate([tree.children_left for tree in trees]) + shift).astype(np.int32),
        right=np.where(leaf, 0, np.concatenate([tree.children_right for tree in trees]) + shift).astype(np.int32),
        missing_left=np.zeros(len(leaf), bool),
        value=values,
        bias=np.zeros(outputs),
    )

"""Extremely randomised trees on statistics of windows. Every series is predicted by the trees that did not see it."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from logcde.errors import check_whole
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

    def __post_init__(self) -> None:
        check_whole("WindowTrees", "trees", self.trees)

    def fit(self, task: Task, *, held_out: bool) -> Learnt:
        """Grow trees on bootstrap samples."""
        features = WindowFeatures(smoother=self.smoother, units=0).fit(task.streams)
        rows = features(task.streams)
        options: Any = {"n_estimators": self.trees, "bootstrap": True, "random_state": task.seed}
        kind = ExtraTreesRegressor if task.classes is None else ExtraTreesClassifier
        forest = kind(**options).fit(rows, task.targets, task.weight)
        head, unseen = forest_head(forest), unseen_means(forest, rows, task)
        if task.classes is None:
            return Learnt(FeatureModel(features, head), unseen)  # means of targets need no bounds
        share, power = calibration_of(unseen, task.prior, task)
        calibrated = ProbabilityHead(head, task.prior, share, power)
        left_out = task.bounded(sharpen(unseen, task.prior, share, power))
        return Learnt(FeatureModel(features, calibrated, task.bounds), left_out)


def unseen_means(
    forest: Any, rows: Float32[np.ndarray, "series feature"], task: Task
) -> Float64[np.ndarray, "series output"]:
    """For each series, the mean of the trees that were grown without it; if there are none, the prior."""
    total, count = np.zeros((len(rows), task.outputs)), np.zeros(len(rows))
    for tree, sampled in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        unseen = np.ones(len(rows), bool)
        unseen[sampled] = False
        total[unseen] += tree.tree_.predict(rows[unseen]).reshape(-1, task.outputs)
        count[unseen] += 1
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], task.prior)


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

"""Folds: parts of the training series, each predicted by a model of the others."""

from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from logcde.estimators.learners.abstract import Task


def folds_of(task: Task, folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and left-out series of each fold; classes have equal shares in all, so that no model misses one.

    The series of a class that has only one cannot be predicted without it: it is left out of no training.
    """
    every = np.arange(len(task.targets))
    if task.classes is None:
        split: Any = KFold(min(folds, len(every)), shuffle=True, random_state=task.seed)
        return list(split.split(every))
    size = np.bincount(task.targets)[task.targets]
    rare, common = every[size < 2], every[size >= 2]
    if not len(common):
        return []
    split = StratifiedKFold(max(2, min(folds, size[common].min())), shuffle=True, random_state=task.seed)
    parts = split.split(common, task.targets[common])
    return [(np.concatenate([common[training], rare]), common[rest]) for training, rest in parts]

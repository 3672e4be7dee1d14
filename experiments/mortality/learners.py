"""Learners on tables and estimators of the library; networks are those of `experiments.physionet2012`."""

import time
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from jaxtyping import Float, Float64

from experiments.mortality.data import with_static_channels
from experiments.physionet2012.boosting import summaries
from experiments.physionet2012.models import Fitted, Given, Neural
from experiments.runner.abstract import Tell
from logcde.estimators import LogCDEClassifier
from logcde.estimators.learners import AbstractLearner, Blend, WindowBoosting, WindowRidge
from logcde.features import WindowFeatures
from logcde.features.recent import Grouped
from logcde.streams import Streams

Rows: TypeAlias = Literal["summaries", "windows", "both"]
FOLDS = 2
AFTER = np.array([0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0])
"""Candidates of the boosting rounds, as a share of the most."""


class Setting(msgspec.Struct, frozen=True, array_like=True):
    """Settings of histogram gradient boosting. `share` is that of the features that are tried at a split."""

    rate: float
    rounds: int
    leaves: int
    least: int
    share: float


class Trees(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="trees"):
    """Gradient boosting of scikit-learn on rows of numbers and static features.

    Of the settings, and of numbers of rounds, those with the least log loss on folds of the training stays are used,
    for `members` runs with other seeds, whose log odds are averaged.
    """

    rows: Rows
    search: tuple[Setting, ...]
    members: int = 5

    def fit(self, given: Given, seed: int, tell: Tell, scratch: Path) -> Fitted:
        """Search, then train on all training stays."""
        began = time.monotonic()
        table = rows_of(given, self.rows)
        train, died = given.split.train, given.stays.died
        setting, rounds = self._chosen(table[train], died[train], seed, lambda part: tell(0.7 * part))
        odds = []
        for member in range(self.members):
            model = _booster(setting, rounds, 1000 * seed + member).fit(table[train], died[train])
            odds.append(model.decision_function(table[len(train) :]))
            tell(0.7 + 0.3 * (member + 1) / self.members)
        found, first = np.stack(odds), len(given.split.validation)
        return Fitted(found[:, :first], found[:, first:], time.monotonic() - began, 0)

    def _chosen(self, table: np.ndarray, died: np.ndarray, seed: int, tell: Tell) -> tuple[Setting, int]:
        from sklearn.metrics import log_loss
        from sklearn.model_selection import StratifiedKFold

        losses = np.zeros((len(self.search), len(AFTER)))
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        for fold, (training, rest) in enumerate(folds.split(table, died)):
            for place, setting in enumerate(self.search):
                model = _booster(setting, setting.rounds, seed).fit(table[training], died[training])
                after = list(model.staged_predict_proba(table[rest]))
                stages = np.maximum(np.rint(AFTER * setting.rounds).astype(int), 1) - 1
                losses[place] += [log_loss(died[rest], after[stage]) for stage in stages]
                tell((fold + (place + 1) / len(self.search)) / FOLDS)
        place, stage = np.unravel_index(np.argmin(losses), losses.shape)
        setting = self.search[int(place)]
        return setting, max(1, round(AFTER[stage] * setting.rounds))


class Estimator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="estimator"):
    """`LogCDEClassifier` with a learner by name; static features are channels that are observed at time 0."""

    learner: str = "auto"

    def fit(self, given: Given, seed: int, tell: Tell, scratch: Path) -> Fitted:
        """Fit as a person would."""
        began = time.monotonic()
        streams, split = with_static_channels(given.stays), given.split
        classifier = LogCDEClassifier(learner=LEARNERS[self.learner], random_state=seed)
        classifier.fit(streams[split.train], given.stays.died[split.train].astype(np.int64))
        seconds = time.monotonic() - began
        tell(0.8)
        likely = classifier.predict_proba(streams[len(split.train) :])
        odds = (np.log(likely[:, 1]) - np.log(likely[:, 0]))[None]
        first = len(split.validation)
        return Fitted(odds[:, :first], odds[:, first:], seconds, 0)


LEARNERS: MappingProxyType[str, AbstractLearner | None] = MappingProxyType(
    {
        "auto": None,
        "boosting": WindowBoosting(),
        "statistics ridge + boosting": Blend((WindowRidge(units=0), WindowBoosting())),
    }
)
Learner: TypeAlias = Trees | Estimator | Neural


def rows_of(given: Given, kind: Rows) -> Float[np.ndarray, "series feature"]:
    """Features of all stays; what is fitted, such as the width of windows, is fitted to training stays."""
    streams = given.stays.streams
    parts: list[np.ndarray] = [given.stays.static]
    if kind != "windows":
        parts += [summaries(streams), more_summaries(streams)]
    if kind != "summaries":
        features = WindowFeatures(units=0, lean=True, nan_unobserved=True).fit(streams[given.split.train])
        parts.append(features(streams))
    return np.concatenate(parts, axis=1)


def more_summaries(streams: Streams) -> Float64[np.ndarray, "series feature"]:
    """Standard deviation and time of the last observation of each channel; NaN if it was never observed.

    >>> streams = Streams.from_arrays([[0.0, 3.0]], [[[1.0, np.nan], [5.0, np.nan]]])
    >>> more_summaries(streams).tolist()
    [[2.0, nan, 3.0, nan]]
    """
    grouped = Grouped.of(streams)
    counts = np.diff(grouped.offsets)
    owner = np.repeat(np.arange(len(counts)), counts)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(owner, grouped.values, len(counts)) / counts
        variance = np.bincount(owner, np.square(grouped.values - mean[owner]), len(counts)) / counts
    last = np.full(len(counts), np.nan)
    last[counts > 0] = grouped.times[grouped.offsets[1:][counts > 0] - 1]
    return np.concatenate([one.reshape(len(streams), -1) for one in (np.sqrt(variance), last)], axis=1)


def _booster(setting: Setting, rounds: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    options: Any = {"early_stopping": False, "l2_regularization": 1.0, "random_state": seed % 2**32}
    return HistGradientBoostingClassifier(
        learning_rate=setting.rate,
        max_iter=rounds,
        max_leaf_nodes=setting.leaves,
        min_samples_leaf=setting.least,
        max_features=setting.share,
        **options,
    )

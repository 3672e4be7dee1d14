"""What is trained on hourly rows of stays: gradient boosting, and GRU-D."""

import abc
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from jaxtyping import Float32, Float64, Int64

from experiments.runner.abstract import Tell
from experiments.sepsis.data import Hospitals, Split, Told, hourly
from experiments.sepsis.grud import GRUD
from logcde.estimators.learners.boosting import boosted
from logcde.features.recent import Grouped, RecentFeatures
from logcde.models.forecast import ForecastModel, ShrunkLast, TargetForecast
from logcde.models.heads import AbstractHead, TreesHead
from logcde.streams.ragged import offsets_of

TOGETHER = 2000
"""Stays whose rows are in memory at once."""
WITHIN = 0.5
"""A prediction of an hour knows what was observed in it, and is made half an hour after its stamp."""
AFTER = np.array([0.25, 0.4, 0.6, 0.8, 1.0])
"""Candidates of the boosting rounds, as a share of the most."""


class Setting(msgspec.Struct, frozen=True, array_like=True):
    """Settings of histogram gradient boosting. `share` is that of the features that are tried at a split."""

    rate: float
    rounds: int
    leaves: int
    least: int
    share: float

    def boosted(self, table: np.ndarray, label: np.ndarray, seed: int) -> TreesHead:
        """Train for all rounds."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        options: Any = {
            "max_iter": self.rounds, "learning_rate": self.rate, "max_leaf_nodes": self.leaves,
            "min_samples_leaf": self.least, "max_features": self.share, "l2_regularization": 1.0,
            "early_stopping": False, "random_state": seed,
        }  # fmt: skip
        return boosted(HistGradientBoostingClassifier(**options), table, label)


class Trees(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Histogram gradient boosting of scikit-learn, on hours drawn from the training stays.

    Of the settings, and of numbers of rounds, those with the largest AUPRC on validation hours are kept. Shares of
    labels in the drawn hours differ from those of all hours; calibration on the validation stays makes up for that.
    """

    search: tuple[Setting, ...]
    positive: int = 12_000
    negative: int = 36_000

    def fit(self, rows: "AbstractRows", given: Hospitals, split: Split, seed: int) -> Told:
        """Search, train and predict."""
        from sklearn.metrics import average_precision_score

        began = time.monotonic()
        rng = np.random.default_rng(seed)
        label = given.hours_of(split.train)[2]
        chosen = self._drawn(label, rng)
        table = rows.chosen(given, split.train, chosen)
        known = given.hours_of(split.validation)[2]
        unseen = rows.chosen(given, split.validation, np.arange(len(known)))
        best: tuple[float, str, TreesHead | None] = (-1.0, "", None)
        for setting in self.search:
            head = setting.boosted(table, label[chosen], seed)
            counts = np.unique(np.maximum(np.rint(AFTER * setting.rounds), 1).astype(np.int64))
            for count, odds in zip(counts.tolist(), head.staged(unseen, counts), strict=True):
                area = float(average_precision_score(known, odds[:, 0])) if known.any() else 0.0
                if area > best[0]:
                    text = f"{count} rounds of rate {setting.rate:g}, {setting.leaves} leaves"
                    best = area, text, shortened(head, count)
        _, text, head = best
        assert head is not None
        seconds = time.monotonic() - began
        told, found = (rows.odds(head, given, part) for part in (split.validation, split.test))
        return Told(told, found, seconds, text, rows.model(head))

    def _drawn(self, label: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        drawn = [np.flatnonzero(label == kind) for kind in (0, 1)]
        most = self.negative, self.positive
        return np.sort(
            np.concatenate(
                [rng.choice(one, min(len(one), count), replace=False) for one, count in zip(drawn, most, strict=True)]
            )
        )


def shortened(head: TreesHead, trees: int) -> TreesHead:
    """The first trees of a sum of trees."""
    return dataclasses.replace(head, roots=head.roots[:trees], output=head.output[:trees])


class AbstractRows(abc.ABC):
    """What is read of a stay at each of its hours."""

    @abc.abstractmethod
    def of(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], which: Int64[np.ndarray, "_"]
    ) -> Float32[np.ndarray, "row feature"]:
        """Some rows, by their place among those of all hours of some stays."""

    @abc.abstractmethod
    def model(self, head: AbstractHead) -> ForecastModel | None:
        """A model of the library that reads these rows, if there is one."""

    def chosen(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], which: Int64[np.ndarray, "_"]
    ) -> Float32[np.ndarray, "row feature"]:
        """The same, some stays at a time; places increase."""
        return np.concatenate(list(self._parts(given, stays, which)))

    def odds(self, head: AbstractHead, given: Hospitals, stays: Int64[np.ndarray, "_"]) -> Float64[np.ndarray, "row"]:
        """What a head says of all hours of some stays."""
        every = np.arange(np.diff(given.rows)[stays].sum())
        return np.concatenate([head(rows)[:, 0] for rows in self._parts(given, stays, every)])

    def _parts(
        self, given: Hospitals, stays: np.ndarray, which: np.ndarray
    ) -> Iterator[Float32[np.ndarray, "row feature"]]:
        offsets = offsets_of(np.diff(given.rows)[stays])
        for begin in range(0, len(stays), TOGETHER):
            some = stays[begin : begin + TOGETHER]
            first, last = offsets[begin], offsets[min(begin + TOGETHER, len(stays))]
            yield self.of(given, some, which[(which >= first) & (which < last)] - first)


class HourlyRows(AbstractRows):
    """Last value, age, count, mean and change over 6 hours of each channel."""

    def of(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], which: Int64[np.ndarray, "_"]
    ) -> Float32[np.ndarray, "row feature"]:
        """Computed for all hours at once."""
        return hourly(given.streams[stays], offsets_of(np.diff(given.rows)[stays]))[which]

    def model(self, head: AbstractHead) -> None:
        """There is none."""
        return


@dataclasses.dataclass(frozen=True, eq=False)
class RecentRows(AbstractRows):
    """Last value, age, count, mean, and changes of the means of four windows, as forecasts of the library read them."""

    features: RecentFeatures

    @staticmethod
    def fit(given: Hospitals, split: Split) -> "RecentRows":
        """Choose how far back to look, from training stays."""
        return RecentRows(RecentFeatures.fit(given.streams[split.train], WITHIN, totals=True))

    def of(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], which: Int64[np.ndarray, "_"]
    ) -> Float32[np.ndarray, "row feature"]:
        """The rows of questions about each hour."""
        place, hour = (column[which] for column in given.hours_of(stays)[:2])
        grouped = Grouped.of(given.streams[stays])
        prefixes = grouped.prefixes(place, hour + WITHIN)
        return self.features.rows(grouped, prefixes, np.arange(len(place)), hour + WITHIN, None)

    def model(self, head: AbstractHead) -> ForecastModel:
        """A model that is saved and served like any other: it predicts log odds at any time."""
        nothing = ShrunkLast(0.0, np.zeros(1), np.zeros(1))
        return ForecastModel(self.features, (TargetForecast(None, nothing, (head,), np.zeros(1), np.ones((1, 1))),))


class Boosting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="boosting"):
    """Gradient boosting on both kinds of rows, and the mean of the log odds of both."""

    hourly: Trees
    recent: Trees

    def fit(self, given: Hospitals, split: Split, seed: int, tell: Tell, scratch: Path) -> dict[str, Told]:
        """Train one after the other."""
        one = self.hourly.fit(HourlyRows(), given, split, seed)
        tell(0.4)
        two = self.recent.fit(RecentRows.fit(given, split), given, split, seed)
        known, found = (one.known + two.known) / 2, (one.found + two.found) / 2
        return {HOURLY: one, RECENT: two, BOTH: Told(known, found, one.seconds + two.seconds)}


HOURLY, RECENT, BOTH = "boosting on hourly features", "logcde: boosting on recent windows", "mean of both"
Learner: TypeAlias = Boosting | GRUD

"""Gradient boosting on hourly rows: the usual ones, and those that the library reads of the recent past."""

import abc
import dataclasses
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import numpy as np
from jaxtyping import Float32, Float64, Int64

from experiments.sepsis.data import Hospitals, Split, hourly
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


class Boosting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Histogram gradient boosting of scikit-learn, on hours drawn from the training stays.

    Leaves and rounds with the largest AUPRC on validation hours are kept. Shares of labels in the drawn hours differ
    from those of all hours; calibration on the validation stays makes up for that.
    """

    positive: int = 12_000
    negative: int = 36_000
    rate: float = 0.08
    rounds: int = 150
    leaves: tuple[int, ...] = (31,)
    least: int = 40
    share: float = 0.3
    validation: int = 60_000
    """Most validation hours for this choice."""

    def fit(self, rows: "AbstractRows", given: Hospitals, split: Split, seed: int) -> tuple[TreesHead, float]:
        """The trees, and the seconds that it took."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import average_precision_score

        began = time.monotonic()
        rng = np.random.default_rng(seed)
        label = given.hours_of(split.train)[2]
        drawn = [np.flatnonzero(label == kind) for kind in (0, 1)]
        most = self.negative, self.positive
        chosen = np.sort(
            np.concatenate(
                [rng.choice(one, min(len(one), count), replace=False) for one, count in zip(drawn, most, strict=True)]
            )
        )
        table = rows.chosen(given, split.train, chosen)
        known = given.hours_of(split.validation)[2]
        some = np.sort(rng.choice(len(known), min(len(known), self.validation), replace=False))
        unseen = rows.chosen(given, split.validation, some)
        best: tuple[float, TreesHead | None] = (-1.0, None)
        for leaves in self.leaves:
            options: Any = {
                "max_iter": self.rounds, "learning_rate": self.rate, "max_leaf_nodes": leaves,
                "min_samples_leaf": self.least, "max_features": self.share, "l2_regularization": 1.0,
                "early_stopping": False, "random_state": seed,
            }  # fmt: skip
            head = boosted(HistGradientBoostingClassifier(**options), table, label[chosen])
            counts = np.unique(np.maximum(np.rint(AFTER * self.rounds), 1).astype(np.int64))
            for count, odds in zip(counts.tolist(), head.staged(unseen, counts), strict=True):
                area = float(average_precision_score(known[some], odds[:, 0])) if known[some].any() else 0.0
                if area > best[0]:
                    best = (area, shortened(head, count))
        assert best[1] is not None
        return best[1], time.monotonic() - began


def shortened(head: TreesHead, trees: int) -> TreesHead:
    """The first trees of a sum of trees."""
    return dataclasses.replace(head, roots=head.roots[:trees], output=head.output[:trees])


class AbstractRows(abc.ABC):
    """What is read of a stay at each of its hours."""

    name: ClassVar[str]

    @abc.abstractmethod
    def of(self, given: Hospitals, stays: Int64[np.ndarray, "_"]) -> Float32[np.ndarray, "row feature"]:
        """The rows of all hours of some stays."""

    def chosen(
        self, given: Hospitals, stays: Int64[np.ndarray, "_"], which: Int64[np.ndarray, "_"]
    ) -> Float32[np.ndarray, "row feature"]:
        """Some rows, by their place among those of all hours of some stays."""
        parts = [
            rows[which[(which >= first) & (which < first + len(rows))] - first]
            for first, rows in self._parts(given, stays)
        ]
        return np.concatenate(parts)

    def odds(self, head: AbstractHead, given: Hospitals, stays: Int64[np.ndarray, "_"]) -> Float64[np.ndarray, "row"]:
        """What a head says of all hours of some stays."""
        return np.concatenate([head(rows)[:, 0] for _, rows in self._parts(given, stays)])

    def _parts(self, given: Hospitals, stays: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        first = 0
        for begin in range(0, len(stays), TOGETHER):
            rows = self.of(given, stays[begin : begin + TOGETHER])
            yield first, rows
            first += len(rows)


class HourlyRows(AbstractRows):
    """Last value, age, count, mean and change over 6 hours of each channel."""

    name = "boosting on hourly features"

    def of(self, given: Hospitals, stays: Int64[np.ndarray, "_"]) -> Float32[np.ndarray, "row feature"]:
        """Computed for all hours at once."""
        return hourly(given.streams[stays], offsets_of(np.diff(given.rows)[stays]))


@dataclasses.dataclass(frozen=True, eq=False)
class RecentRows(AbstractRows):
    """Last value, age, count and means of four windows of each channel, as forecasts of the library read them."""

    name = "logcde: boosting on recent windows"
    features: RecentFeatures

    @staticmethod
    def fit(given: Hospitals, split: Split) -> "RecentRows":
        """Choose how far back to look, from training stays."""
        return RecentRows(RecentFeatures.fit(given.streams[split.train], WITHIN, counts=True))

    def of(self, given: Hospitals, stays: Int64[np.ndarray, "_"]) -> Float32[np.ndarray, "row feature"]:
        """The rows of questions about each hour."""
        place, hour, _ = given.hours_of(stays)
        grouped = Grouped.of(given.streams[stays])
        prefixes = grouped.prefixes(place, hour + WITHIN)
        return self.features.rows(grouped, prefixes, np.arange(len(place)), hour + WITHIN, None)

    def model(self, head: AbstractHead) -> ForecastModel:
        """A model that is saved and served like any other: it predicts log odds at any time."""
        nothing = ShrunkLast(0.0, np.zeros(1), np.zeros(1))
        return ForecastModel(self.features, (TargetForecast(None, nothing, (head,), np.zeros(1), np.ones((1, 1))),))

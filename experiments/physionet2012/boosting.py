"""Gradient boosting on summaries of intensive care stays, as a baseline."""

import itertools
import time
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from jaxtyping import Float

from experiments.physionet2012.models import Fitted, Given
from experiments.runner.abstract import Tell
from logcde.streams import Streams
from logcde.streams.ragged import owners


class Boosting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="boosting"):
    """Gradient boosted trees of scikit-learn on counts, means, extremes, first and last values, and static features.

    Of the `rounds`, those up to the smallest loss on validation stays are kept.
    """

    rate: float = 0.05
    rounds: int = 300
    leaves: int = 15
    least: int = 40
    ridge: float = 1.0
    members: int = 1

    def fit(self, given: Given, seed: int, tell: Tell, scratch: Path) -> Fitted:
        """Train the trees."""
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import log_loss

        began = time.monotonic()
        features = np.concatenate([summaries(given.stays.streams), given.stays.static], axis=1)
        died, split = given.stays.died, given.split
        odds = []
        for member in range(self.members):
            trees = HistGradientBoostingClassifier(
                learning_rate=self.rate,
                max_iter=self.rounds,
                max_leaf_nodes=self.leaves,
                min_samples_leaf=self.least,
                l2_regularization=self.ridge,
                max_features=1.0 if self.members == 1 else 0.5,
                early_stopping=cast(Any, False),  # its annotation is too narrow
                random_state=1000 * seed + member,
            ).fit(features[split.train], died[split.train])
            after = [one.ravel() for one in trees.staged_decision_function(features[split.validation])]
            loss = [log_loss(died[split.validation], 1 / (1 + np.exp(-one))) for one in after]
            best = int(np.argmin(loss))
            tested = next(itertools.islice(trees.staged_decision_function(features[split.test]), best, None))
            odds.append((after[best], tested.ravel()))
            tell((member + 1) / self.members)
        validation, test = (np.stack(part) for part in zip(*odds, strict=True))
        return Fitted(validation, test, time.monotonic() - began, 0)


def summaries(streams: Streams) -> Float[np.ndarray, "series feature"]:
    """Count, mean, minimum, maximum, first and last value of each channel; NaN if it was never observed.

    >>> streams = Streams.from_arrays([[0.0, 1.0, 2.0]], [[[5.0, np.nan], [7.0, np.nan], [3.0, np.nan]]])
    >>> summaries(streams).reshape(6, 2)[:, 0].tolist()
    [3.0, 5.0, 3.0, 7.0, 5.0, 3.0]
    """
    series, channels = len(streams), len(streams.schema.channels)
    place = owners(streams.offsets)[owners(streams.obs_offsets)] * channels + streams.channel
    order = np.argsort(place, kind="stable")
    value = streams.value[order].astype(np.float64)
    found, begins, counts = np.unique(place[order], return_index=True, return_counts=True)
    table = np.full((6, series * channels), np.nan)
    table[0] = 0.0
    if len(found):
        table[:, found] = [
            counts,
            np.add.reduceat(value, begins) / counts,
            np.minimum.reduceat(value, begins),
            np.maximum.reduceat(value, begins),
            value[begins],
            value[begins + counts - 1],
        ]
    return table.reshape(6, series, channels).swapaxes(0, 1).reshape(series, -1)

"""`LogCDEForecaster`: values at query times, from what was observed before."""

from typing import Any

import numpy as np
from jaxtyping import Float64
from sklearn.metrics import r2_score
from sklearn.utils import Tags

from logcde.errors import TrainingError
from logcde.estimators.answers import aligned
from logcde.estimators.base import AbstractLogCDE
from logcde.estimators.checking import check_array
from logcde.estimators.forecasting import UNKNOWN, Asked, KnownSquaredError, asked_at, asked_by, beside, embedded
from logcde.estimators.reading import axes_of, beside_table, is_frame, read
from logcde.estimators.training import in_units
from logcde.models import EachInterval
from logcde.streams import Streams


class LogCDEForecaster(AbstractLogCDE):
    """Predicts values at query times, each from what was observed strictly before it.

    `X` is as for `LogCDEClassifier`. `y` are `Streams` or a data frame of targets, each with its stamp, whose series
    have the ids of those of `X`; or an array with a row for each series, known at its end; or None for the next values
    of the channels of `X` themselves.

    What is predicted at one time may depend, by little, on which other times are asked for in the same call, because
    intervals end at each of them.

    >>> rng = np.random.default_rng(0)
    >>> X = np.sin(np.arange(12) + rng.uniform(0, 6, size=(40, 1)))[..., None]
    >>> forecaster = LogCDEForecaster(max_iter=200, random_state=0).fit(X)
    >>> forecaster.predict(X, at=[12.0, 13.0]).shape, forecaster.score(X) > 0.5
    ((40, 2, 1), True)
    """

    reading = EachInterval

    def fit(self, X: Any, y: Any = None) -> "LogCDEForecaster":
        """Learn the values of targets at their stamps."""
        streams = self._begin(X)
        asked = self._asked(y, streams)
        assert asked.answers is not None
        known = np.isfinite(asked.answers)
        if not known.any(axis=0).all():
            raise TrainingError(
                "A target is never known after the start of a series, so nothing can be learnt about it. Give targets "
                "with stamps after 0, or for y=None series with at least two observations of each channel."
            )
        self._choose(streams)
        centre, spread = np.nanmean(asked.answers, axis=0), np.nanstd(asked.answers, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        targets = np.where(known, (asked.answers - centre) / spread, UNKNOWN)
        rows = np.nan_to_num(asked.by_series(targets))
        logsigs, queries = embedded(self.embedding_, self.partition_, streams, asked)
        classes = np.zeros(len(streams), np.int64)
        self._train(logsigs, queries, rows, targets.shape[1], KnownSquaredError(), (), classes)
        self.model_ = in_units(self.model_, centre, spread)
        return self

    def predict(self, X: Any, at: Any = None) -> Float64[np.ndarray, "series time output"]:
        """Values at times: a Partition's ends of intervals, an array of times for all series, or a list for each.

        By default at the end of each series, its horizon. NaN where a series has fewer times than others.
        """
        streams = self._again(X)
        return self._values(streams, asked_at(streams.horizon[:, None] if at is None else at, streams))

    def score(self, X: Any, y: Any = None) -> float:
        """R^2 over the targets that are known, mean over outputs."""
        streams = self._again(X)
        asked = self._asked(y, streams)
        assert asked.answers is not None
        found, answers = self._values(streams, asked)[asked.present], asked.answers
        known = np.isfinite(answers)
        return float(np.mean([r2_score(answers[k, n], found[k, n]) for n, k in enumerate(known.T)]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _values(self, streams: Streams, asked: Asked) -> Float64[np.ndarray, "series time output"]:
        found = self._outputs(*embedded(self.embedding_, self.partition_, streams, asked), streams.ids)
        return np.where(asked.present[..., None], found, np.nan)

    def _asked(self, y: Any, streams: Streams) -> Asked:
        """Where there are targets, and which."""
        if y is None:
            return asked_by(streams)
        if is_frame(y) and self.table is not None:
            return asked_by(beside(beside_table(self.table, streams).read(y, None), streams))
        if isinstance(y, Streams) or axes_of(y) == 3 or (isinstance(y, list) and isinstance(y[0], Streams)):
            return asked_by(beside(read(y, None, None, np.asarray).streams, streams))
        rows = check_array(aligned(y, streams, self.flat_), ensure_2d=False, dtype=np.float64, input_name="y")
        return Asked(np.arange(len(streams) + 1), streams.horizon, rows.reshape(len(streams), -1))

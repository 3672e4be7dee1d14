"""`LogCDETransformer`: features of series as a step of scikit-learn's pipelines."""

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from logcde.errors import ModelError
from logcde.estimators import saving
from logcde.estimators._sklearn import check_feature_names_in, container_of
from logcde.estimators.base import AbstractSeriesEstimator
from logcde.estimators.data import Layout
from logcde.features import WindowFeatures
from logcde.features.abstract import AbstractFeatures, AbstractOnlineFeatures


@saving.loadable
class LogCDETransformer(TransformerMixin, AbstractSeriesEstimator):
    """Turns series into rows of features: `fit(X)`, then `transform(X)`, alone or in a pipeline.

    `X` is as for `LogCDEClassifier`. Observations are not resampled; signals of windows are smoothed. With
    `set_output(transform="pandas")` rows have the names of the features as columns and, unless `X` was an array
    (sample, feature), the ids of the series as index.

    Args:
        features: `WindowFeatures(...)` or `LogSignatureFeatures(...)`; by default `WindowFeatures()`.
        table: Layout of data frames, `Long(...)` or `Wide(...)`. Without it, rows of a data frame are samples.
        channels_first: Whether arrays are (series, channel, step), as for `LogCDEClassifier`.

    Attributes:
        features_: The fitted features, which turn streams into rows.

    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = np.cumsum(rng.normal(size=(40, 20, 2)), axis=1)
    >>> y = np.where(X[:, -1, 0] > 0, "up", "down")
    >>> pipeline = make_pipeline(LogCDETransformer(WindowFeatures(units=0)), RidgeClassifierCV()).fit(X, y)
    >>> pipeline.score(X, y) > 0.8, pipeline[0].get_feature_names_out()[0]
    (True, 'mean(x1) in 1/1')
    """

    def __init__(
        self,
        features: AbstractFeatures | None = None,
        *,
        table: Layout | None = None,
        channels_first: bool | None = None,
    ) -> None:
        self.features = features
        self.table = table
        self.channels_first = channels_first

    def fit(self, X: Any, y: Any = None) -> "LogCDETransformer":
        """Fit the features to training series. `y` is ignored."""
        features = WindowFeatures() if self.features is None else self.features
        if not isinstance(features, AbstractFeatures):
            raise ModelError(
                f"features={features!r} are not options of features.",
                "Give WindowFeatures() or LogSignatureFeatures() of logcde.features, or None.",
            )
        self.features_ = features.fit(self._read_training(X, fewest=1, unobserved=True))
        return self

    def transform(self, X: Any) -> Any:
        """Return one row of features for each series: an array, or the data frame that `set_output` asks for."""
        streams = self._read_further(X)
        rows = self.features_(streams)
        if self.flat_ or container_of(self) != "pandas":
            return rows
        import pandas as pd

        # With the index of X, which scikit-learn would give it, a table of observations has another number of rows.
        return pd.DataFrame(rows, index=pd.Index(streams.ids), columns=self.get_feature_names_out())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the name of each feature.

        Args:
            input_features: If given, it must equal the names of channels that `fit` has seen.
        """
        check_is_fitted(self)
        check_feature_names_in(self, input_features)
        return np.array(self.features_.names, object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # rows are in single precision
        return tags

    def online(self) -> AbstractOnlineFeatures:
        """Start one series, whose features are those of `transform` as it grows.

        >>> X = np.random.default_rng(0).normal(size=(20, 8, 1))
        >>> transformer = LogCDETransformer().fit(X)
        >>> online = transformer.online()
        >>> for step, value in enumerate(X[0, :, 0]):
        ...     online.observe(float(step), {"x1": value})
        >>> bool((online.features(at=8.0) == transformer.transform(X)[0]).all())
        True
        """
        check_is_fitted(self)
        return self.features_.online()

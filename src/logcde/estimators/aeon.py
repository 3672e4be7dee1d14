"""The classifier and the regressor with the conventions of aeon, whose arrays are (series, channel, step).

The only module that imports aeon: `pip install 'logcde[aeon]'`.
"""

from typing import Any, ClassVar

import numpy as np
from aeon.classification.base import BaseClassifier  # pyright: ignore[reportMissingImports]
from aeon.regression.base import BaseRegressor  # pyright: ignore[reportMissingImports]

from logcde.estimators.classifier import LogCDEClassifier
from logcde.estimators.learners import AbstractLearner
from logcde.estimators.regressor import LogCDERegressor

TAGS = {
    "X_inner_type": ["np-list", "numpy3D"],
    "capability:multivariate": True,
    "capability:missing_values": True,
    "capability:unequal_length": True,
}


class AbstractAdapter:
    """Adapts an estimator to aeon: the parameters of `AbstractLogCDE`, without `table` and `checkpoints`."""

    def __init__(
        self, *, learner: AbstractLearner | None = None, verbose: bool = False, random_state: Any = None
    ) -> None:
        self.learner = learner
        self.verbose = verbose
        self.random_state = random_state
        super().__init__()

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Return the parameters of aeon's own checks."""
        return {}

    def _fit(self, X: Any, y: np.ndarray) -> Any:
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        self.estimator_ = self._wrapped(**parameters, channels_first=True).fit(X, y)  # type: ignore[attr-defined]
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(X)


class LogCDEAeonClassifier(AbstractAdapter, BaseClassifier):
    """`LogCDEClassifier` for aeon, with any number of channels, missing values and unequal lengths.

    Attributes:
        estimator_: The fitted `LogCDEClassifier`.
    """

    _tags: ClassVar = TAGS
    _wrapped = LogCDEClassifier

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.estimator_.predict_proba(X)


class LogCDEAeonRegressor(AbstractAdapter, BaseRegressor):
    """`LogCDERegressor` for aeon, with any number of channels, missing values and unequal lengths.

    Attributes:
        estimator_: The fitted `LogCDERegressor`.
    """

    _tags: ClassVar = TAGS
    _wrapped = LogCDERegressor

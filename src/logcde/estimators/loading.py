"""`load`: a saved estimator, whichever of them it is."""

import os

from logcde.errors import ArtefactError
from logcde.estimators import saving
from logcde.estimators.classifier import LogCDEClassifier
from logcde.estimators.forecaster import LogCDEForecaster
from logcde.estimators.regressor import LogCDERegressor

KINDS = {kind.__name__: kind for kind in (LogCDEClassifier, LogCDERegressor, LogCDEForecaster)}


def load(path: str | os.PathLike) -> LogCDEClassifier | LogCDERegressor | LogCDEForecaster:
    """Read a fitted estimator, such as `logcde train` and `save` write.

    >>> import tempfile
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(8, 5, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LogCDERegressor(max_iter=1).fit(X, X[:, -1, 0]).save(f"{folder}/mine")
    ...     type(load(f"{folder}/mine")).__name__
    'LogCDERegressor'
    """
    found = saving.read(path)
    if found.estimator not in KINDS:
        raise ArtefactError(
            f"{path} holds a {found.estimator}, which is no estimator of logcde. Read it with the `load` of that class."
        )
    return saving.restored(KINDS[found.estimator], found)

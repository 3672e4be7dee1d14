import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [LogCDEClassifier(max_iter=100), LogCDERegressor(max_iter=400), LogCDEForecaster(max_iter=100)]
)
def test_estimator_passes_sklearn_check(estimator, check):
    check(estimator)

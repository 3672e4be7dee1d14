import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor, LogSLiCE

RESAMPLING = "Learners leave series out by turns: a series of weight two is left out as one, two equal series are not."


def expected_failures(estimator):
    """Checks that no estimator passes which validates itself."""
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return {} if isinstance(estimator, LogCDEForecaster) else dict.fromkeys(names, RESAMPLING)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [LogCDEClassifier(), LogCDERegressor(), LogCDEForecaster(learner=LogSLiCE(steps=100))],
    expected_failed_checks=expected_failures,
)
def test_estimator_passes_sklearn_check(estimator, check):
    check(estimator)

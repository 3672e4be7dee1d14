import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor, LogCDETransformer, LogSLiCE
from logcde.features import LogSignatureFeatures

RESAMPLING = "Learners leave series out by turns: a series of weight two is left out as one, two equal series are not."


def expected_failures(estimator):
    """Checks that no estimator passes which validates itself."""
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    weightless = isinstance(estimator, LogCDEForecaster | LogCDETransformer)
    return {} if weightless else dict.fromkeys(names, RESAMPLING)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        LogCDEClassifier(),
        LogCDERegressor(),
        LogCDEForecaster(learner=LogSLiCE(steps=100)),
        LogCDETransformer(),
        LogCDETransformer(LogSignatureFeatures()),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_passes_sklearn_check(estimator, check):
    check(estimator)

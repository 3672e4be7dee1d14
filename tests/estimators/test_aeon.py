import numpy as np
import pytest

from tests.estimators.series import QUICK, labels, values

pytest.importorskip("aeon")
pytestmark = pytest.mark.filterwarnings("default")  # those of aeon itself and of what it imports


def test_aeon_check_estimator():
    from aeon.testing.estimator_checking import check_estimator

    from logcde.estimators.aeon import LogCDEAeonClassifier, LogCDEAeonRegressor

    for estimator in (LogCDEAeonClassifier, LogCDEAeonRegressor):
        check_estimator(estimator, raise_exceptions=True)


def test_aeon_classifier_equals_classifier():
    from logcde.estimators import LogCDEClassifier
    from logcde.estimators.aeon import LogCDEAeonClassifier

    array = values(missing=0.3)
    here = LogCDEClassifier(**QUICK).fit(array, labels()).predict_proba(array)
    there = LogCDEAeonClassifier(**QUICK).fit(np.swapaxes(array, 1, 2), labels())
    np.testing.assert_array_equal(there.predict_proba(np.swapaxes(array, 1, 2)), here)
    np.testing.assert_array_equal(there.predict_proba([one.T for one in array]), here)

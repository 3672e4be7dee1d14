"""The online predictor of a fitted estimator agrees with `predict`."""

import jax
import numpy as np

from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor
from tests.estimators.series import QUICK, labels, streams, values


def test_online_classifier():
    classifier = LogCDEClassifier(**QUICK).fit(streams(missing=0.3), labels())
    online = classifier.online()
    for time, row in enumerate(values(1, 0.3)[0]):
        online.observe(float(time), row)
    probabilities = jax.nn.softmax(online.predict(at=8.0))
    np.testing.assert_allclose(probabilities, classifier.predict_proba(streams(1, 0.3)[:1])[0], rtol=1e-4)


def test_online_regressor_predicts_in_units_of_targets():
    regressor = LogCDERegressor(**QUICK).fit(streams(), 1000 + 10 * values()[:, -1, 0])
    online = regressor.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    np.testing.assert_allclose(online.predict(at=8.0), regressor.predict(streams(1)[:1]), rtol=1e-5)
    assert 900 < online.predict(at=8.0)[0] < 1100


def test_online_forecaster():
    forecaster = LogCDEForecaster(**QUICK).fit(streams())
    online = forecaster.online()
    for time, row in enumerate(values(1)[0]):
        online.observe(float(time), row)
    expected = forecaster.predict(streams(1)[:1], at=[8.5])
    np.testing.assert_allclose(online.predict(at=8.5), expected[0, 0], rtol=1e-4, atol=1e-5)

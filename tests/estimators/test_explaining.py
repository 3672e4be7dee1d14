import numpy as np
import pytest

import logcde as lc
from logcde.errors import ModelError
from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor, WindowRidge
from logcde.streams.transforms import keep_observations
from tests.estimators.series import QUICK, labels, streams, values


@pytest.mark.parametrize("options", [QUICK, {"learner": WindowRidge(units=50), "random_state": 0}])
def test_explanation_is_the_change_without_the_observations(options):
    classifier = LogCDEClassifier(**options).fit(streams(missing=0.3), labels())
    some = streams(1, 0.3)
    found = classifier.explain(some, parts=2)
    assert found.shape == (len(some), 2, 2)
    late_b = (some.channel == 1) & (np.repeat(some.times, np.diff(some.obs_offsets)) >= 4.0)
    without = keep_observations(some, ~late_b)
    best = classifier.predict_proba(some).argmax(axis=1)[:, None]
    before, after = (
        np.log(np.take_along_axis(classifier.predict_proba(one), best, axis=1)[:, 0]) for one in (some, without)
    )
    np.testing.assert_allclose(found[:, 1, 1], before - after, rtol=1e-5, atol=1e-6)


def test_explanation_finds_the_channel_that_decides():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 20, 3))
    X[:, :, 1] += rng.normal(size=(80, 1)) * 2
    y = X[:, :, 1].mean(axis=1)
    found = np.abs(LogCDERegressor(random_state=0).fit(X, y).explain(X, parts=1)).mean(axis=(0, 2))
    assert found.argmax() == 1
    assert found[1] > 5 * max(found[0], found[2])


def test_features_cannot_be_attributed_to_observations():
    classifier = LogCDEClassifier(learner=WindowRidge(units=10), random_state=0).fit(values(), labels())
    with pytest.raises(ModelError, match="FeatureModel has no gradients .* `explain`"):
        lc.attribute(classifier.model_, streams()[:1])
    with pytest.raises(ModelError, match="0 parts"):
        classifier.explain(values(), parts=0)


def test_explanation_of_a_forecast_is_in_recent_observations_of_its_channel():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(60, 12, 2)), axis=1)
    forecaster = LogCDEForecaster(random_state=0).fit(X)
    found = np.abs(forecaster.explain(X[:20], at=13.0, output=1, parts=3)).mean(axis=0)
    assert np.unravel_index(found.argmax(), found.shape) == (1, 2)
    assert found[1, 2] > 5 * found[0].max()
    with pytest.raises(ModelError, match="no target number 2. Give a number from 0 to 1"):
        forecaster.explain(X, output=2)

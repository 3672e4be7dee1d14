"""Data that pipelines meet daily: channels and series without observations, one long series, skewed targets."""

import re

import numpy as np
import pandas
import pytest

from logcde.errors import LogcdeError, LogcdeWarning, StreamError, TrainingError
from logcde.estimators import (
    Auto,
    DirectForecast,
    LogCDEClassifier,
    LogCDEForecaster,
    LogCDERegressor,
    LogSLiCE,
    Wide,
    WindowBoosting,
    WindowRidge,
    WindowTrees,
    load,
)
from logcde.estimators.learners.abstract import Task
from logcde.estimators.learners.blend import default_learners
from logcde.features import GaussianProcess
from logcde.streams import Streams
from tests.estimators.series import labels, values

RIDGE = WindowRidge(units=40)


def with_silent_channel():
    array = np.concatenate([values(), np.full((*values().shape[:2], 1), np.nan)], axis=2)
    return array, labels()


@pytest.mark.parametrize("learner", [None, RIDGE, WindowTrees(trees=20), WindowBoosting(rounds=5)], ids=str)
def test_unobserved_channel_is_ignored_with_a_warning(learner):
    array, classes = with_silent_channel()
    with pytest.warns(LogcdeWarning, match="'x3' is never observed in the 24 training series") as told:
        classifier = LogCDEClassifier(learner=learner, random_state=0).fit(array, classes)
    assert len(told) == 1
    assert np.isfinite(classifier.predict_proba(array)).all()
    assert classifier.score(array, classes) > 0.55


def test_unobserved_channel_is_refused_by_networks():
    array, classes = with_silent_channel()
    with pytest.raises(StreamError, match="'x3' is never observed"):
        LogCDEClassifier(learner=LogSLiCE(steps=2)).fit(array, classes)


def test_forecasts_of_given_targets_ignore_an_unobserved_channel():
    array, _ = with_silent_channel()
    with pytest.warns(LogcdeWarning, match="never observed"):
        forecaster = LogCDEForecaster(random_state=0).fit(array, array[:, -1, :1])
    assert np.isfinite(forecaster.predict(array)).all()
    with pytest.raises(StreamError, match="'x3' is never observed"):
        LogCDEForecaster(random_state=0).fit(array)


@pytest.mark.parametrize("learner", [None, LogSLiCE(steps=2)], ids=["default", "network"])
def test_series_without_observations_is_predicted_with_a_warning(learner):
    array = values()
    classifier = LogCDEClassifier(learner=learner, random_state=0).fit(array, labels())
    further = values(1)
    expected = classifier.predict_proba(further)
    further[3] = np.nan
    with pytest.warns(LogcdeWarning, match="1 of 24 series have no observation, such as 3"):
        found = classifier.predict_proba(further)
    assert np.isfinite(found).all()
    others = np.arange(24) != 3
    np.testing.assert_array_equal(found[others], expected[others])
    with pytest.warns(LogcdeWarning, match="no observation"):
        alone = classifier.predict_proba(further[3:4])
    np.testing.assert_array_equal(alone, found[3:4])
    online = classifier.online()
    logits = online.predict(at=float(array.shape[1]))
    np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(), found[3], atol=1e-6)


def test_series_of_lists_and_frames_may_be_without_observations():
    classifier = LogCDEClassifier(learner=RIDGE, random_state=0).fit(list(values()), labels())
    with pytest.warns(LogcdeWarning, match="no observation"):
        found = classifier.predict_proba([*values(1)[:2], np.empty((0, 2))])
    assert found.shape == (3, 2)

    def frame(array):
        steps = range(array.shape[1])
        rows = [(f"p{n}", float(t), *one[t]) for n, one in enumerate(array) for t in steps]
        return pandas.DataFrame(rows, columns=["series", "time", "a", "b"])

    classifier = LogCDEClassifier(learner=RIDGE, table=Wide(), random_state=0).fit(frame(values()), labels())
    further = values(1)
    further[1] = np.nan
    with pytest.warns(LogcdeWarning, match="such as 'p1'"):
        assert np.isfinite(classifier.predict_proba(frame(further))).all()


def long_series(steps=600):
    rng = np.random.default_rng(0)
    return (np.sin(np.arange(steps) / 5) + 0.05 * rng.normal(size=steps))[None, :, None]


def test_one_long_series_is_forecast(tmp_path):
    series = long_series()
    forecaster = LogCDEForecaster(learner=DirectForecast(rounds=50), random_state=0).fit(series)
    at = [600.0, 605.0]
    found = forecaster.predict(series, at=at)
    assert np.abs(found[0, :, 0] - np.sin(np.array(at) / 5)).max() < 0.4
    left_out, shrunk = re.findall(r"([\d.e-]+) left out, ([\d.e-]+) of", forecaster.choices_["x1"].reason)[0]
    assert float(left_out) < 0.6 * float(shrunk)
    forecaster.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(series, at=at), found)


def test_auto_is_the_default_of_forecasters():
    series = long_series(60)
    found = [
        LogCDEForecaster(learner=learner, random_state=0).fit(series).predict(series, at=[61.0])
        for learner in (None, Auto())
    ]
    np.testing.assert_array_equal(*found)


def test_parts_of_one_series_are_forecast_from_what_was_before():
    seen = []

    class Watched(DirectForecast):
        def _later(self, asked, *, few):
            for training, rest in super()._later(asked, few=few):
                seen.append((asked.time[training].max(), asked.until[rest].min(), len(rest)))
                yield training, rest

    LogCDEForecaster(learner=Watched(rounds=5), random_state=0).fit(long_series(100))
    assert len(seen) == 4
    assert all(known < cut and count for known, cut, count in seen)


def test_one_series_is_too_few_for_networks_and_targets():
    with pytest.raises(TrainingError, match="too few series"):
        LogCDEForecaster(learner=LogSLiCE(steps=2)).fit(long_series(20))
    with pytest.raises(LogcdeError, match="too few series"):
        LogCDEForecaster().fit(long_series(20), np.ones(1))


def skewed(count, seed):
    rng = np.random.default_rng(seed)
    array = np.cumsum(rng.normal(size=(count, 20, 2)), axis=1) * 0.5
    return array, np.exp(0.9 * array[:, -1, 0] + 0.3 * rng.normal(size=count))


def test_skewed_targets_of_many_series_are_learnt_by_trees_too():
    (array, targets), (further, truth) = skewed(520, 0), skewed(300, 1)
    regressor = LogCDERegressor(random_state=0).fit(array, targets)
    shares = {name: one.value for name, one in regressor.choices_.items() if "left out" in one.reason}
    forest = next(share for name, share in shares.items() if name.startswith("WindowTrees"))
    assert forest > 0.2, shares
    found = regressor.predict(further)
    assert np.abs(found - truth).mean() < 0.6 * np.abs(np.median(targets) - truth).mean()


def task_of(series, channels, steps, classes):
    streams = Streams.from_dense(np.zeros((series, steps, channels)), horizon=float(steps))
    return Task(streams, np.arange(series) % (classes or series), classes, np.ones(series), 1.0, 0)


def test_learners_are_affordable():
    many = default_learners(task_of(500, 1, 2, 11))
    assert not any(isinstance(one, WindowBoosting) for one in many)
    assert any(isinstance(one, WindowBoosting) for one in default_learners(task_of(500, 1, 2, 10)))
    rank = [default_learners(task_of(*shape, 2))[1].smoother.rank for shape in ((60, 3, 100), (200, 60, 300))]
    assert rank[0] == GaussianProcess().rank
    assert 20 <= rank[1] < 100

import numpy as np
import pandas
import pytest

import logcde as lc
from logcde.errors import LogcdeError, OutOfRangeWarning
from logcde.estimators import LogCDEForecaster, LogSLiCE, Long
from logcde.estimators.forecaster import embed_queries
from logcde.estimators.queries import queries_at, queries_of_targets
from tests.estimators.series import COUNT, QUICK, STEPS, streams, values


@pytest.fixture(scope="module")
def fitted() -> LogCDEForecaster:
    return LogCDEForecaster(**QUICK).fit(streams(missing=0.3))


def test_forecast_of_sine_waves():
    rng = np.random.default_rng(0)
    waves = np.sin(np.arange(12) + rng.uniform(0, 6, size=(80, 1)))[..., None]
    forecaster = LogCDEForecaster(learner=LogSLiCE(steps=400), random_state=0).fit(waves[:60, :10])
    assert forecaster.score(waves[60:]) > 0.8
    ahead = forecaster.predict(waves[60:, :11])
    assert ahead.shape == (20, 1, 1)
    assert np.corrcoef(ahead[:, 0, 0], waves[60:, 11, 0])[0, 1] > 0.9


def test_prediction_uses_past_observations_only(fitted):
    array = values(1, 0.3)
    before = fitted.predict(lc.Streams.from_dense(array, channels=["a", "b"]), at=[1.0, 3.0])
    array[:, 3:] += 100.0
    with pytest.warns(OutOfRangeWarning, match="values of 'b' such as"):
        after = fitted.predict(lc.Streams.from_dense(array, channels=["a", "b"]), at=[1.0, 3.0])
    np.testing.assert_array_equal(before, after)


def test_embed_queries_excludes_observation_at_query_time():
    one = lc.Streams.from_dense(np.ones((1, 3, 1)), horizon=2.0)
    logsigs, queries = embed_queries(lc.Embedding(1), lc.Partition.every(1.0), one, queries_at([2.0], one))
    assert logsigs.values[0, :, 1].tolist() == [1.0, 1.0]  # two of the three observations
    assert queries.ends.tolist() == [[1]]


def test_predict_at_different_times_for_each_series(fitted):
    at = [[0.5, 2.0, 7.0]] + [[float(n % 3 + 1)] for n in range(COUNT - 1)]
    found = fitted.predict(streams(1), at=at)
    assert found.shape == (COUNT, 3, 2)
    assert np.isnan(found).sum() == (COUNT - 1) * 2 * 2
    np.testing.assert_array_equal(found[:1], fitted.predict(streams(1)[:1], at=[0.5, 2.0, 7.0]))
    np.testing.assert_array_equal(
        fitted.predict(streams(1), at=lc.Partition.every(2.0)), fitted.predict(streams(1), at=[2.0, 4.0, 6.0, 8.0])
    )


def test_predict_defaults_to_horizon(fitted):
    np.testing.assert_array_equal(fitted.predict(streams(1)), fitted.predict(streams(1), at=[float(STEPS)]))


def test_fit_to_target_streams():
    """Targets are other channels, partly unknown, with the series in another order."""
    later = lc.Streams.from_arrays(
        [[1.5, 4.0]] * COUNT,
        [[[np.nan, one[1, 0]], [one[3, 0], np.nan]] for one in values()],
        channels=["y", "z"],
        ids=list(streams().ids),
    )
    forecaster = LogCDEForecaster(**QUICK).fit(streams(), later[::-1])
    assert forecaster.predict(streams(), at=[4.0]).shape == (COUNT, 1, 2)
    assert forecaster.score(streams(), later) == forecaster.score(streams(), later[::-1])
    queries = queries_of_targets(later)
    expected = [[np.nan, values()[0, 1, 0]], [values()[0, 3, 0], np.nan]]
    np.testing.assert_array_equal(queries.by_series(queries.targets)[0], expected)


def test_fit_to_target_frame():
    frame = streams().to_frame(pandas)
    targets = frame[frame["time"] > 2].assign(channel="level")
    targets = targets.drop_duplicates(["series", "time"])
    start = pandas.Timestamp("2024-01-01")
    for table in (frame, targets):
        table["time"] = start + pandas.to_timedelta(table["time"], unit="h")
    forecaster = LogCDEForecaster(table=Long(), **QUICK).fit(frame, targets)
    assert forecaster.predict(frame, at=[start + pandas.Timedelta(hours=3)]).shape == (COUNT, 1, 1)
    assert np.isfinite(forecaster.score(frame, targets))


def test_fit_to_one_row_per_series():
    forecaster = LogCDEForecaster(**QUICK).fit(streams(), values()[:, -1])
    assert forecaster.predict(streams()).shape == (COUNT, 1, 2)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ([0.0, 1.0], "after the start"),
        ([2.0, 1.0], "Query times increase"),
        ([[1.0], [2.0]], "times for 2 series, but 24"),
    ],
)
def test_invalid_query_times_are_refused(fitted, at, words):
    with pytest.raises(LogcdeError, match=words):
        fitted.predict(streams(), at=at)


def test_invalid_targets_are_refused():
    with pytest.raises(LogcdeError, match="never known after the start"):
        LogCDEForecaster(**QUICK).fit(values()[:, :1])
    with pytest.raises(LogcdeError, match="no targets for the series 's23'"):
        LogCDEForecaster(**QUICK).fit(streams(), streams()[:-1])
    with pytest.raises(LogcdeError, match="There are 24 series in X, but 3 targets in y"):
        LogCDEForecaster(**QUICK).fit(streams(), [1.0, 2.0, 3.0])

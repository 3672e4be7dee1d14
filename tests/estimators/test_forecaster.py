import numpy as np
import pandas
import pytest

import logcde as lc
from logcde.errors import LogcdeError
from logcde.estimators import LogCDEForecaster, Long
from logcde.estimators.forecaster import asked_at, asked_by, embedded
from tests.estimators.series import COUNT, QUICK, STEPS, streams, values


@pytest.fixture(scope="module")
def fitted() -> LogCDEForecaster:
    return LogCDEForecaster(**QUICK).fit(streams(missing=0.3))


def test_waves_are_foretold():
    rng = np.random.default_rng(0)
    waves = np.sin(np.arange(12) + rng.uniform(0, 6, size=(80, 1)))[..., None]
    forecaster = LogCDEForecaster(max_iter=400, random_state=0).fit(waves[:60, :10])
    assert forecaster.score(waves[60:]) > 0.8
    ahead = forecaster.predict(waves[60:, :11])
    assert ahead.shape == (20, 1, 1)
    assert np.corrcoef(ahead[:, 0, 0], waves[60:, 11, 0])[0, 1] > 0.9


def test_the_present_and_the_future_do_not_matter(fitted):
    array = values(1, 0.3)
    before = fitted.predict(lc.Streams.from_dense(array, channels=["a", "b"]), at=[1.0, 3.0])
    array[:, 3:] += 100.0
    np.testing.assert_array_equal(
        before, fitted.predict(lc.Streams.from_dense(array, channels=["a", "b"]), at=[1.0, 3.0])
    )


def test_what_is_observed_at_the_last_query_belongs_to_later():
    one = lc.Streams.from_dense(np.ones((1, 3, 1)), horizon=2.0)
    logsigs, queries = embedded(lc.Embedding(1), lc.Partition.every(1.0), one, asked_at([2.0], one))
    assert logsigs.values[0, :, 1].tolist() == [1.0, 1.0]  # two of the three observations
    assert queries.ends.tolist() == [[1]]


def test_times_may_differ_between_series(fitted):
    at = [[0.5, 2.0, 7.0]] + [[float(n % 3 + 1)] for n in range(COUNT - 1)]
    found = fitted.predict(streams(1), at=at)
    assert found.shape == (COUNT, 3, 2)
    assert np.isnan(found).sum() == (COUNT - 1) * 2 * 2
    np.testing.assert_array_equal(found[:1], fitted.predict(streams(1)[:1], at=[0.5, 2.0, 7.0]))
    np.testing.assert_array_equal(
        fitted.predict(streams(1), at=lc.Partition.every(2.0)), fitted.predict(streams(1), at=[2.0, 4.0, 6.0, 8.0])
    )


def test_by_default_at_the_end(fitted):
    np.testing.assert_array_equal(fitted.predict(streams(1)), fitted.predict(streams(1), at=[float(STEPS)]))


def test_targets_of_other_streams():
    """Another channel, known at some stamps only, in another order of series."""
    later = lc.Streams.from_arrays(
        [[1.5, 4.0]] * COUNT,
        [[[np.nan, one[1, 0]], [one[3, 0], np.nan]] for one in values()],
        channels=["y", "z"],
        ids=list(streams().ids),
    )
    forecaster = LogCDEForecaster(**QUICK).fit(streams(), later[::-1])
    assert forecaster.predict(streams(), at=[4.0]).shape == (COUNT, 1, 2)
    assert forecaster.score(streams(), later) == forecaster.score(streams(), later[::-1])
    asked = asked_by(later)
    expected = [[np.nan, values()[0, 1, 0]], [values()[0, 3, 0], np.nan]]
    np.testing.assert_array_equal(asked.by_series(asked.answers)[0], expected)


def test_tables_of_targets():
    frame = streams().to_frame(pandas)
    targets = frame[frame["time"] > 2].assign(channel="level")
    targets = targets.drop_duplicates(["series", "time"])
    start = pandas.Timestamp("2024-01-01")
    for table in (frame, targets):
        table["time"] = start + pandas.to_timedelta(table["time"], unit="h")
    forecaster = LogCDEForecaster(table=Long(), **QUICK).fit(frame, targets)
    assert forecaster.predict(frame, at=[start + pandas.Timedelta(hours=3)]).shape == (COUNT, 1, 1)
    assert np.isfinite(forecaster.score(frame, targets))


def test_one_row_for_each_series_is_known_at_its_end():
    forecaster = LogCDEForecaster(**QUICK).fit(streams(), values()[:, -1])
    assert forecaster.predict(streams()).shape == (COUNT, 1, 2)


@pytest.mark.parametrize(
    ("at", "words"),
    [([0.0, 1.0], "after the start"), ([2.0, 1.0], "Times increase"), ([[1.0], [2.0]], "times for 2 series, but 24")],
)
def test_times_that_cannot_be_asked_for(fitted, at, words):
    with pytest.raises(LogcdeError, match=words):
        fitted.predict(streams(), at=at)


def test_targets_that_cannot_be_learnt():
    with pytest.raises(LogcdeError, match="never known after the start"):
        LogCDEForecaster(**QUICK).fit(values()[:, :1])
    with pytest.raises(LogcdeError, match="no targets for the series 's23'"):
        LogCDEForecaster(**QUICK).fit(streams(), streams()[:-1])
    with pytest.raises(LogcdeError, match="There are 24 series in X, but 3 in y"):
        LogCDEForecaster(**QUICK).fit(streams(), [1.0, 2.0, 3.0])

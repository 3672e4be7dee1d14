"""All input forms of the same data give the same predictions."""

import dataclasses
import datetime

import numpy as np
import pandas
import polars
import pytest

from logcde.errors import LogcdeWarning, StreamError
from logcde.estimators import LogCDEClassifier, LogCDERegressor, LogCDETransformer, Long, Wide, WindowRidge
from logcde.streams import NumericClock, Streams
from tests.estimators.series import COUNT, QUICK, STEPS, labels, streams, values


def long_frame(missing: float = 0.3) -> pandas.DataFrame:
    return streams(missing=missing).to_frame(pandas)


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return LogCDEClassifier(**QUICK).fit(values(missing=0.3), labels()).predict_proba(values(1, 0.3))


def test_ragged_list_equals_padded_array(expected):
    cut = [one[: np.flatnonzero(~np.isnan(one).all(axis=1))[-1] + 1] for one in values(missing=0.3)]
    classifier = LogCDEClassifier(**QUICK).fit(cut, labels())
    np.testing.assert_array_equal(classifier.predict_proba(values(1, 0.3)), expected)
    assert classifier.n_features_in_ == 2
    assert not hasattr(classifier, "feature_names_in_")
    assert classifier.classes_.tolist() == ["down", "up"]


def test_streams_equal_array(expected):
    classifier = LogCDEClassifier(**QUICK).fit(streams(missing=0.3), labels())
    np.testing.assert_array_equal(classifier.predict_proba(streams(1, 0.3)), expected)
    assert classifier.feature_names_in_.tolist() == ["a", "b"]
    each = list(streams(1, 0.3))
    np.testing.assert_array_equal(classifier.predict_proba(each), expected)


@pytest.mark.parametrize("convert", [lambda frame: frame, polars.from_pandas])
def test_long_frame_equals_array(expected, convert):
    classifier = LogCDEClassifier(table=Long(), **QUICK)
    classifier.fit(convert(long_frame()), dict(zip(streams().ids, labels(), strict=True)))
    found = classifier.predict_proba(convert(streams(1, 0.3).to_frame(pandas)))
    np.testing.assert_array_equal(found, expected)


def test_wide_frame_equals_array(expected):
    def wide(seed: int) -> pandas.DataFrame:
        rows = values(seed, 0.3).reshape(-1, 2)
        ids, time = np.repeat(streams().ids, STEPS), np.tile(np.arange(STEPS), COUNT)
        return pandas.DataFrame({"who": ids, "step": time, "a": rows[:, 0], "b": rows[:, 1]})

    targets = pandas.Series(labels(), index=streams().ids)
    classifier = LogCDEClassifier(table=Wide("who", "step"), **QUICK).fit(
        wide(0), targets.sample(frac=1, random_state=0)
    )
    np.testing.assert_array_equal(classifier.predict_proba(wide(1)), expected)


def test_prediction_is_independent_of_other_series():
    classifier = LogCDEClassifier(table=Long(), **QUICK).fit(long_frame(), labels())
    frame = streams(1, 0.3).to_frame(pandas)
    alone = classifier.predict_proba(frame[frame["series"] == "s3"])
    np.testing.assert_array_equal(alone, classifier.predict_proba(frame)[3:4])


def test_datetimes_count_from_first_stamp_of_each_series():
    def dated(year: int) -> pandas.DataFrame:
        frame = long_frame()
        start = datetime.datetime(year, 3, 1)
        frame["time"] = [start + datetime.timedelta(hours=hours) for hours in frame["time"]]
        return frame

    regressor = LogCDERegressor(table=Long(), **QUICK).fit(dated(2020), values()[:, -1, 0])
    np.testing.assert_array_equal(regressor.predict(dated(2020)), regressor.predict(dated(2024)))
    begun = dated(2024)[:1]
    assert regressor.predict(begun).shape == (1,)
    online = regressor.online()
    online.observe(begun["time"][0], {begun["channel"][0]: begun["value"][0]})
    np.testing.assert_allclose(
        online.predict(begun["time"][0] + regressor.gap_ * datetime.timedelta(hours=1)),
        regressor.predict(begun),
        rtol=1e-5,
    )


def test_series_longer_than_in_training():
    classifier = LogCDEClassifier(**QUICK).fit(values(), labels())
    assert np.isfinite(classifier.predict_proba(np.concatenate([values(), values()], axis=1))).all()
    assert classifier.predict(values()[:1, :1]).shape == (1,)


def test_array_of_samples_and_features_has_one_channel():
    flat = LogCDEClassifier(**QUICK).fit(values()[..., 0], labels())
    deep = LogCDEClassifier(**QUICK).fit(values()[..., :1], labels())
    np.testing.assert_array_equal(flat.predict_proba(values()[..., 0]), deep.predict_proba(values()[..., :1]))
    assert (flat.n_features_in_, deep.n_features_in_) == (STEPS, 1)


def test_constant_channel_and_single_observation():
    constant = values()
    constant[..., 1] = 7.0
    assert np.isfinite(LogCDEClassifier(**QUICK).fit(constant, labels()).predict_proba(constant)).all()
    single = values()[:, :1]
    assert np.isfinite(LogCDEClassifier(**QUICK).fit(single, labels()).predict_proba(single)).all()


def test_arrays_with_channels_first(expected):
    def turned(seed=0):
        return np.swapaxes(values(seed, 0.3), 1, 2)

    classifier = LogCDEClassifier(channels_first=True, **QUICK).fit(turned(), labels())
    np.testing.assert_array_equal(classifier.predict_proba(turned(1)), expected)
    np.testing.assert_array_equal(classifier.predict_proba(list(turned(1))), expected)
    assert classifier.n_features_in_ == 2
    features = LogCDETransformer(channels_first=True).fit_transform(turned())
    np.testing.assert_array_equal(features, LogCDETransformer().fit_transform(values(missing=0.3)))


def test_arrays_whose_axes_are_mistaken_are_told():
    long = np.random.default_rng(0).normal(size=(COUNT, 2, 64))  # as in aeon
    with pytest.warns(LogcdeWarning, match="read as 24 series of 2 steps with 64 channels.*channels_first=True"):
        LogCDEClassifier(learner=WindowRidge(units=0)).fit(long, labels())
    classifier = LogCDEClassifier(learner=WindowRidge(units=0)).fit(np.swapaxes(long, 1, 2), labels())
    with pytest.raises(
        StreamError, match="2 steps with 64 channels, but there are 2 names of channels.*channels_first"
    ):
        classifier.predict(long)
    ragged = [np.zeros((2, 7 + number)) for number in range(COUNT)]
    with pytest.raises(StreamError, match="equally many rows.*channels_first=True"):
        LogCDEClassifier().fit(ragged, labels())


def test_series_to_predict_are_put_on_the_clock_of_training():
    """Streams that are read by themselves count from elsewhere: a late series, or a later table."""
    times = [np.arange(STEPS) + start for start in np.arange(COUNT) / 4]
    regressor = LogCDERegressor(learner=WindowRidge(units=0))
    regressor.fit(Streams.from_arrays(times, list(values()), horizon=20.0), values()[:, -1, 0])
    late = Streams.from_arrays([np.arange(4) / 64 + 5.0], [values()[0, :4]], horizon=6.0)
    alone = Streams.from_arrays([np.arange(4) / 64 + 5.0], [values()[0, :4]], origin=5.0)
    assert (late.schema.clock, alone.schema.clock) == (NumericClock(), NumericClock(5.0))
    ended = dataclasses.replace(late, horizon=np.array([5.0 + 3 / 64]))
    np.testing.assert_array_equal(regressor.predict(alone), regressor.predict(ended))

    epochs = LogCDERegressor(learner=WindowRidge(units=0))
    epochs.fit(Streams.from_arrays([one + 1.7e9 for one in times], list(values())), values()[:, -1, 0])
    later = Streams.from_arrays([times[0] + 1.7e9 + 2.0], [values()[0]])
    again = Streams.from_arrays([times[0] + 1.7e9 + 2.0], [values()[0]], schema=epochs.schema_)
    np.testing.assert_array_equal(epochs.predict(later), epochs.predict(again))
    with pytest.raises(StreamError, match=r"at 1699999999.0: this is before 1700000000.0, from where the clock counts"):
        epochs.predict(Streams.from_arrays([times[0] + 1.7e9 - 1.0], [values()[0]]))

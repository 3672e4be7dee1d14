import numpy as np
import pandas
import pytest
from sklearn.exceptions import NotFittedError

from logcde.errors import LogcdeError, NonFinitePredictionError, OutOfRangeWarning, StreamError
from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor, Long, WindowRidge
from logcde.streams import FirstStamp, Streams
from tests.estimators import unstable
from tests.estimators.series import COUNT, QUICK, labels, streams, values


def check_refused(words: str, X: object, y: object, estimator: object = None) -> None:
    with pytest.raises(LogcdeError, match=words):
        (estimator or LogCDEClassifier(**QUICK)).fit(X, y)


def test_single_series_is_refused():
    check_refused(r"too few series \(n_samples=1\)", values()[:1], ["up"])


def test_single_class_is_refused():
    check_refused("All 24 series are of one class, 'up'", values(), ["up"] * COUNT)


def test_missing_targets_are_refused():
    check_refused("requires y to be passed", values(), None)


def test_wrong_number_of_targets_is_refused():
    check_refused("There are 24 series in X, but 25 targets in y", values(), [*labels(), "up"])
    frame = streams().to_frame(pandas)
    stamps = frame.drop_duplicates(["series", "time"])
    check_refused(
        "one target for each row of X", frame, ["up", "down"] * (len(stamps) // 2), LogCDEClassifier(table=Long())
    )


def test_targets_with_unknown_index_are_refused():
    check_refused("cannot be matched with series", streams(), pandas.Series(labels()))
    check_refused("no target for the series 's0'", streams(), dict.fromkeys(streams().ids[1:], "up"))


def test_unobserved_channel_is_refused():
    array = values()
    array[..., 1] = np.nan
    check_refused("'x2' is never observed in the 24 training series", array, labels())


def test_empty_series_is_refused():
    array = values()
    array[3] = np.nan
    check_refused("Series 3 has no observation", array, labels())


def test_infinite_and_complex_values_are_refused():
    array = values()
    array[2, 1, 0] = np.inf
    check_refused("Series 2, channel 'x1', at 1 has the infinite value inf|infinite", array, labels())
    check_refused("Complex data not supported: series 0", values() + 1j, labels())


def test_text_value_is_refused():
    array = values().astype(object)
    array[0, 0, 0] = "high"
    check_refused("'high', which is not a number", array, labels())


@pytest.mark.parametrize(("wrong", "words"), [(np.nan, "y contains NaN"), (np.inf, "y contains infinity")])
def test_non_finite_targets_are_refused(wrong, words):
    targets = values()[:, -1, 0].copy()
    targets[4] = wrong
    for estimator in (LogCDERegressor(**QUICK), LogCDEForecaster(**QUICK)):
        with pytest.raises(ValueError, match=words):
            estimator.fit(values(), targets)


def test_frame_without_layout_is_refused():
    frame = streams().to_frame(pandas)
    check_refused("the column 'series' is .*name the columns: table=Long", frame, labels())
    numbered = pandas.DataFrame({"series": [0, 0, 1, 1], "time": [0, 1, 0, 1], "pulse": [1.0, 2.0, 3.0, 4.0]})
    check_refused("there are columns 'series' and 'time'", numbered, [0, 1])


def test_other_things_than_learners_are_refused():
    check_refused("'wide' is not a learner", values(), labels(), LogCDEClassifier(learner="wide"))
    check_refused("cannot forecast", values(), None, LogCDEForecaster(learner=WindowRidge()))


@pytest.mark.parametrize("weight", [np.ones(3), np.zeros(COUNT), np.full(COUNT, np.nan)])
def test_bad_weights_are_refused(weight):
    with pytest.raises(LogcdeError, match="sample_weight has"):
        LogCDEClassifier(**QUICK).fit(values(), labels(), sample_weight=weight)


def test_unfitted_estimator_is_refused():
    for estimator in (LogCDEClassifier(), LogCDERegressor(), LogCDEForecaster()):
        for use in (lambda of: of.predict(values()), lambda of: of.online(), lambda of: of.save("nowhere")):
            with pytest.raises(NotFittedError):
                use(estimator)


def test_estimator_is_unfitted_after_failed_fit():
    classifier = LogCDEClassifier()
    with pytest.raises(LogcdeError, match="of one class"):
        classifier.fit(values(), ["up"] * COUNT)
    with pytest.raises(NotFittedError):
        classifier.predict(values())


@pytest.fixture(scope="module")
def fitted() -> LogCDEClassifier:
    return LogCDEClassifier(**QUICK).fit(streams(), labels())


def test_other_channels_than_in_training_are_refused(fitted):
    other = streams().to_frame(pandas).astype({"channel": str}).replace({"channel": {"b": "c"}})
    with pytest.raises(LogcdeError, match=r"fitted to the channels 'a', 'b', but .* 'a', 'c': 'b' missing and 'c' new"):
        fitted.predict(type(streams()).from_frame(other))
    with pytest.raises(LogcdeError, match="'x1', 'x2', 'x3'"):
        fitted.predict(np.zeros((2, 8, 3)))


def test_score_warns_of_unknown_class(fitted):
    targets = labels()
    targets[0] = "on"
    with pytest.warns(UserWarning, match="the classes 'on', which had no training series"):
        assert fitted.score(streams(), targets) <= 1 - 1 / COUNT


def test_too_many_channels_are_refused():
    many = np.zeros((2, 1, 20_001))
    with pytest.raises(StreamError, match=r"There are 20,001 channels; an estimator learns from at most 20,000\."):
        LogCDEClassifier(channels_first=False).fit(many, [0, 1])


@pytest.mark.filterwarnings("ignore::logcde.errors.OutOfRangeWarning")
@pytest.mark.parametrize(
    ("fitted", "method"),
    [("classifier", "predict_proba"), ("classifier", "predict"), ("regressor", "predict"), ("forecaster", "predict")],
)
def test_series_that_is_not_finite_is_named_and_the_others_are_predicted(fitted, method):
    estimator, feed = getattr(unstable, fitted)(), unstable.feed()
    with pytest.raises(NonFinitePredictionError, match=f"series '{unstable.LOST}' is not finite") as caught:
        getattr(estimator, method)(feed)
    error = caught.value
    assert (error.series, error.where.series) == ((unstable.LOST,), unstable.LOST)
    others = (estimator.predict_proba if fitted == "classifier" else estimator.predict)(feed[[0, 2]])
    np.testing.assert_array_equal(error.predictions[[0, 2]], others)
    assert np.isnan(error.predictions[1]).all()


def test_series_far_outside_of_training_are_warned_of_in_one_sentence_for_each_call():
    estimator = unstable.regressor()
    assert np.isfinite(estimator.predict(unstable.series_of([8] * 5, seed=2))).all()
    dense = Streams.from_arrays([np.arange(40) / 50] * 2, [np.ones((40, 1))] * 2, ["a"], 1.0, ids=["dense", "too"])
    for method in ("predict", "score", "explain"):
        arguments = ([1.0, 2.0],) if method == "score" else ()
        with pytest.warns(OutOfRangeWarning, match="^2 of 2 series lie far .* Series 'dense' has .* within") as caught:
            getattr(estimator, method)(dense, *arguments)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert (caught[0].message.found.series, caught[0].message.found.worst[0].series) == (2, "dense")


def test_estimators_saved_without_ranges_say_nothing(tmp_path):
    estimator = LogCDERegressor(learner=WindowRidge(units=5)).fit(unstable.series_of([8] * 12), np.arange(12.0))
    estimator.save(tmp_path / "with")
    again = LogCDERegressor.load(tmp_path / "with")
    for name in ("lowest", "highest", "most", "silence", "longest", "channels", "unit"):
        np.testing.assert_array_equal(getattr(again.ranges_, name), getattr(estimator.ranges_, name))
    with pytest.warns(OutOfRangeWarning):
        again.predict(unstable.feed())
    del again.ranges_
    again.save(tmp_path / "without")
    older = LogCDERegressor.load(tmp_path / "without")
    assert np.isfinite(older.predict(unstable.feed())).all()
    assert np.isfinite(older.online().predict(at=1.0)).all()


def epochs(start: float, seed: int, **options) -> Streams:
    """Series of three hours that begin together, in seconds since 1970; their first values tell the classes."""
    rng = np.random.default_rng(seed)
    stamps = [start + np.append(0.0, np.sort(rng.uniform(0, 10800, 20))) for _ in range(40)]
    values = [np.full((21, 1), number % 2) + 0.1 * rng.normal(size=(21, 1)) for number in range(40)]
    return Streams.from_arrays(stamps, values, ["a"], **options)


def test_epochs_one_day_later_are_told():
    """The clock of training counts from its earliest stamp, so that a day without events comes first."""
    classifier = LogCDEClassifier(learner=WindowRidge(), random_state=0).fit(epochs(1.7e9, 0), np.arange(40) % 2)
    classifier.predict(epochs(1.7e9, 1))
    with pytest.warns(OutOfRangeWarning, match=r"^40 of 40 series lie far .* begins .*origin=FirstStamp\(\)"):
        classifier.predict(epochs(1.7e9 + 86400, 1))
    with pytest.warns(OutOfRangeWarning, match=r"is asked for .* after its last event"):
        classifier.predict(epochs(1.7e9, 1, horizon=1.7e9 + 1e6))
    online = classifier.online()
    with pytest.warns(OutOfRangeWarning, match=r"^The series begins 8.64e\+04 after the start of time"):
        online.observe(1.7e9 + 86400, [0.5])
    first = FirstStamp()
    other = LogCDEClassifier(learner=WindowRidge(), random_state=0).fit(
        epochs(1.7e9, 0, origin=first), np.arange(40) % 2
    )
    assert other.score(epochs(1.7e9 + 86400, 1, origin=first), np.arange(40) % 2) > 0.9


def test_whole_numbers_beyond_all_floats_are_refused():
    large = [10**400] * COUNT
    with pytest.raises(LogcdeError, match="y has a number of more than 100 digits, too large"):
        LogCDERegressor(learner=WindowRidge()).fit(values(), large)
    with pytest.raises(LogcdeError, match="ample_weight has a number of more than 100 digits, too large"):
        LogCDERegressor(learner=WindowRidge()).fit(values(), np.arange(COUNT), sample_weight=large)


def test_masked_numbers_are_not_observed():
    masked = np.ma.array(values(), mask=np.random.default_rng(0).random(values().shape) < 0.3)
    both = [
        LogCDERegressor(learner=WindowRidge(), random_state=0).fit(X, np.arange(COUNT))
        for X in (masked, masked.filled(np.nan))
    ]
    np.testing.assert_array_equal(*(one.predict(masked.filled(np.nan)) for one in both))
    np.testing.assert_array_equal(both[0].predict(masked), both[0].predict(masked.filled(np.nan)))

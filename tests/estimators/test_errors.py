import numpy as np
import pandas
import pytest
from sklearn.exceptions import NotFittedError

from logcde.errors import LogcdeError, StreamError
from logcde.estimators import LogCDEClassifier, LogCDEForecaster, LogCDERegressor, Long
from tests.estimators.series import COUNT, QUICK, labels, streams, values


def refused(words: str, X: object, y: object, estimator: object = None) -> None:
    with pytest.raises(LogcdeError, match=words):
        (estimator or LogCDEClassifier(**QUICK)).fit(X, y)


def test_one_series():
    refused(r"one sample only \(n_samples=1\)", values()[:1], ["up"])


def test_one_class():
    refused("All 24 series are of one class, 'up'", values(), ["up"] * COUNT)


def test_no_answers():
    refused("requires y to be passed", values(), None)


def test_more_answers_than_series():
    refused("There are 24 series in X, but 25 in y", values(), [*labels(), "up"])
    frame = streams().to_frame(pandas)
    stamps = frame.drop_duplicates(["series", "time"])
    refused("one for each row of the table", frame, ["up", "down"] * (len(stamps) // 2), LogCDEClassifier(table=Long()))


def test_answers_that_may_belong_to_any_series():
    refused("it is not clear which belongs to which", streams(), pandas.Series(labels()))
    refused("nothing for the series 's0'", streams(), dict.fromkeys(streams().ids[1:], "up"))


def test_a_channel_that_is_never_observed():
    array = values()
    array[..., 1] = np.nan
    refused("'x2' is never observed in the 24 training series", array, labels())


def test_a_series_without_observation():
    array = values()
    array[3] = np.nan
    refused("Series number 3 has no observation at all", array, labels())


def test_infinite_and_complex_values():
    array = values()
    array[2, 1, 0] = np.inf
    refused("Series 2, channel 'x1', at 1 has the infinite value inf|infinite", array, labels())
    refused("Complex data not supported: series number 0", values() + 1j, labels())


def test_things_that_are_no_numbers():
    array = values().astype(object)
    array[0, 0, 0] = "high"
    refused("'high', which is not a number", array, labels())


@pytest.mark.parametrize(("wrong", "words"), [(np.nan, "y contains NaN"), (np.inf, "y contains infinity")])
def test_targets_that_are_not_finite(wrong, words):
    targets = values()[:, -1, 0].copy()
    targets[4] = wrong
    for estimator in (LogCDERegressor(**QUICK), LogCDEForecaster(**QUICK)):
        with pytest.raises(ValueError, match=words):
            estimator.fit(values(), targets)


def test_a_table_without_a_word_on_how_to_read_it():
    frame = streams().to_frame(pandas)
    refused("the column 'series' is .*say which column is what: table=Long", frame, labels())
    numbered = pandas.DataFrame({"series": [0, 0, 1, 1], "time": [0, 1, 0, 1], "pulse": [1.0, 2.0, 3.0, 4.0]})
    refused("there are columns 'series' and 'time'", numbered, [0, 1])


def test_a_model_that_is_none():
    refused("'wide' is no architecture", values(), labels(), LogCDEClassifier(max_iter=5).set_params(model="wide"))


def test_before_fit():
    for estimator in (LogCDEClassifier(), LogCDERegressor(), LogCDEForecaster()):
        for use in (lambda of: of.predict(values()), lambda of: of.online(), lambda of: of.save("nowhere")):
            with pytest.raises(NotFittedError):
                use(estimator)


def test_after_a_fit_that_failed():
    classifier = LogCDEClassifier()
    with pytest.raises(LogcdeError, match="of one class"):
        classifier.fit(values(), ["up"] * COUNT)
    with pytest.raises(NotFittedError):
        classifier.predict(values())


@pytest.fixture(scope="module")
def fitted() -> LogCDEClassifier:
    return LogCDEClassifier(**QUICK).fit(streams(), labels())


def test_other_channels_than_in_training(fitted):
    other = streams().to_frame(pandas).astype({"channel": str}).replace({"channel": {"b": "c"}})
    with pytest.raises(LogcdeError, match=r"fitted to the channels 'a', 'b', but .* 'a', 'c': 'b' lacking and 'c' new"):
        fitted.predict(type(streams()).from_frame(other))
    with pytest.raises(LogcdeError, match="'x1', 'x2', 'x3'"):
        fitted.predict(np.zeros((2, 8, 3)))


def test_a_class_that_training_did_not_have(fitted):
    answers = labels()
    answers[0] = "on"
    with pytest.warns(UserWarning, match="the classes 'on', of which the classifier has seen no series"):
        assert fitted.score(streams(), answers) <= 1 - 1 / COUNT


def test_very_many_channels():
    many = np.zeros((2, 1, 20_001))
    with pytest.raises(StreamError, match=r"There are 20,001 channels; 20,000 are the most .* named rightly\."):
        LogCDEClassifier().fit(many, [0, 1])

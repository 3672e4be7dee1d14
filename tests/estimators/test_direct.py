"""The default learner of the forecaster."""

import numpy as np
import pytest

import logcde as lc
from logcde.errors import LogcdeError, OutOfRangeWarning, TrainingError
from logcde.estimators import BetweenLoss, Cuts, DirectForecast, LogCDEForecaster, MeanLoss, MedianLoss, load
from logcde.estimators.learners import direct
from logcde.estimators.learners.direct import _Boosting, _Ridge
from logcde.estimators.learners.questions import Questions
from logcde.estimators.learners.shrinking import fit_shrunk
from logcde.models.forecast import ForecastModel
from tests.estimators.series import COUNT, streams, values

QUICK = DirectForecast(rounds=20)
CHANNELS = ["a", "b"]


@pytest.fixture(scope="module")
def fitted() -> LogCDEForecaster:
    return LogCDEForecaster(learner=QUICK, random_state=0).fit(streams(missing=0.3))


def waves(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Sine waves with a phase and level of their own: 20 steps, and the 10 that follow."""
    rng = np.random.default_rng(seed)
    level, phase = rng.normal(0, 3, size=(2, count, 1))
    whole = level + np.sin(0.5 * np.arange(30) + phase)
    whole[:, :20][rng.random((count, 20)) < 0.4] = np.nan
    whole[:, 0] = level[:, 0]
    return whole[:, :20, None], whole[:, 20:, None]


def errors(forecaster: LogCDEForecaster, known: np.ndarray, later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Root mean squared errors at each step ahead: of forecasts, and of last values."""
    found = forecaster.predict(known, at=np.arange(20.0, 30.0))
    last = np.array([one[np.isfinite(one)][-1] for one in known[..., 0]])
    return tuple(np.sqrt(np.square(one - later[..., 0]).mean(axis=0)) for one in (found[..., 0], last[:, None]))


def test_forecasts_of_later_values_beat_last_values_at_every_step():
    """Without targets one model answers any time up to the longest that was asked in training."""
    forecaster = LogCDEForecaster(random_state=0).fit(waves(0, 200)[0])
    ours, last = errors(forecaster, *waves(1, 100))
    assert (ours < 0.8 * last).all()


def test_targets_far_beyond_the_series():
    known, later = waves(0, 200)
    stamps = np.arange(20.0, 30.0)
    targets = lc.Streams.from_dense(later, stamps, ["x1"])
    forecaster = LogCDEForecaster(learner=DirectForecast(rounds=100), random_state=0).fit(known, targets)
    ours, last = errors(forecaster, *waves(1, 100))
    assert (ours < 0.5 * last).all()
    assert forecaster.model_.targets[0].channel == 0
    assert forecaster.score(known, targets) > 0.9


@pytest.mark.parametrize("offset", [1e8, 1e12])
def test_forecasts_at_offsets_are_as_good(offset):
    """Single precision holds the changes, but not the values."""
    known, later = (np.round(part * 1024) / 1024 + offset for part in waves(0, 60))
    targets = lc.Streams.from_dense(later, np.arange(20.0, 30.0), ["x1"])
    forecaster = LogCDEForecaster(learner=QUICK, random_state=0).fit(known, targets)
    ours, last = errors(forecaster, *(np.round(part * 1024) / 1024 + offset for part in waves(1, 40)))
    assert (ours < 0.8 * last).all()


def test_target_that_is_no_channel_is_learnt_from_the_channels():
    later = lc.Streams.from_dense(values()[:, -1:, :1] ** 2, [12.0], ["square"], ids=list(streams().ids))
    forecaster = LogCDEForecaster(learner=QUICK, random_state=0).fit(streams(), later)
    assert forecaster.model_.targets[0].channel is None
    assert forecaster.predict(streams(), at=[12.0]).shape == (COUNT, 1, 1)


def test_prediction_uses_past_observations_only(fitted):
    array = values(1, 0.3)
    before = fitted.predict(lc.Streams.from_dense(array, channels=CHANNELS), at=[1.0, 3.0])
    array[:, 3:] += 100.0
    with pytest.warns(OutOfRangeWarning, match="values of 'b' such as"):
        after = fitted.predict(lc.Streams.from_dense(array, channels=CHANNELS), at=[1.0, 3.0])
    np.testing.assert_array_equal(before, after)


def test_predictions_do_not_depend_on_other_questions(fitted):
    whole = fitted.predict(streams(1), at=[2.0, 5.5, 9.0])
    np.testing.assert_array_equal(whole[3:4, 1:2], fitted.predict(streams(1)[3:4], at=[5.5]))


def test_times_beyond_training_are_as_the_furthest(fitted):
    last, longest = streams(1).times[-1], fitted.model_.features.longest
    furthest = fitted.predict(streams(1), at=[last + longest])
    with pytest.warns(OutOfRangeWarning, match="after its last event, in training for at most"):
        beyond = fitted.predict(streams(1), at=[last + 100 * longest])
    np.testing.assert_array_equal(furthest, beyond)


def test_online_predictions_are_those_offline(fitted):
    online = fitted.online()
    for time, row in enumerate(values(1, 0.3)[0]):
        online.observe(float(time), row)
        for later in (0.5, 6.0):
            expected = fitted.predict(streams(1, 0.3)[:1], at=[time + later]) if time == 7 else None
            if expected is not None:
                np.testing.assert_array_equal(online.predict(at=time + later), expected[0, 0])


def test_saved_forecaster_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "mine")
    again = load(tmp_path / "mine")
    assert isinstance(again.model_, ForecastModel)
    np.testing.assert_array_equal(again.predict(streams(1), at=[9.0]), fitted.predict(streams(1), at=[9.0]))
    assert again.get_params() == fitted.get_params()
    assert again.choices_ == fitted.choices_


def test_choices_name_weights_and_losses_of_each_target(fitted):
    assert list(fitted.choices_) == ["learner", "a", "b"]
    assert set(fitted.choices_["a"].value) == {"boosting", "ridge"}
    assert "of the shrunk last value" in fitted.choices_["a"].reason
    assert (fitted.history_, fitted.n_iter_, fitted.outputs_) == ((), 0, 2)


def test_nothing_is_added_to_noise():
    """On noise without any structure the shrunk last value is the mean, and heads get next to no weight."""
    noise = np.random.default_rng(0).normal(size=(200, 10, 1))
    forecaster = LogCDEForecaster(learner=QUICK, random_state=0).fit(noise)
    found = forecaster.predict(np.random.default_rng(1).normal(size=(200, 10, 1)), at=[11.0])
    assert np.abs(found).max() < 0.5


def test_gains_that_may_be_chance_get_little_weight(monkeypatch):
    """Of 60 questions with a few large errors, a head without a signal seems to help; one with a signal does."""
    learner, ahead = DirectForecast(), np.zeros(60, np.float32)
    weights = []
    for caution in (direct.CAUTION, 0.0):
        monkeypatch.setattr(direct, "CAUTION", caution)
        found = []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            left, noise = rng.standard_t(2, 60), rng.normal(size=60)
            found.append([learner._weights(MeanLoss(), y, ahead, [noise])[1].mean() for y in (left, left + 4 * noise)])
        weights.append(np.mean(found, axis=0))
    careful, careless = weights
    assert careful[0] < 0.5 * careless[0]
    assert careful[1] > 0.95


def test_median_ignores_outliers():
    rng = np.random.default_rng(0)
    array = rng.normal(size=(300, 10, 1))
    array[rng.random(array.shape) < 0.1] = 100.0
    found = {}
    for loss in (MeanLoss(), MedianLoss()):
        forecaster = LogCDEForecaster(learner=DirectForecast(loss=loss, rounds=20), random_state=0).fit(array)
        found[loss.name] = np.median(forecaster.predict(array, at=[11.0]))
    assert found["squared error"] > 5
    assert abs(found["absolute error"]) < 1


def test_forecasts_are_between_mean_and_median():
    """Of a target that is 0 or, in every fifth series, 10, medians are 0 and means 2."""
    array = np.random.default_rng(0).normal(size=(400, 6, 2)) / 10
    array[::5, 3:, 0] += 10.0
    targets = array[:, 3, 0]
    errors = {}
    for loss in (MeanLoss(), BetweenLoss(0.1), MedianLoss()):
        learner = DirectForecast(loss=loss, rounds=20)
        forecaster = LogCDEForecaster(learner=learner, random_state=0).fit(array[:, :3], targets)
        missed = forecaster.predict(array[:, :3], at=[3.0])[:, 0, 0] - targets
        errors[loss.name] = np.square(missed).mean(), np.abs(missed).mean()
        if loss == BetweenLoss(0.1):
            assert set(forecaster.choices_["y1"].value) == {
                "boosting, squared_error",
                "boosting, absolute_error",
                "ridge",
            }
    mean, between, median = errors.values()
    assert mean[0] < between[0] < median[0]
    assert median[1] < between[1] < mean[1]


def test_numbers_of_observations_are_read_on_request():
    """How often "b" was observed, at equal values, is what "a" becomes."""
    rng = np.random.default_rng(0)
    array = np.full((300, 12, 2), np.nan)
    array[:, 0], array[:, -1, 0] = 0.0, 1.0
    times = rng.integers(0, 10, size=300)
    array[:, 1:11, 1] = np.where(rng.permuted(np.tile(np.arange(10), (300, 1)), axis=1) < times[:, None], 0.0, np.nan)
    errors = []
    for totals in (False, True):
        learner = DirectForecast(rounds=40, totals=totals)
        forecaster = LogCDEForecaster(learner=learner, random_state=0).fit(array[:200], times[:200].astype(float))
        found = forecaster.predict(array[200:])[:, 0, 0]
        errors.append(np.square(found - times[200:]).mean())
    assert errors[1] < 0.5 * errors[0]


def test_range_of_a_target_scales_the_loss_between():
    values = np.array([0.0, 0.0, 5.0])
    for factor in (1.0, 1000.0):
        assert BetweenLoss(0.5).suited(factor * values).centre(factor * values) == pytest.approx(1.25 * factor)
    assert BetweenLoss(0.5, range=2.0).suited(values) == BetweenLoss(0.5, range=2.0)
    with pytest.raises(TrainingError, match="would prefer errors"):
        BetweenLoss(-0.1)


def test_shares_of_the_last_value_fall_with_its_age():
    rng = np.random.default_rng(0)
    last, age = rng.normal(50, 10, 4000), rng.choice([1.0, 9.0], 4000)
    value = 50 + np.where(age < 5, 0.9, 0.2) * (last - 50) + rng.normal(size=4000)
    for loss in (MeanLoss(), MedianLoss()):
        base = fit_shrunk(last, age, value, loss)
        np.testing.assert_allclose(base(np.array([60.0, 60.0]), np.array([1.0, 9.0])), [59.0, 52.0], atol=1.0)


def test_trees_and_weights_are_those_of_their_paths():
    """What a head predicts is what its candidate predicted when candidates were compared."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 8)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rows[:, 0], rows[:, 5] = rng.choice([1.0, 2.0, 4.0], 300), 3.0  # time ahead; a feature that never varies
    change = np.nan_to_num(rows[:, 1] * rows[:, 0] + rows[:, 2]).astype(np.float64)
    boosters = [_Boosting(QUICK, loss, runs, 0) for loss, runs in (("squared_error", 1), ("absolute_error", 3))]
    for learner in (*boosters, _Ridge(4, 0)):
        path = learner.path(rows[:200], change[:200], rows[200:])
        for candidate in (0, len(path) - 1):
            head = learner.head(rows[:200], change[:200], candidate)
            np.testing.assert_allclose(head(rows[200:])[:, 0], path[candidate], rtol=1e-6, atol=1e-8)


def test_cuts_ask_for_what_comes_after():
    asked = Cuts(count=3, ahead=2.5).questions(streams(), seed=0)
    assert len(np.unique(np.stack([asked.series, asked.until]), axis=1).T) == 3 * COUNT
    assert (asked.time >= asked.until).all()
    assert (asked.until > 0).all()
    assert (asked.time - (asked.until - 1) <= 2.5).all()  # an event each step
    np.testing.assert_array_equal(asked.value, values()[asked.series, asked.time.astype(int), asked.target])
    assert len(Cuts(count=99).questions(streams(), 0)) == 2 * COUNT * 7 * 8 / 2
    assert len(Cuts().questions(lc.Streams.from_dense(np.ones((2, 1, 1)), horizon=1.0), 0)) == 0
    assert isinstance(asked[np.arange(2)], Questions)


def test_wrong_options_and_impossible_targets_are_refused():
    for wrong in ({"count": 0}, {"ahead": 0.0}):
        with pytest.raises(TrainingError, match="asks no question"):
            Cuts(**wrong)
    with pytest.raises(LogcdeError, match="never known after the start"):
        LogCDEForecaster().fit(values()[:, :1])
    with pytest.raises(LogcdeError, match="no targets for the series 's23'"):
        LogCDEForecaster().fit(streams(), streams()[:-1])


def test_series_with_continuous_channels_get_a_network():
    given = streams().with_continuous(["dose"], [np.array([0.0, 8.0])] * COUNT, [np.zeros((2, 1))] * COUNT)
    with pytest.raises(LogcdeError, match="forecast with a network"):
        LogCDEForecaster(learner=QUICK).fit(given)


def a_question_for_each_later_value(known: np.ndarray, later: np.ndarray, cuts: tuple[float, ...]) -> Questions:
    """Values of the last ten steps, after each cut."""
    series, step = (one.ravel() for one in np.indices(later.shape[:2]))
    parts = [Questions.about(series, cut, step + 20.0, 0, later[..., 0].ravel()) for cut in cuts]
    return Questions.about(*(np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])))


def test_questions_of_all_kinds_from_one_model(tmp_path):
    """A second channel describes the series, and is never asked for."""
    (known, later), (other, after) = waves(0, 100), waves(1, 100)
    known, other = (np.concatenate([part, np.zeros_like(part)], axis=2) for part in (known, other))
    asked = a_question_for_each_later_value(known, later, (15.0, 20.0))
    forecaster = LogCDEForecaster(learner=QUICK, random_state=0).fit(known, asked)
    assert forecaster.asked_.tolist() == [0]
    test = a_question_for_each_later_value(other, after, (20.0,))
    found = forecaster.answer(other, test)
    last = np.array([one[np.isfinite(one)][-1] for one in other[..., 0]])[test.series]
    assert np.square(found - test.value).mean() < 0.5 * np.square(last - test.value).mean()
    low, high = forecaster.interval(other, test, 0.9).T
    assert 0.8 < np.mean((low <= test.value) & (test.value <= high)) < 0.98
    forecaster.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").interval(other, test)[:, 0], low)
    changed = other.copy()
    changed[:, 15:] = 77.0
    early = Questions.about(test.series, 15.0, test.time, 0)
    with pytest.warns(OutOfRangeWarning):
        hidden = forecaster.answer(changed, early)
    np.testing.assert_array_equal(hidden, forecaster.answer(other, early))


def test_questions_without_an_answer_are_refused(fitted):
    some = Questions.about(0, 2.0, 3.0, 0)
    with pytest.raises(TrainingError, match="before the end of what is known"):
        Questions.about(0, 4.0, 3.0, 0)
    with pytest.raises(TrainingError, match="their answers are known"):
        LogCDEForecaster(learner=QUICK).fit(streams(), some)
    with pytest.raises(LogcdeError, match=f"series {COUNT}, but there are {COUNT} series"):
        fitted.answer(streams(), Questions.about(COUNT, 2.0, 3.0, 0))
    with pytest.raises(LogcdeError, match="no training question was about"):
        fitted.answer(streams(), Questions.about(0, 2.0, 3.0, 2))
    with pytest.raises(LogcdeError, match="cannot be expected to hold"):
        fitted.interval(streams(), some, coverage=1.0)

"""The network that learns from the questions about all targets of a forecaster."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from logcde.errors import ModelError
from logcde.estimators import BetweenLoss, DirectForecast, LogCDEForecaster, MeanLoss, Perceptron, Questions, load
from logcde.estimators.learners import direct, perceptron
from logcde.estimators.learners.perceptron import Known
from logcde.models.forecast import ForecastModel
from logcde.models.last_value import last_and_age

SMALL = Perceptron(width=16, passes=3, fewest=1)
QUICK = DirectForecast(rounds=4, network=SMALL)


def echoes(seed: int, count: int) -> np.ndarray:
    """Three channels that each become, at the last of seven steps, what the product of the others was before."""
    rng = np.random.default_rng(seed)
    array = rng.normal(size=(count, 7, 3))
    array[:, 1:6] = array[:, :1] + 0.01 * rng.normal(size=(count, 5, 3))
    array[:, 6] = np.stack([array[:, 0, (k + 1) % 3] * array[:, 0, (k + 2) % 3] for k in range(3)], axis=1)
    return array


def asked_of(array: np.ndarray) -> Questions:
    """Questions about the last step of all channels."""
    series, target = (one.ravel() for one in np.indices((len(array), 3)))
    return Questions.about(series, 5.5, 6.0, target, array[:, 6].ravel())


def model_of(forecaster: LogCDEForecaster) -> ForecastModel:
    assert isinstance(forecaster.model_, ForecastModel)
    return forecaster.model_


@pytest.fixture(scope="module")
def fitted() -> LogCDEForecaster:
    array = echoes(0, 400)
    learner = dataclasses.replace(QUICK, network=Perceptron(width=32, passes=60, rate=1e-2, dropout=0.1, fewest=1))
    return LogCDEForecaster(learner=learner, random_state=0).fit(array[:, :6], asked_of(array))


def test_a_network_learns_what_few_trees_do_not(fitted):
    array = echoes(1, 200)
    asked = asked_of(array)
    alone = LogCDEForecaster(learner=dataclasses.replace(QUICK, network=None), random_state=0)
    alone.fit(echoes(0, 400)[:, :6], asked_of(echoes(0, 400)))
    ours, without = (np.square(one.answer(array[:, :6], asked) - asked.value).mean() for one in (fitted, alone))
    assert ours < 0.6 * without
    assert len(model_of(fitted).networks) == 4
    assert all(choice.value["network"] > 0.5 for name, choice in fitted.choices_.items() if name != "learner")
    low, high = fitted.interval(array[:, :6], asked, 0.9).T
    assert 0.8 < np.mean((low <= asked.value) & (asked.value <= high)) < 0.98


def test_saved_online_and_in_pieces_it_forecasts_the_same(fitted, tmp_path, monkeypatch):
    array = echoes(1, 40)[:, :6]
    asked = asked_of(echoes(1, 40))
    expected = fitted.answer(array, asked)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").answer(array, asked), expected)
    monkeypatch.setattr("logcde.models.forecast.NUMBERS_IN_MEMORY", 20 * fitted.model_.features.most)
    np.testing.assert_array_equal(fitted.answer(array, asked), expected)
    online = fitted.online()
    for step, row in enumerate(array[7]):
        online.observe(float(step), row)
    np.testing.assert_array_equal(online.predict(at=6.0), fitted.predict(array[7:8], at=[6.0])[0, 0])
    assert fitted.model_.size >= sum(network.size for network in fitted.model_.networks) > 4 * 32 * 32


def test_every_series_is_answered_by_a_network_that_did_not_see_it(monkeypatch):
    seen = []

    def noted(options, known, *rest):
        seen.append(np.unique(known.values))
        network = perceptron.trained(options, known, *rest)
        monkeypatch.setattr(Known, "answered", lambda self, _: np.full(len(self), len(seen)) if unseen(self) else 1 / 0)
        return network

    def unseen(known: Known) -> bool:
        return not np.isin(known.values, seen[-1]).any()

    monkeypatch.setattr(direct, "trained", noted)
    array = echoes(0, 40)
    LogCDEForecaster(learner=QUICK, random_state=0).fit(array[:, :6], asked_of(array))
    assert [len(values) for values in seen] == [90] * 4


def some_known(count: int = 300, missing: float = 0.3) -> Known:
    """Questions about a channel, a constant one, and a target that is no channel and has fewer features."""
    rng = np.random.default_rng(0)
    brief, own = rng.normal(size=(50, 7)).astype(np.float32), rng.normal(size=(count, 12)).astype(np.float32)
    brief[rng.random(brief.shape) < missing] = np.nan
    own[:, 2:][rng.random((count, 10)) < missing] = np.nan
    target, values = rng.integers(0, 3, count), rng.normal(size=count)
    own[target == 2, 5:] = np.nan
    values[target == 1] = own[target == 1, 5] = 4.0
    return Known(brief, rng.integers(0, 50, count), own, target, values, [0, 1, None])


@pytest.mark.parametrize("loss", [MeanLoss(), BetweenLoss(0.1, range=1.0)])
def test_the_network_that_is_served_is_the_one_that_was_trained(loss, monkeypatch):
    known, kept = some_known(), {}

    def run(options, brief, read, *rest):
        kept.update(network=original(options, brief, read, *rest), brief=brief, read=read)
        return kept["network"]

    original = perceptron._run
    monkeypatch.setattr(perceptron, "_run", run)
    served = perceptron.trained(SMALL, known, [loss] * 3, 0)
    brief, read = kept["brief"][known.place], kept["read"]
    arrays = map(jnp.asarray, (brief, read, known.target, np.float32(0.0)))
    change = kept["network"](*arrays, jax.random.key(0))
    base = np.empty(len(known))
    for number, channel in enumerate(known.channels):
        mine = known.target == number
        base[mine] = served.base[number](*last_and_age(known.own[mine], channel))
    expected = base + served.unit[known.target] * np.asarray(change)
    np.testing.assert_allclose(known.answered(served), expected, atol=1e-5)
    assert (known.answered(served)[known.target == 1] == 4.0).all()
    assert np.isfinite(known.answered(served)).all()


def test_parts_of_one_long_series_are_answered_from_what_was_before():
    array = np.sin(0.3 * np.arange(400.0)) + 0.1 * np.random.default_rng(0).normal(size=400)
    forecaster = LogCDEForecaster(learner=QUICK, random_state=0).fit(array[None, :, None])
    assert len(model_of(forecaster).networks) == 1
    assert "network" in forecaster.choices_["x1"].value
    assert np.isfinite(forecaster.predict(array[None, :, None], at=[405.0])).all()


def test_few_questions_train_no_network():
    array = echoes(0, 40)
    forecaster = LogCDEForecaster(learner=DirectForecast(rounds=4), random_state=0).fit(array)
    assert model_of(forecaster).networks == ()
    assert "network" not in forecaster.choices_["x1"].value


def test_a_network_that_helps_nowhere_is_not_kept():
    noise = np.random.default_rng(0).normal(size=(100, 6, 1))
    forecaster = LogCDEForecaster(learner=QUICK, random_state=0).fit(noise, np.zeros(100))
    assert model_of(forecaster).networks == ()
    assert forecaster.choices_["y1"].value["network"] == 0.0


@pytest.mark.parametrize("wrong", [{"width": 1}, {"passes": 0}, {"rate": 0.0}, {"fewest": 0}, {"dropout": 1.0}])
def test_impossible_options_are_refused(wrong):
    with pytest.raises(ModelError, match=rf"Perceptron\({next(iter(wrong))}="):
        Perceptron(**wrong)

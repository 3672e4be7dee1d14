import dataclasses

import numpy as np
import pytest

from logcde.errors import ModelError
from logcde.features.recent import LAST, Grouped, RecentFeatures
from logcde.models import forecast
from logcde.models.forecast import ErrorQuantiles, ForecastModel, HorizonHead, ShrunkLast, TargetForecast
from tests.features.series import random_streams

STREAMS = random_streams(0, 10)


def a_model() -> ForecastModel:
    """Two targets: one is the channel "b", the other is no channel."""
    features = RecentFeatures.fit(STREAMS, longest=4.0)
    rng = np.random.default_rng(0)
    targets = []
    for channel in (1, None):
        count = len(features.names(channel))
        spread, weight = np.ones(count), rng.normal(size=(count, 2))
        head = HorizonHead(0, np.array([0.5, 3.0]), np.zeros(count), spread, weight, np.array([1.0, 2.0]))
        base = ShrunkLast(5.0, np.array([0.0, 4.0]), np.array([1.0, 0.2]))
        targets.append(TargetForecast(channel, base, (head,), np.array([0.0, 4.0]), np.array([[0.2, 0.8]])))
    return ForecastModel(features, tuple(targets))


def test_shrunk_last_value_goes_to_the_centre():
    base = ShrunkLast(10.0, np.array([1.0, 3.0]), np.array([0.8, 0.2]))
    found = base(np.array([20.0, 20.0, 20.0, np.nan]), np.array([0.0, 2.0, 9.0, np.nan]))
    np.testing.assert_allclose(found, [18.0, 15.0, 12.0, 10.0])


def test_forecast_is_the_shrunk_last_value_and_weighted_heads():
    model, grouped = a_model(), Grouped.of(STREAMS)
    prefixes = grouped.prefixes(np.array([3]), np.array([2.0]))
    rows = model.features.rows(grouped, prefixes, np.array([0]), np.array([3.0]), 1)
    target = model.targets[0]
    ahead = float(rows[0, 0])
    share = 0.2 + 0.6 * min(ahead, 4.0) / 4.0
    last, age = float(rows[0, LAST]), float(rows[0, 1])
    expected = 5.0 + (1.0 - 0.2 * min(age, 4.0)) * (last - 5.0) + share * target.heads[0](rows)[0, 0]
    np.testing.assert_allclose(target(rows)[0], expected, rtol=1e-6)


def test_answers_depend_on_their_own_question_only(monkeypatch):
    model, grouped = a_model(), Grouped.of(STREAMS)
    rng = np.random.default_rng(1)
    series, time = rng.integers(0, 10, 40), rng.uniform(0.1, 12, 40)
    whole = model.answers(grouped, series, time)
    each = [model.answers(grouped, series[n : n + 1], time[n : n + 1])[0] for n in range(40)]
    np.testing.assert_array_equal(whole, each)
    asked = rng.random(whole.shape) < 0.5
    np.testing.assert_array_equal(model.answers(grouped, series, time, asked), np.where(asked, whole, np.nan))
    monkeypatch.setattr(forecast, "NUMBERS_IN_MEMORY", 700)
    np.testing.assert_array_equal(model.answers(grouped, series, time), whole)


def test_model_answers_at_horizons_and_knows_its_size():
    model = a_model()
    expected = model.answers(Grouped.of(STREAMS), np.arange(10), STREAMS.horizon)
    np.testing.assert_array_equal(model(STREAMS), expected)
    assert model.schema == STREAMS.schema
    assert model.size == sum(2 * len(model.features.names(one)) + 2 for one in (1, None))
    assert dataclasses.replace(model, targets=()).size == 0


def test_many_questions_at_once_are_answers_after_prefixes():
    model, grouped = a_model(), Grouped.of(STREAMS)
    rng = np.random.default_rng(2)
    series, target, until = rng.integers(0, 10, 60), rng.integers(0, 2, 60), rng.uniform(0.1, 8, 60)
    time = until + rng.uniform(0, 3, 60)
    found = model.answer(grouped, series, until, time, target)
    for n in (0, 17, 59):
        prefix = grouped.prefixes(series[n : n + 1], until[n : n + 1])
        one = model.targets[target[n]]
        rows = model.features.rows(grouped, prefix, np.array([0]), time[n : n + 1], one.channel)
        np.testing.assert_array_equal(one(rows) + model.features.level(one.channel), found[n])


def test_error_quantiles_are_those_of_split_conformal_prediction():
    """Of 19 exchangeable errors, the 18th smallest is at least a further one with probability 0.9 exactly."""
    errors = np.arange(19.0)
    quantiles = ErrorQuantiles.of([1.0], [errors])
    np.testing.assert_allclose(quantiles.between(0.8, np.array([5.0])), [[1.0, 17.0]])
    few = ErrorQuantiles.of([1.0], [np.array([3.0, -1.0])])
    assert few.between(0.9, np.array([0.0])).tolist() == [[-1.0, 3.0]]


def test_intervals_lie_around_answers():
    model = a_model()
    grouped = Grouped.of(STREAMS)
    asked = np.arange(10), np.full(10, 3.0), np.full(10, 4.0), np.zeros(10, int)
    with pytest.raises(ModelError, match="no errors on series left out"):
        model.intervals(grouped, *asked, 0.9)
    errors = ErrorQuantiles.of([0.0], [np.linspace(-2, 1, 999)])
    model = dataclasses.replace(model, targets=(dataclasses.replace(model.targets[0], errors=errors),))
    found = model.intervals(grouped, *asked, 0.5) - model.answer(grouped, *asked)[:, None]
    np.testing.assert_allclose(found, np.tile([-1.25, 0.25], (10, 1)), atol=0.01)

import dataclasses

import numpy as np

from logcde.features.recent import LAST, Grouped, RecentFeatures
from logcde.models import forecast
from logcde.models.forecast import ForecastModel, HorizonHead, ShrunkLast, TargetForecast
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

"""Attribution online: parts hold every observation once, and amounts are what the prediction loses without them."""

import functools
import warnings

import numpy as np
import pytest

import logcde as lc
from logcde.errors import ModelError
from logcde.online import Part, attribute_online, predictor_of
from logcde.streams import DatetimeClock, NumericClock, Schema, Term, TrainingRanges
from tests.features.series import random_streams, rows_of
from tests.models.test_forecast import a_model as a_forecast
from tests.online.test_predictor import RULES, a_model
from tests.online.test_series import STREAMS, model_of

TIMES, ROWS = rows_of(random_streams(1, 4)[1])
EVENTS = list(zip(TIMES.tolist(), ROWS, strict=True))
END = float(TIMES[-1]) + 0.5


@functools.cache
def predictor(kind, reorder=None):
    if kind == "forecast":
        return predictor_of(a_forecast(), reorder=reorder)
    return predictor_of(model_of(kind), reorder=reorder)


def _observe_all(one, events):
    for event in events:
        one.observe(*event)


def without(fresh, events, part, at, of):
    """The number to be explained, of a new predictor that observes all but a part."""
    one = fresh.begin()
    channel = fresh.schema.channels.index(part.channel)
    for time, row in events:
        kept = row.copy()
        if part.begin <= time <= part.end:
            kept[channel] = np.nan
        if not np.isnan(kept).all():
            one.observe(time, kept)
    return of(one.predict(at))


@pytest.mark.parametrize("kind", ["features", "rows", "network", "mixture", "forecast"])
@pytest.mark.parametrize("reorder", [None, 1.5])
def test_amounts_are_differences_to_predictions_without_a_part(kind, reorder):
    fresh, most = predictor(kind, reorder), 7

    def of(outputs):
        return float(outputs[0])

    found = attribute_online(fresh, EVENTS, END, of=of, most=most)
    assert len(found) == most
    assert [(one.channel, one.begin) for one in found] == sorted((one.channel, one.begin) for one in found)
    nothing = Part(fresh.schema.channels[0], np.inf, np.inf, 0, 0.0)
    whole = without(fresh, EVENTS, nothing, END, of)
    for part in found:
        seen = ~np.isnan(ROWS[:, fresh.schema.channels.index(part.channel)])
        assert part.count == (seen & (part.begin <= TIMES) & (part.end >= TIMES)).sum()
        expected = whole - without(fresh, EVENTS, part, END, of)
        np.testing.assert_allclose(part.amount, expected, rtol=1e-4, atol=1e-5)
        if kind in ("features", "mixture", "forecast"):
            assert part.amount == expected
    assert sum(one.count for one in found) == np.isfinite(ROWS).sum()
    assert any(abs(one.amount) > 1e-3 for one in found)
    assert fresh.last == -np.inf


def test_every_observation_alone_where_there_are_few():
    found = attribute_online(predictor("features"), EVENTS[:3], EVENTS[9][0])
    assert [one.count for one in found] == [1] * int(np.isfinite(ROWS[:3]).sum())
    assert all(one.begin == one.end for one in found)


def test_what_comes_after_the_prediction_does_not_count():
    at = (EVENTS[4][0] + EVENTS[5][0]) / 2
    assert attribute_online(predictor("mixture"), EVENTS, at) == attribute_online(predictor("mixture"), EVENTS[:5], at)
    assert attribute_online(predictor("mixture"), [(1.0, ROWS[0])], 0.5) == []
    assert attribute_online(predictor("mixture"), []) == []


def test_what_a_model_does_not_read_gets_nothing_and_changes_nothing():
    """A model whose readout depends on no more than its bias."""
    model = a_model()
    silent = lc.Predictor(a_model(initial=lc.LearntInitial(), init_scale=0.0))
    events = [(0.1, {"a": 1.0}), (0.3, {"a": -1.0, "b": 2.0})]
    found = attribute_online(silent, events, at=0.5)
    assert [one.amount for one in found] == [0.0] * 3
    assert all(one.amount != 0.0 for one in attribute_online(lc.Predictor(model), events, at=0.5))


def test_closed_intervals_terms_and_continuous_channels():
    schema = Schema(("a", "b"), terms=(Term("area", ("a", "b")),), continuous=("load",))
    fresh = lc.Predictor(a_model(schema=schema), partition=RULES["manual"])
    events = [(0.1, {"a": 1.0}, [0.5]), (0.5, {"a": 2.0, "b": 3.0}, [-1.0]), (0.9, {"b": 1.0})]
    knots = [(0.0, [1.0]), (2.0, [3.0])]
    found = attribute_online(fresh, events, 1.5, closes=[0.5, 1.0, 1.75], knots=knots)
    assert [(one.channel, one.begin) for one in found] == [("a", 0.1), ("a", 0.5), ("b", 0.5), ("b", 0.9)]
    for place, left in enumerate([events[1:], [events[0], (0.5, {"b": 3.0}, [-1.0]), events[2]]]):
        one, whole = fresh.copy(), fresh.copy()
        for predictor, own in ((one, left), (whole, events)):
            for knot in knots:
                predictor.knot(*knot)
            for time, values, *terms in own:
                if time == 0.5:
                    predictor.close(0.5)
                predictor.observe(time, values, *terms)
            predictor.close(1.0)
        change = whole.predict(1.5) - one.predict(1.5)
        np.testing.assert_allclose(found[place].amount, change[1] - change[0], rtol=1e-9)
    with pytest.raises(ModelError, match="follows no continuous channels"):
        attribute_online(predictor_of(model_of("features")), EVENTS, knots=knots)


@pytest.mark.parametrize("clock", [NumericClock(None), DatetimeClock()])
def test_the_origin_stays_when_the_first_event_is_left_out(clock):
    def stamp(time):
        if isinstance(clock, NumericClock):
            return 1.7e9 + time
        return np.datetime64("2024-03-01", "us") + np.timedelta64(round(3600 * time), "s")

    events = [(0.0, {"a": 1.0}), (0.5, {"b": 2.0}), (0.75, {"a": -1.0})]
    expected = attribute_online(lc.Predictor(a_model()), events, 1.25)
    far = lc.Predictor(a_model(schema=Schema(("a", "b"), clock)))
    assert attribute_online(far, [(stamp(time), values) for time, values in events], stamp(1.25)) == expected
    moving = [
        lc.Predictor(a_model(schema=Schema(("a", "b"), one, continuous=("load",)))) for one in (NumericClock(), clock)
    ]
    expected = attribute_online(moving[0], events[1:], 1.25, knots=[(0.0, [1.0]), (2.0, [3.0])])
    knots = [(stamp(0.0), [1.0]), (stamp(2.0), [3.0])]
    far_events = [(stamp(time), values) for time, values in events[1:]]
    assert attribute_online(moving[1], far_events, stamp(1.25), knots=knots) == expected


def test_replays_warn_of_nothing():
    fresh = predictor_of(model_of("features"), ranges=TrainingRanges.of(STREAMS))
    wild = [(time, 1e6 * row) for time, row in EVENTS]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attribute_online(fresh, wild, END)
    with pytest.warns(lc.errors.OutOfRangeWarning):  # the series itself is told
        _observe_all(fresh, wild)


def test_wrong_arguments_are_refused():
    begun = predictor_of(model_of("features"))
    begun.observe(0.5, {"a": 1.0})
    with pytest.raises(ModelError, match="has observed something already"):
        attribute_online(begun, EVENTS)
    with pytest.raises(ModelError, match=r"observations of 3 channels, more than most=2 parts"):
        attribute_online(begun.begin(), EVENTS, most=2)
    wide = lc.Predictor(a_model(outputs=3))
    with pytest.raises(ModelError, match="Select the number to be explained"):
        attribute_online(wide, [(0.5, {"a": 1.0})])

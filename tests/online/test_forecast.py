"""Forecasts event by event equal those offline, to the bit, also after events were forgotten."""

import json

import numpy as np
import pytest

from logcde.errors import LogcdeError, ModelError, StreamError
from logcde.features.recent import Grouped
from logcde.online import predictor_of
from logcde.online.forecast import ForecastPredictor
from logcde.online.states import decode, encode
from tests.features.series import random_streams, rows_of
from tests.models.test_forecast import a_model

MODEL = a_model()


def offline(times, rows, time):
    event, channel = np.nonzero(np.isfinite(rows))
    order = np.lexsort((event, channel))
    counts = np.bincount(channel, minlength=3)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    grouped = Grouped(3, offsets, times[event[order]], rows[event, channel][order], np.array([0, len(times)]), times)
    return MODEL.answers(grouped, np.zeros(1, int), np.array([time]))[0]


def long_series():
    """Much longer than the model looks back."""
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.exponential(0.4, 150))
    rows = np.where(rng.random((150, 3)) < 0.5, np.nan, rng.normal(size=(150, 3)))
    rows[np.isnan(rows).all(axis=1), 0] = 1.0
    return times, rows


def observed(times, rows):
    predictor = predictor_of(MODEL)
    for time, row in zip(times, rows, strict=True):
        predictor.observe(float(time), row)
    return predictor


def plain(state):
    return json.loads(json.dumps(state, allow_nan=False))


def test_every_prefix():
    times, rows = long_series()
    predictor = predictor_of(MODEL)
    assert isinstance(predictor, ForecastPredictor)
    np.testing.assert_array_equal(predictor.predict(at=1.0), offline(times[:0], rows[:0], 1.0))
    for number, (time, row) in enumerate(zip(times, rows, strict=True), 1):
        predictor.observe(float(time), row)
        for later in (0.0, 0.1, 2.5, 30.0):
            found = predictor.predict(at=float(time + later))
            np.testing.assert_array_equal(found, offline(times[:number], rows[:number], float(time + later)))
    np.testing.assert_array_equal(predictor.predict(), predictor.predict(at=float(times[-1])))


def test_prediction_at_an_event_does_not_use_it():
    times, rows = rows_of(random_streams(5, 2)[1])
    predictor = observed(times[:5], rows[:5])
    before = predictor.predict(at=float(times[5]))
    predictor.observe(float(times[5]), rows[5] + 100.0)
    np.testing.assert_array_equal(predictor.predict(), before)


def test_forgotten_events_are_not_kept():
    times, rows = long_series()
    predictor = observed(times, rows)
    kept = predictor.state()["events"]
    assert len(kept) < len(times) / 2
    assert kept[0][0] >= times[-2] - MODEL.features.reach - 1.0


def test_state_copy_and_begin():
    times, rows = rows_of(random_streams(5, 4)[1])
    one = observed(times[:5], rows[:5])
    before, copy, fresh = plain(one.state()), one.copy(), one.begin()
    copy.observe(float(times[5]), rows[5])
    fresh.observe(0.1, {"a": 3.0})
    assert plain(one.state()) == before
    for kept in (before, decode(encode(one.state(arrays=True)))):
        again = predictor_of(MODEL).restore(kept)
        again.observe(float(times[5]), rows[5])
        np.testing.assert_array_equal(again.predict(at=20.0), copy.predict(at=20.0))
        assert plain(again.state()) == plain(copy.state())
    for state in ({}, before | {"channels": ["z"]}, before | {"events": [[1.0, [1.0]]]}, before | {"kind": "features"}):
        with pytest.raises(ModelError, match="cannot be restored"):
            one.restore(state)
    assert plain(one.state()) == before


def test_late_events():
    times, rows = rows_of(random_streams(5, 4)[1])
    times, rows = times[:6], rows[:6]
    late = predictor_of(MODEL, reorder=100.0)
    for number in (2, 0, 1, 5, 4, 3):
        late.observe(float(times[number]), rows[number])
    np.testing.assert_array_equal(late.predict(at=20.0), observed(times, rows).predict(at=20.0))


@pytest.mark.parametrize(
    ("time", "values", "words"),
    [
        (-1.0, {"a": 1.0}, "stamp of an event is -1.0"),
        (np.nan, {"a": 1.0}, "Stamps are finite"),
        (0.5, {"a": 1.0}, "cannot be taken after one at 1.0"),
        (1.0, {"a": 1.0}, "cannot be taken after one at 1.0"),
        (2.0, {"a": np.inf}, "NaN = not observed"),
        (2.0, [1.0], "one finite number for each of the 3 channels"),
        (2.0, {"z": 1.0}, "There is no channel 'z'"),
    ],
)
def test_refused_events_change_nothing(time, values, words):
    predictor = predictor_of(MODEL)
    predictor.observe(1.0, {"a": 1.0})
    before = plain(predictor.state())
    with pytest.raises(StreamError, match=words):
        predictor.observe(time, values)
    assert plain(predictor.state()) == before
    predictor.observe(3.0, [np.nan] * 3)  # nothing was observed
    assert plain(predictor.state()) == before


def test_there_are_no_intervals_and_no_past():
    predictor = predictor_of(MODEL)
    predictor.observe(1.0, {"a": 1.0})
    with pytest.raises(StreamError, match="known up to 1.0 already"):
        predictor.predict(at=0.5)
    for use in (lambda: predictor.close(2.0), lambda: predictor.ends(2.0)):
        with pytest.raises(LogcdeError, match="no intervals"):
            use()

"""Online, a series is found outside of training when its prefix is, and each reason is given once."""

import dataclasses
import json
import warnings

import numpy as np
import pytest

import logcde as lc
from logcde.errors import ModelError, NonFiniteWarning, OutOfRangeWarning
from logcde.online import AbstractPredictor, Predictor, Predictors, predictor_of
from logcde.online.watching import RangeWatch
from logcde.streams import Streams, TrainingRanges
from tests.cli.streaming import a_model
from tests.online.test_series import model_of, observe_all
from tests.streams.test_ranges import feed

RANGES = TrainingRanges.of(feed(20, 0))
PLAIN = TrainingRanges.of(
    Streams.from_dense(np.random.default_rng(0).uniform(size=(8, 20, 2)), channels=["pulse", "temp"])
)


def events_of(one: Streams) -> list[tuple[float, np.ndarray]]:
    rows = np.full((len(one.times), len(one.schema.channels)), np.nan)
    rows[np.repeat(np.arange(len(one.times)), np.diff(one.obs_offsets)), one.channel] = one.value
    return list(zip(one.times.tolist(), rows, strict=True))


def prefix(one: Streams, events: int) -> Streams:
    times, rows = zip(*events_of(one)[:events], strict=True)
    return Streams.from_arrays([list(times)], [np.array(rows)], one.schema.channels, ids=one.ids)


def reasons(caught: list[warnings.WarningMessage]) -> list[str]:
    found = [one.message.found for one in caught]
    assert all((each.series, each.total, len(each.worst)) == (1, 1, 1) for each in found)
    return [each.worst[0].reason for each in found]


@pytest.mark.parametrize(
    "change", [{"rate": 25.0}, {"size": 50.0}, {"length": 80.0}, {"rate": 0.2, "length": 99.0}, {}]
)
def test_every_prefix(change):
    """The watch gives a reason with the very event with which the prefix is far outside."""
    for one in feed(4, 1, **change):
        watch, given = RangeWatch(RANGES, one.ids[0]), set()
        for number, (time, row) in enumerate(events_of(one), 1):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                watch.take(time, row)
            if caught or number % 29 == 0 or number == len(one.times):
                found = RANGES.compare(prefix(one, number))
                given |= set(reasons(caught))
                assert given == (set() if found is None else {each.reason for each in found.worst})
            for said in caught:
                assert str(said.message).startswith(f"Series '{one.ids[0]}' ")
        assert bool(given) == bool(change)


def test_start_and_prediction_far_from_the_events():
    ranges = TrainingRanges.of(Streams.from_dense(np.full((4, 20, 3), 0.5) + np.arange(4)[:, None, None]))
    for kind in ("features", "mixture"):
        model = model_of(kind)
        own = dataclasses.replace(ranges, channels=model.schema.channels)
        predictor = predictor_of(model, ranges=own)
        with pytest.warns(
            OutOfRangeWarning, match="The series begins 400 after the start of time, in training"
        ) as caught:
            predictor.observe(400.0, [0.5] * 3)
        again = predictor_of(model, ranges=own).restore(json.loads(json.dumps(predictor.state())))
        again.observe(401.0, [0.5] * 3)  # its first event has been, before
        again.predict(at=402.0)
        with pytest.warns(OutOfRangeWarning, match="is asked for 99 after its last event, in training for at most 0"):
            again.predict(at=500.0)
        assert reasons(caught) == ["window"]
    ward = Predictors(a_model(), ranges=PLAIN)
    ward.observe("bed 3", 1.0, {"pulse": 0.5})
    with pytest.warns(OutOfRangeWarning, match="Series 'bed 3' is asked for 80 after its last event"):
        ward.predict(at=81.0)


def test_late_and_empty_events_do_not_count():
    watch = RangeWatch(RANGES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(200):
            watch.take(5.0, np.zeros(3))
            watch.take(1.0, np.full(3, 1e9))
            watch.take(6.0, np.full(3, np.nan))
    assert reasons(caught) == []
    for number in range(4):
        watch.take(6.0 + number / 10, np.full(3, 1e9))
    with pytest.warns(OutOfRangeWarning, match="has 5 values"):  # the same values, in time
        watch.take(6.4, np.full(3, 1e9))


def predictors() -> dict[str, AbstractPredictor]:
    ranges = TrainingRanges.of(lc.Streams.from_dense(np.zeros((30, 30, 3)) + np.linspace(-1, 1, 30)[:, None, None]))
    ranges = TrainingRanges(
        model_of("features").schema.channels, *(getattr(ranges, name) for name in ("lowest", "highest", "most")),
        ranges.silence, ranges.longest,
    )  # fmt: skip
    found = {kind: predictor_of(model_of(kind), ranges=ranges) for kind in ("features", "rows", "mixture", "network")}
    return found | {"late": predictor_of(model_of("mixture"), ranges=ranges, reorder=0.5)}


def feed_dense(predictor: AbstractPredictor) -> None:
    observe_all(predictor, np.arange(120) / 20, np.full((120, 3), 0.5))


@pytest.mark.parametrize("kind", ["features", "rows", "mixture", "network", "late"])
def test_predictors_of_estimators_warn_once(kind):
    predictor = predictors()[kind]
    others = predictor.begin(), predictor.copy()
    with pytest.warns(OutOfRangeWarning, match=r"^The series has \d+ .* That is far outside") as caught:
        feed_dense(predictor)
    assert len(caught) == 1
    for other in others:
        feed_dense(other)
    again = predictor.begin().restore(json.loads(json.dumps(predictor.state())))
    again.observe(7.0, [0.5] * 3)
    assert np.isfinite(again.predict(at=8.0)).all()


def test_young_series_is_short_and_not_unusual():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for predictor in predictors().values():
            for number in range(6):
                predictor.observe(number * 1e-3, np.full(3, 0.5))
    assert reasons(caught) == []


def test_predictor_of_a_plain_model():
    predictor = Predictor(a_model(), ranges=PLAIN)
    predictor.observe(0.0, {"pulse": 0.5})
    with pytest.warns(OutOfRangeWarning, match="The series has 5 values of 'pulse' such as 1000"):
        observe_all(predictor, np.arange(1.0, 7.0), [[1e3, np.nan]] * 6)
    with pytest.warns(OutOfRangeWarning, match="The series has no observation of .pulse. for 34, in training"):
        predictor.copy().observe(40.0, {"pulse": 0.5, "temp": 0.5})
    again = Predictor(a_model(), ranges=PLAIN).restore(predictor.state())
    again.observe(40.0, {"pulse": 0.5})  # the watch begins anew
    with pytest.raises(ModelError, match="The ranges are those of the channels 'a', 'b', 'rare', but the model has"):
        Predictor(a_model(), ranges=RANGES)


def test_predictors_name_the_series():
    ward = Predictors(a_model(), ranges=PLAIN)
    ward.observe("bed 3", 0.0, {"pulse": 0.5})
    with pytest.warns(
        OutOfRangeWarning, match="^Series 'bed 7' has .* of 'pulse' within .*, in training at most"
    ) as caught:
        ward.observe_many(["bed 7", "bed 3"] * 300, np.repeat(np.arange(300) / 50, 2) + 0.5, [[0.5, np.nan]] * 600)
    assert len(caught) == 1


def test_series_that_is_not_finite_does_not_stop_the_others():
    ward = Predictors(a_model())
    for bed in ("bed 1", "bed 2", "bed 3"):
        ward.observe(bed, 0.1, {"pulse": 0.5})
    alone = ward.predict(at=2.0)
    ward.observe("bed 2", 0.2, {"pulse": 1e308})
    with pytest.warns(NonFiniteWarning, match="The prediction for series 'bed 2' is not finite") as caught:
        found = ward.predict(at=2.0)
    assert len(caught) == 1
    assert not np.isfinite(found[1]).any()
    np.testing.assert_array_equal(found[[0, 2]], alone[[0, 2]])
    assert not np.isfinite(ward.predict(at=2.0)[1]).any()  # said once
    ward.remove("bed 2")
    assert np.isfinite(ward.predict(at=2.0)).all()

import numpy as np
import pytest

import logcde as lc
from logcde.errors import LogcdeWarning
from logcde.estimators import LogCDEClassifier, LogCDERegressor, LogSLiCE, WindowRidge
from logcde.estimators.choosing import (
    choose_embedding,
    choose_held_out,
    choose_partition,
    choose_steps,
    median_gap,
    near_fraction,
)
from tests.estimators.series import QUICK, labels, streams, values


def test_choices_have_value_and_reason():
    classifier = LogCDEClassifier(**QUICK).fit(values(missing=0.3), labels())
    assert str(classifier.choices_["counts"]) == "False (a network that counts does not stand a denser feed)"
    assert str(classifier.choices_["steps"]) == "20 (as given)"
    assert classifier.model_.partition == lc.Partition.every(1.0)
    assert classifier.model_.embedding.depth == 1
    assert classifier.n_iter_ == 20 == classifier.history_[-1].step


def test_every_choice_can_be_given():
    given = {
        "scaler": lc.scaling.StandardScaler(),
        "partition": lc.Partition.every_events(2),
        "depth": 3,
        "counts": True,
        "time": False,
        "hidden": 8,
        "block": 2,
        "steps": 7,
        "batch": 8,
        "validation": 0.25,
        "patience": None,
    }
    regressor = LogCDERegressor(learner=LogSLiCE(**given), random_state=0).fit(streams(), values()[:, -1, 0])
    model = regressor.model_
    assert model.embedding.basis(streams().schema).labels[:4] == ("a", "b", "#a", "#b")
    assert (model.embedding.depth, model.partition) == (3, lc.Partition.every_events(2))
    assert model.sequence.dynamics.hidden == 8
    assert regressor.n_iter_ == 7
    assert regressor.history_[-1].validation["mse"] is not None
    chosen = {name for name, choice in regressor.choices_.items() if choice.reason != "as given"}
    assert chosen == {"sparse"}  # how log-signatures are stored follows from the data and changes no prediction
    assert all(choice.name == name for name, choice in regressor.choices_.items())


@pytest.mark.parametrize("length", [8, 64, 65, 896])
def test_choose_partition_cuts_at_stamps_of_a_grid(length):
    """Stamps i / n are not multiples of a float, but all intervals must hold equally many of them."""
    grid = lc.Streams.from_dense(np.ones((1, length, 1)), times=np.arange(length) / length, horizon=1.0)
    partition = choose_partition(None, grid, median_gap(grid)).value
    cuts = partition.cuts(grid).points
    assert len(cuts) <= 65
    assert len(set(np.histogram(grid.times, cuts)[0][:-1].tolist())) <= 1


def test_choose_partition_of_short_series_has_eight_intervals():
    for length in (1, 3, 7):
        short = lc.Streams.from_dense(np.ones((1, length, 1)), horizon=float(length))
        cuts = choose_partition(None, short, median_gap(short)).value.cuts(short).points
        assert len(cuts) == 9
        assert np.histogram(short.times, cuts)[0].max() == 1


@pytest.mark.parametrize(("steps", "channels", "depth"), [(200, 3, 2), (200, 20, 1), (60, 3, 1)])
def test_choose_embedding_depth(steps, channels, depth):
    many = lc.Streams.from_dense(np.random.default_rng(0).normal(size=(4, steps, channels)), horizon=float(steps))
    partition = choose_partition(None, many, 1.0).value
    embedding, choices = choose_embedding(None, None, True, None, many, partition)
    assert embedding.depth == choices["depth"].value == depth


def test_depth_2_of_many_channels_where_few_are_observed_at_a_time():
    rng = np.random.default_rng(0)
    events = [("p", t, {f"c{rng.integers(60)}": 1.0}) for t in np.sort(rng.uniform(0, 30, 150))]
    streams = lc.Streams.from_events(events, horizon=30.0)
    _, choices = choose_embedding(None, None, True, None, streams, lc.Partition.every(1.0))
    assert (choices["depth"].value, choices["sparse"].value) == (2, True)
    assert "coordinates have letters that move" in choices["sparse"].reason
    _, choices = choose_embedding(None, None, True, None, streams, lc.Partition.uniform(1))
    assert (choices["depth"].value, choices["sparse"].value) == (1, False)


def test_empty_intervals_say_nothing_about_depth():
    """Bursts of five events, far apart: intervals between them are empty, those of a burst hold its order."""
    times = np.concatenate([start + np.arange(5) / 8 for start in (0, 40, 80)])
    bursts = lc.Streams.from_arrays([times], [np.ones((15, 2))], horizon=81.0)
    embedding, choices = choose_embedding(None, None, True, None, bursts, lc.Partition.every(3.0))
    assert embedding.depth == 2
    assert choices["depth"].reason == "intervals hold several events, and depth 2 encodes their order"


def test_partitions_that_leave_most_intervals_empty_are_warned_of():
    series = lc.Streams.from_arrays([[0.0, 1.0, 2.0]], [np.ones((3, 2))], horizon=100.0)
    with pytest.warns(LogcdeWarning, match=r"leaves most intervals empty: only 3 of 100 hold an event\. .*FirstStamp"):
        choose_embedding(None, None, True, None, series, lc.Partition.every(1.0))


def test_observation_windows_that_are_mostly_empty_are_warned_of():
    """A common zero of time, as given, with series that begin long after it."""
    starts = np.array([0.0, 5.0, 400.0, 800.0])
    late = lc.Streams.from_arrays([start + np.arange(8.0) for start in starts], list(values()[:4]), origin=0.0)
    found = r"such as that of series 0: it has events from 0.0 to 7.0, but goes from 0.0 to 807.0\. .*FirstStamp"
    with pytest.warns(LogcdeWarning, match=found):
        LogCDERegressor(learner=WindowRidge(units=0)).fit(late, starts)
    again = lc.Streams.from_frame(late.to_frame(), origin=lc.streams.FirstStamp())
    LogCDERegressor(learner=WindowRidge(units=0)).fit(again, starts)


def test_near_fraction_changes_rounding_only():
    assert near_fraction(np.nextafter(1 / 896, 1)) == 1 / 896
    assert near_fraction(np.pi) == np.pi


def test_choose_steps_grows_with_series_and_observations():
    assert [choose_steps(None, n, 10.0, 32).value for n in (10, 100, 1000, 10**6)] == [100, 240, 1920, 6000]
    assert choose_steps(None, 100, 100.0, 32).value == 600


def test_choose_held_out_is_stratified():
    classes = np.repeat(np.arange(4), [100, 95, 7, 1])
    held_out, _ = choose_held_out(0.15, classes, np.random.default_rng(0))
    assert np.bincount(classes[held_out], minlength=4).tolist() == [15, 14, 1, 0]
    few, choice = choose_held_out(None, classes[:100], np.random.default_rng(0))
    assert few is None
    assert choice.value == 0.0

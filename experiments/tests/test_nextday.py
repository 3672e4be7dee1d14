"""Forecasts of the next day: questions, scales, peers, and one run from files to tables."""

import json

import numpy as np
import pytest

from experiments.nextday import data, report
from experiments.nextday.experiment import NextDay, means
from experiments.nextday.learners import Peer, Simple, last_values
from experiments.runner.reproduce import settings_of
from experiments.tests.care import STAYS, write_stays
from logcde.errors import ExperimentError
from logcde.features.recent import Grouped


@pytest.fixture
def observed(tmp_path, monkeypatch):
    write_stays(tmp_path)
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    data.observed.cache_clear()
    yield data.observed()
    data.observed.cache_clear()


def test_every_later_observation_is_a_question(observed):
    stays = np.array([5, 3])
    asked = observed.questions(stays, 24.0)
    mine = np.isin(observed.series, stays) & (observed.time >= 24) & (observed.channel < observed.variables)
    assert len(asked) == mine.sum()
    np.testing.assert_array_equal(np.sort(asked.value), np.sort(observed.value[mine]))
    assert set(stays[asked.series]) == {3, 5}
    early = observed.questions(stays, 12.0)
    assert early.time.max() < 36
    assert (early.until == 12).all()


def test_split_is_the_protocols():
    found = data.split(np.arange(100)[::-1], 42)
    assert len(found.seen) == 80
    assert sorted([*found.seen, *found.test]) == list(range(100))
    assert not np.array_equal(found.test, data.split(np.arange(100)[::-1], 1).test)


def test_scale_is_of_the_seen_part(observed):
    scale = data.Scale.of(observed, np.array([0, 1]))
    mine = np.isin(observed.series, [0, 1]) & (observed.channel == 0)
    assert scale.range[0] == np.ptp(observed.value[mine])
    weight = (observed.channel == 3) & (observed.time > 0)
    assert np.ptp(observed.value[weight]) == 0
    assert (scale.range > 0).all()


def test_training_questions_prefer_the_cut_of_the_protocol(observed):
    stays = np.arange(STAYS)
    most, every = [100] * observed.variables, [10_000] * observed.variables
    asked = data.training_questions(observed, stays, most, seed=0)
    pulse = asked.target == 0
    assert pulse.sum() == 100
    assert (asked.until[pulse] == 24).sum() == 50
    found = data.training_questions(observed, stays, every, seed=0)
    cuts = [observed.questions(stays, cut) for cut in (24.0, *data.CUTS)]
    assert len(found) == sum(len(one) for one in cuts)
    assert len(data.training_questions(observed, stays, every, seed=0, cuts=())) == len(cuts[0])
    closely = data.training_questions(observed, stays, [200, *most[1:]], seed=0)
    assert (closely.target == 0).sum() == 200
    assert (closely.target == 1).sum() == (asked.target == 1).sum()


def test_last_values_are_those_before_the_cut(observed):
    stays = np.arange(20)
    asked = observed.questions(stays, 24.0)
    found = last_values(Grouped.of(observed.streams), stays, asked, observed)
    for number in (0, len(asked) // 2, len(asked) - 1):
        mine = (observed.series == asked.series[number]) & (observed.channel == asked.target[number])
        known = observed.value[mine & (observed.time < 24)]
        np.testing.assert_equal(found[number], known[-1] if len(known) else np.nan)


def test_peers_beat_the_last_value(observed):
    split = data.split(observed.streams.ids, 42)
    asked, scale = observed.questions(split.test, 24.0), data.Scale.of(observed, split.seen)
    pulse = asked.target == 0
    arguments = observed, split.seen, asked, split.test, scale, 0, lambda part: None
    simple = Simple().run(*arguments).forecasts
    for windows in (False, True):
        (found,) = Peer(windows=windows, rounds=30, leaves=(4,)).run(*arguments).forecasts.values()
        errors = [np.abs(one - asked.value)[pulse].mean() for one in (found, np.full(len(asked), 90.0))]
        assert errors[0] < 0.7 * errors[1]
    assert np.isfinite(simple["last value"]).all()
    assert (
        np.square(simple["shrunk last value"] - asked.value).sum() < np.square(simple["last value"] - asked.value).sum()
    )


CONFIG = """
seeds = [42, 0]
[variants."simple".learner]
type = "simple"
[variants."logcde"]
online = true
repeats = 1
[variants."logcde".learner]
type = "library"
losses = ["mean", "median"]
rounds = 10
questions = 300
[variants."both"]
repeats = 1
[variants."both".learner]
type = "library"
losses = ["between"]
rounds = 10
questions = 300
share = 0.1
cuts = [12.0]
totals = true
closely = ["HR"]
many = 400
"""


def test_files_to_tables(observed, tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    experiment = NextDay()
    settings = settings_of(experiment, tmp_path / "config.toml")
    cells = experiment.cells(settings, {})
    labels = ["simple, split 42", "logcde, split 42", "both, split 42", "simple, split 0"]
    assert [cell.label for cell in cells] == labels
    outcomes = {cell: experiment.run(cell, lambda part: None, tmp_path) for cell in cells}
    ours = outcomes[cells[1]]
    assert set(ours.models) == {report.MEAN, report.MEDIAN, report.AVERAGE}
    assert set(outcomes[cells[2]].models) == {report.BETWEEN}
    assert 0.8 < np.average(ours.covered, weights=ours.counts) < 0.99
    assert np.shape(ours.online.mse) == np.shape(ours.online.last_mae) == (8, 6)
    conclusion = report.conclude(settings, outcomes, tmp_path)
    row = conclusion.summary["rows"][0]
    assert set(row) >= {"protocol", "model", "split", "mse", "mae", "train_seconds"}
    assert row["mse"] == pytest.approx(np.mean(outcomes[cells[0]].models["last value"].mse))
    assert (tmp_path / "hours.png").exists()
    assert any("90 % intervals" in claim.text for claim in conclusion.claims)
    json.dumps(conclusion.summary)
    with pytest.raises(ExperimentError, match="no conclusion"):
        report.conclude(settings, {}, tmp_path)


def test_means_of_groups_are_over_their_members():
    np.testing.assert_array_equal(means(np.array([1.0, 2.0, 6.0]), np.array([1, 1, 0]), 3), [6.0, 1.5, 0.0])


def test_presets_and_what_cannot_be_asked_online(tmp_path):
    settings = settings_of(NextDay())
    assert settings.seeds[0] == 42
    assert len(settings.seeds) == 6
    (tmp_path / "config.toml").write_text('seeds = [42]\n[variants.x]\nonline = true\nlearner = { type = "simple" }\n')
    with pytest.raises(ExperimentError, match="can be asked online"):
        settings_of(NextDay(), tmp_path / "config.toml")

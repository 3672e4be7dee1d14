"""Sepsis hour by hour: the utility score on tiny cases, rows, splits, and one run from files to tables."""

import json

import msgspec
import numpy as np
import pytest

from experiments.runner.reproduce import settings_of
from experiments.sepsis import data, report
from experiments.sepsis.experiment import Sepsis
from experiments.sepsis.learners import Boosting, HourlyRows, RecentRows
from experiments.sepsis.utility import best_threshold, normalised, utilities
from experiments.tests.care import write_hospitals
from logcde.errors import DatasetError


@pytest.fixture
def hospitals(tmp_path, monkeypatch):
    write_hospitals(tmp_path)
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    data.hospitals.cache_clear()
    yield data.hospitals()
    data.hospitals.cache_clear()


def label_of(onset: int, hours: int) -> np.ndarray:
    return (np.arange(hours) >= onset - 6).astype(int)


def test_utility_of_a_warning_rises_until_six_hours_before_onset():
    silence, warning = utilities(label_of(20, 40)).T
    assert warning[14] == 1.0  # optimal: six hours before
    assert warning[8] == 0.0
    assert warning[11] == 0.5
    assert warning[7] == -0.05  # too early counts as a false alarm
    assert warning[23] == 0.0  # three hours after onset
    np.testing.assert_allclose(warning[17], 6 / 9)
    assert (silence[:15] == 0).all()
    assert silence[23] == -2.0
    np.testing.assert_allclose(silence[17], -2 / 3)
    assert (silence[24:] == 0).all()
    assert (warning[24:] == 0).all()


def score(labels: list[np.ndarray], warned: list[np.ndarray]) -> float:
    rows = np.concatenate([[0], np.cumsum([len(one) for one in labels])])
    worth = np.concatenate([utilities(one) for one in labels])
    return normalised(worth, np.concatenate(labels), rows, np.concatenate(warned).astype(bool))


def test_normalised_utility_is_zero_for_silence_and_one_for_the_best_warnings():
    labels = [label_of(20, 40), np.zeros(30, int)]
    hours = np.arange(40)
    best = [(hours >= 8) & (hours <= 23), np.zeros(30)]
    assert score(labels, [np.zeros(40), np.zeros(30)]) == 0.0
    assert score(labels, best) == 1.0
    assert score(labels, [best[0], np.ones(30)]) < 1.0
    assert score(labels, [np.zeros(40), np.ones(30)]) < 0.0
    late = [(hours >= 18) & (hours <= 23), np.zeros(30)]
    assert 0.0 < score(labels, late) < 1.0


def test_best_threshold_is_that_of_a_search():
    rng = np.random.default_rng(0)
    odds, worth = rng.integers(0, 8, 50).astype(float), rng.normal(size=(50, 2))
    found = best_threshold(odds, worth)
    sums = {cut: np.where(odds > cut, worth[:, 1], worth[:, 0]).sum() for cut in np.arange(-1.5, 9.0)}
    assert np.where(odds > found, worth[:, 1], worth[:, 0]).sum() == pytest.approx(max(sums.values()))
    assert best_threshold(odds, np.tile([0.0, -1.0], (50, 1))) > odds.max()
    assert best_threshold(odds, np.tile([0.0, 1.0], (50, 1))) < odds.min()


def test_stays_hours_and_labels_are_read(hospitals):
    assert len(hospitals.streams) == 80
    assert hospitals.streams.schema.channels == ("HR", "Lactate", "Age", "ICULOS")
    place, hour, label = hospitals.hours_of(np.array([4, 0]))
    lengths = np.diff(hospitals.rows)
    assert len(place) == lengths[4] + lengths[0]
    assert hour[lengths[4]] == 0
    assert label[: lengths[4]].sum() == 5
    assert hospitals.hospital.tolist() == [0] * 40 + [1] * 40


def test_splits_are_of_the_protocol(hospitals):
    there = data.split(hospitals.hospital, "A to B", 0)
    assert (hospitals.hospital[there.test] == 1).all()
    assert len(there.train) == 36
    assert (hospitals.hospital[data.split(hospitals.hospital, "B to A", 0).train] == 1).all()
    mixed = data.split(hospitals.hospital, "random", 0)
    assert sorted([*mixed.train, *mixed.validation, *mixed.test]) == list(range(80))


def test_rows_know_the_past_only(hospitals):
    split = data.split(hospitals.hospital, "random", 0)
    stay = np.array([7])
    hours = int(np.diff(hospitals.rows)[7])
    cut = hospitals.streams[stay]
    from logcde.streams.ragged import owners
    from logcde.streams.transforms import keep_observations

    early = keep_observations(cut, cut.times[owners(cut.obs_offsets)] <= 6)
    shorter = data.Hospitals(early, np.array([0, hours]), hospitals.label[:hours], np.zeros(1, int))
    for rows in (HourlyRows(), RecentRows.fit(hospitals, split)):
        whole, part = rows.of(hospitals, stay), rows.of(shorter, np.zeros(1, int))
        np.testing.assert_array_equal(whole[:7], part[:7])
        assert len(whole) == hours
        some = rows.chosen(hospitals, np.array([3, 7]), np.array([0, int(np.diff(hospitals.rows)[3]) + 2]))
        np.testing.assert_array_equal(some[1], whole[2])


def test_files_to_tables(hospitals, tmp_path):
    (tmp_path / "config.toml").write_text(
        "seeds = [0]\nreplayed = 3\n[protocols]\nrandom = 1\n"
        "[boosting]\nrounds = 20\nleast = 5\nnegative = 600\nleaves = [4, 8]\n"
    )
    experiment = Sepsis()
    settings = settings_of(experiment, tmp_path / "config.toml")
    (cell,) = experiment.cells(settings, {})
    assert experiment.can_run(cell)
    outcome = experiment.run(cell, lambda part: None, tmp_path)
    assert set(outcome.models) == {HourlyRows.name, RecentRows.name, "mean of both"}
    assert outcome.models[RecentRows.name].auroc > 0.8
    assert outcome.served.difference < 1e-9
    assert outcome.served.stays == 3
    conclusion = report.conclude(settings, {cell: outcome}, tmp_path)
    row = conclusion.summary["rows"][0]
    assert set(row) >= {"protocol", "model", "split", "auroc", "auprc", "utility", "train_seconds"}
    assert "events a second" in conclusion.text
    assert len(conclusion.claims) == 2
    json.dumps(conclusion.summary)


def test_missing_data_say_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    experiment = Sepsis()
    settings = msgspec.structs.replace(settings_of(experiment), protocols={"A to B": 1, "B to A": 1, "random": 5})
    assert isinstance(settings.boosting, Boosting)
    cells = experiment.cells(settings, {})
    assert len(cells) == 7
    assert sum(cell.replayed > 0 for cell in cells) == 1
    assert not experiment.can_run(cells[0])
    with pytest.raises(DatasetError, match="PhysioNet 2019 is not in"):
        experiment.conclude(settings, {}, tmp_path)

"""Sepsis hour by hour: the utility score on tiny cases, rows, splits, and one run from files to tables."""

import json

import msgspec
import numpy as np
import pytest

from experiments.runner.reproduce import settings_of
from experiments.sepsis import data, grud, report
from experiments.sepsis.experiment import Sepsis
from experiments.sepsis.learners import BOTH, HOURLY, RECENT, HourlyRows, RecentRows
from experiments.sepsis.utility import best_threshold, normalised, utilities
from experiments.tests.care import write_hospitals
from logcde.baselines import HeldControl
from logcde.errors import DatasetError
from logcde.streams import Partition


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
        every = np.arange(hours)
        whole, part = rows.of(hospitals, stay, every), rows.of(shorter, np.zeros(1, int), every)
        np.testing.assert_array_equal(whole[:7], part[:7])
        assert len(whole) == hours
        some = rows.chosen(hospitals, np.array([3, 7]), np.array([0, int(np.diff(hospitals.rows)[3]) + 2]))
        np.testing.assert_array_equal(some[1], whole[2])


def test_validation_stays_are_scored_by_what_did_not_see_them(hospitals):
    split = data.split(hospitals.hospital, "random", 0)
    inner = data.inner(split, 0)
    np.testing.assert_array_equal(inner.test, split.validation)
    assert sorted([*inner.train, *inner.validation]) == split.train.tolist()


def test_rows_of_grud_are_those_of_a_held_control(hospitals):
    """Every hour that has an observation is an event; hours without are told apart by their masks."""
    stays = np.arange(5, 9)
    scale = np.stack([np.full(4, 3.0), np.full(4, 2.0)])
    streams = hospitals.streams[stays]
    offsets = np.concatenate([[0], np.cumsum(np.diff(hospitals.rows)[stays])])
    rows = grud.held(data.hourly(streams, offsets), offsets, scale)
    control = HeldControl()(streams, Partition.uniform(1)).values
    for stay in range(len(stays)):
        events = streams.times[streams.offsets[stay] : streams.offsets[stay + 1]].astype(int)
        mine, (last, observed, ago) = rows[offsets[stay] + events], np.split(control[stay, : len(events)], 3, axis=1)
        known = np.maximum.accumulate(observed, axis=0) > 0
        clipped = np.where(known, np.clip((last - 3.0) / 2.0, -grud.FARTHEST, grud.FARTHEST), 0.0)
        np.testing.assert_allclose(mine, np.concatenate([clipped, observed, ago / 24], axis=1), atol=1e-5)
        silent = np.setdiff1d(np.arange(np.diff(offsets)[stay]), events)
        assert (rows[offsets[stay] + silent, 4:8] == 0).all()


CONFIG = """
seeds = [0]
replayed = 3
[protocols]
random = 1
[learners."boosting"]
type = "boosting"
[learners."boosting".hourly]
negative = 600
search = [[0.1, 20, 4, 5, 0.3], [0.1, 20, 8, 5, 0.3]]
[learners."boosting".recent]
negative = 600
search = [[0.1, 20, 4, 5, 0.3]]
[learners."GRU-D"]
type = "gru-d"
hidden = 8
batch = 8
epochs = 2
buckets = 2
weight = 2.0
decay = true
clock = true
"""


def test_files_to_tables(hospitals, tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    experiment = Sepsis()
    settings = settings_of(experiment, tmp_path / "config.toml")
    cells = experiment.cells(settings, {})
    assert all(experiment.can_run(cell) for cell in cells)
    outcomes = {cell: experiment.run(cell, lambda part: None, tmp_path / cell.variant) for cell in cells}
    boosting, net = outcomes.values()
    assert set(boosting.models) == {HOURLY, RECENT, BOTH}
    assert boosting.models[RECENT].auroc > 0.8
    assert boosting.models[HOURLY].setting.endswith("leaves")
    assert boosting.served.difference < 1e-9
    assert boosting.served.stays == 3
    assert net.served is None
    assert net.models["GRU-D"].auroc > 0.8
    conclusion = report.conclude(settings, outcomes, tmp_path)
    row = conclusion.summary["rows"][0]
    assert set(row) >= {"protocol", "model", "split", "auroc", "auprc", "utility", "train_seconds"}
    assert "events a second" in conclusion.text
    assert len(conclusion.claims) == 4
    json.dumps(conclusion.summary)


def test_loss_between_hospitals_counts_each_way_once():
    def row(protocol, split, utility, model=RECENT):
        scores = dict.fromkeys(("auroc", "auprc", "log_loss", "brier", "calibration_error", "train_seconds"), 0.5)
        return report.Row(protocol=f"sepsis, {protocol}", model=model, split=split, utility=utility, **scores)

    rows = [
        row("random", 0, 0.5),
        row("random", 1, 0.3),
        row("A to B", 0, 0.1),
        row("B to A", 0, 0.2),
        row("B to A", 1, 0.4),
    ]
    rows += [
        row(*where, 0.4, HOURLY)
        for where in (("random", 0), ("random", 1), ("A to B", 0), ("B to A", 0), ("B to A", 1))
    ]
    (claim,) = [claim for claim in report.judge(rows) if "loses less" in claim.text]
    assert not claim.held
    assert "falls by 0.200" in claim.evidence


def test_missing_data_say_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    experiment = Sepsis()
    settings = msgspec.structs.replace(
        settings_of(experiment, preset="quick"),
        seeds=(0, 1, 2, 3, 4),
        protocols={"A to B": 1, "B to A": 1, "random": 5},
        repeats={"GRU-D": {"random": 3}},
    )
    cells = experiment.cells(settings, {})
    assert [sum(cell.variant == name for cell in cells) for name in ("boosting", "GRU-D")] == [7, 3]
    assert sum(cell.replayed > 0 for cell in cells) == 1
    assert not experiment.can_run(cells[0])
    with pytest.raises(DatasetError, match="PhysioNet 2019 is not in"):
        experiment.conclude(settings, {}, tmp_path)

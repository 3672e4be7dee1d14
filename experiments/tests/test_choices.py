"""The study behind the defaults: held-out predictions only, tables of finished variants."""

import dataclasses

import numpy as np
import pytest

from experiments.choices import experiment, report
from experiments.choices.cells import ChoicesCell, ChoicesConfig, Part, Validated
from experiments.choices.experiment import Choices
from experiments.choices.variants import VARIANTS
from experiments.defaults import data
from experiments.defaults.data import Labelled, Windows
from experiments.runner.reproduce import settings_of
from logcde.errors import ExperimentError
from logcde.estimators.learners import WindowRidge


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(experiment, "VARIANTS", {"quick": WindowRidge(units=40)})


def cell_of(**options):
    options = {
        "variant": "quick",
        "seed": 0,
        "task": "classification",
        "dataset": "BasicMotions",
        "share": 0.0,
    } | options
    return ChoicesCell(**options)


@pytest.mark.parametrize("preset", ["full", "quick"])
def test_presets_name_variants_that_there_are(preset):
    cells = Choices().cells(settings_of(Choices(), preset=preset), {})
    assert {cell.variant for cell in cells} <= set(VARIANTS)
    assert {cell.task for cell in cells} <= set(experiment.TASKS)
    assert len({cell.label for cell in cells}) == len(cells)


def test_test_parts_are_not_read_and_noise_is_not_predicted(quick, monkeypatch):
    rng = np.random.default_rng(0)
    series, labels = rng.normal(size=(60, 2, 12)), np.arange(60) % 2
    poison = np.full((10, 2, 12), np.inf)
    given = Labelled(series, labels, poison, np.zeros(10, np.int64))
    monkeypatch.setattr(data, "labelled", lambda name: given)
    monkeypatch.setattr(Labelled, "dropped", lambda self, share, seed: self)
    told = []
    found = Choices().run(cell_of(), told.append, None)
    assert told == [1 / 3, 2 / 3, 1.0]
    assert found.series == 60
    assert 0.25 < found.scores["accuracy"] < 0.75
    assert found.scores["log loss"] > 0.6


def test_blocks_of_windows_are_left_out(quick, monkeypatch):
    rng = np.random.default_rng(0)
    windows = rng.normal(size=(40, 12, 2))
    targets = windows[:, :, 0].mean(axis=1) * 10
    given = Windows(("a", "b"), windows, targets, windows, np.full(40, np.nan))
    monkeypatch.setattr(data, "regression", lambda share, seed: given)
    found = Choices().run(cell_of(task="regression", dataset="BeijingPM25"), lambda part: None, None)
    assert 0 < found.scores["RMSE"] < targets.std()


def test_tables_have_variants_that_finished_all_data_sets():
    config = ChoicesConfig(seeds=(0,), grid=(Part(variants=("one", "other"), datasets=("x", "y"), shares=(0.0, 0.5)),))
    cells = Choices().cells(config, {})
    done = Validated(scores={"accuracy": 0.9, "log loss": 0.25}, series=9, fit_seconds=2.0)
    outcomes = {cell: done for cell in cells if cell.variant == "one" or cell.dataset == "x"}
    conclusion = report.conclude(cells, outcomes)
    assert [(row["variant"], row["share"]) for row in conclusion.summary["rows"]] == [("one", 0.0), ("one", 0.5)]
    assert "| one | 90.0 | 90.0 | 0.250 | 0.250 | 2.0 |" in conclusion.text
    assert len(conclusion.summary["not_run"]) == 2
    with pytest.raises(ExperimentError, match="no conclusion"):
        report.conclude(cells, {})


def test_variants_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        VARIANTS["ridge"].units = 3

"""Death in hospital on published splits: what learners are given, one run from files to tables, ensembles."""

import json

import msgspec
import numpy as np
import pytest

from experiments.mortality import data, report
from experiments.mortality.cells import Scored
from experiments.mortality.experiment import Mortality
from experiments.mortality.learners import Estimator, Setting, Trees, more_summaries, rows_of
from experiments.runner.reproduce import settings_of
from experiments.tests.care import STAYS, write_stays
from logcde.errors import DatasetError, ExperimentError
from logcde.estimators.learners import WindowRidge
from logcde.streams.ragged import owners


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_stays(tmp_path)
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    data.all_stays.cache_clear()
    yield tmp_path
    data.all_stays.cache_clear()


def test_published_attributes_have_the_weight_on_admission(folder):
    stays = data.with_attributes(data.all_stays(), "published")
    assert stays.streams.schema.channels == ("HR", "Lactate", "Temp")
    assert stays.names[-1] == "Weight"
    assert set(np.unique(stays.static[np.isfinite(stays.static[:, -1]), -1])) == {70.0, 80.0}
    assert data.with_attributes(data.all_stays(), "all") is data.all_stays()


def test_problems_train_on_all_but_the_scored_stays(folder):
    train, validation, test = data.records(1)
    for part, known, scored in (("test", [*train, *validation], test), ("validation", train, validation)):
        given = data.problem(1, part, "published")
        assert len(given.split.train) == len(known)
        assert len(given.split.validation) == len(scored)
        assert len(given.split.test) == 5 * len(scored)
        ids = data.all_stays().streams.ids.tolist()
        died = data.all_stays().died[[ids.index(one) for one in [*known, *scored]]]
        np.testing.assert_array_equal(given.stays.died[: len(died)], died)
    with pytest.raises(DatasetError, match="has no split 2"):
        data.problem(2, "test", "published")


def test_larger_shares_leave_out_the_same_variables_and_more(folder):
    streams = data.all_stays().streams
    kept = []
    for share in (0.0, 0.25, 0.5):
        some = data.without_variables(streams, share, (0, 1))
        series = owners(some.offsets)[owners(some.obs_offsets)]
        kept.append(set(zip(series.tolist(), some.channel.tolist(), strict=True)))
    assert kept[2] < kept[1] < kept[0]
    # Every stay observes all four variables, unless its weight is unknown: it is then among those left out, or not.
    assert max(sum((stay, k) in kept[1] for k in range(4)) for stay in range(STAYS)) == 3


def test_static_channels_are_observed_once_at_the_start(folder):
    stays = data.all_stays()
    streams = data.with_static_channels(stays)
    assert streams.schema.channels[4:] == stays.names
    mine = streams.channel >= 4
    assert (streams.times[owners(streams.obs_offsets)[mine]] == 0).all()
    assert mine.sum() == np.isfinite(stays.static).sum()


def test_summaries_match_a_loop(folder):
    streams = data.all_stays().streams
    table = more_summaries(streams).reshape(STAYS, 2, 4)
    event = owners(streams.obs_offsets)
    for stay in (0, 7):
        for channel in range(3):
            mine = (owners(streams.offsets)[event] == stay) & (streams.channel == channel)
            expected = streams.value[mine].std(), streams.times[event[mine]].max()
            np.testing.assert_allclose(table[stay, :, channel], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["windows", "both"])
def test_rows_depend_on_their_own_stay_only(folder, kind):
    given = data.problem(1, "test", "published")
    table = rows_of(given, kind)
    assert len(table) == len(given.stays)
    first = len(given.split.train)
    assert np.isfinite(table[first]).sum() > np.isfinite(table[-30]).sum()


CONFIG = """
seeds = [1]
[ensembles]
"ensemble" = ["boosting on summaries", "classifier"]
[variants."boosting on summaries".learner]
type = "trees"
rows = "summaries"
members = 2
search = [[0.1, 10, 4, 5, 0.5], [0.1, 20, 4, 5, 1.0]]
[variants."classifier"]
attributes = "all"
[variants."classifier".learner]
type = "estimator"
learner = "ridge"
"""


@pytest.mark.filterwarnings("ignore::logcde.errors.OutOfRangeWarning")
def test_files_to_tables(folder, tmp_path, monkeypatch):
    from experiments.mortality import learners

    monkeypatch.setattr(learners, "LEARNERS", {"ridge": WindowRidge(units=0)})
    (tmp_path / "config.toml").write_text(CONFIG)
    experiment = Mortality()
    settings = settings_of(experiment, tmp_path / "config.toml")
    cells = experiment.cells(settings, {})
    assert all(experiment.can_run(cell) for cell in cells)
    outcomes = {cell: experiment.run(cell, lambda part: None, tmp_path / "scratch") for cell in cells}
    assert outcomes[cells[0]].members == 2
    conclusion = report.conclude(settings, outcomes, tmp_path)
    rows = {row["model"]: row for row in conclusion.summary["rows"]}
    assert set(rows) == {"boosting on summaries", "classifier", "ensemble"}
    assert all(set(row) >= {"protocol", "model", "split", "auroc", "train_seconds"} for row in rows.values())
    assert rows["ensemble"]["auroc"] > 0.8
    # Without half of the variables, which are those that tell, less is known.
    assert rows["ensemble"]["left_out_auroc"][-1] < rows["ensemble"]["auroc"]
    assert any("above every published row" in claim.text for claim in conclusion.claims)
    assert (tmp_path / "left_out.png").exists()
    json.dumps(conclusion.summary)


def test_ensembles_are_means_of_log_odds():
    runs = [Scored(odds=[[1000, -3000, 0]], died="100", members=n, train_seconds=1.0) for n in (1, 2)]
    runs[1] = msgspec.structs.replace(runs[1], odds=[[0, 2000, 500]])
    found = report.mean_of(runs)
    assert (found.odds, found.members, found.train_seconds) == ([[500.0, -500.0, 250.0]], 3, 2.0)
    assert report.row_of("x", 1, found).auroc == 1.0


def test_presets_and_faulty_ensembles(tmp_path):
    settings = settings_of(Mortality())
    assert settings.seeds[0] == 1
    assert isinstance(settings.variants["boosting on summaries"].learner, Trees)
    assert isinstance(settings.variants["LogCDEClassifier()"].learner, Estimator)
    assert isinstance(settings.variants["boosting on both"].learner.search[0], Setting)
    assert len(Mortality().cells(settings_of(Mortality(), preset="quick"), {})) == 2
    (tmp_path / "config.toml").write_text(CONFIG.replace('"classifier"]', '"nobody"]', 1))
    with pytest.raises(ExperimentError, match="not made of variants: nobody"):
        settings_of(Mortality(), tmp_path / "config.toml")

"""Intensive care: what models see, one run from files to tables, and the model in use."""

import io
import json

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics import roc_auc_score

from experiments.physionet2012 import experiment as physionet
from experiments.physionet2012 import report
from experiments.physionet2012.boosting import Boosting, summaries
from experiments.physionet2012.cells import PhysioNetCell
from experiments.physionet2012.experiment import PhysioNet2012
from experiments.physionet2012.models import Fitted, Given, HeldModel, Neural, PathModel
from experiments.runner.reproduce import reproduce, settings_of
from logcde.datasets import split
from logcde.errors import DatasetError, ExperimentError

VARIABLES = ("HR", "Lactate", "Temp")
STAYS = 120


@pytest.fixture
def stays(tmp_path, monkeypatch):
    """Stays in which the heart rate is high, and measured often, for those who die."""
    rng = np.random.default_rng(0)
    died = np.arange(STAYS) % 3 == 0
    rows = []
    for stay in range(STAYS):
        for _ in range(rng.integers(6, 10) + 4 * died[stay]):
            rows.append((stay, rng.integers(0, 2881), 0, 80 + 25 * died[stay] + rng.normal(0, 12)))
        rows += [(stay, rng.integers(0, 2881), v, rng.normal((0, 2, 37)[v], 0.3)) for v in (1, 2, 2)]
    stay, minute, variable, value = np.array(sorted(rows)).T
    known = rng.uniform(20, 90, STAYS), rng.integers(0, 2, STAYS), rng.choice([-1.0, 170.0], STAYS)
    np.savez(
        tmp_path / "PhysioNet2012.npz",
        variables=np.array(VARIABLES),
        static_names=np.array(["Age", "Gender", "Height", "ICUType"]),
        ids_a=np.arange(STAYS),
        offsets_a=np.searchsorted(stay, np.arange(STAYS + 1)),
        t_min_a=minute,
        var_a=variable.astype(np.uint8),
        value_a=value,
        static_a=np.stack([*known, rng.integers(1, 5, STAYS)], axis=1),
        y_a=died.astype(np.int8),
    )
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    physionet.loaded.cache_clear()
    yield physionet.loaded()
    physionet.loaded.cache_clear()


def given(stays):
    return Given(stays, split(len(stays), 0, 0.8, 0.1))


SMALL = PathModel(hidden=4, block=2, hours=12.0)


def test_static_features_are_centred_on_training_stays_and_finite(stays):
    mine = given(stays)
    assert mine.static.shape == (STAYS, 8)
    assert np.isfinite(mine.static).all()
    np.testing.assert_allclose(mine.static[mine.split.train].mean(axis=0), 0, atol=1e-12)


def test_scales_clip_implausible_values(stays):
    low, high = given(stays).scales.each[0].low, given(stays).scales.each[0].high
    assert (low, high) == pytest.approx((5, 300), abs=250)
    assert low >= 5
    assert high <= 300


def test_summaries_match_a_loop(stays):
    streams = stays.streams
    table = summaries(streams).reshape(STAYS, 6, 3)
    for series in (0, 7, STAYS - 1):
        events = range(streams.offsets[series], streams.offsets[series + 1])
        for channel in range(3):
            seen = [
                streams.value[obs]
                for event in events
                for obs in range(streams.obs_offsets[event], streams.obs_offsets[event + 1])
                if streams.channel[obs] == channel
            ]
            expected = [len(seen), np.mean(seen), min(seen), max(seen), seen[0], seen[-1]]
            np.testing.assert_allclose(table[series, :, channel], expected)


@pytest.mark.parametrize(
    "learner",
    [
        Neural(models=(SMALL, PathModel(cde="none", perceptron=4, hours=12.0)), members=1, epochs=8, rate=3e-2),
        Neural(models=(HeldModel(hidden=8),), members=1, epochs=12, rate=3e-2),
        Boosting(rounds=10, least=5, members=2),
    ],
)
def test_every_learner_separates_the_classes(stays, tmp_path, learner):
    mine = given(stays)
    found = learner.fit(mine, 0, lambda part: None, tmp_path / "scratch")
    assert roc_auc_score(stays.died[mine.split.test], found.test.mean(axis=0)) > 0.8
    outcome = physionet.scored(mine, found)
    assert len(outcome.members) == len(found.test)
    assert 0 < outcome.brier < 0.25


def test_ridge_shrinks_weights(stays, tmp_path):
    mine = given(stays)
    loose, tight = (
        Neural(models=(PathModel(cde="none", hours=12.0, ridge=ridge),), members=1, epochs=3, rate=3e-2).fit(
            mine, 0, lambda part: None, tmp_path / str(number)
        )
        for number, ridge in enumerate([PathModel().ridge, type(PathModel().ridge)(additive=10.0)])
    )
    sizes = [np.linalg.norm(fitted.models[0].models[0].readout.layers[-1].weight) for fitted in (loose, tight)]
    assert sizes[1] < 0.5 * sizes[0]


def test_scored_uses_the_mean_of_the_members(stays):
    mine = given(stays)
    rng = np.random.default_rng(1)
    test = rng.normal(size=(3, len(mine.split.test)))
    outcome = physionet.scored(mine, Fitted(rng.normal(size=(3, len(mine.split.validation))), test, 1.0, 5))
    assert outcome.auroc == roc_auc_score(stays.died[mine.split.test], test.mean(axis=0))
    assert outcome.members[1][0] == roc_auc_score(stays.died[mine.split.test], test[1])


CONFIG = """
seeds = [0, 1]
live = ["bd_slice"]
[variants.bd_slice.learner]
type = "neural"
members = 1
epochs = 2
models = [
    { type = "path", hidden = 4, block = 2, hours = 12.0 },
    { type = "path", cde = "none", perceptron = 4, hours = 12.0 },
]
[variants.gradient_boosting.learner]
type = "boosting"
rounds = 5
[variants.bare]
kind = "ablation"
note = "no counts"
repeats = 1
[variants.bare.learner]
type = "neural"
members = 1
epochs = 1
models = [{ type = "path", hidden = 4, block = 2, hours = 12.0, counts = false, time = false, static = false }]
"""


def test_files_to_tables(stays, tmp_path, monkeypatch):
    config, out = tmp_path / "config.toml", tmp_path / "out"
    config.write_text(CONFIG)
    # In this process: what is tried here is not the pool of processes.
    experiment = PhysioNet2012()
    settings = settings_of(experiment, config)
    cells = experiment.cells(settings, {})
    assert [cell.label for cell in cells][-2:] == ["bare, split 0", "bd_slice, in use, split 0"]
    outcomes = {
        cell: experiment.run(cell, lambda part: None, tmp_path / "scratch" / str(n)) for n, cell in enumerate(cells)
    }
    out.mkdir()
    conclusion = report.conclude(settings, outcomes, out)
    rows = {row["model"]: row for row in conclusion.summary["rows"]}
    assert set(rows) == {"bd_slice", "gradient_boosting", "bare"}
    assert rows["bd_slice"]["splits"] == [0, 1]
    assert set(rows["bd_slice"]["auroc"]) == {"mean", "std"}
    assert 0 <= rows["bd_slice"]["auprc"]["mean"] <= 1
    assert len(conclusion.claims) == 4
    live = outcomes[cells[-1]].live
    # Online is offline, and at the end of a stay it is what was tested.
    assert live.replay.difference < 1e-4
    assert live.replay.events == sum(
        int(stays.streams.offsets[one + 1] - stays.streams.offsets[one]) for one in given(stays).split.test
    )
    assert live.hours.auroc[-1] == pytest.approx(outcomes[cells[0]].auroc, abs=1e-5)
    total = sum(one.amount for one in live.explained.observations)
    assert total == pytest.approx(live.explained.log_odds - live.explained.ordinary, abs=0.05)
    assert {"hours.png", "attribution.png", "reliability_bd_slice.png"} <= {file.name for file in out.iterdir()}
    assert "event by event" in conclusion.text
    json.dumps(conclusion.summary)


def test_reproduce_refuses_missing_data_and_invalid_live_variants(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    experiment = PhysioNet2012()
    console = Console(file=io.StringIO())
    with pytest.raises(DatasetError, match="downloaded from https://physionet.org"):
        reproduce(experiment, out=tmp_path / "out", console=console)
    monkeypatch.delenv("LOGCDE_DATA")
    with pytest.raises(DatasetError, match="downloaded from https://physionet.org"):
        reproduce(experiment, out=tmp_path / "out", console=console)
    config = tmp_path / "config.toml"
    config.write_text('seeds = [0]\nlive = ["x"]\n[variants.x.learner]\ntype = "boosting"\n')
    with pytest.raises(ExperimentError, match="not made of models on the embedding"):
        settings_of(experiment, config)
    config.write_text('seeds = [0]\nlive = ["y"]\n[variants.x.learner]\ntype = "boosting"\n')
    with pytest.raises(ExperimentError, match="no such variant"):
        settings_of(experiment, config)


def test_presets_have_the_expected_variants():
    settings = settings_of(PhysioNet2012())
    assert {"bd_slice", "log_ncde", "gru_d", "gradient_boosting", "without_counts", "depth_2"} <= set(settings.variants)
    assert isinstance(PhysioNet2012().cells(settings, {})[0], PhysioNetCell)
    assert len(PhysioNet2012().cells(settings_of(PhysioNet2012(), preset="quick"), {})) == 3

"""Default estimators beside peers: dropping, summaries, the peers' process, tasks on generated data, the report."""

import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.defaults import data, peers, rows, tables, tasks
from experiments.defaults.cells import DefaultsCell, DefaultsConfig, Measured, Part
from experiments.defaults.data import Labelled, Windows, dropped
from experiments.defaults.experiment import Defaults
from experiments.defaults.scores import classification_scores, rare_scores
from experiments.defaults.summaries import forward_filled, interpolated, observed_summaries, summarised
from experiments.runner.reproduce import settings_of
from logcde.errors import ExperimentError

NAN = float("nan")


@pytest.fixture
def waves():
    """Two classes that differ in frequency, 24 + 16 series with two channels and 40 steps."""
    random = np.random.default_rng(0)
    labels = np.arange(40) % 2
    phase = random.uniform(0, 6, size=(40, 2, 1))
    series = np.sin(phase + np.arange(40) * np.where(labels, 0.9, 0.3)[:, None, None])
    return Labelled(series[:24], labels[:24], series[24:], labels[24:])


class TestDropping:
    def test_keeps_values_and_at_least_two_in_each_channel(self):
        values = np.random.default_rng(0).normal(size=(20, 3, 30))
        values[:, :, 25:] = NAN  # padding of shorter series
        left = dropped(values, 0.95, seed=1)
        seen = np.isfinite(left)
        assert seen.sum(axis=2).min() == 2
        assert np.array_equal(left[seen], values[seen])
        assert not seen[:, :, 25:].any()

    def test_drops_the_share_from_each_channel_by_itself(self):
        left = dropped(np.ones((50, 2, 200)), 0.7, seed=3)
        seen = np.isfinite(left)
        assert abs(seen.mean() - 0.3) < 0.01
        assert abs((seen[:, 0] & seen[:, 1]).mean() - 0.09) < 0.01

    def test_parts_have_seeds_of_their_own(self, waves):
        left = waves.dropped(0.5, seed=4)
        assert np.array_equal(left.train, dropped(waves.train, 0.5, 1004), equal_nan=True)
        assert np.array_equal(left.test, dropped(waves.test, 0.5, 2004), equal_nan=True)
        assert np.array_equal(waves.dropped(0.0, seed=0).train, waves.train)


class TestSummaries:
    def test_interpolated_fills_every_gap(self):
        values = np.array([[[NAN, 2.0, NAN, NAN, 5.0, NAN], [NAN] * 6]])
        assert interpolated(values).tolist() == [[[2.0, 2.0, 3.0, 4.0, 5.0, 5.0], [0.0] * 6]]

    def test_summarised_has_eighteen_numbers_for_each_channel(self):
        series = np.random.default_rng(0).normal(size=(3, 2, 8))
        found = summarised(series).reshape(3, 18, 2)
        changes = np.diff(series, axis=2)
        assert np.allclose(found[:, 4], np.median(series, axis=2))
        assert np.allclose(found[:, 6], series[..., -1])
        assert np.allclose(found[:, 8], changes.std(axis=2))
        assert np.allclose(found[:, 13], changes[..., -1])
        assert np.allclose(found[:, 17], series[..., 6:].mean(axis=2))

    def test_observed_summaries_skip_gaps(self):
        values = np.array([[[1.0, NAN], [NAN, NAN], [4.0, NAN], [NAN, NAN]]])
        found = observed_summaries(values).reshape(7, 2)
        assert found[:, 0].tolist() == [4.0, 2.5, 1.0, 4.0, 1.5, 2.0, 3.0]
        assert found[5, 1] == 0
        assert np.isnan(np.delete(found[:, 1], 5)).all()

    def test_forward_filled_looks_back_only(self):
        values = np.array([[[NAN], [1.0], [NAN], [2.0]]])
        assert np.array_equal(forward_filled(values).ravel(), [NAN, 1.0, 1.0, 2.0], equal_nan=True)


class TestScores:
    def test_log_loss_is_clipped(self):
        labels = np.array([0, 1])
        found = classification_scores(np.array([[0.0, 1.0], [0.0, 1.0]]), labels, np.array([0, 0, 0, 1]))
        assert found["accuracy"] == 0.5
        assert found["log loss"] == pytest.approx(-np.log(1e-15) / 2)
        assert found["log loss of class frequencies"] == pytest.approx(-(np.log(0.75) + np.log(0.25)) / 2)
        assert found["AUROC"] == 0.5

    def test_rare_scores_have_the_area_under_precision(self):
        probable = np.array([0.1, 0.4, 0.3, 0.9])
        found = rare_scores(np.stack([1 - probable, probable], axis=1), np.array([0, 0, 1, 1]), np.array([0, 1]))
        assert found["AUPRC"] == pytest.approx(5 / 6)

    def test_not_finite_probabilities_are_refused(self):
        labels = np.array([0, 1])
        with pytest.raises(ExperimentError, match="not finite"):
            classification_scores(np.array([[NAN, 1.0], [0.0, 1.0]]), labels, labels)


class TestPeers:
    @pytest.fixture(autouse=True)
    def fresh(self):
        yield
        peers.end_all()

    def test_process_answers_in_files_without_pickle(self, waves, monkeypatch):
        monkeypatch.setattr(peers, "OF_SKLEARN", frozenset())  # the forest in the environment of the peers
        monkeypatch.setenv(peers.VARIABLE, sys.executable)
        found = peers.classify("rf", 0, waves.train, waves.train_labels, waves.test)
        assert found.predictions.shape == (16, 2)
        assert np.allclose(found.predictions.sum(axis=1), 1)
        assert (found.predictions.argmax(axis=1) == waves.test_labels).mean() > 0.9
        assert found.fit_seconds > 0
        assert found.predict_seconds > 0
        assert set(found.versions) >= {"numpy", "scikit-learn"}

    def test_failure_of_a_method_is_told_and_the_process_goes_on(self, waves):
        with pytest.raises(ExperimentError, match=r"(?s)no_such_method failed.*KeyError"):
            peers.ask(Path(sys.executable), {"method": "no_such_method", "seed": 0, "folder": "."})
        assert peers.classify("rf", 0, waves.train, waves.train_labels, waves.test).predictions.shape == (16, 2)

    def test_process_that_dies_is_told(self, tmp_path, waves, monkeypatch):
        broken = tmp_path / "python"
        broken.write_text("#!/bin/sh\nexit 3\n")
        broken.chmod(0o755)
        monkeypatch.setenv(peers.VARIABLE, str(broken))
        with pytest.raises(ExperimentError, match="minirocket ended with code 3"):
            peers.classify("minirocket", 0, waves.train, waves.train_labels, waves.test)

    def test_interpreter_is_a_file_or_in_a_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv(peers.VARIABLE, str(tmp_path))
        assert peers.interpreter("minirocket") is None
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "python").touch()
        assert peers.interpreter("minirocket") == tmp_path / "bin" / "python"
        assert peers.interpreter("rf") == Path(sys.executable)

    def test_requirements_are_pinned(self):
        lines = (Path(peers.__file__).parent / "peers.txt").read_text().splitlines()
        assert all(line.count("==") == 1 and " " not in line for line in lines)
        assert any(line.startswith("aeon==") for line in lines)


class Constant:
    """Stands for an estimator of ours; counts its fits."""

    def __init__(self):
        self.fits = []

    def fit(self, X, y):
        self.fits.append((X, y))

    def predict_proba(self, X):
        return np.tile([0.25, 0.75], (len(X), 1))


def cell_of(variant="logcde", seed=0, task="classification", dataset="Epilepsy", share=0.5):
    return DefaultsCell(variant=variant, seed=seed, task=task, dataset=dataset, share=share)


class TestTasks:
    def test_ours_get_observations_as_they_are_and_fit_twice_for_the_first_seed(self, waves, monkeypatch):
        ours = Constant()
        monkeypatch.setattr(data, "labelled", lambda name: waves)
        monkeypatch.setitem(tasks.CLASSIFIERS, "logcde", lambda seed: ours)
        found = tasks.classification(cell_of())
        assert len(ours.fits) == 2
        assert found.refit_seconds is not None
        assert (found.train, found.test) == (24, 16)
        left = waves.dropped(0.5, 0).train.swapaxes(1, 2)
        assert np.array_equal(ours.fits[0][0], left, equal_nan=True)
        assert tasks.classification(cell_of(seed=1)).refit_seconds is None
        assert len(ours.fits) == 3

    def test_grud_gives_probabilities(self, waves, monkeypatch):
        monkeypatch.setattr(data, "labelled", lambda name: waves)
        monkeypatch.setattr("experiments.defaults.grud.MOST", 2)
        found = tasks.classification(cell_of("grud", share=0.0))
        assert set(found.scores) == {"accuracy", "log loss", "log loss of class frequencies", "AUROC"}

    def test_forecasts_of_the_last_value(self, monkeypatch):
        windows = np.random.default_rng(0).normal(size=(6, 72, 5))
        windows[0, -1, 2] = NAN
        targets = np.repeat(windows[:, None, -1, [0, 2]], 5, axis=1)
        given = Windows(("pm2.5", "DEWP", "TEMP", "PRES", "Iws"), windows[1:], targets[1:], windows, targets)
        monkeypatch.setattr(data, "forecasting", lambda share, seed: given)
        found = tasks.forecasting(cell_of("last value", task="forecasting", dataset="BeijingPM25"))
        assert set(rows.FORECASTS) <= set(found.scores)
        assert max(found.scores.values()) == 0.0

    def test_each_horizon_has_a_learner_on_known_targets(self):
        windows = np.random.default_rng(0).normal(size=(30, 72, 5))
        targets = np.stack([windows[:, -1, [0, 2]], 10 + windows[:, -1, [0, 2]]], axis=1)
        targets[0, 0, 0] = NAN
        learner = tables.ForEachHorizon(lambda column: tables.LastValue(column))
        learner.fit(windows, targets)
        assert learner.predict(windows).shape == (30, 2, 2)
        assert np.allclose(learner.predict(windows)[:, 0], windows[:, -1, [0, 2]])

    def test_table_leaves_out_what_no_training_window_has(self):
        windows = np.random.default_rng(0).normal(size=(200, 24, 3))
        windows[..., 1] = NAN
        labels = (windows[:, -1, 0] > 0).astype(int)
        boosting = tables.SEPSIS_TABLES["boosting"](0)
        boosting.fit(windows, labels)
        windows[..., 1] = 1.0
        assert (boosting.predict_proba(windows).argmax(axis=1) == labels).mean() > 0.9


@pytest.fixture
def beijing(tmp_path, monkeypatch):
    """Two years of hours, which the first two channels count; of the first, some are missing."""
    hours = 2 * 8760
    values = np.zeros((hours, 7), np.float32)
    values[:, 0] = values[:, 1] = np.arange(hours)
    values[48:54, 0] = values[600:648, 0] = NAN
    year = np.repeat(np.array([2013, 2014], np.int16), 8760)
    columns = np.array(["pm2.5", "DEWP", "TEMP", "PRES", "Iws", "Is", "Ir"])
    np.savez(tmp_path / "BeijingPM25.npz", values=values, columns=columns, year=year)
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    data._hours.cache_clear()
    yield
    data._hours.cache_clear()


@pytest.mark.usefixtures("beijing")
class TestBeijing:
    def test_regression_asks_for_the_mean_of_the_next_hours(self):
        given = data.regression(0.0, 0)
        assert given.train.shape[1:] == (48, 7)
        starts = given.train[:, 0, 1]
        assert np.array_equal(given.train_targets, starts + 48 + 2.5)
        # Windows without a target: before hour 48, and 552 to 588; a window without the channel: 600.
        assert set(np.arange(0, 700, 12)) - set(starts) == {0, 552, 564, 576, 588, 600}
        assert given.test[0, 0, 1] == 8760
        assert np.isnan(data.regression(0.7, 0).train).mean() == pytest.approx(0.7, abs=0.02)

    def test_forecasting_counts_hours_from_the_last_of_the_window(self):
        given = data.forecasting(0.7, 0)
        assert given.test.shape[1:] == (72, 5)
        assert given.test_targets[0, :, 0].tolist() == [8760 + 71 + hours for hours in data.AHEAD]
        assert np.isfinite(given.test[:, :2]).all()
        assert np.isnan(given.test[:, 2:]).mean() == pytest.approx(0.7, abs=0.02)


def test_sepsis_takes_stays_without_sepsis_in_the_first_day(tmp_path, monkeypatch):
    lengths = [30, 20, 40, 26]  # the second is too short, sepsis of the third is too early
    labels = [np.zeros(length, np.int8) for length in lengths]
    labels[0][28] = labels[2][5] = 1
    hour = np.array([0, 29, 3, 1, 23, 25], np.uint16)
    file = {
        "variables": np.array(["HR", "EtCO2"]),
        "row_offsets_A": np.cumsum([0, *lengths]),
        "label_hourly_A": np.concatenate(labels),
        "offsets_A": np.array([0, 2, 3, 4, 6]),
        "hour_A": hour,
        "var_A": np.zeros(6, np.uint8),
        "value_A": np.arange(6, dtype=np.float32),
    }
    np.savez(tmp_path / "PhysioNet2019.npz", **file)
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    monkeypatch.setattr(data, "TRAINED", 2)
    monkeypatch.setattr(data, "TESTED", 2)
    given = data.sepsis.__wrapped__()
    assert given.channels == ("HR",)  # the other one is never observed
    assert sorted(given.train_targets.tolist()) == [0.0, 1.0]
    septic = given.train[given.train_targets == 1][0]
    assert (septic[0, 0], np.isfinite(septic).sum()) == (0.0, 1)  # the observation of hour 29 is later


class TestGrid:
    def test_full_grid_has_five_seeds_but_one_without_dropping(self):
        cells = Defaults().cells(settings_of(Defaults()), {})
        mine = [cell for cell in cells if cell.variant == "minirocket"]
        assert len(mine) == 8 * (1 + 3 * 5)
        assert {cell.variant for cell in cells} >= {"rf", "boosting", "multirocket", "signature", "grud", "logcde"}
        assert {cell.task for cell in cells} == set(tasks.TASKS)
        assert len({cell.label for cell in cells}) == len(cells)

    def test_cells_of_aeon_are_absent_without_it(self, tmp_path, monkeypatch):
        for name in ("PhysioNet2019", "BeijingPM25"):
            (tmp_path / f"{name}.npz").touch()
        monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
        monkeypatch.setenv(peers.VARIABLE, str(tmp_path / "nowhere"))
        beijing = {"dataset": "BeijingPM25", "task": "regression"}
        assert Defaults().can_run(cell_of("boosting", **beijing))
        assert not Defaults().can_run(cell_of("minirocket", **beijing))
        assert not Defaults().can_run(cell_of("boosting"))

    def test_shares_are_checked(self):
        part = Part(methods=("rf",), shares=(1.0,))
        with pytest.raises(ValueError, match="less than 1"):
            DefaultsConfig(seeds=(0,), grid=(part,))


def made_up(config, accuracy, loss=None):
    """Outcomes of all cells: the accuracy of each method falls with the share, scores of other tasks are 30."""
    found = {}
    for cell in Defaults().cells(config, {}):
        if cell.task == "classification":
            mean = accuracy.get(cell.variant, 0.8) - 0.2 * cell.share + 0.01 * cell.seed
            mine = (loss or {}).get(cell.variant, 0.5)
            scores = {"accuracy": mean, "log loss": mine, "log loss of class frequencies": 1.0}
        elif cell.task == "sepsis":
            scores = {
                "accuracy": 0.9,
                "log loss": 0.2,
                "log loss of class frequencies": 0.3,
                "AUROC": 0.74,
                "AUPRC": 0.1,
            }
        elif cell.task == "regression":
            scores = {"RMSE": 40.0}
        else:
            scores = dict.fromkeys(rows.FORECASTS, 1.0 if cell.variant == "logcde" else 2.0)
        again = 1.0 if cell.seed == 0 else None
        found[cell] = Measured(
            scores=scores, train=10, test=20, fit_seconds=9.0, predict_seconds=1.0, refit_seconds=again
        )
    return found


class TestReport:
    ACCURACY = dict.fromkeys(("minirocket", "multirocket", "signature", "grud", "rf", "boosting"), 0.9)

    @pytest.fixture
    def config(self):
        return settings_of(Defaults())

    def conclude(self, config, outcomes, folder):
        from experiments.runner.abstract import Record

        records = {cell: Record(cell, outcome, 1.0, {}) for cell, outcome in outcomes.items()}
        return Defaults().conclude(config, records, folder)

    def test_tables_and_figure(self, config, tmp_path):
        conclusion = self.conclude(config, made_up(config, {**self.ACCURACY, "logcde": 0.92}), tmp_path)
        assert "| MiniRocket | 90.0 | 82.0 ± 1.4 | 78.0 ± 1.4 | 74.0 ± 1.4 | 81.0 | 5 |" in conclusion.text
        assert "| GRU-D | 90.0 | 80.0 | 76.0 | 72.0 | 79.5 | 1 |" in conclusion.text
        assert "| logcde | 9.00 | 9.0 | 1.00 | 1.00 |" in conclusion.text
        assert "## Each data set, 70% dropped" in conclusion.text
        assert "| 0% | AUROC | 0.74 | 0.74 | 0.74 |" in conclusion.text
        assert "| 70% | pm2.5 after 6 h | 2 | 2 | 1 |" in conclusion.text
        assert "none are missing" in conclusion.text
        assert (tmp_path / "dropping.png").stat().st_size > 1000

    def test_targets_that_are_reached(self, config, tmp_path):
        outcomes = made_up(config, {**self.ACCURACY, "logcde": 0.92}, {"logcde": 0.4})
        held = {claim.text: claim.held for claim in self.conclude(config, outcomes, tmp_path).claims}
        missed = [text for text, was in held.items() if not was]
        assert len(held) == 4 + 1 + 4 + 4 + 1 + 2 + 2 + 2 + 6
        assert missed == ["Beijing: RMSE with 0% dropped is at most 36.0"]

    def test_targets_that_are_missed(self, config, tmp_path):
        outcomes = made_up(config, {**self.ACCURACY, "rf": 0.93, "logcde": 0.92}, {"logcde": 1.5})
        held = {claim.text: claim.held for claim in self.conclude(config, outcomes, tmp_path).claims}
        assert not any(was for text, was in held.items() if text.startswith(("Accuracy", "Goal", "Log loss")))

    def test_half_a_point_below_is_allowed_but_not_the_goal(self, config, tmp_path):
        outcomes = made_up(config, {**self.ACCURACY, "logcde": 0.896})
        held = [claim.held for claim in self.conclude(config, outcomes, tmp_path).claims]
        assert held[:9] == [True] * 4 + [False] * 5

    def test_methods_without_all_sets_have_no_average(self, config, tmp_path):
        outcomes = made_up(config, {**self.ACCURACY, "logcde": 0.92})
        some = {cell: one for cell, one in outcomes.items() if (cell.variant, cell.dataset) != ("logcde", "Cricket")}
        conclusion = self.conclude(config, some, tmp_path)
        assert "logcde" not in {one["method"] for one in conclusion.summary["averages"]}
        assert not any(claim.text.startswith("Accuracy") for claim in conclusion.claims)
        assert len(conclusion.summary["not_run"]) == 16

    def test_nothing_finished_is_an_error(self, config, tmp_path):
        with pytest.raises(ExperimentError, match="No cell"):
            self.conclude(config, {}, tmp_path)

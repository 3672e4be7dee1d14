"""Reports of all tasks, of failed runs, and with names that contain markup."""

import shutil
import subprocess

import msgspec
import numpy as np
import pytest

from logcde.report.page import page
from logcde.report.record import Evaluation, Setting
from tests.report.reading import opened
from tests.report.runs import NASTY, classifier_run, make_run, value_run

CHANCES = [[0.9, 0.1], [0.2, 0.8], [0.55, 0.45], [0.99, 0.01]]


def test_names_are_escaped():
    text = page(classifier_run([NASTY, "well"], ["well", "well", NASTY, NASTY], CHANCES), f"file = '{NASTY}'\n")
    seen = opened(text)
    assert "<script" not in text
    assert seen.text.count(NASTY) >= 6
    assert "An accuracy of 0.75 on 4 held-out series." in seen.text
    assert page(classifier_run([NASTY, "well"], ["well", "well", NASTY, NASTY], CHANCES), f"file = '{NASTY}'\n") == text


def test_most_confident_error_comes_first():
    seen = opened(page(classifier_run(["ill", "well"], ["well", "ill", "ill", "new"], CHANCES), ""))
    errors = seen.rows[[row[0] for row in seen.rows].index("series") + 1 :][:3]
    assert [row[1:] for row in errors] == [
        ["new", "ill", "0.99", "–"],
        ["well", "ill", "0.9", "0.1"],
        ["ill", "well", "0.8", "0.2"],
    ]
    assert ["ill", "1", "1"] in seen.rows
    assert ["well", "1", "0"] in seen.rows
    assert ["new", "1", "0"] in seen.rows


def test_classifier_without_errors():
    seen = opened(page(classifier_run([0, 1], [0], [[1.0, 0.0]]), ""))
    assert "There are no errors: all held-out series are classified correctly." in seen.text


def test_many_classes_show_most_frequent_errors():
    classes = list(range(200))
    seen = opened(page(classifier_run(classes, [3, 3, *range(198)], np.eye(200)[[5, 5, *range(198)]]), ""))
    assert "There are 200 classes, too many for the whole matrix." in seen.text
    assert ["3", "5", "2"] in seen.rows


def test_regressor_shows_largest_errors():
    truth, predicted = [[1.0], [2.0], [3.0], [4.0]], [[1.5], [2.0], [0.0], [None]]
    seen = opened(page(value_run("regress", ["days"], ["a", "b", "c", "d"], truth, predicted), ""))
    assert "1 prediction is not finite" in seen.text
    first = seen.rows[[row[0] for row in seen.rows].index("series") + 1]
    assert first == ["c", "days", "2", "3", "0", "-3"]
    assert "days, predicted" in seen.text


def test_forecaster_of_many_outputs_shows_the_first():
    rng = np.random.default_rng(0)
    truth = np.where(rng.uniform(size=(60, 200)) < 0.5, rng.normal(size=(60, 200)), np.nan)
    truth[:, 7] = np.nan
    rows = [[None if np.isnan(value) else value for value in row] for row in truth.tolist()]
    outputs = [f"channel {n}" for n in range(200)]
    run = value_run("forecast", outputs, [f"s{n // 10}" for n in range(60)], rows, np.zeros((60, 200)).tolist())
    text = page(run, "")
    seen = opened(text)
    assert "Predicting future values of channel 0, channel 1, channel 2 and 197 more" in seen.text
    assert "The first 4 outputs:" in seen.text
    assert ["channel 7", "0", "–", "–", "–"] in seen.rows
    assert "s0, channel 0" in seen.text
    assert len(text) < 1_500_000


@pytest.mark.parametrize("points", [1, 1500])
def test_many_points_are_drawn_as_image(points):
    numbers = [[float(n % 7)] for n in range(points)]
    text = page(value_run("regress", ["days"], list(range(points)), numbers, numbers), "")
    assert ("data:image/png;base64," in text) == (points > 1000)
    opened(text)


def test_run_without_held_out_series_or_history():
    seen = opened(page(make_run(history=[]), ""))
    assert "No series were held out, so the model was not evaluated." in seen.text
    assert "Trained on" in seen.text
    assert "svg" not in seen.tags


def test_learners_that_were_compared_have_a_table_of_their_own():
    choices = {
        "learner": Setting("Auto()", "the default"),
        "WindowRidge": Setting("0.7", "weight; log loss 0.31 left out, 1.2 s"),
        "WindowTrees": Setting("0.3", "weight; log loss 0.35 left out, 0.8 s"),
    }
    seen = opened(page(msgspec.structs.replace(make_run(history=[]), choices=choices), ""))
    assert ["WindowRidge", "0.7", "log loss 0.31 left out, 1.2 s"] in seen.rows
    assert ["WindowTrees", "0.3", "log loss 0.35 left out, 0.8 s"] in seen.rows
    assert ["learner", "Auto()", "the default"] in seen.rows
    assert ["WindowRidge", "0.7", "weight; log loss 0.31 left out, 1.2 s"] not in seen.rows


def test_diverged_run():
    history = [Evaluation(20, 1.0, 1.0, None, {"loss": None}, False)]
    run = value_run("regress", ["days"], ["a", "b"], [[1.0], [2.0]], [[None], [None]], history=history)
    seen = opened(page(msgspec.structs.replace(run, metrics={"mse": None}, baseline={"mse": 1.0}), ""))
    assert "this model is unusable" in seen.text
    assert "The loss was never finite." in seen.text
    assert "2 predictions are not finite" in seen.text
    assert "There are no finite predictions." in seen.text
    broken = [Evaluation(n, 1.0, 1.0, None if n == 2 else 1.0 / n, {}, False) for n in (1, 2, 3)]
    assert "Where the line is broken" in opened(page(make_run(history=broken), "")).text


def test_characters_missing_from_font():
    assert "体温" in opened(page(value_run("regress", ["体温"], ["a"], [[1.0]], [[2.0]]), "")).text


def test_browser_renders_report(tmp_path):
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "firefox")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no browser is installed")
    file, picture = tmp_path / "report.html", tmp_path / "report.png"
    file.write_text(page(classifier_run([NASTY, "well"], ["well", "well", NASTY, NASTY], CHANCES), ""), "utf-8")
    if "firefox" in browser:
        options = ["--headless", "--profile", str(tmp_path), "--screenshot", str(picture)]
    else:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom"]
    done = subprocess.run([browser, *options, file.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    if "firefox" in browser:
        assert picture.read_bytes().startswith(b"\x89PNG")
    else:
        assert done.stdout.count("<svg") == 2
        assert "<script" not in done.stdout

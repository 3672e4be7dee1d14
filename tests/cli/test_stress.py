"""`logcde stress`: scores of a trained model on thinned data, and of models trained on it."""

from logcde.report.record import read_run
from tests.cli.tables import run
from tests.cli.training_tables import printed


def test_trained_model_on_thinned_data(trained, tmp_path, capsys):
    picture = tmp_path / "curve.png"
    assert run("stress", trained / "model", "--drop", 0.5, 0.8, "--seeds", 0, 1, "--json", "--plot", picture) == 0
    found, record = printed(capsys), read_run(trained / "model")
    assert [point["drop"] for point in found["points"]] == [0.0, 0.5, 0.8]
    assert (found["points"][0]["mean"], found["baseline"]) == (record.metrics, record.baseline)
    assert found["points"][0]["std"]["log loss"] == 0
    assert found["points"][2]["mean"]["log loss"] != record.metrics["log loss"]
    assert (found["series"], found["retrained"]) == (4, False)
    assert picture.read_bytes().startswith(b"\x89PNG")
    by_channel = ("--by", "channels", "--drop", 0.8, "--seeds", 0)
    assert run("stress", trained / "model", trained / "vitals.parquet", *by_channel) == 0
    assert (
        "Dropped: observations of each channel independently. Scores on 4 series, mean ± std over 1 seed:"
        in capsys.readouterr().out
    )


def test_models_retrained_on_thinned_data(trained, capsys):
    config = trained / "model" / "train.toml"
    assert run("stress", config, "--drop", 0, 0.5, "--json") == 0
    found, record = printed(capsys), read_run(trained / "model")
    assert (found["retrained"], found["points"][0]["mean"]) == (True, record.metrics)
    assert found["points"][1]["mean"]["log loss"] != record.metrics["log loss"]


def test_error_messages(trained, tmp_path):
    assert "--drop is 1.0. Give fractions" in run("stress", trained / "model", "--drop", 1)
    (tmp_path / "a.toml").write_text('target = "state"')
    assert "names no table of observations." in run("stress", tmp_path / "a.toml")
    (tmp_path / "a.toml").write_text('holdout = 0\ntarget = "state"\nseries = "id"\ntime = "t"')
    message = run("stress", tmp_path / "a.toml", trained / "vitals.parquet")
    assert "The configuration holds out no series to score." in message
    picture = tmp_path / "a.toml" / "curve.png"
    assert "cannot be written" in run("stress", trained / "model", "--drop", 0, "--seeds", 0, "--plot", picture)

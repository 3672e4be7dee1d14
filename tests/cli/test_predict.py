"""`logcde predict`, `evaluate` and `stream` on one model: the same predictions from all of them."""

import json

import numpy as np
import polars
import pytest

from logcde.report.record import read_run
from tests.artefact.forging import forge
from tests.cli.streaming import predictions
from tests.cli.tables import run, write
from tests.cli.training_tables import QUICK, as_long, labels, printed, vitals

LONG = ("--channel", "name", "--value", "x")


def predict(trained, table, out, *options):
    assert run("predict", trained / "model", table, "-o", out, *options) == 0
    if out.suffix == ".jsonl":
        return polars.read_ndjson(out)
    return polars.read_csv(out) if out.suffix == ".csv" else polars.read_parquet(out)


def test_table_formats(trained, tmp_path):
    whole = predict(trained, trained / "vitals.parquet", tmp_path / "a.parquet")
    assert whole.columns == ["id", "t", "prediction", "probability_ill", "probability_well"]
    assert whole["t"].unique().to_list() == [8.0]
    text = predict(trained, trained / "vitals.parquet", tmp_path / "a.csv")
    np.testing.assert_allclose(text["probability_ill"], whole["probability_ill"], rtol=1e-12)
    assert predict(trained, trained / "vitals.parquet", tmp_path / "a.jsonl").equals(whole)
    # Sorted by time, so that series are scattered over the file.
    assert predict(trained, trained / "long.csv", tmp_path / "b.parquet", *LONG, "--rows", 3).equals(whole)
    held_out = read_run(trained / "model").held_out
    found = dict(zip(whole["id"], whole["probability_ill"], strict=True))
    assert [found[one] for one in held_out.series] == [row[0] for row in held_out.probabilities]


def test_stream_predicts_the_same(trained, stream, tmp_path):
    whole = predict(trained, trained / "vitals.parquet", tmp_path / "a.parquet")
    rows = vitals().filter(polars.col("id") == "p3").select("id", "t", "pulse", "temp").rows()
    lines = [{"series": who, "time": t, "values": {"pulse": a, "temp": b}} for who, t, a, b in rows]
    code, out, _ = stream(trained / "model", [*lines, {"series": "p3", "predict": 8.0}], "--when", "request")
    (one,) = predictions(out.splitlines()[-1])
    expected = whole.filter(polars.col("id") == "p3").rows(named=True)[0]
    assert code == 0
    assert one["prediction"]["class"] == expected["prediction"]
    for name, probability in one["prediction"]["probabilities"].items():
        np.testing.assert_allclose(probability, expected[f"probability_{name}"], rtol=1e-5)


def test_evaluate_held_out_matches_the_training_record(trained, capsys):
    assert run("evaluate", trained / "model", trained / "vitals.parquet", "--held-out", "--json") == 0
    found, record = printed(capsys), read_run(trained / "model")
    assert (found["metrics"], found["baseline"], found["series"]) == (record.metrics, record.baseline, 4)
    assert run("evaluate", trained / "model", trained / "vitals.parquet") == 0
    assert "Pass --held-out to score only the series that training held out." in capsys.readouterr().err


def test_evaluate_with_an_unknown_class(trained, tmp_path, capsys):
    write(labels(state="dead"), tmp_path / "labels.csv")
    arguments = ("evaluate", trained / "model", trained / "vitals.parquet", "--targets", tmp_path / "labels.csv")
    assert run(*arguments) == 0
    assert "1 series have the class 'dead', which the model does not know" in capsys.readouterr().out
    assert run(*arguments, "--json") == 0
    assert printed(capsys)["unknown_classes"] == {"dead": 1}


def test_forecast_at_query_times(untrained, tmp_path, capsys):
    start = polars.datetime(2024, 1, 1) + polars.duration(hours=polars.col("id").str.slice(1).cast(int))
    moved = vitals().with_columns(t=start + polars.duration(minutes=(polars.col("t") * 60).cast(int)))
    write(as_long(moved), tmp_path / "a.parquet")
    targets = moved.filter(polars.col("t").dt.minute() == 0).select("id", "t", level=polars.col("pulse") / 10)
    write(targets.gather_every(2), tmp_path / "targets.csv")
    columns, model = ("--series", "id", "--time", "t", *LONG), tmp_path / "model"
    quick = ("--every", "2h", "--hidden", 4, "--steps", 4)
    given = ("--targets", tmp_path / "targets.csv")
    assert run("train", tmp_path / "a.parquet", *columns, *given, *quick, "-o", model) == 0
    record = read_run(model)
    assert (record.task, record.outputs, record.data.unit) == ("forecast", ["level"], "hours")
    assert run("evaluate", model, tmp_path / "a.parquet", *given, "--held-out", "--json") == 0
    assert printed(capsys)["metrics"] == record.metrics
    asked = targets.filter(polars.col("id") == "p3")[2:5].select("id", "t")
    write(asked, tmp_path / "at.csv")
    assert run("predict", model, tmp_path / "a.parquet", "--at", tmp_path / "at.csv", "-o", tmp_path / "p.parquet") == 0
    made = polars.read_parquet(tmp_path / "p.parquet")
    assert made.columns == ["id", "t", "prediction_level"]
    assert made["t"].to_list() == asked["t"].to_list()
    assert run("predict", model, tmp_path / "a.parquet", "-o", tmp_path / "p.parquet") == 0
    ends = polars.read_parquet(tmp_path / "p.parquet").filter(polars.col("id") == "p0")["t"].to_list()
    assert [end.hour for end in ends] == [7]  # the usual gap, an hour, after the last stamp


@pytest.mark.parametrize("targets", [True, False])
def test_default_forecasts_are_the_same_from_all_commands(tmp_path, stream, capfdbinary, targets):
    """Stamped targets after the end of a series, or later values of its own channels."""
    later = vitals().group_by("id", maintain_order=True).agg(pulse=polars.col("pulse").last() + 1.0)
    write(later.with_columns(t=polars.lit(12.0)), tmp_path / "targets.csv")
    given = ("--targets", tmp_path / "targets.csv") if targets else ()
    task, model, file = ("--task", "forecast"), tmp_path / "model", tmp_path / "vitals.parquet"
    write(vitals().select("id", "t", "pulse", "temp"), file)
    assert run("train", file, "--series", "id", "--time", "t", *task, *given, "-o", model) == 0
    record = read_run(model)
    assert (record.task, record.outputs) == ("forecast", ["pulse"] if targets else ["pulse", "temp"])
    assert record.choices["learner"].reason == "the default"
    capfdbinary.readouterr()
    assert run("evaluate", model, file, *given, "--held-out", "--json") == 0
    assert json.loads(capfdbinary.readouterr().out.splitlines()[-1])["metrics"] == record.metrics
    write(polars.DataFrame({"t": [12.0]}), tmp_path / "at.csv")
    assert run("predict", model, file, "--at", tmp_path / "at.csv", "-o", tmp_path / "p.parquet") == 0
    offline = polars.read_parquet(tmp_path / "p.parquet").filter(polars.col("id") == "p3").rows(named=True)[0]
    rows = vitals().filter(polars.col("id") == "p3").select("t", "pulse", "temp").rows()
    lines = [{"series": "p3", "time": t, "values": {"pulse": a, "temp": b}} for t, a, b in rows]
    capfdbinary.readouterr()
    code, out, _ = stream(model, [*lines, {"series": "p3", "predict": 12.0}])
    found = predictions(out)
    assert (code, len(found)) == (0, len(lines) + 1)
    assert found[-1]["prediction"] == {name: offline[f"prediction_{name}"] for name in record.outputs}


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (vitals().rename({"pulse": "pulze"}), (), "There is no column 'pulse'. Did you mean 'pulze'?"),
        (as_long(vitals()).with_columns(name="n" + polars.col("name")), LONG, "The model was not trained on it"),
        (vitals(), ("--at", "{folder}/a.parquet"), "--at and --every are for forecasts"),
        (vitals(), ("-o", "{folder}/out.txt"), "ends in none of .parquet, .csv and .jsonl."),
        (vitals(), ("-o", "{folder}/a.parquet/out.csv"), "cannot be written"),
        (vitals().with_columns(t=polars.col("t") + 9), (), "Give a later --horizon"),
    ],
)
def test_error_messages(trained, tmp_path, frame, options, said):
    file = tmp_path / "a.parquet"
    write(frame, file)
    options = [str(option).format(folder=tmp_path) for option in options]
    message = run("predict", trained / "model", file, "-o", tmp_path / "out.csv", *options)
    assert str(message).startswith("logcde: ")
    assert said in message
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("command", ["predict", "evaluate", "stress", "stream"])
def test_folder_without_a_model(trained, folder, tmp_path, command):
    rest = () if command == "stream" else (trained / "vitals.parquet",)
    rest = (*rest, "-o", tmp_path / "out.csv") if command == "predict" else rest
    assert "is not the folder of a model: it has no model.json." in run(command, tmp_path, *rest)
    assert "There is no folder " in run(command, tmp_path / "none", *rest)
    if command != "stream":
        assert "holds a model that was saved from Python" in run(command, folder, *rest)
    assert not list(tmp_path.iterdir())


def test_record_of_another_version_is_refused(trained, tmp_path):
    config = trained / "model" / "train.toml"
    assert run("train", "--config", config, *QUICK, "-o", tmp_path / "model") == 0
    file = tmp_path / "model" / "run.json"
    content = json.loads(file.read_text())
    for changed, said in ((content | {"format": 2}, "has format 2"), ([], "cannot be read as the record")):
        forge(tmp_path / "model", "run.json", json.dumps(changed).encode())
        assert said in run("predict", tmp_path / "model", trained / "vitals.parquet", "-o", tmp_path / "out.csv")
    file.write_text("[]\n")
    message = run("predict", tmp_path / "model", trained / "vitals.parquet", "-o", tmp_path / "out.csv")
    assert "run.json is not the file that was saved: its size differs." in message

"""Series far outside of training are said once; one without a finite prediction is named and stops no other."""

import json
import warnings

import numpy as np
import polars
import pytest

from logcde.cli.notices import Notices, warnings_to
from logcde.errors import LogcdeWarning
from tests.cli.streaming import predictions
from tests.cli.tables import run, write
from tests.cli.training_tables import TABLE, vitals
from tests.estimators import unstable


def rows(streams):
    """A wide table."""
    owner = np.repeat(streams.ids, np.diff(streams.offsets))
    return polars.DataFrame({"series": owner.tolist(), "time": streams.times, "a": streams.value})


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unstable")
    for name in ("classifier", "regressor", "forecaster"):
        getattr(unstable, name)().save(folder / name)
    write(rows(unstable.feed()), folder / "feed.parquet")
    write(rows(unstable.feed()[[0, 2]]), folder / "others.parquet")
    targets = polars.DataFrame(
        {"series": ["p0", "p1", "p2"], "state": ["ill", "well", "well"], "days": [1.0, 2.0, 4.0]}
    )
    write(targets, folder / "targets.csv")
    return folder


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("name", ["classifier", "regressor", "forecaster"])
def test_predict_writes_the_other_rows(models, tmp_path, capsys, name, suffix):
    read = {".parquet": polars.read_parquet, ".csv": polars.read_csv, ".jsonl": polars.read_ndjson}[suffix]
    found, alone = tmp_path / f"found{suffix}", tmp_path / f"alone{suffix}"
    assert run("predict", models / name, models / "others.parquet", "-o", alone) == 0
    assert capsys.readouterr().err == ""
    for groups in ((), ("--rows", 1)):
        assert run("predict", models / name, models / "feed.parquet", "-o", found, *groups) == 1
        out, errors = capsys.readouterr()
        assert out == f"Wrote 3 predictions for 3 series to {found}.\n"
        assert errors.splitlines() == [
            "logcde: 1 of 3 series lies far outside of what the model was trained on. Series 'p1' goes on for 319, in "
            "training for at most 7. Predictions are extrapolated there. Check the units of stamps and values, thin "
            "the feed, or train on such series.",
            "logcde: The prediction for series 'p1' is not finite: probably it is much longer, denser or wilder than "
            "those of training. Such rows are empty.",
        ]
        table = read(found)
        assert table.filter(polars.col("series") != "p1").equals(read(alone))
        (lost,) = table.filter(polars.col("series") == "p1").rows()
        assert lost[2:] == (None,) * (table.width - 2)


def test_predict_where_no_series_has_a_prediction(models, tmp_path, capsys):
    write(rows(unstable.feed()[[1]]), tmp_path / "lost.parquet")
    out = tmp_path / "out.parquet"
    assert run("predict", models / "classifier", tmp_path / "lost.parquet", "-o", out) == 1
    assert polars.read_parquet(out).select("prediction", "probability_ill").rows() == [(None, None)]
    assert polars.read_parquet(out).schema["prediction"] == polars.String
    assert "series 'p1' is not finite" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "target"), [("classifier", "state"), ("regressor", "days")])
def test_evaluate_scores_the_other_series(models, capsys, name, target):
    given = ("--targets", models / "targets.csv", "--target", target, "--only-matched")
    assert run("evaluate", models / name, models / "others.parquet", *given, "--json") == 0
    alone = json.loads(capsys.readouterr().out)
    assert (alone["not_finite"], alone["outside_training"]) == ([], 0)
    assert run("evaluate", models / name, models / "feed.parquet", *given, "--json") == 1
    out, errors = capsys.readouterr()
    found = json.loads(out)
    assert (found["series"], found["metrics"]) == (alone["series"], alone["metrics"])
    assert (found["not_finite"], found["outside_training"]) == (["p1"], 1)
    assert [line.split(".")[0] for line in errors.splitlines()] == [
        "logcde: 1 of 3 series lies far outside of what the model was trained on",
        "logcde: The prediction for series 'p1' is not finite: probably it is much longer, denser or wilder than those "
        "of training",
    ]
    assert errors.endswith("Scores leave such series out.\n")


@pytest.mark.parametrize("options", [(), ("--json-errors",)])
def test_stream_says_each_once_and_goes_on(models, stream, options):
    feed = unstable.feed()
    lines = [
        {"series": one.ids[0], "time": time, "values": {"a": value}}
        for one in feed
        for time, value in zip(one.times.tolist(), one.value.tolist(), strict=True)
    ]
    code, out, errors = stream(models / "classifier", lines, *options, "--quiet")
    assert code == 1
    found = predictions(out)
    assert len(found) == len(lines)
    lost = [number for number, one in enumerate(found) if one["prediction"]["class"] is None]
    assert {found[number]["series"] for number in lost} == {"p1"}
    said = errors.splitlines()
    assert len(said) == 2
    where = f"line {lost[0] + 1}, series 'p1': "
    if options:
        texts = [json.loads(line) for line in said]
        assert {one["series"] for one in texts} == {"p1"}
        texts = [one["warning"] for one in texts]
    else:
        assert any(line.startswith(f"logcde: {where}The prediction for series 'p1' is not finite") for line in said)
        texts = said
    assert sum("The series goes on for 22, in training for at most 7." in text for text in texts) == 1


def test_denser_feed_than_in_training(trained, tmp_path, stream, capfdbinary):
    """Twenty times the observations of some series, in several pieces of the table."""
    frame = vitals().drop("extra", "state")
    dense = frame.select("id", "pulse", "temp", t=polars.col("t") + polars.int_ranges(0, 20) / 20).explode("t")
    write(dense, tmp_path / "dense.parquet")
    out = tmp_path / "out.parquet"
    columns = TABLE[:4]
    assert run("predict", trained / "model", tmp_path / "dense.parquet", "-o", out, *columns, "--rows", 300) == 0
    errors = capfdbinary.readouterr().err.decode()
    assert errors.startswith("logcde: 20 of 20 series lie far outside of what the model was trained on. Series 'p")
    assert len(errors.splitlines()) == 1
    assert polars.read_parquet(out)["prediction"].null_count() == 0
    lines = [
        {"series": who, "time": time, "values": {"pulse": pulse, "temp": temp}}
        for who, pulse, temp, time in dense.filter(polars.col("id").is_in(["p0", "p1"])).rows()
    ]
    code, _, errors = stream(trained / "model", lines, "--quiet")
    assert code == 0
    assert len(errors.splitlines()) == 1
    assert " of 'pulse' within " in errors


def test_table_that_begins_days_after_that_of_training(trained, tmp_path, capfd):
    """With --origin earliest, which is the default where stamps begin near 0, the model counts from there."""
    later = vitals().drop("extra").with_columns(t=polars.col("t") + 5000)
    write(later, tmp_path / "later.parquet")
    code = run("evaluate", trained / "model", tmp_path / "later.parquet", *TABLE[:4], "--horizon", 5008)
    errors = capfd.readouterr().err
    assert code == 0
    assert "series lie far outside" in errors
    assert "begins 5000 after" in errors
    assert "--origin first" in errors


def test_warnings_that_are_not_about_ranges_are_shown():
    shown, notices = [], Notices()
    with warnings_to(shown.append), notices.collecting():
        warnings.warn(LogcdeWarning("Most intervals are empty."), stacklevel=1)
    assert [str(one) for one in shown] == ["Most intervals are empty."]
    assert notices.lines(1, "") == []

"""`logcde train`: the folder of a model, its record, its options, and errors about tables and options."""

import errno

import numpy as np
import polars
import pytest

from logcde import estimators
from logcde.artefact import files
from logcde.cli import training
from logcde.report.record import compared, read_run
from logcde.streams import Streams
from tests.cli.tables import run, write
from tests.cli.training_tables import QUICK, SERIES, as_long, labels, printed, tables, vitals


def test_record_matches_the_model(trained):
    assert {file.name for file in (trained / "model").iterdir()} == {
        "model.json",
        "model.safetensors",
        "run.json",
        "train.toml",
    }
    record, estimator = read_run(trained / "model"), estimators.load(trained / "model")
    held_out = record.held_out
    assert (record.task, record.outputs, record.classes) == ("classify", ["state"], ["ill", "well"])
    assert (record.data.series, record.data.trained, len(held_out.series)) == (SERIES, 16, 4)
    assert sorted(held_out.truth) == ["ill", "ill", "well", "well"]
    assert [channel.name for channel in record.data.channels] == ["pulse", "temp"]
    assert record.history[-1].step == 4
    assert record.choices["steps"].reason == "as given"
    streams = Streams.from_frame(as_long(vitals()), "id", "t", "name", "x", horizon=8.0)
    places = [streams.ids.tolist().index(one) for one in held_out.series]
    np.testing.assert_array_equal(estimator.predict_proba(streams[places]), held_out.probabilities)
    assert estimator.predict(streams[places]).tolist() == held_out.prediction


def test_written_options_repeat_the_training_bit_for_bit(trained, tmp_path):
    config = trained / "model" / "train.toml"
    assert run("train", "--config", config, "-o", tmp_path / "again") == 0
    same, other = (folder / "model.safetensors" for folder in (trained / "model", tmp_path / "again"))
    assert same.read_bytes() == other.read_bytes()
    again = read_run(tmp_path / "again")
    given, before = again.config, read_run(trained / "model").config
    assert {**given, "file": ""} == {**before, "file": ""}
    assert (tmp_path / "again" / given["file"]).samefile(trained / "model" / before["file"])
    assert run("train", f"--config={config}", "--seed", 1, "-o", tmp_path / "again", "--overwrite") == 0
    assert same.read_bytes() != other.read_bytes()
    assert read_run(tmp_path / "again").command == again.command.replace(" --output", " --seed 1 --output")


def test_regression_is_inferred_from_targets(untrained, tmp_path, capsys):
    tables(tmp_path)
    observed = ("--channel", "name", "--value", "x")
    given = ("--targets", tmp_path / "labels.csv", "--target", "rise")
    model = tmp_path / "model"
    assert run("train", tmp_path / "long.csv", *observed, *given, *QUICK, "-o", model) == 0
    assert "(the values of 'rise' are numbers)" in capsys.readouterr().out
    record = read_run(model)
    assert (record.task, record.outputs, set(record.metrics)) == ("regress", ["rise"], {"mse", "mae", "r2"})
    assert run("evaluate", model, tmp_path / "long.csv", *given, "--held-out", "--json") == 0
    assert printed(capsys)["metrics"] == record.metrics
    assert run("predict", model, tmp_path / "long.csv", "-o", tmp_path / "p.parquet") == 0
    made = polars.read_parquet(tmp_path / "p.parquet")
    assert made.columns == ["id", "t", "prediction"]
    found = dict(zip(made["id"], made["prediction"], strict=True))
    assert [[found[one]] for one in record.held_out.series] == record.held_out.prediction


def test_older_model_stays_if_writing_fails(trained, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    arguments = ("train", "--config", trained / "model" / "train.toml", "--overwrite", "-o", tmp_path / "model")
    assert run(*arguments) == 0
    before = (tmp_path / "model" / "run.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_whole", full)
        said = run(*arguments)
    assert "cannot be written: No space left on device. Training up to step 4 is kept in " in said
    with monkeypatch.context() as patch:
        patch.setattr(training, "fit", lambda *arguments, checkpoints: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(*arguments) == 130
    assert (tmp_path / "model" / "run.json").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


PLAIN = ("--target", "state")
OTHER = ("--targets", "{folder}/labels.csv", "--target", "state")


@pytest.mark.parametrize(
    ("frame", "targets", "options", "said"),
    [
        (vitals(), None, ("--target", "stat"), "There is no column 'stat'. Did you mean 'state'?"),
        (vitals(), None, (), "No target is given. Name the column to predict with --target"),
        (vitals(), None, (*PLAIN, "--series", "idd"), "There is no column 'idd'. Did you mean 'id'?"),
        (vitals(), None, (*PLAIN, "--channels", "state"), "the model would see what it predicts."),
        (
            vitals(),
            None,
            ("--target", "extra", "--channels", "pulse"),
            "for the series 'p0'. Give each series one value.",
        ),
        (vitals(), labels()[3:], OTHER, "has no 'state' of 3 of 20 series, 'p0', 'p1', 'p2'. Add them, or pass"),
        (vitals()[7:], labels(), OTHER, "has 'state' of 1 series that are not in {folder}/a.parquet, 'p0'."),
        (vitals(), labels(id="q"), (*OTHER, "--series", "name"), "There is no column 'name'."),
        (vitals().rename({"id": "who"}), labels(), (*OTHER, "--series", "who"), "the same name in both tables"),
        (vitals(), labels().with_columns(id="t" + polars.col("id")), OTHER, "of none of the series"),
        (
            vitals(),
            labels(rise=np.inf),
            (*OTHER, "--target", "rise", "--channels", "pulse"),
            "has inf for the series 'p0'.",
        ),
        (vitals(), labels(), (*OTHER, "--task", "regress"), "which is not a number. Name another column"),
        (
            vitals(),
            labels(),
            ("--task", "forecast", "--target", "state", "--channels", "pulse"),
            "--target is a column of the table that",
        ),
        (vitals().with_columns(state=polars.lit("ill")), None, PLAIN, "All 20 series have the same 'state', 'ill'"),
        (
            vitals().with_columns(state=polars.concat_list("t")),
            None,
            PLAIN,
            "The column 'state' of {folder}/a.parquet has the type",
        ),
        (vitals().with_columns(state="id"), None, PLAIN, "'state' has 20 different values in 20 series"),
        (
            vitals(),
            labels(),
            (*OTHER, "--task", "classify", "--target", "rise", "--channels", "pulse"),
            "which is not a class.",
        ),
        (vitals()[:7], None, PLAIN, "has only one series, 'p0'. Training needs many."),
        (
            vitals().with_columns(none=polars.lit(None, float)),
            None,
            PLAIN,
            "'none' is never observed in the 16 training",
        ),
        (vitals(), None, (*PLAIN, "--every", "1h"), "--every is '1h', but the stamps are plain numbers"),
        (vitals(), None, (*PLAIN, "--steps", 0), "--steps is 0. Give at least 1."),
        (vitals(), None, (*PLAIN, "--hidden", 10**12), "--hidden is 1,000,000,000,000. Give at most 8,192."),
        (vitals(), None, (*PLAIN, "--every", "1e-300"), "would have more than 1e18 intervals from 0 to"),
        (vitals(), None, (*PLAIN, "--block", 3), "Blocks of 3 do not fit a hidden state of 4."),
        (vitals(), None, (*PLAIN, "--learner", "ncde", "--block", 2), "--block is an option of --learner slice only."),
        (vitals(), None, (*PLAIN, "--learner", "trees", "--paper"), "--paper is an option of --learner slice only."),
        (
            vitals().drop("state"),
            labels(),
            ("--targets", "{folder}/labels.csv", "--target", "rise", "--class-weight", "balanced"),
            "--class-weight is given, but the task is regress.",
        ),
        (vitals(), None, (*PLAIN, "--rate", 1e308), "--rate is 1e+308. Give a small positive number"),
        (vitals(), None, (*PLAIN, "--rate", 0), "--rate is 0.0. Give a small positive number"),
        (vitals(), None, (*PLAIN, "--holdout", 1), "--holdout is 1.0. Give a fraction"),
        (vitals(), None, (*PLAIN, "-o", "{folder}"), "exists and is not a saved model: there is 'a.parquet' in it."),
        (vitals(), None, (*PLAIN, "-o", "{folder}/a.parquet/model"), "cannot be written: "),
    ],
)
def test_error_messages(tmp_path, frame, targets, options, said):
    write(frame, tmp_path / "a.parquet")
    given = ["a.parquet"] if targets is None else ["a.parquet", "labels.csv"]
    if targets is not None:
        write(targets, tmp_path / "labels.csv")
    options = [str(option).format(folder=tmp_path) for option in options]
    message = run("train", tmp_path / "a.parquet", *QUICK, "-o", tmp_path / "model", *options)
    assert str(message).startswith("logcde: ")
    assert said.format(folder=tmp_path) in message
    assert message.endswith(".")
    assert sorted(file.name for file in tmp_path.iterdir()) == given


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('taget = "state"', "has 'taget', which is not an option. Did you mean 'target'?"),
        ('steps = "many"', "has steps = 'many': Expected `int`, got `str`."),
        ("steps = ", "is not TOML: "),
        ("steps = " + "[" * 100_000, "is not TOML: "),
        (None, "cannot be read: No such file or directory."),
    ],
)
def test_invalid_configurations(tmp_path, text, said):
    if text is not None:
        (tmp_path / "train.toml").write_text(text)
    message = run("train", "--config", tmp_path / "train.toml", "-o", tmp_path / "model")
    assert message.startswith("logcde: The configuration ")
    assert said in message


def test_configuration_paths_are_relative_to_its_folder(untrained, tmp_path, monkeypatch):
    for folder in ("data", "settings", "elsewhere"):
        (tmp_path / folder).mkdir()
    tables(tmp_path / "data")
    options = 'series = "id"\ntime = "t"\nsteps = 2\nchannels = ["pulse"]\ntarget = "state"\n'
    named = 'file = "../data/vitals.parquet"\ntargets = "../data/labels.csv"\noutput = "../made"\n'
    (tmp_path / "settings" / "mine.toml").write_text(options + named)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("train", "--config", "../settings/mine.toml") == 0
    assert read_run(tmp_path / "made").config["targets"] == "../data/labels.csv"
    moved = tmp_path / "moved"
    moved.mkdir()
    for folder in ("data", "made"):
        (tmp_path / folder).rename(moved / folder)
    assert run("train", "--config", "../moved/made/train.toml", "-o", "again") == 0
    assert (tmp_path / "elsewhere" / "again").is_dir()
    message = run("train", "--config", "../moved/made/train.toml", "vitals.parquet", "-o", "other")
    assert "vitals.parquet cannot be read" in message
    assert run("stress", "../moved/made", "--drop", 0, "--seeds", 0) == 0


def test_older_model_is_replaced_with_overwrite_only(trained):
    message = run("train", "--config", trained / "model" / "train.toml", "-o", trained / "model")
    assert message.endswith("exists already. Choose another name, or pass --overwrite to replace it.")


def test_only_matched_uses_series_of_both_tables(tmp_path, capsys):
    write(vitals()[7:], tmp_path / "a.csv")
    write(labels()[:-2], tmp_path / "labels.csv")
    given = ("--targets", tmp_path / "labels.csv", "--target", "state", "--only-matched")
    options = (*QUICK, "--channels", "pulse", "temp", "--holdout", 0.05)
    assert run("train", tmp_path / "a.csv", *options, *given, "-o", tmp_path / "model") == 0
    assert read_run(tmp_path / "model").data.series == SERIES - 3


def test_class_weight_balances_rare_classes(tmp_path):
    tables(tmp_path)
    write(labels(state="ill"), tmp_path / "labels.csv")
    observed = ("--channel", "name", "--value", "x", "--series", "id", "--time", "t", "--learner", "ridge")
    given = ("--targets", tmp_path / "labels.csv", "--target", "state", "--holdout", 0)
    for name, more in (("plain", ()), ("weighted", ("--class-weight", "balanced"))):
        assert run("train", tmp_path / "long.csv", *observed, *given, *more, "-o", tmp_path / name) == 0
    plain, weighted = (estimators.load(tmp_path / name) for name in ("plain", "weighted"))
    assert (plain.class_weight, weighted.class_weight) == (None, "balanced")
    np.testing.assert_allclose(plain.model_.bounds.prior, [0.55, 0.45])
    np.testing.assert_allclose(weighted.model_.bounds.prior, 0.5)


def test_the_comparison_of_learners_is_printed_reported_and_evaluated(tmp_path, capsys):
    tables(tmp_path)
    observed = ("--channel", "name", "--value", "x", "--series", "id", "--time", "t")
    given = ("--targets", tmp_path / "labels.csv", "--target", "state")
    assert run("train", tmp_path / "long.csv", *observed, *given, "-o", tmp_path / "model") == 0
    printed_by_train = capsys.readouterr().out
    choices = read_run(tmp_path / "model").choices
    assert choices["learner"].reason == "the default"
    assert run("evaluate", tmp_path / "model", tmp_path / "long.csv", *given) == 0
    printed_by_evaluate = capsys.readouterr().out
    assert run("evaluate", tmp_path / "model", tmp_path / "long.csv", *given, "--json") == 0
    weights = printed(capsys)["learners"]
    assert sum(weights.values()) == pytest.approx(1.0, abs=1e-3)
    assert run("report", tmp_path / "model") == 0
    report = (tmp_path / "model" / "report.html").read_text()
    for name, weight, how in compared(choices):
        assert float(weight) == weights[name]
        for text in (printed_by_train, printed_by_evaluate, report):
            assert name in text
            assert how in text
    assert {"WindowRidge", "WindowTrees"} <= set(weights)

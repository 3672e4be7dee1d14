"""Interrupted training and `logcde stress`: the same command resumes, a different one is refused."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from logcde.cli import training
from logcde.train.callbacks import ProgressBar
from tests.cli.tables import run, write
from tests.cli.training_tables import QUICK, TABLE, printed, tables, vitals

LEARN = (*QUICK, "--steps", 30, "--target", "state")
WRITTEN = {"model.json", "model.safetensors", "run.json", "train.toml"}


def names(folder):
    return {file.name for file in folder.iterdir()}


def train(folder, *options, model="model"):
    return run("train", folder / "vitals.parquet", *LEARN, "-o", folder / model, *options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The parameters of a model whose training was not interrupted."""
    place = tables(tmp_path_factory.mktemp("whole"))
    assert train(place) == 0
    return (place / "model" / "model.safetensors").read_bytes()


def stopping(monkeypatch, number, after=1):
    """Send a signal to this process after some steps."""

    def on_steps(self, step, loss):
        if step >= after:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(ProgressBar, "on_steps", on_steps)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_resumed_training_gives_the_same_model(whole, tmp_path, monkeypatch, capsys, number):
    tables(tmp_path)
    with monkeypatch.context() as patch:
        stopping(patch, number, after=3)
        assert train(tmp_path) == 130
    unfinished = tmp_path / "model" / "unfinished"
    said = capsys.readouterr().err
    assert "stopped. Training up to step " in said
    assert f" is kept in {unfinished}: the same command resumes it.\n" in said
    assert names(tmp_path / "model") == {"unfinished"}
    assert train(tmp_path) == 0
    assert "Resuming after step " in capsys.readouterr().out
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == whole
    assert names(tmp_path / "model") == WRITTEN


def test_killed_training_resumes_from_the_last_checkpoint(whole, tmp_path, capsys):
    tables(tmp_path)
    code = (
        "import os, signal, sys\n"
        "import jax\n"
        "jax.config.update('jax_enable_x64', True)\n"
        "from logcde.cli import main, train\n"
        "from logcde.train import Checkpoints\n"
        "train.CHECKPOINT_SECONDS, save = 0.0, Checkpoints.save\n"
        "def killed(self, content, step):\n"
        "    save(self, content, step)\n"
        "    if step > 5: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Checkpoints.save = killed\n"
        "main(sys.argv[1:])\n"
    )
    arguments = ("train", tmp_path / "vitals.parquet", *LEARN, "-o", tmp_path / "model")
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert train(tmp_path) == 0
    assert "Resuming after step " in capsys.readouterr().out
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == whole


RIDGE = (*TABLE, "--learner", "ridge", "--target", "state")


def ridge(folder, *options):
    return "train", folder / "vitals.parquet", *RIDGE, "-o", folder / "model", *options


@pytest.mark.parametrize(
    ("place", "part", "options", "done"),
    [("Path.rename", ".logcde", (), False), ("shutil.rmtree", ".old", ("--overwrite",), True)],
)
def test_training_that_was_killed_while_it_was_saved(place, part, options, done, tmp_path, capsys):
    """Killed when the older folder was set aside, or when the new one was in place and the older to be removed."""
    tables(tmp_path)
    if options:
        assert run(*ridge(tmp_path, "--seed", 1)) == 0
    code = (
        "import os, shutil, signal, sys\n"
        "from pathlib import Path\n"
        "import jax\n"
        "jax.config.update('jax_enable_x64', True)\n"
        "from logcde.cli import main\n"
        f"function = {place}\n"
        "def killed(path, *more, **options):\n"
        f"    if {part!r} in path.name: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return function(path, *more, **options)\n"
        f"{place} = killed\n"
        "main(sys.argv[1:])\n"
    )
    arguments = map(str, ridge(tmp_path, *options))
    killed = subprocess.run([sys.executable, "-c", code, *arguments], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert any(name.endswith("-model.old") for name in names(tmp_path))
    assert (tmp_path / "model").exists() == done
    assert run(*ridge(tmp_path, *options)) == 0
    assert (f"This command has trained {tmp_path / 'model'} already." in capsys.readouterr().out) == done
    assert names(tmp_path / "model") == WRITTEN
    assert names(tmp_path) == {"model", "vitals.parquet", "long.csv", "labels.csv"}
    assert run("evaluate", tmp_path / "model", tmp_path / "vitals.parquet") == 0


def test_training_that_was_killed_before_it_had_a_key(tmp_path):
    """Killed while it wrote the first file of its folder."""
    tables(tmp_path)
    (tmp_path / "model" / "unfinished").mkdir(parents=True)
    (tmp_path / "model" / "unfinished" / ".logcde-0123456789abcdef-belongs.json").write_text("{")
    assert run(*ridge(tmp_path)) == 0
    assert names(tmp_path / "model") == WRITTEN


def test_repeated_training_is_done(tmp_path, capsys):
    tables(tmp_path)
    assert run(*ridge(tmp_path)) == 0
    run_file = tmp_path / "model" / "run.json"
    before = run_file.stat().st_mtime_ns
    assert run(*ridge(tmp_path)) == 0
    assert "Pass --overwrite to train it again." in capsys.readouterr().out
    assert run_file.stat().st_mtime_ns == before
    assert "exists already." in run(*ridge(tmp_path, "--seed", 1))
    assert run_file.stat().st_mtime_ns == before
    assert run(*ridge(tmp_path, "--overwrite")) == 0
    assert run_file.stat().st_mtime_ns != before


def test_second_training_into_one_folder_is_refused(tmp_path, monkeypatch):
    tables(tmp_path)

    def second(*arguments, **options):
        said.append(run(*ridge(tmp_path, "--fresh")))
        raise KeyboardInterrupt

    said = []
    monkeypatch.setattr(training, "fit", second)
    assert run(*ridge(tmp_path)) == 130
    assert f"model is in use by process {os.getpid()} on " in said[0]
    assert "model" not in names(tmp_path)


def test_other_options_or_data_are_not_resumed(tmp_path, monkeypatch):
    tables(tmp_path)
    with monkeypatch.context() as patch:
        stopping(patch, signal.SIGINT)
        assert train(tmp_path) == 130
    assert "There is no model in" in run("evaluate", tmp_path / "model", tmp_path / "vitals.parquet")
    kept = names(tmp_path / "model" / "unfinished")
    message = train(tmp_path, "--rate", 0.02)
    assert "is of an interrupted command with a different 'rate'." in message
    assert message.endswith("Pass --fresh to start over.")
    write(vitals(seed=1).drop("extra"), tmp_path / "vitals.parquet")
    assert "with a different 'content of the table'." in train(tmp_path)
    assert names(tmp_path / "model" / "unfinished") == kept
    (tmp_path / "model" / "unfinished" / "belongs.json").unlink()
    assert "its belongs.json is missing" in train(tmp_path)
    assert train(tmp_path, "--rate", 0.02, "--fresh") == 0
    assert names(tmp_path / "model") == WRITTEN


def test_older_model_stays_until_the_new_one_is_finished(trained, tmp_path, monkeypatch):
    tables(tmp_path)
    arguments = ("train", "--config", trained / "model" / "train.toml", "-o", tmp_path / "model")
    assert run(*arguments) == 0
    with monkeypatch.context() as patch:
        stopping(patch, signal.SIGINT)
        assert run(*arguments, "--overwrite", "--seed", 1) == 130
    assert names(tmp_path / "model") == {*WRITTEN, "unfinished"}
    assert run("evaluate", tmp_path / "model", trained / "vitals.parquet") == 0
    assert "exists already." in run(*arguments, "--seed", 1)
    assert run(*arguments, "--overwrite", "--seed", 1) == 0
    assert names(tmp_path / "model") == WRITTEN


def test_full_disk_for_checkpoints(tmp_path, monkeypatch):
    def full(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    tables(tmp_path)
    before = names(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    assert "cannot be written: No space left on device. Nothing was left behind." in train(tmp_path)
    assert names(tmp_path) == before


def test_non_finite_loss(tmp_path, monkeypatch):
    monkeypatch.setattr("logcde.cli.train_options.FASTEST", 1e38)
    tables(tmp_path)
    before = names(tmp_path)
    message = train(tmp_path, "--rate", 1e30)
    assert "Training failed at step " in message
    assert message.endswith("Nothing was left behind. Try a smaller --rate than 1e+30.")
    assert names(tmp_path) == before


@pytest.mark.parametrize("subject", ["model", "model/train.toml"])
def test_stress_keeps_finished_scores(trained, tmp_path, monkeypatch, capsys, subject):
    tables(tmp_path)
    assert run("train", "--config", trained / "model" / "train.toml", "-o", tmp_path / "model") == 0
    arguments = ("stress", tmp_path / subject, "--drop", 0, 0.5, "--seeds", 0, 1, "--json")
    before = names(tmp_path)
    assert run(*arguments) == 0
    expected = printed(capsys)
    assert names(tmp_path) == before

    calls = []
    original = training.score

    def counted(*given):
        calls.append(given)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*given)

    monkeypatch.setattr("logcde.cli.scores.score", counted)
    monkeypatch.setattr(training, "score", counted)
    assert run(*arguments) == 130
    unfinished = tmp_path / "model.stress-unfinished"
    assert names(unfinished) == {"belongs.json", "drop-0.0-seed-0.json", "drop-0.0-seed-1.json"}
    assert "2 finished scores are kept in " in capsys.readouterr().err
    assert "with a different 'by'." in run(*arguments, "--by", "channels")
    assert run(*arguments) == 0
    assert printed(capsys) == expected
    assert len(calls) == 3 + 2
    assert names(tmp_path) == before


def test_stress_in_an_unwritable_folder(trained, monkeypatch, capsys):
    def forbidden(path, content):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("logcde.cli.resume.write_whole", forbidden)
    assert run("stress", trained / "model", "--drop", 0, "--seeds", 0) == 0
    assert "cannot be written: Permission denied. If this command is interrupted" in capsys.readouterr().err

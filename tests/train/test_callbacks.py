"""Callbacks of `fit`: the log of JSON lines and the progress bar."""

import io

import jax
import msgspec
from rich.console import Console

import logcde as lc
from logcde.train import Evaluation, ProgressBar
from tests.train import toys


def train(*callbacks):
    options = toys.options(size=8, duration=lc.Steps(6), every=lc.Steps(3), callbacks=callbacks)
    return lc.fit(toys.model(), toys.logsigs(), toys.ends(), key=jax.random.key(0), **options)


def test_json_log_appends_one_line_per_evaluation(tmp_path):
    path = tmp_path / "logs" / "run.jsonl"
    first = train(lc.train.JsonLog(path))
    second = train(lc.train.JsonLog(path))
    lines = [msgspec.json.decode(line, type=Evaluation) for line in path.read_bytes().splitlines()]
    assert tuple(lines) == first.history + second.history
    assert [line.step for line in lines] == [3, 6, 3, 6]


def test_progress_bar_shows_loss_validation_and_time():
    terminal = Console(file=io.StringIO(), force_terminal=True, width=200)
    train(ProgressBar(terminal))
    shown = terminal.file.getvalue()
    assert "6/6" in shown
    assert "loss" in shown
    assert "validation mse" in shown
    assert "left" in shown


def test_progress_bar_is_off_without_a_terminal(capsys):
    paper = Console(file=io.StringIO(), force_terminal=False)
    train(ProgressBar(paper))
    assert paper.file.getvalue() == ""
    assert capsys.readouterr() == ("", "")

"""What a run tells: a log that machines read, and a bar that people look at."""

import io

import jax
import msgspec
from rich.console import Console

import logcde as lc
from logcde.train.callbacks import ProgressBar
from logcde.train.records import Evaluation
from tests.train import tasks


def train(*callbacks):
    options = {"batch": 8, "duration": lc.Steps(6), "every": lc.Steps(3), "key": jax.random.key(0)}
    return lc.fit(tasks.model(), tasks.logsigs(), tasks.ends(), callbacks=callbacks, **options)


def test_one_line_for_each_evaluation(tmp_path):
    path = tmp_path / "logs" / "run.jsonl"
    first = train(lc.train.JsonLog(path))
    second = train(lc.train.JsonLog(path))
    lines = [msgspec.json.decode(line, type=Evaluation) for line in path.read_bytes().splitlines()]
    assert tuple(lines) == first.history + second.history
    assert [line.step for line in lines] == [3, 6, 3, 6]


def test_the_bar_shows_loss_validation_and_time(capsys):
    terminal = Console(file=io.StringIO(), force_terminal=True, width=200)
    train(ProgressBar(terminal))
    shown = terminal.file.getvalue()
    assert "6/6" in shown
    assert "loss" in shown
    assert "validation mse" in shown
    assert "left" in shown


def test_the_bar_is_quiet_where_nobody_looks(capsys):
    paper = Console(file=io.StringIO(), force_terminal=False)
    train(ProgressBar(paper))
    assert paper.file.getvalue() == ""
    assert capsys.readouterr() == ("", "")

"""`logcde demo`, small: all that it promises is there, and being stopped is no accident."""

import re

from logcde import estimators
from logcde.report.record import read_run
from tests.cli.tables import run
from tests.report.reading import opened


def test_everything_is_where_the_last_line_says(untrained, tmp_path, capsys):
    out = tmp_path / "new folder"
    assert run("demo", "--quick", "--out", out) == 0
    said = capsys.readouterr().out
    assert "24 series, 4,717 events" in said
    assert "decode to exactly the observations that went in" in said
    assert said.splitlines()[-1] == f"Picture: {out / 'demo.png'}   Report: {out / 'demo' / 'report.html'}"
    assert float(re.findall(r"difference from offline predictions is (\S+),", said)[0]) < 1e-4
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(file.name for file in out.iterdir()) == [
        "demo",
        "demo-observations.csv",
        "demo-targets.csv",
        "demo.png",
    ]
    record, seen = read_run(out / "demo"), opened((out / "demo" / "report.html").read_text("utf-8"))
    assert record.command in seen.text
    assert (record.task, record.data.held_out, estimators.load(out / "demo").n_iter_) == ("forecast", 5, 3)
    table = [line.split() for line in said.splitlines()]
    ours, theirs = (next(row for row in table if row[:1] == [name]) for name in ("Log-SLiCE", "GRU-D"))
    assert ours[1] == f"{record.metrics['mse']:.4f}"
    assert ours[4] == theirs[4] == "3"


def test_being_stopped_is_a_sentence(tmp_path, monkeypatch, capsys):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "learn", stopped)
    assert run("demo", "--quick", "--out", tmp_path) == 130
    assert capsys.readouterr().err == "logcde: stopped before the end, so there is no new report.\n"
    assert not (tmp_path / "demo").exists()


def test_what_is_in_the_way_is_not_replaced(tmp_path):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "thesis.txt").touch()
    assert "exists and is not a saved model: there is 'thesis.txt' in it" in run("demo", "--out", tmp_path)
    (tmp_path / "file").touch()
    assert "cannot be written" in run("demo", "--out", tmp_path / "file")

"""`python -m examples.demo`, small: everything it promises is there, and Ctrl-C is no accident."""

import json
import re

import pytest

from examples import demo
from logcde import estimators
from logcde.report.record import read_run
from tests.report.reading import opened


def ended(*arguments):
    with pytest.raises(SystemExit) as end:
        demo.main([str(argument) for argument in arguments])
    return end.value.code


def test_demo_writes_picture_model_report_and_tables(tmp_path, capsys):
    out = tmp_path / "new folder"
    demo.main(["--quick", "--out", str(out)])
    shown = capsys.readouterr().out
    assert "24 series, 4,717 events" in shown
    assert "decode to exactly the observations that went in" in shown
    assert shown.splitlines()[-1] == f"Picture: {out / 'demo.png'}   Report: {out / 'demo' / 'report.html'}"
    assert float(re.findall(r"difference from offline predictions is (\S+),", shown)[0]) < 1e-4
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    files = ["demo", "demo-observations.csv", "demo-targets.csv", "demo.json", "demo.png"]
    assert sorted(file.name for file in out.iterdir()) == files
    record, page = read_run(out / "demo"), opened((out / "demo" / "report.html").read_text("utf-8"))
    assert record.command in page.text
    assert (record.task, record.data.held_out, estimators.load(out / "demo").n_iter_) == ("forecast", 5, 3)
    table = [line.split() for line in shown.splitlines()]
    ours, theirs = (next(row for row in table if row[:1] == [name]) for name in ("Log-SLiCE", "GRU-D"))
    assert ours[1] == f"{record.metrics['mse']:.4f}"
    assert ours[4] == theirs[4] == "3"
    written = json.loads((out / "demo.json").read_text("utf-8"))
    assert [f"{written['mse'][name]:.4f}" for name in ("Log-SLiCE", "GRU-D")] == [ours[1], theirs[1]]
    assert (written["seed"], written["held-out series"], written["steps"]) == (0, 5, 3)


def test_demo_exits_130_when_interrupted(tmp_path, monkeypatch, capsys):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "learn", stopped)
    assert ended("--quick", "--out", tmp_path) == 130
    assert capsys.readouterr().err == "demo: stopped before the end; there is no new report.\n"
    assert not (tmp_path / "demo").exists()


def test_demo_does_not_replace_other_files(tmp_path, capsys):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "thesis.txt").touch()
    assert ended("--quick", "--out", tmp_path) == 1
    assert "exists and is not a saved model: there is 'thesis.txt' in it" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert "cannot be written" in ended("--out", tmp_path / "file")

"""`python -m benchmarks`: options, help, output, and Ctrl-C."""

from pathlib import Path
from typing import get_args

import pytest

from benchmarks import __main__ as command
from benchmarks.__main__ import JobName, Options
from benchmarks.jobs import JOBS
from benchmarks.tests.test_jobs import PEERS, TINY
from benchmarks.timing import Clock


def test_options_are_parsed(monkeypatch, tmp_path):
    taken = []
    monkeypatch.setattr(command, "measure", lambda options: taken.append(options) or 3)
    arguments = ["--jobs", "B1", "scaling", "--rounds", "1", "--patience", "2", "--out", str(tmp_path), "--resume"]
    assert command.main(arguments) == 3
    assert taken == [Options(("B1", "scaling"), 1, 2.0, 0, tmp_path, True)]


def test_default_options_name_every_job():
    assert get_args(JobName) == tuple(JOBS) == Options().jobs
    assert Clock(Options().rounds, patience=Options().patience) == Clock()
    assert Options().out == Path("out/benchmarks")


def test_help_names_every_job(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(f"{name}: {job.title}" in shown for name, job in JOBS.items())


def test_command_prints_tables_and_writes_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "JOBS", {job.name: job for job in TINY})
    monkeypatch.setattr(command, "PEERS", PEERS)
    status = command.main(["--jobs", "B1", "scaling", "--rounds", "1", "--out", str(tmp_path)])
    shown = capsys.readouterr().out
    assert status == 0
    assert "logcde against the fastest rival" in shown
    assert sorted(file.name for file in tmp_path.iterdir()) == ["results.json", "scaling.png"]


def test_command_exits_130_when_interrupted(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_jobs", interrupted)
    assert command.main(["--jobs", "A", "--out", str(tmp_path)]) == 130
    assert "--resume" in capsys.readouterr().out

"""`logcde bench`: the benchmark under another name."""

from typing import get_args

import pytest

from benchmarks import __main__ as module
from benchmarks.jobs import JOBS
from benchmarks.options import JobName, Options
from benchmarks.timing import Clock
from logcde.cli import main


def test_the_command_takes_the_options_of_the_module(monkeypatch, tmp_path):
    taken = []
    monkeypatch.setattr(module, "measure", lambda options: taken.append(options) or 3)
    arguments = ["--jobs", "B1", "scaling", "--rounds", "1", "--patience", "2", "--out", str(tmp_path), "--resume"]
    with pytest.raises(SystemExit) as end:
        main(["bench", *arguments])
    assert end.value.code == 3
    assert module.main(arguments) == 3
    assert taken == [Options(("B1", "scaling"), 1, 2.0, 0, tmp_path, True)] * 2


def test_options_know_every_job_and_what_is_usual():
    assert get_args(JobName) == tuple(JOBS) == Options().jobs
    assert Clock(Options().rounds, patience=Options().patience) == Clock()


def test_help_names_every_job(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(f"{name}: {job.title}" in shown for name, job in JOBS.items())


def test_the_list_of_commands_has_a_line_for_each(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    for name in ("describe", "embed", "stream", "reproduce", "datasets", "bench", "cite"):
        assert f"• {name} " in shown
    assert "--jobs" not in shown
    assert "kill -9" not in shown

"""`python -m experiments`: its help, its errors, and `check`."""

import msgspec
import pytest

from experiments import __main__ as command
from experiments.registry import SUMMARIES, named
from experiments.runner import check
from experiments.runner.abstract import Record
from experiments.runner.ledger import Ledger
from experiments.runner.recipes import SliceModel, Training
from experiments.sinusoid.cells import SinusoidCell


def ended(*arguments):
    with pytest.raises(SystemExit) as end:
        command.main(list(arguments))
    return end.value.code


def test_help_has_a_line_for_each_experiment(capsys):
    assert ended("--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, summary in SUMMARIES.items():
        assert f"• {name} {summary}" in shown
    assert "resumes" not in shown


@pytest.mark.parametrize("name", SUMMARIES)
def test_help_of_an_experiment(name, capsys):
    assert ended(name, "--help") == 0
    shown = capsys.readouterr().out
    assert "resumes" in shown
    assert "--experiment" not in shown
    assert named(name).name == name


def test_options_reach_reproduce(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("experiments.runner.reproduce.reproduce", lambda *a, **o: calls.append((a, o)) or 3)
    assert ended("brownian", "--quick", "--seeds", "7", "8", "--out", str(tmp_path), "--workers", "1") == 3
    ((experiment,), options) = calls[0]
    assert experiment is named("brownian")
    assert (options["preset"], options["seeds"], options["out"], options["workers"]) == ("quick", (7, 8), tmp_path, 1)


def test_quick_and_another_preset_exclude_each_other():
    assert ended("uea", "--quick", "--preset", "paper") == (
        "experiments: --quick and --preset paper exclude each other. Leave one of them out."
    )


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A ledger with one finished cell of the sinusoid experiment."""
    sinusoid = named("sinusoid")
    model, training = SliceModel(hidden=4, block=2), Training(epochs=1, batch=8)
    options = {"regime": "async_sparse", "model": model, "training": training, "train": 8, "test": 4}
    cell = SinusoidCell(variant="printed", seed=3, **options)
    outcome = sinusoid.run(cell, lambda part: None, tmp_path)
    monkeypatch.setattr("experiments.runner.reproduce.RESULTS", tmp_path)
    ledger = Ledger(tmp_path / "sinusoid" / "cells.jsonl", sinusoid.cell, sinusoid.outcome)
    ledger.add(Record(cell, outcome, 5.0, {}))
    return ledger, Record(cell, outcome, 1.0, {})


def test_check_reruns_a_cell_and_compares(finished, capsys):
    ledger, record = finished
    assert ended("check", "sinusoid") == 0
    assert capsys.readouterr().out == "sinusoid: printed, async_sparse, seed 3 (5 s before)\n  equal\n"
    changed = msgspec.structs.replace(record.outcome, parameters=7, train_seconds=99.0)
    ledger.add(msgspec.structs.replace(record, outcome=changed))
    assert ended("check", "sinusoid", "--label", "seed 3") == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"  outcome.parameters: 7 before, {record.outcome.parameters} now"
    ]


def test_check_refuses_what_is_not_there(finished):
    assert "no experiment 'sines'. Choose one of: sinusoid, " in ended("check", "sines")
    assert "no finished cell whose label contains 'seed 9' that can run here" in ended(
        "check", "sinusoid", "--label", "seed 9"
    )


def test_compared_lists_every_leaf():
    before = {"a": [1.0, float("nan")], "b": None, "c": [1]}
    after = {"a": [1.5, float("nan")], "b": 2, "c": [1, 2]}
    assert list(check._compared(before, after, "x")) == [
        "x.a[0]: 1.0 before, 1.5 now",
        "x.b: None before, 2 now",
        "x.c: [1] before, [1, 2] now",
    ]

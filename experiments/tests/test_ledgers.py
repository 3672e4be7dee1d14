"""Committed results are found again: every line of every ledger decodes, and every cell of a grid is finished."""

from pathlib import Path

import pytest

from experiments.registry import named
from experiments.runner.ledger import Ledger
from experiments.runner.reproduce import RESULTS, settings_of

LEDGERS = {path.parent.name: path for path in sorted(RESULTS.glob("*/cells.jsonl"))}


def read(name):
    experiment, _, preset = name.partition("-")
    experiment = named(experiment)
    ledger = Ledger(LEDGERS[name], experiment.cell, experiment.outcome)
    return experiment, settings_of(experiment, preset=preset or "full"), ledger, ledger.read()


@pytest.fixture(autouse=True)
def without_data(monkeypatch):
    monkeypatch.delenv("LOGCDE_DATA", raising=False)


def test_there_is_a_ledger_of_every_experiment():
    assert set(LEDGERS) == {
        "brownian",
        "choices",
        "choices-boosting",
        "defaults",
        "logode",
        "mortality",
        "nextday",
        "nextday-validation",
        "physionet2012",
        "sepsis",
        "sepsis-validation",
        "sinusoid",
        "uea",
        "uea-published",
    }


@pytest.mark.parametrize("name", LEDGERS)
def test_every_line_decodes(name):
    _, _, ledger, records = read(name)
    assert ledger.ignored == 0
    assert len(records) == len(Path(ledger.path).read_text().splitlines())


@pytest.mark.parametrize("name", LEDGERS)
def test_every_cell_of_the_preset_is_finished(name):
    experiment, settings, _, records = read(name)
    done = {cell: record.outcome for cell, record in records.items()}
    missing = [cell.label for cell in experiment.cells(settings, done) if cell not in records]
    assert missing == []

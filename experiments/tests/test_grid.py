"""Grids resume after any interruption; on the smallest experiment."""

import io
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from rich.console import Console

from experiments.registry import SUMMARIES, named
from experiments.runner import pool
from experiments.runner.abstract import Record
from experiments.runner.grid import run_grid
from experiments.runner.ledger import Ledger
from experiments.runner.pool import ROOT
from experiments.runner.recipes import Curve
from experiments.runner.reproduce import RESULTS, reproduce, results_folder, settings_of
from experiments.sinusoid.cells import SinusoidOutcome
from logcde.datasets import REGIMES
from logcde.errors import ExperimentError

TINY = """
seeds = [3]
train = 12
test = 8
regimes = ["async_sparse"]

[variants.printed.model]
type = "log-slice"
hidden = 4
block = 2
initial = "first values"
[variants.printed.training]
epochs = 2
batch = 8

[candidates.fast.model]
type = "log-slice"
hidden = 4
block = 2
[candidates.fast.training]
epochs = 2
batch = 8
rate = 1e-2
schedule = "cosine"
[candidates.broken.model]
type = "log-slice"
hidden = 4
block = 2
scale = SCALE
[candidates.broken.training]
epochs = 2
batch = 8
"""
SINUSOID = named("sinusoid")


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.replace("SCALE", "0.25"))
    return path


@pytest.fixture
def silent():
    return Console(file=io.StringIO())


def outcome(value):
    mse = dict.fromkeys(REGIMES, value)
    return SinusoidOutcome(mse=mse, curve=Curve([1.0], [value]), parameters=3, train_seconds=0.1)


def settings(config):
    return settings_of(SINUSOID, config)


def ledger(folder):
    return Ledger(folder / "cells.jsonl", SINUSOID.cell, SINUSOID.outcome)


def test_reproduce_runs_a_grid_once(config, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # workers find the package from any folder
    config.write_text(TINY[: TINY.index("[candidates.broken")])
    out = tmp_path / "out"
    assert reproduce(SINUSOID, config=config, out=out, workers=1) == 0
    lines = (out / "cells.jsonl").read_text().splitlines()
    assert len(lines) == 3  # printed, a candidate and ours
    summary = msgspec.json.decode((out / "summary.json").read_bytes())
    assert summary["seeds"] == [3]
    assert set(summary["mse"]) == {"async_sparse"}
    assert set(summary["mse"]["async_sparse"]) == {"sync_regular", "sync_irregular", "async_irregular", "async_sparse"}
    assert summary["chosen"] == "fast"
    run = msgspec.json.decode((out / "run.json").read_bytes())
    assert run["versions"]["logcde"]
    assert run["config"]["train"] == 12
    assert {path.name for path in out.glob("*.png")} >= {"cross_regime_printed.png", "predictions_async_sparse.png"}
    printed = capsys.readouterr().out
    assert "held" in printed
    assert str(out) in printed.replace("\n", "")

    assert reproduce(SINUSOID, config=config, out=out, workers=1) == 0
    assert (out / "cells.jsonl").read_text().splitlines() == lines


def test_ledger_survives_a_torn_line_and_tells_settings_apart(config, tmp_path):
    cells = SINUSOID.cells(settings(config), {})
    book = ledger(tmp_path)
    for cell in cells[:2]:
        book.add(Record(cell, outcome(0.1), 1.0, {}))
    with book.path.open("ab") as file:
        file.write(msgspec.json.encode(Record(cells[2], outcome(0.2), 1.0, {}))[:-9])  # the power went off
    assert set(book.read()) == set(cells[:2])
    assert set(book.read()) == set(cells[:2])  # the torn line is gone, the next one begins on a line of its own
    other = msgspec.structs.replace(cells[0], train=13)
    book.add(Record(other, outcome(0.3), 1.0, {}))
    assert set(book.read()) == {*cells[:2], other}


def test_ledger_ignores_and_counts_cells_of_another_version(config, tmp_path):
    asked, done, book = settings(config), {}, ledger(tmp_path)
    for _ in range(2):  # the second time with the one that follows from the candidates
        done |= {cell: outcome(0.1) for cell in SINUSOID.cells(asked, done)}
    for cell, found in done.items():
        book.add(Record(cell, found, 1.0, {}))
    with book.path.open("ab") as file:
        file.write(b'{"cell": {"width": 4}, "outcome": {}}\n' * 2)
    console = Console(file=io.StringIO(), width=500)
    assert set(run_grid(SINUSOID, asked, tmp_path, 1, console).records) == set(done)
    assert f"Ignored 2 finished cells of another version in {book.path}.\n" in console.file.getvalue()


@pytest.mark.parametrize("workers", [0, -1])
def test_reproduce_refuses_fewer_than_one_worker(workers, config, tmp_path):
    with pytest.raises(ExperimentError, match=f"on {workers} processes. Give at least 1"):
        reproduce(SINUSOID, config=config, out=tmp_path / "out", workers=workers)
    assert not (tmp_path / "out").exists()


def test_ledger_names_a_line_that_is_not_json(config, tmp_path):
    book = ledger(tmp_path)
    book.path.write_text("{}\nnot json\n")
    with pytest.raises(ExperimentError, match="line 2, is not JSON .* Remove that line; its cell is then run again"):
        book.read()


def test_best_candidate_becomes_ours_when_all_are_known(config):
    asked = settings(config)
    cells = SINUSOID.cells(asked, {})
    assert "ours" not in {cell.variant for cell in cells}
    errors = {"candidate fast": 0.1, "candidate broken": 0.3}
    done = {cell: outcome(errors[cell.variant]) for cell in cells if cell.variant in errors}
    more = [cell for cell in SINUSOID.cells(asked, done) if cell.variant == "ours"]
    assert [cell.regime for cell in more] == ["async_sparse"]
    assert {cell.training.rate for cell in more} == {1e-2}
    assert {cell.validation for cell in more} == {0.0}


def test_run_grid_reports_a_failed_cell_and_runs_the_others(config, tmp_path, silent):
    without = (
        TINY[: TINY.index("[candidates.fast")] + '[variants.other.model]\ntype = "log-slice"\nhidden = 4\nblock = 2\n'
    )
    without += "[variants.other.training]\nepochs = 2\nbatch = 8\n"
    config.write_text(without.replace('"first values"', '"first values"\nscale = 1e30'))
    grid = run_grid(SINUSOID, settings(config), tmp_path / "out", 1, silent)
    assert {failure.cell.variant for failure in grid.failures} == {"printed"}
    assert "NonFiniteError" in grid.failures[0].trace
    assert {cell.variant for cell in grid.records} == {"other"}


def test_candidate_with_non_finite_training_is_not_chosen(config, tmp_path):
    config.write_text(TINY.replace("SCALE", "1e30"))
    asked = settings(config)
    cells = {cell.variant: cell for cell in SINUSOID.cells(asked, {})}
    broken = SINUSOID.run(cells["candidate broken"], lambda part: None, tmp_path)
    assert broken.mse == dict.fromkeys(REGIMES)
    done = {cells["candidate broken"]: broken, cells["candidate fast"]: outcome(0.1)}
    (ours,) = [cell for cell in SINUSOID.cells(asked, done) if cell.variant == "ours"]
    assert ours.training == cells["candidate fast"].training


def test_interrupted_grid_exits_130_and_leaves_no_process(config, tmp_path):
    out = tmp_path / "out"
    config.write_text(TINY.replace("SCALE", "0.25").replace("epochs = 2", "epochs = 2000"))
    command = [sys.executable, "-m", "experiments", "sinusoid", "--config", str(config), "--out", str(out)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen([*command, "--workers", "1"], text=True, cwd=ROOT, **pipes)
    log = out / "logs" / "worker-0.log"
    until = time.monotonic() + 60
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1)
    running.send_signal(signal.SIGINT)
    printed, complained = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command resumes" in printed
    assert "Traceback" not in complained


def test_settings_of_refuses_invalid_configurations(config, tmp_path):
    with pytest.raises(ExperimentError, match="exclude each other"):
        settings_of(SINUSOID, config, "quick")
    with pytest.raises(ExperimentError, match="sinusoid has no preset 'slow'. Choose one of: full, quick"):
        settings_of(SINUSOID, preset="slow")
    with pytest.raises(ExperimentError, match="cannot be read: No such file"):
        settings_of(SINUSOID, tmp_path / "none.toml")
    config.write_text("seeds = [0]\nepochs = 3\n")
    with pytest.raises(ExperimentError, match="unknown field `epochs`"):
        settings(config)
    config.write_text(TINY.replace("SCALE", "0.25").replace("async_sparse", "never"))
    with pytest.raises(ExperimentError, match="not never"):
        settings(config)


@pytest.mark.parametrize("name", SUMMARIES)
@pytest.mark.parametrize("preset", ["quick", "full"])
def test_presets_are_valid_and_labels_are_unique(name, preset):
    experiment = named(name)
    cells = experiment.cells(settings_of(experiment, preset=preset), {})
    assert len(set(cells)) == len(cells)
    assert len({cell.label for cell in cells}) == len(cells)
    assert settings_of(experiment, preset=preset, seeds=(8, 9)).seeds == (8, 9)


def test_results_are_in_the_repository_from_any_folder(tmp_path, monkeypatch):
    assert results_folder(SINUSOID, "quick").resolve() == RESULTS / "sinusoid-quick"
    monkeypatch.chdir(tmp_path)
    assert results_folder(SINUSOID) == RESULTS / "sinusoid"


def test_workers_get_the_environment_of_the_experiment(config, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(pool.subprocess, "Popen", lambda *a, **options: started.append(options["env"]) or 1 / 0)
    cells = SINUSOID.cells(settings(config), {})
    with pytest.raises(ZeroDivisionError):
        list(pool.run_cells("sinusoid", cells, 1, tmp_path, environment={"OMP_NUM_THREADS": "1"}))
    assert started[0]["OMP_NUM_THREADS"] == "1"
    assert str(ROOT) in started[0]["PYTHONPATH"]

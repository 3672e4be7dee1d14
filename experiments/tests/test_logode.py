"""Time, memory and accuracy with and without the Log-ODE method: which models are compared, and the table."""

import jax
import msgspec
import pytest

from experiments.logode.cells import LogOdeOutcome, Speed
from experiments.logode.experiment import LogOde, models_of
from experiments.logode.report import PAPER, ROWS, judge
from experiments.runner.abstract import Record
from experiments.runner.reproduce import settings_of
from experiments.uea.training import Classified


@pytest.fixture(autouse=True)
def without_data(monkeypatch):
    monkeypatch.delenv("LOGCDE_DATA", raising=False)


@pytest.fixture
def config():
    return settings_of(LogOde())


def test_models_of_differ_in_depth_and_step_only(config):
    models = {name: model for name, (model, _, _) in models_of(config).items()}
    assert list(models) == list(ROWS) == list(PAPER)
    for family, block in (("lncde", 128), ("bd_slice", 4)):
        plain, log = models[family], models[f"log_{family}"]
        assert (plain.depth, plain.step, log.depth, log.step) == (1, 1, 2, 12)
        assert plain.block == log.block == block
        assert msgspec.structs.replace(plain, depth=2, step=12) == log
    assert (models["ncde"].hidden, models["ncde"].layers, models["ncde"].width) == (128, 3, 128)
    assert (models["log_ncde"].layers, models["log_ncde"].width) == (2, 32)


def test_cells_include_accuracies_if_eigenworms_is_available(config, tmp_path, monkeypatch):
    assert {cell.what for cell in LogOde().cells(config, {})} == {"speed"}
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"EigenWorms_{part}.ts").write_text("")
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    cells = LogOde().cells(config, {})
    assert sum(cell.what == "accuracy" for cell in cells) == 6 * 5
    assert len({cell.label for cell in cells}) == len(cells)


def test_run_times_a_step_on_random_walks(config, tmp_path):
    small = msgspec.structs.replace(config.path, hidden=4, step=4)
    quick = msgspec.structs.replace(config, path=small, length=24, steps=6, batches=(2,))
    cells = {cell.variant: cell for cell in LogOde().cells(quick, {})}
    told = []
    speed = LogOde().run(cells["log_lncde"], told.append, tmp_path).speed
    assert (len(speed.seconds), speed.real) == (6, False)
    assert told[-1] == 1.0
    assert speed.temporary_bytes > 0
    assert speed.argument_bytes > 2 * 6 * 28 * 4  # windows of two series, beside parameters
    assert jax.config.jax_enable_x64  # which the program is compiled for here


def made_up(config, accuracy=None):
    records = {}
    for number, cell in enumerate(LogOde().cells(config, {})):
        speed = Speed(
            seconds=[2.0 / 2**number] * 3, compile_seconds=1.0, temporary_bytes=2**21, argument_bytes=2**20, real=False
        )
        records[cell] = Record(cell, LogOdeOutcome(speed=speed, classified=accuracy), 1.0, {})
    return records


def test_conclude_shows_the_papers_numbers_and_missing_accuracies(config, tmp_path):
    one = msgspec.structs.replace(config, batches=(1,))
    conclusion = LogOde().conclude(one, made_up(one), tmp_path)
    assert "random walks of EigenWorms' shape" in conclusion.text
    assert "EigenWorms is not available" in conclusion.text
    assert "| NCDE | no | not run | 75.0 ± 3.9 | 2 | 26.02 | 2 | 1 | 3,484 |" in conclusion.text
    assert [row["model"] for row in conclusion.summary["rows"]] == list(ROWS)
    assert [claim.held for claim in conclusion.claims] == [True, True, True, False]
    classified = Classified(
        accuracy=0.8, validation=0.9, series=236, tests=36, steps=10, best_step=5, capped=True, parameters=1,
        train_seconds=1.0, history=[],
    )  # fmt: skip
    assert "| NCDE | no | 80.0 ± 0.0 |" in LogOde().conclude(one, made_up(one, classified), tmp_path).text


def test_judge_fails_claims_about_speed():
    seconds = {"ncde": 2.0, "log_ncde": 3.0, "bd_slice": 1.0, "log_bd_slice": 1e-4}
    assert [claim.held for claim in judge(seconds, 1)] == [False, True, True]

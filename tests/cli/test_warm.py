"""`logcde warm`: what it compiles, says, and leaves for later processes."""

import pytest

from logcde.cli import warm
from logcde.online.serving import LinearServingModel
from tests.cli.streaming import a_model
from tests.cli.tables import run


def test_warm_compiles_each_depth_and_block(monkeypatch, capsys):
    embedded, trained = [], []
    monkeypatch.setattr(warm, "_embed", embedded.append)
    monkeypatch.setattr(warm, "_train_and_serve", lambda *given: trained.append(given))
    assert run("warm", "--depth", "1", "2", "--block", "1", "4") == 0
    assert embedded == [1, 2]
    assert trained == [(1, 1), (1, 4), (2, 1), (2, 4)]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["log-signatures of depth 1", "depth 1, blocks of 1"]
    assert lines[6].startswith("0 kernels compiled, ")


def test_warm_says_what_it_compiled(tmp_path, monkeypatch):
    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.setattr(warm, "cache_folders", lambda: (folder, None))
    (folder / "old.nbc").touch()
    report = warm.report_of([("a job", lambda: (folder / "new.nbc").touch())])
    assert report.splitlines()[1:] == [
        f"1 kernels compiled, 2 in {folder}",
        "No programs of XLA are kept: set LOGCDE_CACHE_DIR to a folder of yours to keep them.",
    ]


def test_warm_needs_a_place_for_kernels(monkeypatch):
    monkeypatch.setattr(warm, "cache_folders", lambda: (None, None))
    assert "Set LOGCDE_CACHE_DIR to a folder" in run("warm")


def test_warm_serves_a_saved_model_past_an_interval_that_ends_by_rule(tmp_path, monkeypatch, capsys):
    moved, advance_many = [], LinearServingModel.advance_many

    def noted(self, states, logsigs):
        moved.append(len(logsigs))
        return advance_many(self, states, logsigs)

    monkeypatch.setattr(LinearServingModel, "advance_many", noted)
    a_model().save(tmp_path / "model")
    assert run("warm", tmp_path / "model") == 0
    assert capsys.readouterr().out.startswith(f"serving of {tmp_path / 'model'}: ")
    assert moved


@pytest.mark.parametrize("options", [("--depth", "0"), ("--block", "-1"), ("--depth", "2", "100000")])
def test_warm_refuses_sizes(options):
    assert f"{options[0]} is {' '.join(options[1:])}. Give whole numbers from 1 to " in run("warm", *options)

"""`logcde report`: where the page is written, and errors where there is no record."""

import shutil

import pytest

from logcde.artefact.files import check_target
from logcde.cli import report
from logcde.errors import ArtefactError
from logcde.report.record import RUN, write_run
from tests.artefact.forging import forge
from tests.cli.tables import run
from tests.report.reading import opened
from tests.report.runs import classifier_run


@pytest.fixture
def model(folder, tmp_path):
    """The folder of a model with a record of its training."""
    copy = shutil.copytree(folder, tmp_path / "model")
    made = classifier_run(["ill", "well"], ["ill", "well"], [[0.9, 0.1], [0.6, 0.4]])
    forge(copy, RUN, write_run(made).encode())
    return copy


def test_page_in_the_model_folder_or_elsewhere(model, tmp_path, capsys):
    assert run("report", model) == 0
    assert capsys.readouterr().out == f"Wrote the report to {model / 'report.html'}. Open it in a browser.\n"
    seen = opened((model / "report.html").read_text("utf-8"))
    assert "An accuracy of 0.5 on 2 held-out series. Always predicting ill has" in seen.text
    assert 'file = "vitals of <script>' in seen.text
    assert run("report", model, "-o", tmp_path / "new" / "page.html") == 0
    assert (tmp_path / "new" / "page.html").read_bytes() == (model / "report.html").read_bytes()


def test_model_with_a_report_can_be_replaced(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "model")
    (copy / "report.html").touch()
    assert check_target(copy, overwrite=True)
    (copy / "notes.txt").touch()
    with pytest.raises(ArtefactError, match="there is 'notes.txt' in it"):
        check_target(copy, overwrite=True)


def test_error_messages(model, folder, tmp_path, monkeypatch):
    assert "There is no folder none. Name the folder that logcde train" in run("report", "none")
    assert "it has no model.json" in run("report", tmp_path)
    assert "has no run.json, the record of a training run: its model was saved from Python" in run("report", folder)
    assert "is a folder. Give the name of a file with -o" in run("report", model, "-o", tmp_path)
    assert "must be named report.html, not run.json" in run("report", model, "-o", model / RUN)
    (tmp_path / "file").touch()
    assert "cannot be written: File exists. Nothing was left" in run(
        "report", model, "-o", tmp_path / "file" / "a.html"
    )
    forge(model, RUN, b"{}")
    assert "has format None; this version of logcde reads 1" in run("report", model)


def test_interrupt_leaves_nothing(model, monkeypatch, capsys):
    def stopped(*arguments):
        raise KeyboardInterrupt

    before = sorted(model.iterdir())
    monkeypatch.setattr(report, "write_report", stopped)
    assert run("report", model) == 130
    assert capsys.readouterr().err == "logcde: stopped. No report was written.\n"
    assert sorted(model.iterdir()) == before

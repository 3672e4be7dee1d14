"""Every example runs, small, and shows what it promises."""

import pytest

from examples import data_frame, intensive_care, online_serving, quickstart


def test_quickstart(capsys):
    assert quickstart.main(patients=24, epochs=1).sum() == pytest.approx(1.0)
    assert "24 series" in capsys.readouterr().out


def test_data_frame(capsys):
    assert data_frame.main(patients=12).shape == (12, 2)
    shown = capsys.readouterr().out
    assert "Settings, and why:" in shown
    assert "pulse" in shown


def test_online_serving(capsys):
    assert online_serving.main(patients=8, epochs=1, beds=3) < 1e-4
    assert "72 events of 3 beds" in capsys.readouterr().out


def test_intensive_care_without_data(monkeypatch, capsys):
    monkeypatch.delenv("LOGCDE_DATA", raising=False)
    assert 0 <= intensive_care.main(count=60, steps=3) <= 1
    shown = capsys.readouterr().out
    assert "https://physionet.org/content/challenge-2012" in shown
    assert "Generated stays are used instead." in shown
    assert "AUROC on 12 test stays" in shown

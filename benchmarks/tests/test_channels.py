"""The benchmark against channels, on a few series."""

import json

from benchmarks import channels


def test_measures_and_resumes(tmp_path, monkeypatch, capsys):
    size = channels.Size(series=20, observations=10, intervals=3, hidden=8, epochs=1)
    row = channels.measure(size, 30)
    assert row["coordinates"] == 61 * 62 // 2
    assert 3 < row["kept_per_interval"] < row["coordinates"] / 10
    assert row["dense_megabytes"] == 60 * row["coordinates"] * 4 / channels.MEGABYTE
    # A finished number of channels is not measured again.
    document = {"size": channels.dataclasses.asdict(channels.Size(series=20)), "rows": [row]}
    (tmp_path / "channels.json").write_text(json.dumps(document))
    monkeypatch.setattr(channels.subprocess, "run", None)
    assert channels.main(["--series", "20", "--channels", "30", "--out", str(tmp_path)]) == 0
    assert "30 channels," in capsys.readouterr().out
    assert (tmp_path / "channels.png").exists()

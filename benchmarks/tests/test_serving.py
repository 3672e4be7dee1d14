"""`python -m benchmarks.serving`: its generator and its service, for a moment."""

import json
import sys

from benchmarks import serving


def test_a_short_measurement(tmp_path, monkeypatch, capsys):
    given = [
        "--series",
        "40",
        "--posts",
        "4",
        "--clients",
        "2",
        "--seconds",
        "0.5",
        "--stores",
        "sqlite",
        "--many",
        "60",
        "--published",
        "0",
        "--out",
        str(tmp_path / "found.json"),
    ]
    monkeypatch.setattr(sys, "argv", ["serving", *given])
    serving.main()
    content = json.loads((tmp_path / "found.json").read_text())
    (found,) = content["runs"]
    assert found["observations"] >= 8
    assert found["observations_per_second"] > 0
    assert 0 < found["p50_seconds"] <= found["p99_seconds"]
    assert found["series"] == min(40, found["observations"])
    assert 100 < found["state_bytes"] < 10_000
    assert content["many"]["series"] == 60
    assert "logcde serve, generator and servers" in capsys.readouterr().out


def test_series_take_turns():
    load = serving.Load(3, 0)
    lines = json.loads(load.batch(4)) + json.loads(load.batch(2))
    assert [(one["series"], one["time"]) for one in lines] == [
        (f"s{number % 3}", (1 + number // 3) / 8) for number in range(6)
    ]
    assert len({one["id"] for one in lines}) == 6

"""The measurement of many files on clusters, on a small table and without a cluster."""

import json

import pytest

from benchmarks import cluster


def test_small_tables_are_cut_by_series_and_by_hour_and_give_the_same(tmp_path, monkeypatch, capsys):
    pytest.importorskip("duckdb")
    measurements = cluster.measurements

    def without_clusters(size, folder):
        return {name: measure for name, measure in measurements(size, folder).items() if "one process" in name}

    monkeypatch.setattr(cluster, "measurements", without_clusters)
    out = tmp_path / "cluster.json"
    options = [
        "--rows",
        "2400",
        "--series",
        "24",
        "--files",
        "3",
        "--folder",
        str(tmp_path),
        "--out",
        str(out),
        "--rounds",
        "2",
    ]
    assert cluster.main(options) == 0
    printed = capsys.readouterr().out
    assert "All folders are equal to the bit." in printed
    results = json.loads(out.read_text())
    assert list(results["runs"]) == ["clustered: one process", "scattered: one process"]
    assert {"logcde", "DuckDB"} == set(results["gathering"])
    before = out.read_text()
    assert cluster.main(options) == 0
    assert out.read_text() == before
    assert not (tmp_path / "result").exists()

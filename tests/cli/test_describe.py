"""`logcde describe`: the summary of a table as text, as JSON and as a figure."""

import json

import numpy as np
import polars
import pytest

from logcde import Streams
from tests.cli.tables import COLUMNS, long, run, table, write

ROWS = table(
    ("p", 0.0, "pulse", 1.0),
    ("p", 0.0, "temp", 37.0),
    ("p", 2.0, "pulse", 1.0),
    ("p", 2.0, "pulse", 1.0),
    ("p", 8.0, "never", None),
    ("q", 4.0, "temp", 37.0),
    ("q", 8.0, "pulse", None),
    ("q", 8.0, "temp", 37.0),
)


def describe(folder, frame, *options, name="a.parquet", columns=COLUMNS):
    return run("describe", write(frame, folder / name), *columns, *options)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_text_summary(tmp_path, capsys, name):
    assert describe(tmp_path, ROWS, name=name) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{tmp_path / name}: long table, 8 rows, observation window from 0.0 to 8.0"
    assert lines[2] == "2 series, 4 events, 40.0% of observations simultaneous"
    assert "Of 4 events, 3 observe 1 channel, 1 observes 2 channels." in lines
    assert "Missing values: 2 (never: 1, pulse: 1). They are not observations." in lines
    assert "Repeated values of a channel at one stamp: 1." in lines
    assert "Channels without observations: 'never'." in lines
    assert any(line.startswith("Constant channels, of which only the observation times") for line in lines)
    assert any(line.startswith("Without counts, 2 of 5 observations (40.0%)") for line in lines)
    raster = lines[lines.index("series 'q'") + 3]
    assert raster == "  temp  [" + " " * 35 + "#" + " " * 33 + "#]"


def test_json_summary(tmp_path, capsys):
    assert describe(tmp_path, ROWS, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    summary = Streams.from_frame(ROWS, "id", "t", "name", "x").describe()
    assert found["summary"]["channels"] == ["never", "pulse", "temp"]
    assert found["summary"]["channel_observations"] == summary.channel_observations.tolist()
    assert found["summary"]["channel_gaps"][0] == [None] * 3
    assert (found["rows"], found["merged"], found["missing"]["pulse"]) == (8, 1, 1)
    assert found["unseen"]["repeats"] == 2


def test_plot(tmp_path, capsys):
    assert describe(tmp_path, long(), "--plot", tmp_path / "a.png") == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "cannot be written" in describe(tmp_path, long(), "--plot", tmp_path / "a.unknown")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "a.png"]


def test_wide_table_of_one_series(tmp_path, capsys):
    frame = polars.DataFrame({"time": [0.0, 1.0], "a": [1.0, 2.0], "ward": ["x", "y"]})
    message = describe(tmp_path, frame, "--single", columns=())
    assert "The column 'ward' has values of type" in message
    assert "Choose the value columns with --channels" in message
    assert "no columns besides those" in describe(tmp_path, frame.select("time"), "--single", columns=())
    assert describe(tmp_path, frame, "--single", "--channels", "a", columns=()) == 0
    assert "wide table, 2 rows" in capsys.readouterr().out


def test_stamps_that_look_like_an_epoch(tmp_path, capsys):
    frame = table(("p", 1.7e9, "a", 1.0), ("p", 1.7e9 + 3600, "a", 2.0))
    assert describe(tmp_path, frame) == 0
    out = capsys.readouterr().out
    assert "observation window from 1700000000.0 to 1700003600.0" in out
    assert "time counts from 1700000000.0, read as 2023-11-14T22:13:20 in seconds since 1970" in out
    assert describe(tmp_path, frame, "--epoch", "s", "--origin", "first") == 0
    out = capsys.readouterr().out
    assert "observation window of each series from its own first stamp" in out
    assert "gaps in hours" in out


def test_epoch_out_of_range(tmp_path):
    for stamp in (2**60, 2.0**60):
        message = describe(tmp_path, table(("p", stamp, "a", 1.0), ("p", stamp + 4096, "a", 2.0)), "--epoch", "s")
        assert "as s since 1970 is beyond the year 2262. If they count something finer" in message


def test_text_fits_80_columns(tmp_path, capsys):
    frame = table(("p", 0.0, "a channel", -123456.789), ("p", 1234567.0, "a channel", 1.5e-7))
    assert describe(tmp_path, frame) == 0
    out = capsys.readouterr().out
    assert "Without time, the length of 1 gap between events, 1.235e+06, would" in out
    tables = [line for line in out.splitlines() if line.startswith((" ", "series")) or "[" in line]
    assert max(map(len, tables)) <= 80


def test_many_channels(tmp_path, capsys):
    frame = table(*(("p", float(k % 7), f"c{k:04d}", float(k)) for k in np.arange(600).tolist()))
    assert describe(tmp_path, frame, "--sort") == 0
    out = capsys.readouterr().out
    assert "and 560 channels more" in out
    assert "  and 593 more channels" in out


def test_unreadable_files(tmp_path):
    assert run("describe", tmp_path) == f"logcde: {tmp_path} is a folder. Give one file, Parquet or CSV."
    (tmp_path / "a.parquet").write_bytes(b"no table at all")
    assert "is not a Parquet file" in run("describe", tmp_path / "a.parquet")
    assert "No such file or directory" in run("describe", tmp_path / "b.parquet")


def test_interrupt(tmp_path, monkeypatch, capsys):
    def stop(streams):
        raise KeyboardInterrupt

    monkeypatch.setattr(Streams, "describe", stop)
    assert describe(tmp_path, ROWS) == 130
    assert capsys.readouterr().err == "logcde: stopped.\n"

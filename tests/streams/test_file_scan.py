"""Passes over files: streams read in groups equal those read at once, and those of the library."""

from datetime import datetime, timedelta

import numpy as np
import polars
import pytest

from logcde.errors import StreamError
from logcde.streams import FirstStamp, Streams
from logcde.streams.file_scan import Layout, all_streams, scan, some_streams
from logcde.streams.files import open_table
from logcde.streams.ingest import ReadOptions
from logcde.streams.rows import Average, Drop, Earliest, Forbid

LONG = Layout.long("id", "t", "name", "x")


def rows(series=7, seed=0, stamp=float):
    """A long table, sorted by series: asynchronous channels, some values missing."""
    rng = np.random.default_rng(seed)
    made = []
    for who in range(series):
        for t in np.cumsum(rng.integers(1, 9, rng.integers(3, 15))).tolist():
            for name in ("pulse", "temp", "glucose")[: rng.integers(1, 4)]:
                made.append((f"p{who}", stamp(t), name, None if rng.random() < 0.1 else float(rng.normal())))
    return polars.DataFrame(made, schema=["id", "t", "name", "x"], orient="row")


def moment(t):
    return datetime(2024, 3, 1, 12, 30) + timedelta(minutes=7 * t)


def written(frame, file):
    frame.write_csv(file) if file.suffix == ".csv" else frame.write_parquet(file, row_group_size=20)
    return file


def options(horizon=None, origin=Earliest(), sort=False, duplicates=Forbid(), empty=Forbid()):
    return ReadOptions.of(horizon, None, None, origin, sort, duplicates, empty)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("stamp", [float, int, moment], ids=["float", "int", "datetime"])
def test_groups_of_series_equal_reading_at_once(tmp_path, name, scattered, stamp):
    frame = rows(stamp=stamp)
    frame = frame.sort("t", maintain_order=True) if scattered else frame
    found = scan(open_table(written(frame, tmp_path / name)), LONG, rows=4)
    expected = Streams.from_frame(frame, "id", "t", "name", "x")
    assert all_streams(found) == expected
    for group in (1, 30, 10_000):
        parts = list(some_streams(found, tmp_path, group=group))
        assert Streams.concatenate(parts) == expected
        assert max(len(part) for part in parts) < len(expected) or group == 10_000
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_scan_counts_rows_and_missing_values(tmp_path):
    frame = rows()
    found = scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, rows=4)
    sizes = frame.group_by("id", maintain_order=True).len()
    assert list(found.numbers) == sizes["id"].to_list()
    assert found.sizes.tolist() == sizes["len"].to_list()
    assert (found.rows, found.first[0], found.last[-1]) == (len(frame), 0, len(frame) - 1)
    missing = frame.group_by("name").agg(polars.col("x").null_count())
    assert found.missing == dict(missing.sort("name").iter_rows())


def test_scan_with_an_origin_for_each_series(tmp_path):
    frame = rows(stamp=moment)
    found = scan(open_table(written(frame, tmp_path / "a.csv")), LONG, options(origin=FirstStamp()), rows=4)
    expected = Streams.from_frame(frame, "id", "t", "name", "x", origin=FirstStamp())
    assert Streams.concatenate(list(some_streams(found, tmp_path, group=1))) == expected


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_scan_of_a_wide_table(tmp_path, name):
    frame = polars.DataFrame(
        {
            "t": [0, 1, 0, 3, 2],
            "id": [1, 1, 2, 2, 3],
            "a": [1.0, None, 2.0, 3.0, None],
            "b": [None, 4.0, 5.5, None, 1.0],
        }
    )
    found = scan(open_table(written(frame, tmp_path / name)), Layout.wide(("a", "b"), "id", "t"), rows=1)
    expected = Streams.from_wide(frame, "id", "t")
    assert Streams.concatenate(list(some_streams(found, tmp_path, group=1))) == expected
    assert found.missing == {"a": 2, "b": 2}
    assert expected.ids.dtype == np.int64


def test_options_apply_to_every_group(tmp_path):
    frame = polars.DataFrame(
        {"id": [1, 1, 2, 2, 3], "t": [2.0, 1.0, 4.0, 4.0, 1.0], "name": ["a"] * 5, "x": [1.0, 2.0, 3.0, 5.0, None]}
    )
    reading = options(9.0, sort=True, duplicates=Average(), empty=Drop())
    found = scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, reading)
    parts = list(some_streams(found, tmp_path, group=1))
    assert [part.ids.tolist() for part in parts] == [[1], [2], []]
    assert parts[1].value.tolist() == [4.0]
    assert parts[0].horizon.tolist() == [9.0]


def test_unlabelled_rows_are_numbered_from_the_start_of_the_file(tmp_path):
    frame = polars.DataFrame({"id": ["p"] * 9 + [None], "t": np.arange(10.0), "name": ["a"] * 10, "x": [1.0] * 10})
    with pytest.raises(StreamError, match="Row 9 has a value but nothing in column 'id'"):
        scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, rows=3)
    bare = frame.with_columns(x=polars.when(polars.col("id").is_null()).then(None).otherwise("x"))
    assert len(all_streams(scan(open_table(written(bare, tmp_path / "a.parquet")), LONG, rows=3)).times) == 9

"""Tables in files: read in pieces, they are what reading all at once gives."""

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars
import pytest

from logcde.errors import StreamError, TableError
from logcde.streams import FirstStamp, Streams
from logcde.streams.arrays import Reading
from logcde.streams.file_scan import all_streams, scan, some_streams
from logcde.streams.files import Layout, open_table
from logcde.streams.rows import Average, Drop, Earliest, Forbid
from logcde.streams.transforms import join

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
    return Reading.of(horizon, None, None, origin, sort, duplicates, empty)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("stamp", [float, int, moment], ids=["float", "int", "datetime"])
def test_in_pieces_as_at_once(tmp_path, name, scattered, stamp):
    frame = rows(stamp=stamp)
    frame = frame.sort("t", maintain_order=True) if scattered else frame
    found = scan(open_table(written(frame, tmp_path / name)), LONG, rows=4)
    expected = Streams.from_frame(frame, "id", "t", "name", "x")
    assert all_streams(found) == expected
    for group in (1, 30, 10_000):
        parts = list(some_streams(found, tmp_path, group=group))
        assert join(parts) == expected
        assert max(len(part) for part in parts) < len(expected) or group == 10_000
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_what_a_scan_knows(tmp_path):
    frame = rows()
    found = scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, rows=4)
    sizes = frame.group_by("id", maintain_order=True).len()
    assert list(found.numbers) == sizes["id"].to_list()
    assert found.sizes.tolist() == sizes["len"].to_list()
    assert (found.rows, found.first[0], found.last[-1]) == (len(frame), 0, len(frame) - 1)
    missing = frame.group_by("name").agg(polars.col("x").null_count())
    assert found.missing == dict(missing.sort("name").iter_rows())


def test_each_series_from_its_own_start(tmp_path):
    frame = rows(stamp=moment)
    found = scan(open_table(written(frame, tmp_path / "a.csv")), LONG, options(origin=FirstStamp()), rows=4)
    expected = Streams.from_frame(frame, "id", "t", "name", "x", origin=FirstStamp())
    assert join(list(some_streams(found, tmp_path, group=1))) == expected


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_wide(tmp_path, name):
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
    assert join(list(some_streams(found, tmp_path, group=1))) == expected
    assert found.missing == {"a": 2, "b": 2}
    assert expected.ids.dtype == np.int64


def test_options_reach_every_part(tmp_path):
    frame = polars.DataFrame(
        {"id": [1, 1, 2, 2, 3], "t": [2.0, 1.0, 4.0, 4.0, 1.0], "name": ["a"] * 5, "x": [1.0, 2.0, 3.0, 5.0, None]}
    )
    reading = options(9.0, sort=True, duplicates=Average(), empty=Drop())
    found = scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, reading)
    parts = list(some_streams(found, tmp_path, group=1))
    assert [part.ids.tolist() for part in parts] == [[1], [2], []]
    assert parts[1].value.tolist() == [4.0]
    assert parts[0].horizon.tolist() == [9.0]


def csv(folder, *lines, name="a.csv"):
    file = Path(folder, name)
    file.write_text("id,t,name,x\n" + "\n".join(lines) + "\n")
    return open_table(file)


def test_a_column_is_what_all_of_it_is(tmp_path):
    """Ids and stamps that look like whole numbers at first are read again when it turns out that they are not."""
    many = [f"{k},{k},a,1" for k in range(40)]
    found = scan(csv(tmp_path, *many, "x7,2.5,a,2"), LONG, rows=1)
    assert list(found.numbers)[-2:] == ["39", "x7"]
    assert all_streams(found).times[-1] == 2.5
    assert list(scan(csv(tmp_path, *many), LONG, rows=1).numbers) == list(range(40))
    assert list(scan(csv(tmp_path, "007,0,a,1", "7,1,a,1"), LONG).numbers) == ["007", "7"]
    frame = polars.DataFrame({"id": ["1", "2"], "t": ["0", "1"], "name": ["a", "a"], "x": [1.0, 2.0]})
    assert list(scan(open_table(written(frame, tmp_path / "a.parquet")), LONG).numbers) == ["1", "2"]
    late = [f"{k},,a," for k in range(40)]
    times = all_streams(
        scan(csv(tmp_path, *late, "p,2024-01-01,a,1", "p,2024-01-02,a,1"), LONG, options(empty=Drop()), rows=1)
    )
    assert times.times.tolist() == [0.0, 24.0]


def test_datetimes_in_text(tmp_path):
    lines = ("p,2024-01-01T00:00:00+01:00,a,1", "p,2024-01-01 12:00:00.5+01:00,a,2")
    streams = all_streams(scan(csv(tmp_path, *lines), LONG))
    assert streams.schema.clock.show(12.0) == "2024-01-01T12:00:00+01:00"
    fine = ("p,2024-01-01T00:00:00Z,a,1", "p,2024-01-01T00:00:01.123456789Z,a,2")
    clock = all_streams(scan(csv(tmp_path, *fine), LONG, rows=1)).schema.clock
    assert (clock.resolution, clock.zone) == ("ns", "UTC")


@pytest.mark.parametrize(
    ("stamps", "said"),
    [
        (("2024-01-01T00:00+01:00", "2024-01-02T00:00+02:00"), "mix the time zones +01:00 and +02:00"),
        (("2024-01-01T00:00", "2024-01-02T00:00Z"), "mix the time zones Z and none"),
        (("noon", "evening"), "text such as 'noon', which is neither a number nor a datetime in ISO 8601"),
        (("0.5", "noon"), "begins with '0.5', a number, but has 'noon' further on"),
        (("2024-01-01", "noon"), "begins with '2024-01-01', a datetime in ISO 8601, but has 'noon' further on"),
    ],
)
def test_stamps_that_do_not_go_together(tmp_path, stamps, said):
    with pytest.raises(StreamError) as caught:
        scan(csv(tmp_path, *(f"p,{stamp},a,1" for stamp in stamps)), LONG)
    assert said in str(caught.value)
    frame = polars.DataFrame({"id": ["p", "p"], "t": stamps, "name": ["a", "a"], "x": [1.0, 2.0]})
    with pytest.raises(StreamError) as caught:
        scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, rows=1)
    assert said in str(caught.value)


@pytest.mark.parametrize(("epoch", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_numbers_that_count_from_1970(tmp_path, epoch, scale):
    whole = csv(tmp_path, f"p,{1_700_000_000 * scale},a,1", f"p,{1_700_003_600 * scale},a,2")
    streams = all_streams(scan(whole, LONG, epoch=epoch))
    assert streams.times.tolist() == [0.0, 1.0]
    assert streams.schema.clock.show(0.0) == "2023-11-14T22:13:20"
    parts = csv(tmp_path, f"p,{1_700_000_000.5 * scale:.3f},a,1", f"p,{1_700_003_600.5 * scale:.3f},a,2")
    assert all_streams(scan(parts, LONG, epoch=epoch)).times.tolist() == [0.0, 1.0]
    with pytest.raises(StreamError, match="only numbers count since 1970"):
        scan(csv(tmp_path, "p,2024-01-01,a,1"), LONG, epoch=epoch)


def test_rows_without_a_label_are_counted_from_the_start_of_the_file(tmp_path):
    frame = polars.DataFrame({"id": ["p"] * 9 + [None], "t": np.arange(10.0), "name": ["a"] * 10, "x": [1.0] * 10})
    with pytest.raises(StreamError, match="Row 9 has a value but nothing in column 'id'"):
        scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, rows=3)
    bare = frame.with_columns(x=polars.when(polars.col("id").is_null()).then(None).otherwise("x"))
    assert len(all_streams(scan(open_table(written(bare, tmp_path / "a.parquet")), LONG, rows=3)).times) == 9


def test_kinds_of_csv(tmp_path):
    text = "id;t;name;x\np;0;a;1.5\np;1;b;\n"
    Path(tmp_path, "a.tsv").write_text(text.replace(";", "\t"))
    Path(tmp_path, "a.txt").write_text(text)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(text)
    for name in ("a.tsv", "a.txt", "a.csv.gz"):
        found = scan(open_table(tmp_path / name), LONG, options(horizon=2.0))
        assert (found.schema.channels, found.missing) == (("a", "b"), {"a": 0, "b": 1})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", b"id,t,name,x\n", "is not a Parquet file: it begins with b'id,t'"),
        ("a.xlsx", b"PK\x03\x04", "is not a Parquet file"),
        ("a.parquet", b"PAR1 and then nothing of it", "not written to its end"),
        ("a.parquet", b"", "is empty: it has 0 bytes"),
        ("a.csv", b"", "is empty: it has 0 bytes"),
        ("a.csv", b"id,t,name,x\n", "has columns but no rows"),
        ("a.csv", b"id,t,name,x\np,0,a\n", "same number of columns"),
        ("a.csv", b"id,t,name,x\np,0,a,high\n", "The column 'x' has high, which is not a number"),
        ("a.csv", b"id,t,name,x,x\np,0,a,1,2\n", "has two columns named 'x'"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, said):
    Path(tmp_path, name).write_bytes(content)
    with pytest.raises(TableError) as caught:
        scan(open_table(tmp_path / name), LONG)
    assert said in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(TableError, match="No such file or directory"):
        open_table(tmp_path / "none.parquet")

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TableError, match="Permission denied. Is the name right, and may you read it"):
        open_table(tmp_path / "mine.parquet")


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(TableError, match='pip install "logcde\\[frames\\]"'):
        open_table(tmp_path / "a.parquet")

"""Tables in files, Parquet and CSV: opening, inferring types of text, and what is refused."""

import gzip
import os
from pathlib import Path

import polars
import pytest

from logcde.errors import StreamError, TableError
from logcde.streams import Streams
from logcde.streams.file_scan import Layout, all_streams, scan
from logcde.streams.files import LONGEST_HEADER, open_table
from logcde.streams.ingest import ReadOptions
from logcde.streams.rows import Drop, Earliest, Forbid

LONG = Layout.long("id", "t", "name", "x")
ROWS = {
    "patient": ["q", "p", "q", "p"],
    "hours": [0.0, 1.0, 2.0, 3.0],
    "vital": ["pulse", "temp", "pulse", "pulse"],
    "x": [60.0, 37.2, None, 61.0],
}
COLUMNS = {"series": "patient", "time": "hours", "channel": "vital", "value": "x"}


def written(frame, file):
    frame.write_csv(file) if file.suffix == ".csv" else frame.write_parquet(file, row_group_size=20)
    return file


def options(horizon=None, empty=Forbid()):
    return ReadOptions.of(horizon, None, None, Earliest(), False, Forbid(), empty)


def csv(folder, *lines, name="a.csv"):
    file = Path(folder, name)
    file.write_text("id,t,name,x\n" + "\n".join(lines) + "\n")
    return open_table(file)


def test_library_and_command_line_read_the_same_streams(tmp_path):
    """`from_csv` and `from_parquet` give what `scan`, which the command line uses, and `from_frame` give."""
    frame = polars.DataFrame(ROWS)
    expected = Streams.from_frame(frame, **COLUMNS)
    layout = Layout.long(*COLUMNS.values())
    for name, read in (("a.csv", Streams.from_csv), ("a.parquet", Streams.from_parquet)):
        path = written(frame, tmp_path / name)
        assert read(path, **COLUMNS) == all_streams(scan(open_table(path), layout)) == expected


def test_round_trip_through_files(tmp_path):
    streams = Streams.from_frame(polars.DataFrame(ROWS), **COLUMNS)
    long = streams.to_frame(polars)
    long.write_csv(tmp_path / "long.csv")
    long.write_parquet(tmp_path / "long.parquet")
    assert Streams.from_csv(tmp_path / "long.csv") == streams
    assert Streams.from_parquet(str(tmp_path / "long.parquet")) == streams


def test_enum_columns_of_parquet_keep_the_order_of_channels(tmp_path):
    streams = Streams.from_frame(polars.DataFrame(ROWS), **COLUMNS, channels=["temp", "nevér;1", "pulse"])
    streams.to_frame(polars).write_parquet(tmp_path / "long.parquet")
    assert Streams.from_parquet(tmp_path / "long.parquet") == streams
    assert all_streams(scan(open_table(tmp_path / "long.parquet"), Layout.long())) == streams


def test_terms_and_options_of_files(tmp_path):
    frame = polars.DataFrame(
        {
            "series": [7, 7, 7, 8],
            "time": [1.0, 0.0, 0.0, 2.0],
            "channel": ["a", "a", "b", "b"],
            "value": [3.0, 1.0, 2.0, None],
            "area": [None, None, 0.5, None],
        }
    )
    shared = {"sort": True, "empty": Drop(), "horizon": {7: 4.0, 8: 9.0}}
    expected = Streams.from_frame(frame, terms={"area": ("a", "b")}, **shared)
    for name, read in (("a.csv", Streams.from_csv), ("a.parquet", Streams.from_parquet)):
        path = written(frame, tmp_path / name)
        assert read(path, terms={"area": ("a", "b")}, **shared) == expected
        assert read(path, schema=expected.schema, **shared) == expected


def test_from_csv_reads_datetimes_in_iso_8601(tmp_path):
    path = Path(tmp_path, "long.csv")
    path.write_text(
        "series,time,channel,value\n1,2024-01-01T00:00:00,a,1.5\n1,2024-01-01T06:30:00,a,\n1,2024-01-01T12:00:00,b,2\n"
    )
    streams = Streams.from_csv(path)
    assert streams.times.tolist() == [0.0, 12.0]
    assert streams.schema.clock.show(12.0) == "2024-01-01T12:00:00"
    path.write_text("series,time,channel,value\n1,noon,a,1.5\n")
    with pytest.raises(StreamError, match=r"'time' is text such as 'noon'.* ISO 8601"):
        Streams.from_csv(path)


def test_files_of_any_name(tmp_path):
    frame = polars.DataFrame(ROWS)
    expected = Streams.from_frame(frame, **COLUMNS)
    frame.write_csv(tmp_path / "table.dat")
    assert Streams.from_csv(tmp_path / "table.dat", **COLUMNS) == expected
    with pytest.raises(TableError, match="is not a Parquet file"):
        Streams.from_parquet(tmp_path / "table.dat", **COLUMNS)
    frame.write_parquet(tmp_path / "table.dat")
    assert Streams.from_parquet(tmp_path / "table.dat", **COLUMNS) == expected


def test_true_and_false_are_numbers(tmp_path):
    frame = polars.DataFrame({"time": [0.0, 1.0, 2.0], "channel": ["a"] * 3, "value": [True, None, False]})
    for name, read in (("a.csv", Streams.from_csv), ("a.parquet", Streams.from_parquet)):
        assert read(written(frame, tmp_path / name), series=None).value.tolist() == [1.0, 0.0]


def test_columns_that_a_file_lacks(tmp_path):
    path = written(polars.DataFrame(ROWS), tmp_path / "a.csv")
    with pytest.raises(TableError, match=r"a.csv: There is no column 'hour'. Did you mean 'hours'\?"):
        Streams.from_csv(path, **COLUMNS | {"time": "hour"})


def test_separators_and_compression_of_csv(tmp_path):
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
        ("a.csv", "id,t,na\u00efve,x\n".encode("latin-1"), "it is not text in UTF-8. Convert it to UTF-8."),
        (
            "a.csv",
            b"id,t,name,x\np,0,a,1\nq" + bytes(9_000_000) + b",0,a,1\n",
            "one of its lines is too long to be a row.",
        ),
        ("a.csv", b"x" * (LONGEST_HEADER + 1), "has a first line of more than 16,777,216 bytes"),
        (
            "a.csv.gz",
            gzip.compress(bytes(LONGEST_HEADER + 1), mtime=0),
            "has a first line of more than 16,777,216 bytes",
        ),
        ("a.csv.gz", gzip.compress(b"id,t,name,x\n", mtime=0)[:20], "cannot be decompressed: "),
        ("a.csv.gz", gzip.compress(b"id,t,name,x\n", mtime=0)[:10] + b"\xff" * 20, "cannot be decompressed: "),
    ],
)
def test_files_that_are_not_tables_are_refused(tmp_path, name, content, said):
    Path(tmp_path, name).write_bytes(content)
    with pytest.raises(TableError) as caught:
        scan(open_table(tmp_path / name), LONG)
    assert said in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_files_that_cannot_be_opened_are_refused(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(TableError, match="No such file or directory"):
        open_table(tmp_path / "none.parquet")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zeros.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zeros.csv"):
        with pytest.raises(TableError, match="is not a regular file"):
            open_table(tmp_path / name)

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TableError, match="Permission denied. Is the name right, and may you read it"):
        open_table(tmp_path / "mine.parquet")


def test_missing_pyarrow_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    for read in (open_table, Streams.from_parquet, Streams.from_csv):
        with pytest.raises(TableError, match='pip install "logcde\\[frames\\]"'):
            read(tmp_path / "a.parquet")


def test_types_of_text_fit_the_whole_column(tmp_path):
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


def test_datetimes_in_text_keep_zone_and_resolution(tmp_path):
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
def test_stamps_of_different_types_are_refused(tmp_path, stamps, said):
    with pytest.raises(StreamError) as caught:
        scan(csv(tmp_path, *(f"p,{stamp},a,1" for stamp in stamps)), LONG)
    assert said in str(caught.value)
    frame = polars.DataFrame({"id": ["p", "p"], "t": stamps, "name": ["a", "a"], "x": [1.0, 2.0]})
    with pytest.raises(StreamError) as caught:
        scan(open_table(written(frame, tmp_path / "a.parquet")), LONG, rows=1)
    assert said in str(caught.value)


@pytest.mark.parametrize(("epoch", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_epoch_turns_numbers_into_datetimes(tmp_path, epoch, scale):
    whole = csv(tmp_path, f"p,{1_700_000_000 * scale},a,1", f"p,{1_700_003_600 * scale},a,2")
    streams = all_streams(scan(whole, LONG, epoch=epoch))
    assert streams.times.tolist() == [0.0, 1.0]
    assert streams.schema.clock.show(0.0) == "2023-11-14T22:13:20"
    parts = csv(tmp_path, f"p,{1_700_000_000.5 * scale:.3f},a,1", f"p,{1_700_003_600.5 * scale:.3f},a,2")
    assert all_streams(scan(parts, LONG, epoch=epoch)).times.tolist() == [0.0, 1.0]
    with pytest.raises(StreamError, match="only numbers count since 1970"):
        scan(csv(tmp_path, "p,2024-01-01,a,1"), LONG, epoch=epoch)


@pytest.mark.parametrize("first", ["0", "0.5"])
@pytest.mark.parametrize("large", [2**60 + 1, 2**63 + 5])
def test_stamps_that_floats_cannot_hold_are_refused(tmp_path, first, large):
    file = tmp_path / "a.csv"
    file.write_text(f"series,time,channel,value\n0,{first},a,1\n0,{large},a,2\n")
    with pytest.raises(StreamError, match=f"{large}, too large for float64 to hold exactly"):
        Streams.from_csv(file)
    file.write_text(f"series,time,channel,value\n0,{first},a,1\n0,1e17,a,2\n")
    assert Streams.from_csv(file).times[-1] == 1e17

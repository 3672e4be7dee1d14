"""`logcde embed`: the log-signatures of the library in a file of any form, or an error message and no file."""

import errno
import re
from datetime import datetime, timedelta

import numpy as np
import polars
import pytest

from logcde import Embedding, Partition, Streams
from logcde.cli.output import OutputTable
from logcde.features import LogSignatureFeatures, WindowFeatures
from tests.cli.tables import COLUMNS, long, run, table, write

INTERVALS = ("--intervals", 3)


def embed(folder, frame, *arguments, name="a.parquet", out="out.parquet", columns=COLUMNS):
    return run("embed", write(frame, folder / name), *columns, *arguments, "-o", folder / out)


def read(file):
    return polars.read_csv(file) if file.suffix == ".csv" else polars.read_parquet(file)


def flat(logsigs):
    """Features without padding, one row for each interval."""
    values = np.asarray(logsigs.values)
    return np.concatenate([values[series, :length] for series, length in enumerate(logsigs.lengths)])


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize(
    ("options", "partition"),
    [
        (("--every", 5), Partition.every(5.0)),
        (INTERVALS, Partition.uniform(3)),
        (("--events", 2), Partition.every_events(2)),
        ((), Partition.uniform(1)),
    ],
    ids=["every", "intervals", "events", "whole"],
)
def test_small_pieces_match_in_memory_embedding(tmp_path, scattered, options, partition):
    frame = long()
    frame = frame.sort("t", maintain_order=True) if scattered else frame
    assert embed(tmp_path, frame, *options, "--rows", 3) == 0
    streams = Streams.from_frame(frame, "id", "t", "name", "x")
    logsigs, cuts = Embedding()(streams, partition), partition.cuts(streams)
    made = read(tmp_path / "out.parquet")
    assert made.columns == ["id", "start", "stop", *logsigs.basis.labels]
    np.testing.assert_array_equal(made[:, 3:].to_numpy(), flat(logsigs))
    assert made["id"].to_list() == np.repeat(streams.ids, logsigs.lengths).tolist()
    first = np.delete(np.arange(len(cuts.points)), cuts.offsets[1:] - 1)
    assert made["start"].to_list() == cuts.points[first].tolist()
    assert made["stop"].to_list() == cuts.points[first + 1].tolist()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "out.parquet"]


def test_any_number_of_rows_in_memory(tmp_path):
    assert embed(tmp_path, long(), "--rows", 10**30, *INTERVALS) == 0


def test_embedding_options(tmp_path):
    frame = long()
    options = ("--depth", 1, "--no-counts", "--no-time", "--precision", "float32", "--horizon", 200, *INTERVALS)
    assert embed(tmp_path, frame, *options, name="a.csv", out="out.csv") == 0
    streams = Streams.from_frame(frame, "id", "t", "name", "x", horizon=200.0)
    logsigs = Embedding(1, counts=False, time=False, dtype=np.float32)(streams, Partition.uniform(3))
    made = read(tmp_path / "out.csv")
    assert made.columns == ["id", "start", "stop", "pulse", "temp"]
    np.testing.assert_array_equal(made[:, 3:].to_numpy().astype(np.float32), flat(logsigs))
    assert embed(tmp_path, frame, "--roughness", "--depth", 1) == 0
    rough = Embedding(1, roughness=True)(Streams.from_frame(frame, "id", "t", "name", "x"), Partition.uniform(1))
    made = read(tmp_path / "out.parquet")
    assert made.columns[3:] == ["pulse", "temp", "#pulse", "#temp", "~pulse", "~temp", "time"]
    np.testing.assert_array_equal(made[:, 3:].to_numpy(), flat(rough))
    assert embed(tmp_path, frame, "--precision", "float32") == 0
    assert read(tmp_path / "out.parquet").dtypes[3:5] == [polars.Float32] * 2


@pytest.mark.parametrize(
    ("stamps", "every", "kind"),
    [
        ([datetime(2024, 1, 1), datetime(2024, 1, 1, 3)], "90min", polars.Datetime("us")),
        ([timedelta(0), timedelta(hours=3)], "1.5", polars.Duration("us")),
    ],
)
def test_stamps_keep_their_type(tmp_path, stamps, every, kind):
    frame = table(*(("p", stamp, "a", 1.0) for stamp in stamps))
    assert embed(tmp_path, frame, "--every", every) == 0
    made = read(tmp_path / "out.parquet")
    assert made["start"].dtype == kind
    assert made["start"].to_list() == [stamps[0], stamps[0] + timedelta(minutes=90)]
    assert made["stop"].to_list()[-1] == stamps[1]
    assert embed(tmp_path, frame, "--every", every, out="out.csv") == 0


def test_calendar_in_time_zone_and_origin_first(tmp_path):
    frame = table(("p", "2024-01-01T12:00+01:00", "a", 1.0), ("q", "2024-01-02T10:00+01:00", "a", 2.0))
    assert embed(tmp_path, frame, "--calendar", "day") == 0
    made = read(tmp_path / "out.parquet")
    assert made["stop"].dt.hour().to_list() == [0, 10] * 2
    frame = table(("p", "2024-01-01", "a", 1.0), ("p", "2024-01-03", "a", 1.0), ("q", "2024-02-01", "a", 2.0))
    assert embed(tmp_path, frame, "--origin", "first", "--every", "1d") == 0
    assert read(tmp_path / "out.parquet")["start"].dt.day().to_list() == [1, 2, 1, 2]


def test_at_query_times(tmp_path):
    frame, queries = long(), polars.DataFrame({"id": ["p2", "p0", "p2"], "t": [9, 4, 3]})
    assert embed(tmp_path, frame, "--at", write(queries, tmp_path / "q.csv"), "--rows", 3) == 0
    made = read(tmp_path / "out.parquet")
    assert made[:, :3].rows() == [("p0", 0.0, 4.0), ("p2", 0.0, 3.0), ("p2", 3.0, 9.0)]
    streams = Streams.from_frame(frame, "id", "t", "name", "x")[[0, 2]]
    logsigs = Embedding()(streams, Partition.at([[0.0, 4.0], [0.0, 3.0, 9.0]], partial=True))
    np.testing.assert_array_equal(made[:, 3:].to_numpy(), flat(logsigs))
    assert embed(tmp_path, frame, "--at", write(queries.select("t").sort("t"), tmp_path / "q.parquet")) == 0
    assert len(read(tmp_path / "out.parquet")) == 6 * 3


def test_wide_table_of_one_series(tmp_path):
    frame = polars.DataFrame({"time": [0.0, 1.0, 2.0], "a": [1.0, 1.0, 1.0], "b": [None, None, None]})
    frame = frame.cast({"b": polars.Float64})
    assert embed(tmp_path, frame, "--single", columns=()) == 0
    made = read(tmp_path / "out.parquet")
    assert made.select("series", "a", "#a", "b", "#b", "time").rows() == [(0, 1.0, 3.0, 0.0, 0.0, 2.0)]


ONE = table(("p", 0.0, "a", 1.0), ("p", 1.0, "a", 2.0))


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (ONE, ("--value", "xx"), "There is no column 'xx'. Did you mean 'x'? The columns are 'id', 't', 'name', 'x'."),
        (ONE, ("--series", "who"), "with --series, or pass --single if all rows are one series."),
        (ONE, ("--channel", "x"), "The column 'x' is named for two purposes."),
        (ONE, ("--value", "name"), "The column 'name' has values of type"),
        (ONE, ("--every", 1, "--events", 2), "--every and --events exclude each other."),
        (ONE, ("--every", "1h"), "--every is '1h', but the stamps are plain numbers"),
        (ONE, ("--every", "often"), "--every is 'often'. Give a positive number and one of us, ms, s, min, h, d, w"),
        (ONE, ("--every", "1e-9"), "would have 1,000,000,000 intervals"),
        (ONE, ("--every", "1e-300"), "Choose longer ones; or if the stamps count from 1970"),
        (ONE, ("--every", "-1"), "must be positive and finite"),
        (ONE, ("--unit", "99999999999d"), "--unit is '99999999999d', which is too long. Give at most 999999999d."),
        (ONE, ("--rows", -1), "--rows is -1. Give at least 1."),
        (ONE, ("--rows", 0), "--rows is 0. Give at least 1."),
        (ONE, ("--intervals", 10**9), "would have 1,000,000,000 intervals from 0 to 1, of at most 10,000,000. Choose"),
        (ONE, ("--horizon", "later"), "--horizon is 'later'. Give a number, a duration such as 90min, or a datetime"),
        (ONE, ("--horizon", "1h"), "--horizon is '1h', but the stamps are plain numbers."),
        (ONE, ("--horizon", 0.5), "Give a later --horizon, or leave it out."),
        (ONE, ("--unit", "1min"), "A unit was given, but the stamps are plain numbers"),
        (ONE, ("--origin", "2024-01-01"), "is not a finite number. Stamps that are plain numbers count from such"),
        (ONE, ("--origin", "5"), "Subtract the first stamp, or give an earlier --origin."),
        (ONE, ("--origin", "5min"), '--origin is \'5min\'. Give "earliest", "first", a datetime'),
        (ONE, ("--depth", 0), "The depth is 0."),
        (ONE, ("--depth", 99), "far too many coordinates"),
        (ONE, ("--calendar", "day"), "Use --every, or a table with datetimes."),
        (table(("p", 0.0, "start", 1.0), ("p", 1.0, "start", 1.0)), (), "two columns named 'start'"),
        (table(("p", 0.0, "a", 1.0)), (), "Pass --horizon."),
        (table(("p", 0.0, "a", None)), (), "There is no observation at all"),
        (table(("p", 1.0, "a", 1.0), ("p", 0.0, "a", 1.0)), (), "Sort the rows by time, or pass --sort."),
        (table(("p", 1.0, "a", 1.0), ("p", 1.0, "a", 2.0)), (), "pass --duplicates last or --duplicates mean."),
        (table(("p", 1.0, "a", 1.0), ("q", 1.0, "a", None)), (), "Leave it out, or pass --drop-empty"),
        (table(("p", 1.0, "a", float("inf"))), (), "has the infinite value inf"),
        (table(("p", float("inf"), "a", 1.0), ("q", 1.0, "a", 1.0)), (), "has an infinite stamp"),
        (table(("p", 10**18, "a", 1.0)), (), "convert them to datetimes with --epoch"),
        (table(("p", -1.0, "a", 1.0), ("p", 1.0, "a", 1.0)), (), "lies outside [0.0, 1.0]"),
        (table(("p", "noon", "a", 1.0)), (), "text such as 'noon'"),
        (table(("p", 1.0, "time", 1.0)), (), "The channel name 'time' is taken"),
        (table(*(("p", 1.0, f"c{k}", 1.0) for k in range(300))), (), "180,901 coordinates"),
    ],
)
def test_error_messages(tmp_path, frame, options, said):
    message = embed(tmp_path, frame, *options)
    assert str(message).startswith("logcde: ")
    assert said in message
    assert message.endswith((".", "?"))
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


HUGE = table(
    ("p", 0.0, "a", 1.0), ("q", 0.0, "a", 1e200), ("q", 0.5, "b", 1e200), ("q", 1.0, "a", -1e200), ("q", 3.0, "a", 1.0)
)


@pytest.mark.parametrize(
    ("options", "place", "coordinate"),
    [
        (("--intervals", 2), "Series 'q', interval from 0.0 to 1.5", "the coordinate '[a, b]' is inf in float64"),
        (
            ("--depth", 1, "--precision", "float32"),
            "Series 'q', interval from 0.0 to 3.0",
            "the coordinate 'b' is inf in float32",
        ),
    ],
    ids=["areas", "single"],
)
@pytest.mark.parametrize("out", ["out.parquet", "out.csv", "out.jsonl"])
def test_infinite_coordinates_are_refused(tmp_path, options, place, coordinate, out):
    message = embed(tmp_path, HUGE, *options, out=out)
    assert message.startswith(f"logcde: {place}: ")
    assert coordinate in message
    single = "leave such rows out, or choose --precision float64."
    assert message.endswith(f"Scale the values, {single if 'float32' in options else 'or leave such rows out.'}")
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("features", ["windows", "logsigs"])
def test_features_of_values_without_a_scale_are_refused(tmp_path, features):
    message = embed(tmp_path, HUGE, "--features", features)
    assert "The values of channel 'a' go from -1e+200 to 1e+200, too large for a scale of theirs in float64." in message
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_too_many_coordinates_are_refused_early():
    from logcde.cli.embed import checked_coordinates
    from logcde.errors import EmbeddingError
    from logcde.streams import Schema

    schema = Schema(tuple(map(str, range(200_000))))
    with pytest.raises(
        EmbeddingError, match="80,000,600,001 coordinates at depth 2; .* Choose fewer channels, or --no-counts"
    ):
        checked_coordinates(Embedding(), schema)
    with pytest.raises(EmbeddingError, match="400,001 coordinates"):
        checked_coordinates(Embedding(depth=1), schema)
    assert checked_coordinates(Embedding(depth=1), Schema(("a",))).letters == ("a", "#a", "time")


def test_query_time_errors(tmp_path):
    frame, query = ONE, tmp_path / "q.csv"

    def asked(text):
        query.write_text(text)
        return embed(tmp_path, frame, "--at", query)

    assert "query times of the series 'q', which is not in" in asked("id,t\nq,1\n")
    assert "There is no column 't'. Did you mean 'tt'?" in asked("id,tt\np,1\n")
    assert "Row 1 of" in asked("id,t\np,1\np,\n")
    assert "has no rows" in asked("id,t\n")
    assert "Give a later --horizon" in asked("id,t\np,5\n")
    assert not (tmp_path / "out.parquet").exists()


def test_unwritable_output(tmp_path, monkeypatch):
    assert "ends in none of .parquet, .csv and .jsonl" in embed(tmp_path, ONE, out="out.txt")
    assert "is the input table" in embed(tmp_path, ONE, out="a.parquet")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in embed(tmp_path, ONE, out="folder.csv")

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("logcde._files.secrets.token_hex", refuse)
    assert "cannot be written: Permission denied. Nothing was left behind." in embed(tmp_path, ONE)


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "cannot be written: No space left on device."),
        (KeyboardInterrupt(), 130),
    ],
    ids=["full", "interrupted"],
)
def test_failure_leaves_no_files(tmp_path, monkeypatch, stop, said, scattered, capsys):
    frame = long()
    frame = frame.sort("t") if scattered else frame
    (tmp_path / "out.parquet").write_text("what was there before")
    write = OutputTable.write

    def second(output, made):
        if output.rows:
            raise stop
        write(output, made)

    monkeypatch.setattr(OutputTable, "write", second)
    message = embed(tmp_path, frame, "--rows", 3)
    assert message == said or said in str(message)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "out.parquet"]
    assert (tmp_path / "out.parquet").read_text() == "what was there before"


def test_full_disk_for_temporary_files(tmp_path, monkeypatch):
    import pyarrow

    class Full:
        def __init__(self, *arguments):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *arguments):
            raise OSError(errno.ENOSPC, "No space left on device")

        def write_table(self, made):
            pass

    monkeypatch.setattr(pyarrow.ipc, "new_stream", Full)
    message = embed(tmp_path, long().sort("t"), "--rows", 3)
    assert "gathering them in temporary files" in message
    assert "No space left on device. Make room there, or sort the table by series." in message
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(
    ("options", "features"),
    [
        (("windows",), WindowFeatures(units=0)),
        (("windows", "--units", 5, "--windows", 6), WindowFeatures(units=5, windows=6)),
        (("logsigs",), LogSignatureFeatures()),
        (("logsigs", "--parts", 1, 3, "--depth", 1, "--no-counts"), LogSignatureFeatures(Embedding(1, False), (1, 3))),
    ],
    ids=["statistics", "units", "logsigs", "options"],
)
@pytest.mark.parametrize("name", ["a.parquet", "wide.parquet"])
@pytest.mark.parametrize("out", ["out.parquet", "out.csv"])
def test_features_match_the_library(tmp_path, options, features, name, out):
    frame, columns, streams = long(), COLUMNS, Streams.from_frame(long(), "id", "t", "name", "x")
    if name == "wide.parquet":
        frame, columns = frame.pivot("name", index=["id", "t"], values="x"), ("--series", "id", "--time", "t")
    assert embed(tmp_path, frame, "--features", *options, name=name, out=out, columns=columns) == 0
    fitted, made = features.fit(streams), read(tmp_path / out)
    assert made.columns == ["id", *fitted.names]
    assert made["id"].to_list() == streams.ids.tolist()
    np.testing.assert_allclose(made[:, 1:].to_numpy(), fitted(streams), rtol=1e-6, atol=1e-6)


def test_features_of_a_large_table_are_fitted_to_its_first_series(tmp_path):
    assert embed(tmp_path, long(), "--features", "windows", "--rows", 3) == 0
    streams = Streams.from_frame(long(), "id", "t", "name", "x")
    made = read(tmp_path / "out.parquet")
    np.testing.assert_array_equal(made[:, 1:].to_numpy(), WindowFeatures(units=0).fit(streams[:1])(streams))


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--features", "windows", "--every", 5), r"--every makes query intervals.*Leave out --every or --features"),
        (("--features", "logsigs", "--units", 5), r"--units is an option of --features windows"),
        (("--features", "windows", "--parts", 2), r"--parts is an option of --features logsigs"),
        (("--windows", 5), r"--windows is an option of --features windows"),
        (("--features", "windows", "--depth", 3), r"no log-signatures.*choose --features logsigs"),
        (("--features", "windows", "--windows", 0), r"windows=0.* whole number of at least 1"),
        (("--features", "logsigs", "--parts", 0), r"scales is 0"),
        (("--features", "logsigs", "--parts", 10**9), r"columns; a table can have 100,000"),
        (("--features", "windows", "--units", 10**8), r"300,000,000 columns; a table can have 100,000"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, options, found):
    assert re.search(found, str(embed(tmp_path, long(), *options)))
    assert not (tmp_path / "out.parquet").exists()

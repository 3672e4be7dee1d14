"""Paths, URLs, folders and patterns of tables."""

from pathlib import Path

import polars
import pytest

from logcde.errors import TableError
from logcde.streams.files import open_table, open_tables
from logcde.streams.locations import Remote, identity, is_many, location, tables_at

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory(request):
    """A folder of the file system in memory, which all tests share."""
    url = f"memory://{request.node.name}"
    yield url
    fsspec.filesystem("memory").rm(f"/{request.node.name}", recursive=True)


def test_paths_and_urls_are_told_apart():
    assert location("a/b.csv") == Path("a/b.csv")
    assert location("C:/b.csv") == Path("C:/b.csv")
    assert (
        location(Path("s3://bucket/a.parquet")) == location("s3://bucket/a.parquet") == Remote("s3://bucket/a.parquet")
    )
    assert location("file:///a/b.csv") == location(Path("file:///a/b.csv")) == Path("/a/b.csv")
    assert (Remote("gs://b/v/") / "a.csv.gz").url == "gs://b/v/a.csv.gz"


def test_a_folder_stands_for_the_tables_below_it(tmp_path):
    for name in ("b.parquet", "a.csv", "deep/c.tsv", "deep/d.csv.gz", ".hidden.csv", "_skipped/e.csv", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [file.relative_to(tmp_path).as_posix() for file in tables_at(tmp_path)]
    assert found == ["a.csv", "b.parquet", "deep/c.tsv", "deep/d.csv.gz"]
    assert [file.name for file in tables_at(tmp_path / "**" / "?.tsv")] == ["c.tsv"]
    with pytest.raises(TableError, match="No file matches"):
        tables_at(tmp_path / "*.arrow")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path):
    (tmp_path / "a[1].csv").write_text("id,x\n1,2\n")
    assert not is_many(tmp_path / "a[1].csv")
    assert tables_at(tmp_path / "a[1].csv") == [tmp_path / "a[1].csv"]


def test_urls_are_listed_and_read(memory):
    system = fsspec.filesystem("memory")
    frame = polars.DataFrame({"id": ["p", "q"], "x": [1.0, 2.5]})
    for name in ("b.parquet", "a.parquet", "more/c.csv.gz"):
        system.makedirs(f"{memory}/more", exist_ok=True)
        with system.open(f"{memory}/{name}", "wb") as file:
            frame.write_parquet(file) if name.endswith("parquet") else file.write(_gzipped(frame.write_csv()))
    assert [one.name for one in tables_at(memory)] == ["a.parquet", "b.parquet", "c.csv.gz"]
    assert [one.name for one in tables_at(f"{memory}/[ab].*")] == ["a.parquet", "b.parquet"]
    assert is_many(memory)
    for name in ("a.parquet", "more/c.csv.gz"):
        (piece,) = open_table(f"{memory}/{name}").pieces(["id", "x"], ["x"])
        assert piece["x"].to_pylist() == [1.0, 2.5]
    assert open_tables(f"{memory}/*.parquet").rows == 4
    name, size, tag = identity(location(f"{memory}/a.parquet"))
    assert name.endswith("/a.parquet")
    assert size > 0
    assert tag
    with pytest.raises(TableError, match="cannot be read"):
        open_table(f"{memory}/missing.parquet")


def _gzipped(text):
    import gzip

    return gzip.compress(text.encode())


def test_tables_that_differ_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\np,1\n")
    (tmp_path / "b.csv").write_text("id,y\np,1\n")
    with pytest.raises(TableError, match=r"a.csv has a column 'x', which .*b.csv does not have"):
        open_tables(tmp_path)
    (tmp_path / "b.csv").unlink()
    polars.DataFrame({"id": ["p"], "x": [1.0]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(TableError, match=r"a.csv is CSV, but .*b.parquet is Parquet"):
        open_tables(tmp_path)
    (tmp_path / "a.csv").unlink()
    polars.DataFrame({"id": ["p"], "x": ["high"]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(TableError, match=r"The column 'x' is of type double in .*, but of type large_string"):
        open_tables(tmp_path)


def test_types_that_hold_the_same_are_joined(tmp_path):
    for name, dtype in (("a", polars.Int32), ("b", polars.Float64)):
        polars.DataFrame({"id": ["p"], "x": [1]}, schema={"id": polars.String, "x": dtype}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    table = open_tables(tmp_path)
    assert [piece["x"].type for piece in table.pieces(["x"], ["x"])] == [table.types["x"]] * 2

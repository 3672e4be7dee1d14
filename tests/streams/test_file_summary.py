"""Summaries of files merge into that of the whole, in any grouping."""

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import TableError
from logcde.streams.file_scan import scan
from logcde.streams.file_summary import Layout, check_whole, is_crossed, merged, settled, summarise
from logcde.streams.files import open_table, open_tables
from logcde.streams.ingest import ReadOptions

LAYOUT = Layout.long("id", "t", "name", "x")


def same(one, other):
    """Whether two summaries say the same."""
    assert list(one.numbers.items()) == list(other.numbers.items())
    assert (one.rows, one.missing, one.categories) == (other.rows, other.missing, other.categories)
    assert one.stamps.array.dtype == other.stamps.array.dtype
    for field in ("sizes", "first", "last", "low", "high"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


def written(folder, rows, files, stamps=float):
    """Rows of a long table, cut into files; returns the summary of each."""
    rows = [(f"p{who}", stamps(time), name, value) for who, time, name, value in rows]
    cuts = np.array_split(np.arange(len(rows)), files)
    for number, cut in enumerate(cuts):
        frame = polars.DataFrame([rows[row] for row in cut], schema=["id", "t", "name", "x"], orient="row")
        frame.write_parquet(folder / f"{number}.parquet")
    return [summarise(open_table(folder / f"{number}.parquet"), LAYOUT) for number in range(files)]


ROWS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 9), st.sampled_from("abc"), st.floats(-5, 5)), min_size=4, max_size=20
)


@settings(max_examples=25)
@given(rows=ROWS)
def test_merging_is_associative_and_equals_a_scan_of_the_whole(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("parts")
    a, b, c, d = written(folder, rows, 4)
    whole = merged([a, b, c, d])
    same(merged([merged([a, b]), merged([c, d])]), whole)
    same(merged([a, merged([b, merged([c, d])])]), whole)
    found = scan(open_tables(folder), LAYOUT)
    assert found.numbers == whole.numbers
    np.testing.assert_array_equal(found.first, whole.first)
    np.testing.assert_array_equal(found.sizes, whole.sizes)
    assert settled(whole, LAYOUT, ReadOptions()) == found.options


def test_text_that_was_taken_for_numbers_becomes_text_again(tmp_path):
    for name, rows in (("a", "1,0,7,1\n2,5,8,2\n"), ("b", "p,2.5,x,1\n1,9,7,3\n")):
        (tmp_path / f"{name}.csv").write_text(f"id,t,name,x\n{rows}")
    each = [summarise(open_table(tmp_path / f"{name}.csv"), LAYOUT) for name in "ab"]
    whole, found = merged(each), scan(open_tables(tmp_path), LAYOUT)
    assert whole.numbers == found.numbers == {"1": 0, "2": 1, "p": 2}
    assert settled(whole, LAYOUT, ReadOptions()) == found.options
    assert whole.texts._candidates == found.texts._candidates


def test_stamps_take_the_finest_resolution(tmp_path):
    from datetime import datetime

    stamps = {"a": "us", "b": "ns", "c": "ms"}
    for number, (name, unit) in enumerate(stamps.items()):
        frame = polars.DataFrame({"id": ["p"], "t": [datetime(2024, 1, 1 + number)], "name": ["a"], "x": [1.0]})
        frame.with_columns(polars.col("t").cast(polars.Datetime(unit))).write_parquet(tmp_path / f"{name}.parquet")
    each = [summarise(open_table(tmp_path / f"{name}.parquet"), LAYOUT) for name in stamps]
    options = settled(merged(each), LAYOUT, ReadOptions())
    assert options == scan(open_tables(tmp_path), LAYOUT).options
    assert options.horizon == 48.0


def test_stamps_that_differ_are_refused(tmp_path):
    from datetime import datetime

    (one,) = written(tmp_path, [(0, 0, "a", 1.0)], 1)
    (other,) = written(tmp_path, [(0, 0, "a", 1.0)], 1, lambda day: datetime(2024, 1, 1 + day))
    with pytest.raises(TableError, match=r"The stamps are numbers in .*, but datetimes in .*. Make all stamps alike"):
        merged([one, other])


def test_labels_of_two_types_are_refused_where_the_files_have_types(tmp_path):
    for name, who in (("a", "p"), ("b", 1)):
        polars.DataFrame({"id": [who], "t": [0.0], "name": ["a"], "x": [1.0]}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    each = [summarise(open_table(tmp_path / f"{name}.parquet"), LAYOUT) for name in "ab"]
    with pytest.raises(TableError, match=r"has the label 'p', which is text, and .*b.parquet has 1, which is a number"):
        merged(each)


def test_series_that_cross_files_are_found(tmp_path):
    each = written(tmp_path, [(0, 0, "a", 1.0), (1, 0, "a", 1.0), (1, 1, "a", 1.0), (2, 0, "a", 1.0)], 2)
    assert is_crossed(each)
    assert not is_crossed(each[:1])
    with pytest.raises(
        TableError, match=r"Series 'p1' is in .*0.parquet and in .*1.parquet, but every series was said"
    ):
        check_whole(each)

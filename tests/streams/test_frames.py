"""Data frames of every library, and the order of series and channels."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from logcde.errors import StreamError
from logcde.streams import Drop, Schema, Streams

ROWS = {
    "patient": ["q", "p", "q", "p"],
    "hours": [0.0, 1.0, 2.0, 3.0],
    "vital": ["pulse", "temp", "pulse", "pulse"],
    "x": [60.0, 37.2, None, 61.0],
}
COLUMNS = {"series": "patient", "time": "hours", "channel": "vital", "value": "x"}


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame(ROWS),
        pandas.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow"),
        pandas.DataFrame(ROWS).astype({"vital": "category", "patient": "category"}),
        pandas.DataFrame(ROWS).astype({"vital": object, "patient": object}),
        polars.DataFrame(ROWS),
        polars.DataFrame(ROWS).lazy(),
        polars.DataFrame(ROWS).cast({"vital": polars.Categorical}),
        polars.concat([polars.DataFrame(ROWS)[:1], polars.DataFrame(ROWS)[1:]], rechunk=False),
        pyarrow.table(ROWS),
        pyarrow.concat_tables([pyarrow.table(ROWS)[:2], pyarrow.table(ROWS)[2:]]),
    ],
    ids=[
        "pandas",
        "pandas-arrow",
        "category",
        "object",
        "polars",
        "lazy",
        "categorical",
        "chunks",
        "arrow",
        "arrow-chunks",
    ],
)
def test_from_frame_of_every_library(frame):
    streams = Streams.from_frame(frame, **COLUMNS)
    assert streams.schema == Schema(("pulse", "temp"))
    assert streams.ids.tolist() == ["q", "p"]
    assert streams.offsets.tolist() == [0, 1, 3]
    assert streams.times.tolist() == [0.0, 1.0, 3.0]
    assert streams.channel.tolist() == [0, 1, 0]
    assert streams.value.tolist() == [60.0, 37.2, 61.0]
    assert streams.horizon.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
def test_whole_number_ids_keep_their_type(dtype):
    ids = np.array([7, 3, 7, 5], dtype)
    frame = polars.DataFrame({**ROWS, "patient": ids}).drop_nulls()
    streams = Streams.from_frame(frame, **COLUMNS)
    assert streams.ids.dtype == dtype
    assert streams.ids.tolist() == [7, 3, 5]
    assert Streams.from_frame(streams.to_frame(pandas)) == streams


def test_order_of_channels():
    frame = polars.DataFrame(ROWS)
    assert Streams.from_frame(frame, **COLUMNS, channels=["temp", "never", "pulse"]).channel.tolist() == [2, 0, 2]
    enum = frame.cast({"vital": polars.Enum(["temp", "never", "pulse"])})
    assert Streams.from_frame(enum, **COLUMNS).schema.channels == ("temp", "never", "pulse")
    ordered = pandas.Categorical(ROWS["vital"], categories=["temp", "pulse"], ordered=True)
    assert Streams.from_frame(pandas.DataFrame({**ROWS, "vital": ordered}), **COLUMNS).schema.channels == (
        "temp",
        "pulse",
    )
    numbered = frame.with_columns(vital=polars.Series([2, 10, 2, 2]))
    assert Streams.from_frame(numbered, **COLUMNS).schema.channels == ("2", "10")


def test_one_series_without_ids():
    frame = polars.DataFrame({"time": [0, 1], "channel": ["a", "a"], "value": [1, 2]})
    streams = Streams.from_frame(frame, series=None)
    assert streams.ids.tolist() == [0]
    assert streams.value.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_from_wide_of_every_library(make):
    table = {"id": [1, 1, 2], "t": [0, 1, 0], "a": [1.0, None, 3.0], "b": [None, None, 4.0], "on": [True, None, False]}
    streams = Streams.from_wide(make(table), series="id", time="t", horizon=2)
    assert streams.schema.channels == ("a", "b", "on")
    assert streams.times.tolist() == [0.0, 0.0]
    assert streams.channel.tolist() == [0, 2, 0, 1, 2]
    assert streams.value.tolist() == [1.0, 1.0, 3.0, 4.0, 0.0]
    some = Streams.from_wide(make(table), series="id", time="t", channels=["b"], horizon=2, empty=Drop())
    assert some.ids.tolist() == [2]


def test_wide_rows_that_share_a_stamp_are_one_event():
    frame = polars.DataFrame({"time": [1.0, 1.0], "a": [1.0, None], "b": [None, 2.0]})
    assert Streams.from_wide(frame, series=None).obs_offsets.tolist() == [0, 2]


def test_frames_that_change_later_leave_streams_alone():
    frame = pandas.DataFrame({"series": [1, 1], "time": [0.0, 1.0], "channel": ["a", "a"], "value": [1.0, 2.0]})
    values, times = np.array([[1.0], [2.0]]), np.array([0.0, 1.0])
    dense = values[None].copy()
    streams = Streams.from_frame(frame)
    others = Streams.from_arrays([times], [values]), Streams.from_dense(dense, times[None])
    frame.loc[0, "value"] = 9.0
    frame.loc[1, "time"] = 9.0
    values[:], times[:], dense[:] = 9.0, 9.0, 9.0
    for made in (streams, *others):
        assert made.value.tolist() == [1.0, 2.0]
        assert made.times.tolist() == [0.0, 1.0]
        with pytest.raises(ValueError, match="read-only"):
            made.value[0] = 5.0


def test_terms_in_columns():
    frame = polars.DataFrame(
        {
            "series": [1, 1, 1],
            "time": [0.0, 0.0, 1.0],
            "channel": ["a", "b", "a"],
            "value": [1.0, 2.0, 3.0],
            "area": [None, 0.5, None],
        }
    )
    streams = Streams.from_frame(frame, terms={"area": ("a", "b")})
    assert streams.terms.tolist() == [[0.5], [0.0]]
    assert streams.to_frame()["area"].to_list() == [0.5, 0.5, 0.0]
    assert Streams.from_frame(streams.to_frame(), schema=streams.schema) == streams
    wide = polars.DataFrame({"time": [0.0, 1.0], "a": [1.0, 3.0], "b": [2.0, None], "area": [0.5, None]})
    assert Streams.from_wide(wide, series=None, terms={"area": ("a", "b")}).terms.tolist() == [[0.5], [0.0]]
    bare = polars.concat([frame, frame[:1].with_columns(value=None, area=polars.lit(0.5), channel=polars.lit("b"))])
    assert Streams.from_frame(bare, terms={"area": ("a", "b")}, sort=True) == streams


def test_to_frame_refuses_repeated_series():
    streams = Streams.from_arrays([[0.0, 1.0]] * 2, [[[1.0], [2.0]]] * 2, ids=["p", "q"])
    with pytest.raises(StreamError, match="Series 'q' is here 2 times"):
        streams[[0, 1, 1]].to_frame()

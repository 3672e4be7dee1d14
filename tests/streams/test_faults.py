"""Bad input: every error names the series, the channel and the stamp, and says what to do."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas
import polars
import pytest

from logcde.errors import Remedy, StreamError, Where
from logcde.streams import Schema, Streams, Term

NAN, INF = np.nan, np.inf


def long(*rows, **options):
    frame = polars.DataFrame(rows, schema=["series", "time", "channel", "value"], orient="row", strict=False)
    return Streams.from_frame(frame, **options)


def refused(match_all, build):
    with pytest.raises(StreamError) as caught:
        build()
    message = str(caught.value)
    for part in match_all:
        assert part in message, message
    assert message.endswith(".")


def test_stamps_that_go_back_are_refused_or_sorted():
    rows = [("p", 2.0, "a", 1.0), ("q", 5.0, "a", 1.0), ("p", 1.0, "b", 1.0), ("q", 4.0, "a", 1.0)]
    refused(("Series 'p'", "channel 'b'", "1.0", "2.0", "(and 1 more like it)", "sort=True"), lambda: long(*rows))
    assert long(*rows, sort=True).times.tolist() == [1.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("rows", "options", "remedy", "where"),
    [
        ([("p", 2.0, "a", 1.0), ("p", 1.0, "b", 1.0)], {}, Remedy.SORT, Where("p", "b", "1.0")),
        ([("p", 1.0, "a", 1.0), ("p", 1.0, "a", 2.0)], {}, Remedy.DUPLICATES, Where("p", "a", "1.0")),
        ([("p", 1.0, "a", 1.0), ("q", 1.0, "a", None)], {}, Remedy.EMPTY, Where("q")),
        ([("p", 0.0, "a", 1.0)], {}, Remedy.HORIZON, Where("p", None, "0.0")),
        ([("p", 3.0, "a", 1.0)], {"horizon": 2}, Remedy.LATER_HORIZON, Where("p", "a", "3.0")),
        ([("p", -1.0, "a", 1.0)], {}, Remedy.EARLIER_ORIGIN, Where("p", "a", "-1.0")),
        ([("p", 2.0, "c", 1.0)], {"channels": ["a"]}, Remedy.UNKNOWN_CHANNEL, Where("p", "c", 2.0)),
        ([("p", 2.0**60, "a", 1.0)], {"time": "late"}, Remedy.EPOCH, None),
    ],
)
def test_errors_carry_place_and_remedy_as_data(rows, options, remedy, where):
    frame = polars.DataFrame(rows, schema=["series", "time", "channel", "value"], orient="row", strict=False)
    frame = frame.with_columns(late=polars.lit(2**60))
    with pytest.raises(StreamError) as caught:
        Streams.from_frame(frame, **options)
    assert caught.value.remedy is remedy
    assert caught.value.where == where
    assert str(caught.value) == f"{caught.value.found} {remedy.value}"
    assert caught.value.phrased({remedy: "Pass --option."}) == f"{caught.value.found} Pass --option."


def test_rows_of_different_series_may_be_mixed():
    streams = long(("p", 0.0, "a", 1.0), ("q", 0.0, "a", 2.0), ("p", 1.0, "a", 3.0), ("q", 1.0, "a", 4.0))
    assert streams.value.tolist() == [1.0, 3.0, 2.0, 4.0]


def test_different_values_at_one_stamp_are_refused():
    rows = [("p", 1.0, "a", 1.0), ("p", 1.0, "a", 2.0)]
    parts = ("Series 'p'", "channel 'a'", "at 1.0", "1.0 and 2.0", "KeepLast()", "Average()")
    refused(parts, lambda: long(*rows))


def test_infinite_values():
    refused(
        ("Series 'p'", "channel 'b'", "at 3.0", "-inf", "(and 1 more like it)"),
        lambda: long(("p", 1.0, "a", 1.0), ("p", 3.0, "b", -INF), ("p", 4.0, "b", INF)),
    )
    refused(("Series 0", "channel 'x2'", "at 1.0", "inf"), lambda: Streams.from_dense([[[1.0, 2.0], [1.0, INF]]]))


def test_missing_and_infinite_stamps():
    refused(("Series 'p'", "channel 'a'", "2.5", "no stamp"), lambda: long(("p", 1.0, "a", 1.0), ("p", None, "a", 2.5)))
    refused(("Series 'p'", "channel 'a'", "infinite stamp"), lambda: long(("p", INF, "a", 1.0)))
    frame = pandas.DataFrame({"series": [7, 7], "time": pandas.to_datetime(["2024-01-01", None]), "x": [1.0, 2.0]})
    refused(("Series 7", "channel 'x'", "2.0", "no stamp"), lambda: Streams.from_wide(frame, channels=["x"]))


def test_unobserved_rows_need_no_stamp():
    streams = long(("p", 1.0, "a", 1.0), ("p", NAN, "a", None), ("p", 0.5, "a", NAN))
    assert streams.times.tolist() == [1.0]


def test_stamps_outside_the_horizon():
    parts = ("Series 'p'", "channel 'a'", "at 3.0", "[0.0, 2.0]", "horizon")
    refused(parts, lambda: long(("p", 1.0, "a", 1.0), ("p", 3.0, "a", 1.0), horizon=2))
    refused(
        ("Series 'q'", "at 3.0", "[0.0, 2.0]"), lambda: long(("p", 3.0, "a", 1.0), ("q", 3.0, "a", 1.0), horizon=[3, 2])
    )
    refused(("Series 'p'", "channel 'a'", "at -1.0", "Subtract"), lambda: long(("p", -1.0, "a", 1.0)))
    moments = [datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 12)]
    refused(
        ("Series 0", "2024-01-01T06:00:00", "[2024-01-01T08:00:00, 2024-01-02T08:00:00]", "earlier origin"),
        lambda: Streams.from_arrays([moments], [[[1.0], [2.0]]], origin=datetime(2024, 1, 1, 8), horizon=24),
    )


def test_datetimes_are_named_in_their_own_zone():
    paris = polars.Series(["2024-07-01T12:00"]).str.to_datetime().dt.replace_time_zone("Europe/Paris")
    frame = polars.DataFrame({"series": ["p"], "time": paris, "channel": ["a"], "value": [INF]})
    refused(("2024-07-01T12:00:00+02:00",), lambda: Streams.from_frame(frame))
    refused(
        ("at 1 day, 1:00:00",),
        lambda: Streams.from_arrays([[timedelta(0), timedelta(hours=25)]], [[[1.0], [INF]]]),
    )


def test_unknown_channels_are_refused():
    rows = [("p", 1.0, "a", 1.0), ("p", 2.0, "typo", 1.0)]
    refused(("Series 'p'", "'typo'", "at 2.0", "'a', 'b'"), lambda: long(*rows, channels=["a", "b"]))
    refused(("'typo'", "'a'"), lambda: long(*rows, schema=Schema(("a",))))
    refused(("'typo'",), lambda: Streams.from_events([("p", 1.0, {"typo": 1.0})], channels=["a"]))


def test_empty_series():
    refused(
        ("Series 'q' has no observation", "(and 1 more like it)", "empty=Drop()"),
        lambda: long(("p", 1.0, "a", 1.0), ("q", 1.0, "a", None), ("r", 1.0, "a", None)),
    )
    refused(("Series 1 has no observation",), lambda: Streams.from_arrays([[1.0], []], [[[1.0]], np.empty((0, 1))]))


def test_refused_lengths_and_shapes():
    refused(("2 series of stamps", "1 of values"), lambda: Streams.from_arrays([[1.0], [1.0]], [[[1.0]]]))
    refused(("Series 'q'", "3 stamps", "2 rows"), lambda: Streams.from_arrays([[1, 2, 3]], [[[1.0], [2.0]]], ids=["q"]))
    refused(
        ("Series 1", "2 columns", "Series 0".lower(), "1"),
        lambda: Streams.from_arrays([[1.0]] * 2, [[[1.0]], [[1.0, 2.0]]]),
    )
    refused(("Series 0".lower(), "two axes", "values[:, None]"), lambda: Streams.from_arrays([[1.0]], [[1.0]]))
    refused(("3 channel names", "1 columns"), lambda: Streams.from_arrays([[1.0]], [[[1.0]]], channels=["a", "b", "c"]))
    refused(("2 ids", "1 series"), lambda: Streams.from_arrays([[1.0]], [[[1.0]]], ids=["p", "q"]))
    refused(("three axes", "(4, 2)"), lambda: Streams.from_dense(np.zeros((4, 2))))
    refused(("stamps have shape (3,)", "4 steps"), lambda: Streams.from_dense(np.zeros((1, 4, 2)), times=[0, 1, 2]))
    refused(("There is no series",), lambda: Streams.from_arrays([], []))


def test_values_that_are_not_numbers():
    refused(
        ("Series 'p'", "channel 'a'", "at 2.0", "'<5'", "not a number"),
        lambda: Streams.from_events([("p", 1.0, {"a": 1.0}), ("p", 2.0, {"a": "<5"})]),
    )
    frame = polars.DataFrame({"series": ["p"], "time": [1.0], "channel": ["a"], "value": ["7.1"]})
    refused(("Series 'p'", "channel 'a'", "at 1.0", "'7.1'"), lambda: Streams.from_frame(frame))
    wide = pandas.DataFrame({"series": ["p", "p"], "time": [1.0, 2.0], "a": [1.0, "high"]})
    refused(("Series 'p'", "channel 'a'", "at 2.0", "'high'"), lambda: Streams.from_wide(wide))
    refused(("Series 0", "channel 'x2'", "at 5", "'n/a'"), lambda: Streams.from_arrays([[5]], [[[1.0, "n/a"]]]))
    refused(("Series 0", "channel 'x1'", "'u'"), lambda: Streams.from_dense(np.array([[["u"]]])))
    refused(("1j",), lambda: Streams.from_dense(np.array([[[1j]]])))
    refused((str(2**60), "too large"), lambda: Streams.from_dense(np.array([[[1], [2**60]]])))


def test_booleans_none_and_numpy_scalars_are_numbers():
    streams = Streams.from_arrays([[0, 1, 2]], [[[True, 1], [None, np.float32(2)], [np.int8(3), None]]])
    assert streams.value.tolist() == [1.0, 1.0, 2.0, 3.0]


def test_refused_types_of_stamps():
    refused(("'2024-01-01'", "parsed"), lambda: Streams.from_arrays([["2024-01-01"]], [[[1.0]]]))
    refused(("bool",), lambda: Streams.from_arrays([[True]], [[[1.0]]]))
    refused(
        ("mix",), lambda: Streams.from_arrays([[datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)]], [[[1.0]] * 2])
    )
    mixed = [[datetime(2024, 1, 1), 3.0]]
    refused(("3.0", "datetime"), lambda: Streams.from_arrays(mixed, [[[1.0], [2.0]]]))
    other = [np.array([0.0]), np.array([0], "timedelta64[s]")]
    refused(("Series 1", "timedelta64[s]", "float64"), lambda: Streams.from_arrays(other, [[[1.0]], [[1.0]]]))
    refused(("too large", str(2**60)), lambda: Streams.from_arrays([[0, 2**60]], [[[1.0], [2.0]]]))
    refused(("timedelta64[Y]",), lambda: Streams.from_arrays([np.array([1], "timedelta64[Y]")], [[[1.0]]]))
    nanoseconds = [pandas.Timestamp("2024-01-01T00:00:00.000000001")]
    refused(("nanoseconds", "datetime64[ns]"), lambda: Streams.from_arrays([nanoseconds], [[[1.0]]]))


def test_refused_horizons():
    row = ("p", 0.0, "a", 1.0)
    refused(("Series 'p'", "at the start", "horizon="), lambda: long(row))
    refused(("Series 'p'", "0.0", "positive"), lambda: long(row, horizon=0))
    refused(("-1.0", "positive"), lambda: long(row, horizon=-1))
    refused(("Series 'p'", "inf", "finite"), lambda: long(row, horizon=INF))
    refused(("Series 'q'", "nan"), lambda: long(row, ("q", 0.0, "a", 1.0), horizon=[1.0, NAN]))
    refused(("2 series", "3 horizons"), lambda: long(row, ("q", 0.0, "a", 1.0), horizon=[1, 2, 3]))
    refused(("Series 'q'", "no horizon"), lambda: long(row, ("q", 0.0, "a", 1.0), horizon={"p": 2.0}))
    refused(("plain numbers",), lambda: long(row, horizon=timedelta(hours=1)))
    refused(("no observation at all",), lambda: long(("p", 1.0, "a", None), channels=["a"]))
    refused(("no kind of time",), lambda: long(row, horizon="48h"))


def test_refused_ids_and_missing_labels():
    rows = [("p", 1.0, "a", 1.0), (None, 2.0, "a", 2.0)]
    refused(("Row 1", "'series'", "time = 2.0", "value = 2.0"), lambda: long(*rows))
    refused(("Row 0", "'channel'", "series = p"), lambda: long(("p", 1.0, None, 1.0)))
    assert len(long(("p", 1.0, "a", 1.0), (None, None, None, None)).value) == 1
    frame = polars.DataFrame({"series": [1.5], "time": [1.0], "channel": ["a"], "value": [1.0]})
    refused(("'series'", "Float64", "cast"), lambda: Streams.from_frame(frame))
    objects = pandas.DataFrame({"series": [1, "p"], "time": [1.0, 1.0], "channel": ["a", "a"], "value": [1.0, 1.0]})
    refused(("'p'", "whole number"), lambda: Streams.from_frame(objects))
    refused(("Two series have the id 'p'",), lambda: Streams.from_arrays([[1.0]] * 2, [[[1.0]]] * 2, ids=["p", "p"]))
    refused(("2.5",), lambda: Streams.from_arrays([[1.0]], [[[1.0]]], ids=[2.5]))
    refused(("float64", "2.5"), lambda: Streams.from_arrays([[1.0]], [[[1.0]]], ids=np.array([2.5])))


def test_refused_frames_and_events():
    refused(("'vital'", "'series', 'time'"), lambda: long(("p", 1.0, "a", 1.0), channel="vital"))
    refused(("no data frame", "from_arrays"), lambda: Streams.from_frame([1, 2, 3]))
    refused(("is not an event", "{channel: value}"), lambda: Streams.from_events([("p", 1.0, 2.0)]))
    refused(("no channel",), lambda: Streams.from_events([]))


def test_refused_channel_names():
    for names, part in (
        (("a", "a"), "Two channels"),
        (("time", "b"), "'time'"),
        (("#a", "a"), "'#a'"),
        (("", "a"), "''"),
    ):
        refused((part,), lambda names=names: Streams.from_dense(np.zeros((1, 2, 2)), channels=names))
    refused(("'ab'", "['ab']"), lambda: Streams.from_dense(np.zeros((1, 2, 2)), channels="ab"))
    refused(("'time'",), lambda: long(("p", 1.0, "time", 1.0)))
    refused(("3",), lambda: Streams.from_events([("p", 1.0, {3: 1.0})]))


def test_refused_terms():
    area = Term("area", ("a", "b"))
    options = {"channels": ("a", "b"), "ids": ["p"]}
    values = [[[1.0, 2.0], [NAN, NAN]]]
    refused(
        ("Series 'p'", "at 2.0", "no observation"),
        lambda: Streams.from_arrays([[1.0, 2.0]], values, terms={area: [[0.0, 1.0]]}, **options),
    )
    refused(
        ("Series 'p'", "at 1.0", "infinite term 'area'"),
        lambda: Streams.from_arrays([[1.0, 2.0]], values, terms={area: [[INF, NAN]]}, **options),
    )
    refused(
        ("Series 'p'", "'area'", "shape (1,)", "2 rows"),
        lambda: Streams.from_arrays([[1.0, 2.0]], values, terms={area: [[0.0]]}, **options),
    )
    refused(
        ("'area'", "2 series", "1"),
        lambda: Streams.from_arrays([[1.0, 2.0]], values, terms={area: [[0.0], [1.0]]}, **options),
    )
    rows = polars.DataFrame(
        [("p", 1.0, "a", 1.0, 0.1), ("p", 1.0, "b", 1.0, 0.2)],
        schema=["series", "time", "channel", "value", "area"],
        orient="row",
    )
    refused(
        ("Series 'p'", "at 1.0", "'area'", "0.1 and 0.2"), lambda: Streams.from_frame(rows, terms={"area": ("a", "b")})
    )
    refused(("'area'", "'z'", "not a channel"), lambda: Streams.from_frame(rows, terms={"area": ("a", "z")}))


def test_options_that_contradict_a_schema():
    streams = Streams.from_arrays([[datetime(2024, 1, 1), datetime(2024, 1, 2)]], [[[1.0], [2.0]]])
    frame, schema = streams.to_frame(), streams.schema
    refused(("schema", "unit"), lambda: Streams.from_frame(frame, schema=schema, unit=timedelta(days=1)))
    refused(("schema", "origin"), lambda: Streams.from_frame(frame, schema=schema, origin=datetime(2023, 1, 1)))
    refused(("channels", "schema", "'x2'"), lambda: Streams.from_frame(frame, schema=schema, channels=["x2"]))
    numbers = polars.DataFrame({"series": [0], "time": [1.0], "channel": ["x1"], "value": [1.0]})
    refused(("float64", "DatetimeClock"), lambda: Streams.from_frame(numbers, schema=schema))
    refused(
        ("terms", "'area'"),
        lambda: Streams.from_wide(
            frame.with_columns(x1=1, area=1), channels=["x1"], terms={"area": ("x1", "x1")}, schema=schema
        ),
    )


def test_constructor_checks_shapes_and_types():
    good = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]])
    fields = {
        name: getattr(good, name)
        for name in ("schema", "ids", "offsets", "times", "obs_offsets", "channel", "value", "horizon", "terms")
    }
    refused(("Streams.terms", "(2, 0)", "from_arrays"), lambda: Streams(**fields | {"terms": np.zeros((2, 1))}))
    refused(("offsets",), lambda: Streams(**fields | {"offsets": np.array([0, 1])}))
    refused(("continuous",), lambda: Streams(**fields | {"schema": Schema(("x1",), continuous=("u",))}))
    assert Streams(**fields) == good

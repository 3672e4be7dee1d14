"""Stamps of every type and resolution come back exactly, or are refused; origins and horizons."""

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from logcde.errors import StreamError
from logcde.streams import DatetimeClock, Earliest, FirstStamp, NumericClock, Streams, TimedeltaClock, merge_channels


def read(stamps, **options):
    return Streams.from_arrays([stamps], [np.arange(len(stamps), dtype=float)[:, None]], **options)


def test_nanoseconds_too_far_from_the_origin_are_refused():
    stamps = np.array(["2000-01-01T00:00:00", "2024-01-01T00:00:00.000000001"], "datetime64[ns]")
    with pytest.raises(StreamError, match=r"Series 0: the stamp 2024-01-01T00:00:00.000000001 .*FirstStamp"):
        read(stamps)
    near = np.datetime64("2024-01-01T00:00:00", "ns")
    streams = read(stamps[1:], origin=near, horizon=1.0)
    assert streams.to_frame(pandas)["time"].to_numpy() == stamps[1:]
    assert streams.schema.clock.show(streams.times[0]) == "2024-01-01T00:00:00.000000001"


# Polars has no seconds.
KINDS = [(library, r) for library in ("pandas", "polars", "pyarrow") for r in ("s", "ms", "us", "ns")]
KINDS.remove(("polars", "s"))


@pytest.mark.parametrize(("library", "resolution"), KINDS)
@pytest.mark.parametrize("zone", [None, "Europe/Paris", "UTC"])
def test_every_resolution_and_zone_of_every_library(library, resolution, zone):
    moments = ["2024-03-31T00:30:00", "2024-03-31T03:30:00", "2024-10-27T00:30:00"]
    times = pandas.Series(pandas.to_datetime(moments)).astype(f"datetime64[{resolution}]")
    if zone:
        times = times.dt.tz_localize("UTC").dt.tz_convert(zone)
    frame = pandas.DataFrame({"series": 1, "time": times, "channel": "a", "value": [1.0, 2.0, 3.0]})
    if library == "pyarrow":
        frame = pyarrow.Table.from_pandas(frame)
    elif library == "polars":
        frame = polars.from_pandas(frame)
    streams = Streams.from_frame(frame)
    clock = streams.schema.clock
    assert clock == DatetimeClock(timedelta(hours=1), resolution, zone, np.datetime64(moments[0]))
    assert streams.times.tolist() == [0.0, 3.0, 24 * 210]
    back = streams.to_frame({"pandas": pandas, "polars": polars, "pyarrow": pyarrow}[library])
    assert Streams.from_frame(back) == streams
    if library == "pandas":
        assert back["time"].tolist() == times.tolist()
        assert back["time"].dtype == times.dtype
    else:
        assert back["time"].equals(frame["time"])


def test_durations_in_every_library():
    streams = read([timedelta(0), timedelta(minutes=90)], unit=timedelta(minutes=1))
    assert streams.schema.clock == TimedeltaClock(timedelta(minutes=1), "us")
    assert streams.times.tolist() == [0.0, 90.0]
    for backend in (pandas, polars, pyarrow):
        assert Streams.from_frame(streams.to_frame(backend), unit=timedelta(minutes=1)) == streams
    seconds = read(np.array([0, 30], "timedelta64[m]"))
    assert seconds.schema.clock == TimedeltaClock(timedelta(hours=1), "s")
    assert Streams.from_frame(seconds.to_frame(polars), schema=seconds.schema) == seconds


def test_dates_and_coarse_arrays():
    days = [date(2024, 2, 28), date(2024, 3, 1)]
    expected = read(np.array(days, "datetime64[D]"), unit=timedelta(days=1))
    assert expected.times.tolist() == [0.0, 2.0]
    assert read(days, unit=timedelta(days=1)) == expected
    frame = polars.DataFrame({"time": days, "x1": [0.0, 1.0]})
    assert Streams.from_wide(frame, series=None, unit=timedelta(days=1)) == expected
    months = read(np.array(["2024-01", "2024-02"], "datetime64[M]"), unit=timedelta(days=1))
    assert months.times.tolist() == [0.0, 31.0]


def test_python_datetimes_with_zones():
    paris = ZoneInfo("Europe/Paris")
    stamps = [datetime(2024, 3, 31, 1, tzinfo=paris), datetime(2024, 3, 31, 4, tzinfo=paris)]
    streams = read(stamps)
    assert streams.times.tolist() == [0.0, 2.0]
    assert streams.schema.clock.zone == "Europe/Paris"
    fixed = read([datetime(2024, 1, 1, hour, tzinfo=timezone(timedelta(hours=-3))) for hour in (1, 2)])
    assert fixed.schema.clock.zone == "-03:00"
    assert fixed.schema.clock.show(1.0) == "2024-01-01T02:00:00-03:00"
    assert fixed.to_frame(pandas)["time"][0] == datetime(2024, 1, 1, 4, tzinfo=UTC)
    assert Streams.from_frame(fixed.to_frame(pandas)) == fixed
    aware = pandas.date_range("2024-01-01", periods=2, freq="h", tz="UTC")
    assert read(aware).schema.clock.zone == "UTC"
    with pytest.raises(StreamError, match=r"time zones Europe/Paris, UTC"):
        read([stamps[0], datetime(2024, 3, 31, 4, tzinfo=UTC)])


def test_origins_and_horizons():
    one, two = np.datetime64("2024-01-01T10"), np.datetime64("2024-01-02T20")
    stamps = [np.array([one, one + 2]), np.array([two, two + 5])]
    values = [[[1.0], [2.0]]] * 2

    def build(**options):
        return Streams.from_arrays(stamps, values, ids=["p", "q"], **options)

    assert build().times.tolist() == build(origin=Earliest()).times.tolist() == [0.0, 2.0, 34.0, 39.0]
    own = build(origin=FirstStamp())
    assert own.times.tolist() == [0.0, 2.0, 0.0, 5.0]
    assert own.origins.tolist() == [datetime(2024, 1, 1, 10), datetime(2024, 1, 2, 20)]
    assert own[1].schema.clock.show(5.0, own[1].origins[0]) == "2024-01-03T01:00:00"
    admitted = [datetime(2024, 1, 1, 9), datetime(2024, 1, 2, 12)]
    given_origins = build(origin=admitted)
    assert given_origins.times.tolist() == [1.0, 3.0, 8.0, 13.0]
    assert given_origins == build(origin=dict(zip("pq", admitted, strict=True)))
    assert build(origin=datetime(2024, 1, 1)).times.tolist() == [10.0, 12.0, 44.0, 49.0]
    assert build(origin=FirstStamp(), horizon=[datetime(2024, 1, 1, 13), datetime(2024, 1, 3, 8)]).horizon.tolist() == [
        3,
        12,
    ]
    assert build(origin=FirstStamp(), horizon=timedelta(hours=6)).horizon.tolist() == [6.0, 6.0]
    assert build(horizon={"p": 40, "q": 50}).horizon.tolist() == [40.0, 50.0]
    for origin, match in (
        ([datetime(2024, 1, 1)], "2 series, but 1 origins"),
        ({"p": datetime(2024, 1, 1)}, "Series 'q' has no origin"),
        (datetime(2024, 1, 1, tzinfo=UTC), "time zone"),
        ([3.0, 4.0], "not a datetime"),
        (datetime(2024, 1, 1, microsecond=5), "finer"),
    ):
        with pytest.raises(StreamError, match=match):
            build(origin=origin)
    with pytest.raises(StreamError, match="no observed stamp"):
        Streams.from_arrays([np.array(["NaT"], "datetime64[s]")], [[[np.nan]]])


def test_unobserved_rows_do_not_move_the_origin():
    stamps = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[D]")
    streams = Streams.from_arrays([stamps], [[[np.nan], [1.0], [2.0]]])
    assert streams.schema.clock.origin == np.datetime64("2024-01-02")


def test_unit_and_origin_fit_the_type_of_stamps():
    with pytest.raises(StreamError, match="unit was given, but the stamps are plain numbers"):
        read([0.0, 1.0], unit=timedelta(days=1))
    with pytest.raises(StreamError, match="is not a finite number"):
        read([0.0, 1.0], origin=datetime(2024, 1, 1))
    with pytest.raises(StreamError, match="origin was given, but the stamps are durations"):
        read(np.array([0, 1], "m8[h]"), origin=FirstStamp())


def test_numbers_that_read_as_moments_since_1970_are_told():
    for unit, tick in (("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6)):
        streams = read(np.array([1.7e9, 1.7e9 + 3600]) * tick)
        assert f"from {1.7e9 * tick!r}, read as 2023-11-14T22:13:20 in {unit} since 1970" in repr(streams)
    # Thirty years of seconds are longer than what lies before them.
    assert read([9e8, 1.8e9]).schema.clock == NumericClock(9e8)
    assert repr(read([5000.0, 5001.0], origin=5000.0)).endswith("horizon   1 from 5000.0")
    assert "from" not in repr(read([5000.0, 5001.0]))


@pytest.mark.parametrize(
    ("stamps", "options", "origin"),
    [
        ([1.7e9, 1.7e9 + 5], {}, 1.7e9),
        ([1.7e9, 1.7e9 + 5], {"horizon": 1.7e9 + 8}, 1.7e9),
        ([1.7e9, 1.7e9 + 5], {"origin": 0.0}, 0.0),
        ([1.7e9, 1.7e9 + 5], {"origin": 1.7e9 - 5}, 1.7e9 - 5),
        ([1.7e9, 1.7e9 + 5], {"origin": [1.7e9]}, None),
        ([1.7e9, 1.7e9 + 5], {"origin": {0: 1.7e9}}, None),
        ([1.7e9], {}, 0.0),
        ([5.0, 5.25], {}, 0.0),  # a part of a series
        ([0.5, 0.75], {}, 0.0),
        ([-3.0, 1.0], {"origin": Earliest()}, 0.0),
    ],
)
def test_where_numbers_count_from(stamps, options, origin):
    if stamps[0] < 0:
        with pytest.raises(StreamError, match="Subtract the first stamp, or give an earlier origin"):
            read(stamps, **options)
        return
    streams = read(stamps, **options)
    assert streams.schema.clock == NumericClock(origin)
    zero = stamps[0] if origin is None else origin
    assert streams.times.tolist() == [one - zero for one in stamps]
    assert streams.horizon.tolist() == [options.get("horizon", stamps[-1]) - zero]


def test_a_row_without_observation_decides_no_origin():
    padded = np.array([[[1.0], [2.0], [np.nan]]])
    streams = Streams.from_dense(padded, times=[[1.7e9, 1.7e9 + 5, 0.0]])
    assert streams.schema.clock == NumericClock(1.7e9)


def test_parts_that_count_from_different_numbers_join():
    parts = [read([1.7e9 + start, 1.7e9 + start + 5], ids=[start]) for start in (60, 0)]
    joined = Streams.concatenate(parts)
    assert joined.schema.clock == NumericClock(1.7e9)
    assert joined.times.tolist() == [60.0, 65.0, 0.0, 5.0]
    assert joined.horizon.tolist() == [65.0, 5.0]
    near = Streams.concatenate([parts[0], read([0.0, 1.0], ids=[7])])
    assert near.schema.clock == NumericClock()
    other = Streams.from_arrays([[1.7e9 + 2, 1.7e9 + 5]], [np.ones((2, 1))], ["other"], ids=[0])
    assert merge_channels(parts[1], other).times.tolist() == [0.0, 2.0, 5.0]

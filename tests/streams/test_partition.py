"""Partitions: where they cut, and what they refuse."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.errors import PartitionError
from logcde.streams import Calendar, FirstStamp, Partition, Streams


def streams_at(*stamps, **options):
    values = [np.zeros((len(series), 1)) for series in stamps]
    return Streams.from_arrays(stamps, values, ids=[f"s{k}" for k in range(len(stamps))], **options)


def points(partition, streams):
    cuts = partition.cuts(streams)
    assert not cuts.points.flags.writeable
    pieces = np.split(cuts.points, cuts.offsets[1:-1])
    for piece, horizon in zip(pieces, streams.horizon, strict=True):
        assert len(piece) >= 2
        assert (np.diff(piece) > 0).all()
        assert piece[0] >= 0
        assert piece[-1] <= horizon
    return [piece.tolist() for piece in pieces]


def refused(match, partition, streams):
    with pytest.raises(PartitionError, match=match):
        partition.cuts(streams)


def test_uniform_points():
    streams = streams_at([0.0, 3.0], [1.0], horizon=[3.0, 24.0])
    assert points(Partition.uniform(3), streams) == [[0, 1, 2, 3], [0, 8, 16, 24]]
    assert points(Partition.uniform(24), streams)[1] == list(range(25))
    with pytest.raises(PartitionError, match="at least one interval"):
        Partition.uniform(0)


@given(st.floats(1e-3, 1e6), st.integers(1, 500))
@settings(max_examples=40, deadline=None)
def test_uniform_covers_any_horizon(horizon, intervals):
    found = points(Partition.uniform(intervals), streams_at([0.0], horizon=horizon))[0]
    assert len(found) == intervals + 1
    assert (found[0], found[-1]) == (0.0, horizon)


def test_every_points():
    streams = streams_at([0.0], [0.0], [0.0], horizon=[1.0, 0.3, 0.05])
    assert points(Partition.every(0.1), streams) == [[k / 10 for k in range(11)], [0.0, 0.1, 0.2, 0.3], [0.0, 0.05]]
    assert points(Partition.every(0.4), streams)[0] == [0.0, 0.4, 0.8, 1.0]
    assert points(Partition.every(5), streams)[0] == [0.0, 1.0]
    for step in (0, -1.0, np.nan, np.inf):
        refused("positive and finite", Partition.every(step), streams)
    refused("plain numbers", Partition.every(timedelta(hours=1)), streams)


@given(st.floats(1e-3, 10), st.floats(1e-2, 10))
@settings(max_examples=60, deadline=None)
def test_every_has_one_length_but_for_the_last(step, horizon):
    found = np.array(points(Partition.every(step), streams_at([0.0], horizon=horizon))[0])
    assert found[-1] == horizon
    np.testing.assert_allclose(np.diff(found)[:-1], step, rtol=1e-9)
    assert np.diff(found)[-1] <= step * (1 + 1e-9)


def test_every_duration_falls_exactly_on_stamps():
    minutes = np.arange(0, 60 * 24 * 40, 20)
    stamps = np.datetime64("2024-01-01T00:00", "s") + minutes.astype("timedelta64[m]")
    streams = streams_at(stamps)
    expected = streams.times.tolist()
    assert points(Partition.every(timedelta(minutes=20)), streams)[0] == expected
    assert points(Partition.every(np.timedelta64(20, "m")), streams)[0] == expected


def test_every_events_points():
    streams = streams_at([0.0, 1.0, 2.0, 3.0, 4.0], [0.5], [0.0, 4.0], horizon=4.0)
    assert points(Partition.every_events(2), streams) == [[0.0, 2.0, 4.0], [0.0, 4.0], [0.0, 4.0]]
    assert points(Partition.every_events(1), streams) == [[0, 1, 2, 3, 4], [0, 4], [0, 4]]
    assert points(Partition.every_events(3), streams) == [[0, 3, 4], [0, 4], [0, 4]]
    with pytest.raises(PartitionError, match="at least one event"):
        Partition.every_events(0)


def test_at_points():
    streams = streams_at([0.0], [0.0], horizon=[2.0, 2.0])
    assert points(Partition.at([0, 1, 2]), streams) == [[0.0, 1.0, 2.0]] * 2
    assert points(Partition.at(np.array([[0.0, 2.0]] * 2)), streams) == [[0.0, 2.0]] * 2
    assert points(Partition.at([[0.0, 2.0], (0.0, 0.5, 2.0)]), streams) == [[0.0, 2.0], [0.0, 0.5, 2.0]]
    assert points(Partition.at([0.5, 1.5], partial=True), streams) == [[0.5, 1.5]] * 2


def test_at_refuses_points():
    streams = streams_at([0.0], [0.0], horizon=[2.0, 3.0])
    refused(
        r"Series 's1': the last query point is 2\.0 and not the horizon, 3\.0.*partial=True",
        Partition.at([0, 2]),
        streams,
    )
    refused(
        r"Series 's0': the first query point is 0\.5 and not the start, 0\.0", Partition.at([[0.5, 2], [0, 3]]), streams
    )
    refused(r"Series 's0': the query point 3\.0 lies outside \[0\.0, 2\.0\]", Partition.at([0, 3]), streams)
    refused(r"Series 's0': the query point -1\.0 lies outside .*more", Partition.at([-1, 1], partial=True), streams)
    refused(r"Series 's1': the query point 1\.0 follows 1\.0", Partition.at([[0, 2], [0, 1, 1, 3]]), streams)
    refused(r"Series 's0': the query point number 1 is nan", Partition.at([0, np.nan, 2]), streams)
    refused(r"Series 's1': 1 query point\(s\)", Partition.at([[0, 2], [0]]), streams)
    refused("3 lists of query points, but 2 series", Partition.at([[0, 2]] * 3), streams)
    refused("plain numbers", Partition.at([datetime(2024, 1, 1), datetime(2024, 1, 2)]), streams)
    refused("no kind of time", Partition.at(["a", "b"]), streams)


def test_at_datetimes_and_durations():
    start = np.datetime64("2024-01-01T00", "s")
    streams = streams_at(start + np.array([0, 4]).astype("timedelta64[h]"))
    moments = [datetime(2024, 1, 1, hour) for hour in (0, 1, 4)]
    assert points(Partition.at(moments), streams) == [[0.0, 1.0, 4.0]]
    assert points(Partition.at(np.array(moments, "datetime64[us]")), streams) == [[0.0, 1.0, 4.0]]
    assert points(Partition.at([timedelta(0), timedelta(minutes=30), timedelta(hours=4)]), streams) == [[0.0, 0.5, 4.0]]
    assert points(Partition.at([0.0, 0.25, 4.0]), streams) == [[0.0, 0.25, 4.0]]
    finer = [moments[0], datetime(2024, 1, 1, 0, 0, 0, 900), moments[2]]
    assert points(Partition.at(finer), streams)[0][1] == pytest.approx(900e-6 / 3600)
    refused("2024-01-01T04:00:00", Partition.at([moments[0], datetime(2024, 1, 1, 5)]), streams)
    refused("time zone", Partition.at([m.replace(tzinfo=UTC) for m in moments]), streams)


def test_at_datetimes_with_own_origins():
    one, two = np.datetime64("2024-01-01T00", "s"), np.datetime64("2024-01-01T02", "s")
    hours = np.array([0, 4]).astype("timedelta64[h]")
    streams = streams_at(one + hours, two + hours, origin=FirstStamp())
    shared = Partition.at([datetime(2024, 1, 1, 2), datetime(2024, 1, 1, 4)], partial=True)
    assert points(shared, streams) == [[2.0, 4.0], [0.0, 2.0]]
    each = Partition.at([[one, one + hours[1]], [two, two + np.timedelta64(1, "h"), two + hours[1]]])
    assert points(each, streams) == [[0.0, 4.0], [0.0, 1.0, 4.0]]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (Calendar.DAY, ["01-31", "02-01", "02-02"]),
        (Calendar.WEEK, []),
        (Calendar.MONTH, ["02-01"]),
        (Calendar.QUARTER, []),
    ],
)
def test_calendar_without_zone(unit, expected):
    stamps = np.array(["2024-01-30T12:00", "2024-02-02T18:00"], "datetime64[s]")
    streams = streams_at(stamps)
    inner = [np.datetime64(f"2024-{day}T00:00") - stamps[0] for day in expected]
    hours = [float(gap / np.timedelta64(1, "h")) for gap in inner]
    assert points(Partition.calendar(unit), streams) == [[0.0, *hours, 78.0]]


def test_calendar_weeks_begin_on_monday_and_quarters_in_january():
    streams = streams_at(np.array(["2023-12-31", "2024-04-02"], "datetime64[D]"), unit=timedelta(days=1))
    weeks = points(Partition.calendar(Calendar.WEEK), streams)[0]
    assert weeks[:3] == [0.0, 1.0, 8.0]
    assert points(Partition.calendar(Calendar.QUARTER), streams) == [[0.0, 1.0, 92.0, 93.0]]
    assert points(Partition.calendar(Calendar.YEAR), streams) == [[0.0, 1.0, 93.0]]


def test_calendar_follows_the_clocks_of_the_zone():
    spring = np.array(["2024-03-30T23:00", "2024-03-31T22:00"], "datetime64[s]")
    zoned = [moment.replace(tzinfo=UTC) for moment in spring.tolist()]
    frame = {"time": zoned, "x": [0.0, 1.0]}
    polars = pytest.importorskip("polars")
    table = polars.DataFrame(frame).with_columns(polars.col("time").dt.convert_time_zone("Europe/Paris"))
    streams = Streams.from_wide(table, series=None)
    assert points(Partition.calendar(Calendar.DAY), streams) == [[0.0, 23.0]]
    assert points(Partition.calendar(Calendar.HOUR), streams)[0] == [float(k) for k in range(24)]
    autumn = polars.DataFrame({"time": [datetime(2024, 10, 26, 22), datetime(2024, 10, 27, 23)], "x": [0.0, 1.0]})
    local = autumn.with_columns(polars.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Paris"))
    streams = Streams.from_wide(local, series=None)
    assert points(Partition.calendar(Calendar.DAY), streams) == [[0.0, 25.0]]
    assert points(Partition.calendar(Calendar.HOUR), streams)[0] == [float(k) for k in range(26)]
    india = autumn.with_columns(polars.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Kolkata"))
    assert points(Partition.calendar(Calendar.HOUR), Streams.from_wide(india, series=None))[0][:3] == [0.0, 0.5, 1.5]


def test_calendar_of_series_with_own_origins_and_horizons():
    day = np.datetime64("2024-01-01T00", "s")
    stamps = [day + np.array([20, 30]).astype("timedelta64[h]"), day + np.array([48, 49]).astype("timedelta64[h]")]
    streams = streams_at(*stamps, origin=FirstStamp(), horizon=[10.0, 30.0])
    assert points(Partition.calendar(Calendar.DAY), streams) == [[0.0, 4.0, 10.0], [0.0, 24.0, 30.0]]
    refused("no calendar", Partition.calendar(Calendar.DAY), streams_at([0.0, 1.0]))


@pytest.mark.parametrize(
    ("partition", "text"),
    [
        (Partition.uniform(24), "Partition.uniform(24)"),
        (Partition.at([0.0, 1.0], partial=True), "Partition.at([0.0, 1.0], partial=True)"),
        (Partition.every(0.5), "Partition.every(0.5)"),
        (Partition.every_events(3), "Partition.every_events(3)"),
        (Partition.calendar(Calendar.MONTH), "Partition.calendar(Calendar.MONTH)"),
    ],
)
def test_repr_of_partitions(partition, text):
    assert repr(partition) == text


def test_no_series_have_no_points():
    streams = streams_at([0.0, 1.0])[:0]
    for partition in (Partition.uniform(3), Partition.at([0.0, 1.0]), Partition.every(0.5), Partition.every_events(2)):
        assert partition.cuts(streams).points.size == 0


@pytest.mark.parametrize("step", [1e-300, 1e-18, 1e-7])
def test_more_intervals_than_anybody_means_are_refused(step):
    streams = Streams.from_arrays([[0.0, 3.0]], [[[1.0], [2.0]]], ids=["p7"])
    with pytest.raises(PartitionError, match="Series 'p7' would have .* intervals from 0 to 3, of at most 10,000,000"):
        Partition.every(step).cuts(streams)
    for intervals in (10**9, 10**30):
        with pytest.raises(PartitionError, match="Series 'p7' would have .* intervals from 0 to 3"):
            Partition.uniform(intervals).cuts(streams)
    together = Streams.from_dense(np.zeros((60, 2, 1)), horizon=1.0)
    for partition in (Partition.uniform(10**6), Partition.every(1e-6)):
        with pytest.raises(PartitionError, match="These 60 series would have 60,000,000 intervals together"):
            partition.cuts(together)


@pytest.mark.parametrize("step", [1e300, 1e19, 2.0**62])
def test_one_interval_longer_than_everything(step):
    streams = Streams.from_arrays([[0.0, 3.0]], [[[1.0], [2.0]]])
    assert Partition.every(step).cuts(streams).points.tolist() == [0.0, 3.0]


def test_calendar_of_more_intervals_than_anybody_means_is_refused():
    stamps = np.array(["2000-01-01", "9999999-01-01"], "datetime64[s]")
    streams = Streams.from_arrays([stamps], [[[1.0], [2.0]]])
    with pytest.raises(PartitionError, match="calendar intervals from 2000-01-01T00:00:00 to 9999999-01-01"):
        Partition.calendar(Calendar.HOUR).cuts(streams)


def test_intervals_of_more_events_than_integers_count():
    streams = Streams.from_arrays([[0.0, 3.0]], [[[1.0], [2.0]]])
    assert Partition.every_events(10**30).cuts(streams).points.tolist() == [0.0, 3.0]

"""The summary of a data set."""

from datetime import timedelta

import numpy as np
import pytest

from logcde.streams import Keep, Streams, Term

SEEN = {"pulse": ["4", "80.0%", "100.0%", "0.5", "1", "6"], "never": ["0", "0.0%", "0.0%", "0", "-", "-"], "all": ["6"]}
APART = {"pulse": ["1.075", "1.75", "2.425", "2.5"], "never": [*"----"], "all": ["1.15", "2.5", "2.95", "3"]}


def example():
    nan = np.nan
    values = [[[1.0, nan, nan], [2.0, 3.0, nan], [nan, 4.0, nan]], [[5.0, nan, nan], [6.0, nan, nan]]]
    return Streams.from_arrays([[0.0, 1.0, 4.0], [0.0, 2.5]], values, ("pulse", "temp", "never"))


def test_counts_shares_and_gaps():
    summary = example().describe()
    assert (summary.series, summary.events, summary.observations) == (2, 5, 6)
    assert summary.simultaneous == pytest.approx(2 / 6)
    assert (summary.median_gap, summary.longest_gap) == (2.5, 3.0)
    assert summary.channel_observations.tolist() == [4, 2, 0]
    assert summary.channel_events.tolist() == [0.8, 0.4, 0.0]
    assert summary.channel_series.tolist() == [1.0, 0.5, 0.0]
    np.testing.assert_equal(summary.channel_median_gap, [1.75, 3.0, np.nan])
    np.testing.assert_equal(summary.channel_longest_gap, [2.5, 3.0, np.nan])
    np.testing.assert_equal(summary.gaps, np.quantile([1.0, 3.0, 2.5], [0.05, 0.5, 0.95]))
    np.testing.assert_equal(summary.channel_gaps[2], [np.nan] * 3)
    np.testing.assert_equal(summary.channel_lowest, [1.0, 3.0, np.nan])
    np.testing.assert_equal(summary.channel_highest, [6.0, 4.0, np.nan])
    assert summary.channel_rate.tolist() == [0.5, 0.25, 0.0]
    assert summary.together.tolist() == [0, 4, 1]


def test_printed_table():
    lines = str(example().describe()).splitlines()
    assert lines[0] == "2 series, 5 events, 33.3% of observations simultaneous"
    rows = [line.split() for line in lines]
    for table in (SEEN, APART):
        assert all([name, *cells] in rows for name, cells in table.items())
    second = next(number for number, line in enumerate(lines) if "gap median" in line)
    for table in (lines[1:second], lines[second:]):
        assert len({len(line) for line in table if "pulse" in line or "temp" in line}) == 1


def test_printed_table_is_limited_to_forty_channels():
    lines = str(Streams.from_dense(np.zeros((1, 2, 50)), channels_first=False).describe()).splitlines()
    assert lines.index("and 10 channels more") == len(lines) - 1
    assert sum(line.startswith(" x") for line in lines) == 2 * 40


def test_summary_names_the_unit():
    streams = Streams.from_arrays([[timedelta(0), timedelta(hours=3)]], [[[1.0], [2.0]]], unit=timedelta(minutes=1))
    assert "gaps in minutes" in str(streams.describe())
    assert "180 minutes" in repr(streams)


def test_summary_of_no_observations():
    nothing = Streams.from_dense(np.full((1, 2, 1), np.nan), empty=Keep(), horizon=1).describe()
    assert (nothing.events, nothing.observations, nothing.simultaneous) == (0, 0, 0.0)
    assert np.isnan(nothing.longest_gap)
    assert "0 events" in str(example()[:0].describe())


def test_repr_of_streams():
    streams = example().with_continuous(("dose",), [0.0, 4.0], [0.0, 1.0])
    assert repr(streams).splitlines() == [
        "Streams: 2 series, 5 events, 6 observations",
        "  channels  pulse, temp, never",
        "  horizon   4",
        "  continuous dose",
    ]
    wide = Streams.from_dense(np.zeros((2, 3, 9)), horizon=[2.0, 5.0])
    assert "x6, ... (9)" in repr(wide)
    assert "2 to 5" in repr(wide)
    area = Term("area", ("x1", "x2"))
    assert "terms     area" in repr(Streams.from_arrays([[1.0]], [[[1.0, 2.0]]], terms={area: [[0.5]]}))
    assert "0 series" in repr(streams[:0])

"""Recent features equal a slow, obvious computation on every prefix."""

import dataclasses

import numpy as np
import pytest

from logcde.errors import StreamError
from logcde.features.recent import LAST, TIMES, Grouped, RecentFeatures
from logcde.kernels import recent as kernels
from logcde.streams import Streams
from tests.features.series import CHANNELS, empty_series, random_streams, rows_of

STREAMS = random_streams(1, 8, horizon=8.0)


def obvious(features, streams, series, until, time, channel):
    """The row of one question, from lists of observations."""
    times, values = rows_of(streams[series : series + 1])
    known = times < until
    times, values = times[known], values[known]
    end = times[-1] if len(times) else 0.0
    each = []
    for k in range(len(CHANNELS)):
        seen = np.isfinite(values[:, k]) & (end - times <= features.reach)
        each.append((times[seen], values[seen, k]))
    ahead = min(time - end, features.longest)
    brief = []
    for stamps, observed in each:
        if not len(stamps):
            brief += [np.nan] * kernels.BRIEF
            continue
        brief += [observed[-1], end - stamps[-1]]
        for scale in range(kernels.COARSE):
            late = observed[end - stamps <= features.reach / 4**scale]
            brief.append(late.mean() - observed[-1] if len(late) else np.nan)
    stamps, observed = each[channel]
    detail = np.full(kernels.DETAILS, np.nan)
    age = np.nan
    if len(stamps):
        change, lags, scales = observed - observed[-1], kernels.LAGS, kernels.SCALES
        age = ahead + end - stamps[-1]
        detail[:5] = observed[-1], end - stamps[-1], observed.std(), change.min(), change.max()
        back = min(lags, len(stamps) - 1)
        detail[5 : 5 + back] = change[::-1][1 : back + 1]
        detail[5 + lags : 5 + lags + back] = (stamps[-1] - stamps)[::-1][1 : back + 1]
        for scale in range(scales):
            inside = end - stamps <= features.reach / 2**scale
            detail[5 + 2 * lags + scale] = change[inside].mean() if inside.any() else np.nan
            detail[5 + 2 * lags + scales + scale] = np.log1p(inside.sum())
        number = np.floor((stamps[-1] - stamps) / features.width[channel] + 0.5)
        for slide in range(kernels.SLIDES):
            if (number == slide).any():
                detail[5 + 2 * lags + 2 * scales + slide] = change[number == slide].mean()
    return np.array([ahead, age, end + ahead, np.nan, np.nan, *detail, *brief])


@pytest.mark.parametrize("reach", [2.0, 20.0])
@pytest.mark.parametrize("channel", [0, 2])
def test_rows_are_those_of_an_obvious_computation(reach, channel):
    features = RecentFeatures(STREAMS.schema, reach, np.array([0.3, 0.5, 0.7]), longest=3.0, reference=np.zeros(3))
    grouped = Grouped.of(STREAMS)
    rng = np.random.default_rng(0)
    series, until = rng.integers(0, 8, 60), rng.choice(np.append(STREAMS.times, [0.0, 9.0]), 60)
    time = until + rng.uniform(0, 4, 60)
    rows = features.rows(grouped, grouped.prefixes(series, until), np.arange(60), time, channel)
    expected = [obvious(features, STREAMS, *question, channel) for question in zip(series, until, time, strict=True)]
    np.testing.assert_allclose(rows, np.array(expected), rtol=1e-5, atol=1e-5)
    assert rows.shape[1] == len(features.names(channel))
    assert rows.shape[1] == features.most
    assert len(set(features.names(channel))) == rows.shape[1]


def test_question_about_no_channel_has_no_details():
    features, grouped = RecentFeatures.fit(STREAMS, 2.0), Grouped.of(STREAMS)
    prefixes = grouped.prefixes(np.array([0, 1]), np.array([5.0, 6.0]))
    rows = features.rows(grouped, prefixes, np.array([1, 0]), np.array([6.5, 5.5]), None)
    assert rows.shape == (2, len(TIMES) + 3 * kernels.BRIEF)
    assert len(features.names(None)) == rows.shape[1]
    np.testing.assert_array_equal(rows[:, LAST:], features.brief(grouped, prefixes)[::-1])


def test_series_without_events():
    features, grouped = RecentFeatures.fit(STREAMS, 2.0), Grouped.of(empty_series())
    prefixes = grouped.prefixes(np.array([0]), np.array([1.0]))
    assert (prefixes.count[0], prefixes.end[0]) == (0, 0.0)
    rows = features.rows(grouped, prefixes, np.array([0]), np.array([1.0]), 1)
    assert rows[0, [0, 2]].tolist() == [1.0, 1.0]
    assert np.isnan(rows[0, LAST:]).all()


def test_equal_prefixes_are_computed_once():
    grouped = Grouped.of(STREAMS)
    between = STREAMS.times[0] + 1e-6
    distinct, place = grouped.prefixes(np.array([1, 0, 0, 0]), np.array([8.0, between, between + 1e-7, 0.0])).distinct()
    assert len(distinct) == 3
    assert place.tolist() == [2, 1, 1, 0]


def test_hour_of_the_day_where_stamps_tell_it():
    stamps = np.datetime64("2026-01-01T18:00") + np.arange(8) * np.timedelta64(1, "h")
    streams = Streams.from_arrays([stamps], [np.arange(8.0)[:, None]], ["pulse"])
    features, grouped = RecentFeatures.fit(streams, 3.0), Grouped.of(streams)
    assert features.day == 24.0
    prefixes = grouped.prefixes(np.array([0]), np.array([5.0]))
    rows = features.rows(grouped, prefixes, np.array([0, 0]), np.array([6.0, 12.0]), 0)
    np.testing.assert_allclose(rows[:, 3:5], [[0.0, 1.0], [1.0, 0.0]], atol=1e-6)  # midnight and six in the morning


def test_continuous_channels_are_refused():
    streams = STREAMS.with_continuous(["dose"], [np.array([0.0, 8.0])] * 8, [np.zeros((2, 1))] * 8)
    with pytest.raises(StreamError, match="observations only"):
        RecentFeatures.fit(streams, 1.0)


def test_totals_are_the_last_of_the_features_of_each_channel():
    """Series 0 of the streams, and one without any observation."""
    streams = Streams.concatenate([STREAMS[:1], empty_series()])
    plain, more = (RecentFeatures.fit(STREAMS, longest=1.0, totals=totals) for totals in (False, True))
    grouped = Grouped.of(streams)
    prefixes = grouped.prefixes(np.array([0, 1]), np.array([6.0, 6.0]))
    rows = more.brief(grouped, prefixes).reshape(2, len(CHANNELS), -1)
    np.testing.assert_array_equal(rows[:, :, : -kernels.TOTALS].reshape(2, -1), plain.brief(grouped, prefixes))
    times, values = rows_of(streams[:1])
    inside = values[(times < 6.0) & (times[times < 6.0][-1] - times <= more.reach)]
    np.testing.assert_allclose(rows[0, :, -2], np.log1p(np.isfinite(inside).sum(axis=0)), rtol=1e-6)
    np.testing.assert_allclose(rows[0, :, -1], np.nanmean(inside, axis=0), rtol=1e-6)
    assert (rows[1, :, -2] == 0).all()
    assert np.isnan(rows[1, :, -1]).all()
    assert len(more.names(0)) == len(plain.names(0)) + kernels.TOTALS * len(CHANNELS) == more.most
    shifted = dataclasses.replace(more, reference=np.full(len(CHANNELS), 5.0))
    np.testing.assert_allclose(
        shifted.brief(grouped, prefixes).reshape(rows.shape)[0, :, -1], rows[0, :, -1] - 5, atol=1e-5
    )

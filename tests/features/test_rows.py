"""Rows of windows: against slow definitions, causal, bounded, and standardised by the training series."""

import numpy as np
import pytest

from logcde.errors import StreamError
from logcde.features import WindowRows, Windows
from logcde.features.rows import LIMIT, NAMES
from logcde.kernels.rows import KEEP
from logcde.streams import Streams
from tests.features.series import random_streams


def slow_rows(sums, shrinkage):
    """Rows of one channel, from sums (window, quantity), as their names say."""
    count, total, variation = sums[:, 0], sums[:, 1], sums[:, 2]
    rows, before = [], 0.0
    for window in range(len(sums)):
        means = [0.0]
        for keep in KEEP:
            weight = keep ** np.arange(window, -1, -1)
            kept = (weight * count[: window + 1]).sum(), (weight * total[: window + 1]).sum()
            means.append((kept[1] + shrinkage * means[-1]) / (kept[0] + shrinkage))
        means.append((total[window] + shrinkage * means[-1]) / (count[window] + shrinkage))
        seen = np.flatnonzero(count[: window + 1])
        silent = window - seen[-1] if len(seen) else np.inf
        gap = silent / (1 + silent) if len(seen) else 1.0
        varied = (weight * variation[: window + 1]).sum() / ((weight * count[: window + 1]).sum() + shrinkage)
        share = count[window] / (1 + count[window])
        rows.append([*np.diff(means), means[-1], means[-1] - before, share, gap, np.sqrt(varied)])
        before = means[-1]
    return np.array(rows)


def test_rows_are_what_their_names_say():
    streams = random_streams(0, 6, horizon=8.0)
    fitted = WindowRows(windows=11, shrinkage=0.3).fit(streams)
    raw = fitted.raw(streams).values.astype(np.float64) * np.where(np.isfinite(fitted.spread), 1.0, 0.0)
    sums = Windows.of(fitted.scaler(streams), fitted.width).sums
    for series in range(6):
        for channel in range(sums.shape[1]):
            part = slice(channel * len(NAMES), (channel + 1) * len(NAMES))
            expected = (slow_rows(sums[series, channel], 0.3) - fitted.centre[part]) / fitted.spread[part]
            np.testing.assert_allclose(raw[series, :, part], expected, atol=1e-4)


def test_training_rows_are_standardised():
    streams = random_streams(0, 40, horizon=8.0)
    rows = WindowRows(windows=10).fit(streams).raw(streams)
    np.testing.assert_allclose(rows.values[rows.valid].mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(rows.values[rows.valid].std(axis=0), 1, atol=1e-3)


def test_later_events_change_no_earlier_row():
    values = np.random.default_rng(0).normal(size=(20, 30, 2))
    other = values.copy()
    other[:, 17:] = np.random.default_rng(1).normal(size=(20, 13, 2))
    one, two = (Streams.from_dense(array, horizon=30.0) for array in (values, other))
    fitted = WindowRows(windows=10).fit(one)
    found, changed = fitted(one).values, fitted(two).values
    np.testing.assert_array_equal(found[:, :5], changed[:, :5])
    assert not np.array_equal(found[:, 5:], changed[:, 5:])


def test_rows_are_bounded_for_any_values():
    values = np.random.default_rng(0).normal(size=(20, 30, 2))
    fitted = WindowRows(windows=10).fit(Streams.from_dense(values, horizon=30.0))
    wild = fitted(Streams.from_dense(1e30 * values, horizon=30.0)).values
    assert np.abs(wild).max() <= LIMIT
    np.testing.assert_array_equal(wild, fitted(Streams.from_dense(1e6 * values, horizon=30.0)).values)


def test_rows_of_nothing_are_refused():
    with pytest.raises(StreamError, match="no series to fit"):
        WindowRows().fit(random_streams(0, 3)[:0])

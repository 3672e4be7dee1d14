"""Sums over windows are what the log-signatures of the same windows say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logcde.embedding import Embedding
from logcde.errors import StreamError
from logcde.features.windows import Windows, window_count
from logcde.kernels import windows as kernels
from logcde.streams import Partition, Streams
from tests.features.series import CHANNELS, empty_series, random_streams, rows_of

WIDTH = 0.5


def bracket(logsigs, one, two):
    """The coefficient of [one, two] with either order of the letters."""
    names = logsigs.basis.labels
    wanted, other = f"[{one}, {two}]", f"[{two}, {one}]"
    return logsigs.values[..., names.index(wanted)] if wanted in names else -logsigs.values[..., names.index(other)]


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_read_from_log_signatures(seed):
    streams = random_streams(seed, 8, width=WIDTH)
    windows = Windows.of(streams, WIDTH)
    logsigs = Embedding(depth=2, counts=True, time=True)(streams, Partition.every(WIDTH))
    names = logsigs.basis.labels
    checked = 0
    for series, one in enumerate(streams):
        count = windows.count[series]
        assert logsigs.lengths[series] == count
        lengths = np.minimum(WIDTH * np.arange(1, count + 1), one.horizon[0]) - WIDTH * np.arange(count)
        times, rows = rows_of(one)
        for k, channel in enumerate(CHANNELS):
            seen = ~np.isnan(rows[:, k])
            if not seen.any():
                assert not windows.sums[series, k].any()
                continue
            values = np.asarray(logsigs.values[series, :count], np.float64)
            increment, number = values[:, names.index(channel)], values[:, names.index(f"#{channel}")]
            before = np.concatenate([[0.0], np.cumsum(increment)[:-1]])
            np.testing.assert_allclose(number, windows.observations[series, k, :count], atol=1e-12)
            some = number > 0
            own = np.asarray(bracket(logsigs, channel, f"#{channel}")[series, :count], np.float64)
            mean = before + (increment * number / 2 + own + increment / 2) / np.where(some, number, 1.0)
            np.testing.assert_allclose(mean[some], windows.event_means[series, k, :count][some], atol=1e-9)
            # The mean over time is that of the path, which is 0 before the first observation.
            over = np.asarray(bracket(logsigs, channel, "time")[series, :count], np.float64)
            begun = WIDTH * np.arange(count) >= times[seen][0]
            mean = before + increment / 2 + over / lengths
            np.testing.assert_allclose(mean[begun], windows.time_means[series, k, :count][begun], atol=1e-9)
            checked += begun.sum() + some.sum()
    assert checked > 100


def plain_sums(streams: Streams, width: float) -> list[np.ndarray]:
    """All sums by their definitions."""
    found = []
    for one in streams:
        end = one.horizon[0]
        count = int(window_count(one.horizon, width)[0])
        sums = np.zeros((len(one.schema.channels), count, kernels.QUANTITIES))
        times, rows = rows_of(one)
        for k in range(len(sums)):
            seen = ~np.isnan(rows[:, k])
            x, t = rows[seen, k], times[seen]
            window = np.minimum((t / width).astype(int), count - 1)
            np.add.at(sums[k, :, kernels.COUNT], window, 1.0)
            np.add.at(sums[k, :, kernels.TOTAL], window, x)
            np.add.at(sums[k, :, kernels.VARIATION], window[1:], np.diff(x) ** 2)
            for n in range(count):
                low, high = n * width, end if n == count - 1 else (n + 1) * width
                held = np.maximum(np.minimum(np.append(t[1:], end), high) - np.maximum(t, low), 0.0)
                sums[k, n, kernels.HELD], sums[k, n, kernels.INTEGRAL] = held.sum(), held @ x
        found.append(sums)
    return found


@given(seed=st.integers(0, 10_000), width=st.sampled_from([0.5, 0.25, 0.7, 100.0]))
def test_sums_by_definition(seed, width):
    streams = random_streams(seed, 4)
    windows = Windows.of(streams, width)
    for series, expected in enumerate(plain_sums(streams, width)):
        count = windows.count[series]
        assert expected.shape[1] == count
        np.testing.assert_allclose(windows.sums[series, :, :count], expected, atol=1e-10)
        assert not windows.sums[series, :, count:].any()


def test_threads_do_not_matter():
    streams = Streams.concatenate([random_streams(seed, 300, events=120) for seed in range(2)])
    assert len(streams.times) > 30_000  # enough that several threads are used
    one = Windows.of(streams, 0.1, threads=1)
    np.testing.assert_array_equal(Windows.of(streams, 0.1, threads=5).sums, one.sums)


def test_events_at_the_ends_of_windows():
    times = [0.0, 1.0, 2.0, 3.0]
    streams = Streams.from_arrays([times, times], [np.arange(4.0)[:, None]] * 2, ["a"], horizon=[3.0, 3.5])
    windows = Windows.of(streams, 1.0)
    np.testing.assert_array_equal(windows.count, [3, 4])
    # An event at the end of a window belongs to the next one; at the horizon there is no next one.
    np.testing.assert_array_equal(windows.observations[:, 0], [[1, 1, 2, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(windows.sums[0, 0, :3, kernels.TOTAL], [0, 1, 5])
    np.testing.assert_array_equal(windows.sums[:, 0, :, kernels.HELD], [[1, 1, 1, 0], [1, 1, 1, 0.5]])


def test_rounding_opens_no_window():
    width = 0.7 / 7
    np.testing.assert_array_equal(window_count(np.array([0.0, 0.7, 0.7 + 1e-12, 0.7001]), width), [1, 7, 7, 8])


def test_empty_series_and_unobserved_channel():
    windows = Windows.of(empty_series(), 1.0)
    assert windows.count[0] == 3
    assert not windows.sums.any()
    for quantity in (windows.event_means, windows.time_means, windows.roughness):
        assert np.isnan(quantity).all()


@pytest.mark.parametrize("width", [1e-9, 1e-300])
def test_too_many_windows_are_refused(width):
    with pytest.raises(StreamError, match="Choose wider windows"):
        Windows.of(random_streams(), width)

import numpy as np
import pytest

from logcde.features import Shrinkage, Windows, statistics
from logcde.kernels import windows as kernels
from logcde.streams import Streams
from tests.features.series import CHANNELS, random_streams

WIDTH = 0.1


def plain_statistics(signal, sums):
    """The statistics of one channel, by name."""
    n, found = len(signal), {}

    def part(number, parts):
        begin = number * n // parts
        return slice(begin, max(begin + 1, (number + 1) * n // parts))

    for parts in (1, 2, 4, 8, 16):
        means = [signal[part(number, parts)].mean() for number in range(parts)]
        for number, mean in enumerate(means):
            found[f"mean(a) in {number + 1}/{parts}"] = mean
            if number:
                found[f"change(a) to {number + 1}/{parts}"] = mean - means[number - 1]
    for parts in (1, 2, 4):
        for number in range(parts):
            own = sums[part(number, parts)]
            count = own[:, kernels.COUNT].sum()
            found[f"roughness(a) in {number + 1}/{parts}"] = np.sqrt(own[:, kernels.VARIATION].sum() / max(count, 1))
            found[f"density(a) in {number + 1}/{parts}"] = np.log1p(count)
    for of, values in (("a", signal), ("step of a", np.diff(signal) if n > 1 else np.zeros(1))):
        found[f"mean({of})"], found[f"deviation({of})"] = values.mean(), values.std()
        found[f"least({of})"], found[f"greatest({of})"] = values.min(), values.max()
        for share in (0.1, 0.25, 0.5, 0.75, 0.9):
            found[f"quantile({of}, {share})"] = np.quantile(values, share)
    busy = np.flatnonzero(sums[:, kernels.COUNT])
    last = sums[busy[-1], kernels.TOTAL] / sums[busy[-1], kernels.COUNT] if len(busy) else 0.0
    found["last(a)"] = last
    for back in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        own = sums[-back:]
        count = own[:, kernels.COUNT].sum()
        found[f"mean(a) - last in the last {back} windows"] = (
            own[:, kernels.TOTAL].sum() / count - last if count else 0.0
        )
    held = sums[:, kernels.HELD].sum()
    found["time mean(a)"] = sums[:, kernels.INTEGRAL].sum() / held if held else 0.0
    found["time known(a)"] = held
    found["silence(a)"] = (n - 1 - busy[-1] if len(busy) else n) * WIDTH
    return found


@pytest.mark.parametrize("width", [WIDTH, 1e3])
def test_statistics_of_a_channel(width):
    windows = Windows.of(random_streams(3), WIDTH)
    if width > 1:  # one window
        windows = Windows(WIDTH, np.ones_like(windows.count), windows.sums[:, :, :1].copy())
    signal = Shrinkage()(windows)
    rows = statistics.describe(signal, windows)
    assert rows.dtype == np.float32
    names = statistics.names(CHANNELS)
    assert rows.shape == (len(signal), len(names))
    assert len(set(names)) == len(names)
    for series, count in enumerate(windows.count):
        for k, channel in enumerate(CHANNELS):
            wide = signal[series, k, :count].astype(np.float64)
            expected = plain_statistics(wide, windows.sums[series, k, :count])
            assert len(expected) == kernels.CHANNEL_SIZE
            own = [name.replace("(a", f"({channel}").replace("of a", f"of {channel}") for name in expected]
            found = rows[series, [names.index(name) for name in own]]
            np.testing.assert_allclose(found, list(expected.values()), rtol=1e-4, atol=2e-5)


def test_covariances_of_pairs():
    windows = Windows.of(random_streams(3), WIDTH)
    signal = Shrinkage()(windows)
    rows, names = statistics.describe(signal, windows), statistics.names(CHANNELS)
    assert names[-3:] == ["covariance(a, b)", "covariance(a, c)", "covariance(b, c)"]
    for series, count in enumerate(windows.count):
        expected = np.cov(signal[series, :, :count].astype(np.float64), bias=True)
        np.testing.assert_allclose(rows[series, -3:], expected[[0, 0, 1], [1, 2, 2]], rtol=1e-3, atol=1e-5)


def test_many_channels_have_no_covariances():
    values = np.random.default_rng(0).normal(size=(3, 20, 17))
    streams = Streams.from_dense(values, horizon=20.0)
    windows = Windows.of(streams, 2.0)
    rows = statistics.describe(Shrinkage()(windows), windows)
    assert rows.shape[1] == 17 * kernels.CHANNEL_SIZE == len(statistics.names(streams.schema.channels))

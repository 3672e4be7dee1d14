import numpy as np
import pytest

from logcde.features import GaussianProcess, Shrinkage, Windows
from logcde.streams import Streams
from tests.features.series import empty_series, random_streams


def plain_shrinkage(total, count, weight):
    """The recursion from the whole series down to single windows, by means of plain lists."""
    if len(total) == 1:
        return total / max(count[0], 1.0)
    pad = len(total) % 2
    joined = [np.append(one, [0.0] * pad).reshape(-1, 2).sum(axis=1) for one in (total, count)]
    above = plain_shrinkage(*joined, weight)
    found = np.empty(len(total))
    for window in range(len(total)):
        parent = window // 2
        neighbour = np.clip(parent + (1 if window % 2 else -1), 0, len(above) - 1)
        prior = 0.75 * above[parent] + 0.25 * above[neighbour]
        found[window] = (total[window] + weight * prior) / (count[window] + weight)
    return found


@pytest.mark.parametrize("weight", [0.1, 3.0])
def test_shrinkage_by_definition(weight):
    windows = Windows.of(random_streams(1), 0.3)
    signal = Shrinkage(weight)(windows)
    assert signal.dtype == np.float32
    assert len(set(windows.count)) > 3
    for series, count in enumerate(windows.count):
        for k in range(3):
            sums = windows.sums[series, k, :count]
            expected = plain_shrinkage(sums[:, 1], sums[:, 0], weight)
            np.testing.assert_allclose(signal[series, k, :count], expected, rtol=1e-5, atol=1e-6)
        assert not signal[series, :, count:].any()


def test_full_windows_keep_nearly_their_means_and_empty_ones_take_those_around():
    count = np.array([[1000.0, 1000.0, 0.0, 1000.0]])
    sums = np.zeros((1, 1, 4, 5))
    sums[0, 0, :, 0], sums[0, 0, :, 1] = count, count * [[1.0, -1.0, 0.0, 5.0]]
    signal = Shrinkage()(Windows(1.0, np.array([4]), sums))[0, 0]
    np.testing.assert_allclose(signal[[0, 1, 3]], [1.0, -1.0, 5.0], atol=1e-3)
    assert -1.0 < signal[2] < 5.0


def test_signal_does_not_depend_on_longer_series():
    streams = random_streams(2)
    whole = Shrinkage()(Windows.of(streams, 0.3))
    for series, one in enumerate(streams):
        windows = Windows.of(one, 0.3)
        np.testing.assert_array_equal(Shrinkage()(windows)[0], whole[series, :, : windows.count[0]])


def waves(count=60, share=0.3, seed=0) -> Streams:
    """Two channels that are the same wave with opposite signs and random phase, observed at times of their own."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 6, size=(count, 1))
    wave = np.sin(phase + 0.5 * np.arange(32))
    values = np.stack([wave, -wave], axis=2) + 0.05 * rng.normal(size=(count, 32, 2))
    return Streams.from_dense(np.where(rng.uniform(size=values.shape) < share, values, np.nan), horizon=32.0)


def test_gaussian_process_conditions_on_all_channels():
    """Component by component, the same as conditioning with dense covariances."""
    windows = Windows.of(waves(), 1.0)
    fitted = GaussianProcess(rank=64).fit(windows)
    signal = fitted(windows)
    assert signal.dtype == np.float32
    loadings = (fitted.channel[:, None] * fitted.window[None]).reshape(64, -1)
    covariance = loadings @ loadings.T
    for series in range(3):
        count, total = windows.sums[series, :, :, 0].ravel(), windows.sums[series, :, :, 1].ravel()
        seen = count > 0
        centre, noise = np.repeat(fitted.centre, 32), np.repeat(fitted.noise, 32)
        noise = noise / np.maximum(count, 1.0)
        gain = covariance[:, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)] + np.diag(noise[seen]))
        mean = centre + gain @ (total[seen] / count[seen] - centre[seen])
        expected = (total + fitted.weight * mean) / (count + fitted.weight)
        np.testing.assert_allclose(signal[series].ravel(), expected, atol=1e-5)


def test_gaussian_process_reads_a_silent_channel_from_another():
    windows = Windows.of(waves(200), 1.0)
    fitted = GaussianProcess().fit(windows)
    whole = Windows.of(waves(share=1.0, seed=1), 1.0)
    silent = whole.sums.copy()
    silent[:, 1, 10:20] = 0.0
    truth = whole.event_means[:, 1, 10:20]
    apart = [
        np.square(smooth(Windows(1.0, whole.count, silent))[:, 1, 10:20] - truth).mean()
        for smooth in (fitted, Shrinkage())
    ]
    assert apart[0] < 0.05
    assert apart[1] > 0.4


def test_gaussian_process_smooths_each_series_by_itself():
    streams = random_streams(2)
    fitted = GaussianProcess(rank=8).fit(Windows.of(streams[1:5], 0.3))
    whole = fitted(Windows.of(streams, 0.3))
    assert np.isfinite(whole).all()
    assert Windows.of(streams, 0.3).count.max() > len(fitted.window)  # in pieces
    for series, one in enumerate(streams):
        windows = Windows.of(one, 0.3)
        np.testing.assert_array_equal(fitted(windows)[0], whole[series, :, : windows.count[0]])


def test_gaussian_process_without_observations_is_the_mean():
    fitted = GaussianProcess().fit(Windows.of(random_streams(), 0.5))
    signal = fitted(Windows.of(empty_series(), 0.5))
    np.testing.assert_allclose(signal[0], np.tile(fitted.centre[:, None], signal.shape[2]), rtol=1e-6)

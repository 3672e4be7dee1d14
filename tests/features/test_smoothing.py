import numpy as np
import pytest

from logcde.features import Shrinkage, Windows
from tests.features.series import random_streams


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

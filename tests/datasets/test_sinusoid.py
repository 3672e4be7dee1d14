import numpy as np
import pytest

from logcde.datasets import REGIMES, Poisson, Regime, sinusoids
from logcde.errors import DatasetError


@pytest.mark.parametrize("regime", REGIMES)
def test_values_and_targets_lie_on_the_waves(regime):
    drawn = sinusoids(regime, series=5, seed=3)
    streams, cuts = drawn.data.streams, drawn.data.partition.cuts(drawn.data.streams)
    for series in range(5):
        one = streams[series]
        truth = drawn.waves(series, np.repeat(one.times, np.diff(one.obs_offsets)))
        np.testing.assert_allclose(one.value, truth[np.arange(len(truth)), one.channel], atol=1e-12)
        points = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
        targets = drawn.data.targets[series]
        np.testing.assert_allclose(targets[: len(points) - 1], drawn.waves(series, points[1:]), atol=1e-12)
        assert np.isnan(targets[len(points) - 1 :]).all()


def test_regimes_share_waves_and_query_points():
    all_of_them = [sinusoids(regime, series=4, seed=(7, 1)) for regime in REGIMES]
    for one in all_of_them[1:]:
        np.testing.assert_array_equal(one.waves.shift, all_of_them[0].waves.shift)
        np.testing.assert_array_equal(one.data.targets, all_of_them[0].data.targets)


def test_regimes_have_observation_counts_of_the_paper():
    counts = {}
    for regime in REGIMES:
        streams = sinusoids(regime, series=300, seed=0).data.streams
        channel = np.bincount(streams.channel, minlength=2) / 300
        counts[regime] = channel
        together = np.diff(streams.obs_offsets).mean()
        assert together == (2.0 if REGIMES[regime].synchronous else 1.0)
        assert streams.times.min() > 0
        assert streams.times.max() < 10
    np.testing.assert_array_equal(counts["sync_regular"], [128, 128])
    # A mean count over 300 series has a standard deviation below one.
    np.testing.assert_allclose(counts["sync_irregular"], [90, 90], atol=4)
    np.testing.assert_allclose(counts["async_irregular"], [90, 90], atol=4)
    np.testing.assert_allclose(counts["async_sparse"], [160, 30], atol=4)


def test_interval_counts_are_those_of_the_paper():
    lengths = np.diff(_cuts(sinusoids("sync_regular", series=500, seed=0)).offsets) - 1
    assert set(lengths) == set(range(16, 33))


def test_channel_has_at_least_two_observations():
    rare = Regime((Poisson(0.0, 0.0), Poisson(0.0, 0.05)))
    streams = sinusoids(rare, series=50, seed=0).data.streams
    for series in range(50):
        assert (np.bincount(streams[series].channel, minlength=2) >= 2).all()


def test_seed_determines_data():
    one, same, other = (sinusoids("async_sparse", series=3, seed=seed).data for seed in (1, 1, 2))
    assert one.streams == same.streams
    assert one.streams != other.streams


def test_data_of_seed_0_is_pinned():
    """Data of a seed must not change from one version, or one machine, to the next."""
    drawn = sinusoids("async_irregular", series=2, seed=0)
    np.testing.assert_allclose(drawn.waves.frequency, [1.5543500423063037, 1.0530697219083986], rtol=1e-12)
    np.testing.assert_allclose(
        drawn.data.streams.times[:3], [0.05858037554683948, 0.1421728782045517, 0.1615900885301058], rtol=1e-12
    )
    np.testing.assert_allclose(drawn.data.targets[1, 0], [-0.01223759343478681, 1.1842740167504024], rtol=1e-9)


def test_invalid_arguments_are_refused():
    with pytest.raises(DatasetError, match="no observation regime 'sometimes'. Choose one of sync_regular"):
        sinusoids("sometimes", series=1, seed=0)
    with pytest.raises(DatasetError, match="series=0 is too small"):
        sinusoids("sync_regular", series=0, seed=0)


def _cuts(drawn):
    return drawn.data.partition.cuts(drawn.data.streams)

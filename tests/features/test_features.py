import dataclasses

import numpy as np
import pytest

from logcde.errors import ModelError, StreamError
from logcde.features import Shrinkage, WindowFeatures, features
from logcde.kernels.windows import CHANNEL_SIZE
from logcde.streams import Streams
from tests.features.series import CHANNELS, empty_series, random_streams


@pytest.fixture(scope="module")
def fitted():
    return WindowFeatures(units=60).fit(random_streams(0, 30))


def test_rows_do_not_depend_on_the_batch(fitted, monkeypatch):
    streams = random_streams(1, 20)
    rows = fitted(streams)
    assert rows.dtype == np.float32
    assert rows.shape == (20, len(fitted.names))
    for series in range(20):
        np.testing.assert_array_equal(fitted(streams[series])[0], rows[series])
    np.testing.assert_array_equal(fitted(streams[::-1]), rows[::-1])
    monkeypatch.setattr(features, "CHUNK", 5000)  # few series at a time
    np.testing.assert_array_equal(fitted(streams), rows)
    again = WindowFeatures(units=60).fit(random_streams(0, 30))
    np.testing.assert_array_equal(again(streams), rows)


def test_far_denser_far_longer_and_empty_series_have_finite_rows(fitted):
    rng = np.random.default_rng(0)
    dense = Streams.from_arrays([np.linspace(0, 5, 20_000)], [rng.normal(size=(20_000, 3))], CHANNELS, horizon=5.0)
    times = np.sort(rng.uniform(0, 3000, size=400))
    long = Streams.from_arrays([times], [1e6 * rng.normal(size=(400, 3))], CHANNELS, horizon=3000.0)
    single = Streams.from_arrays([[0.0]], [[[np.nan, 1.0, np.nan]]], CHANNELS, horizon=1e-12)
    alone = [fitted(one)[0] for one in (dense, long, single, empty_series())]
    assert all(np.isfinite(row).all() for row in alone)
    together = fitted(Streams.concatenate([dense, long, single, empty_series()]))
    np.testing.assert_array_equal(together, alone)


def test_no_series_have_no_rows(fitted):
    assert fitted(random_streams()[:0]).shape == (0, len(fitted.names))


def test_other_channels_are_refused(fitted):
    streams = random_streams()
    for channels in (("a", "c", "b"), ("a", "b", "d")):
        other = dataclasses.replace(streams, schema=dataclasses.replace(streams.schema, channels=channels))
        with pytest.raises(StreamError, match=r"fitted to the channels 'a', 'b', 'c'.*Give the same channels"):
            fitted(other)


def test_single_precision_streams_have_nearly_the_same_rows(fitted):
    streams = random_streams(2)
    single = dataclasses.replace(streams, value=streams.value.astype(np.float32))
    close = np.isclose(fitted(single), fitted(streams), rtol=1e-3, atol=1e-4)
    assert close.mean() > 0.999  # a response may cross a bias


def test_width_of_windows():
    streams = random_streams(0, 30, horizon=8.0)
    assert WindowFeatures(windows=10, units=0).fit(streams).width == 0.8
    assert WindowFeatures(units=0).fit(streams).width == 8.0 / 32  # 24 to 28 events
    few = Streams.from_dense(np.zeros((3, 2, 1)), horizon=2.0)
    assert WindowFeatures(units=0).fit(few).width == 2.0 / features.FEWEST


def test_parts_can_be_left_out():
    streams = random_streams()
    both = WindowFeatures(units=7, biases=2).fit(streams)
    statistics = WindowFeatures(units=0).fit(streams)
    units = WindowFeatures(units=7, biases=2, statistics=False).fit(streams)
    assert both.names == statistics.names + units.names
    assert len(units.names) == 14
    np.testing.assert_array_equal(both(streams), np.concatenate([statistics(streams), units(streams)], axis=1))


def test_scales_of_channels_do_not_matter():
    streams = random_streams()
    factor = np.array([1e-3, 1.0, 1e6])[streams.channel]
    scaled = dataclasses.replace(streams, value=streams.value * factor + factor)
    rows = [WindowFeatures(units=0).fit(one)(one) for one in (streams, scaled)]
    np.testing.assert_allclose(*rows, rtol=1e-3, atol=1e-4)


def test_seed_and_smoother():
    streams = random_streams()
    one, same = (WindowFeatures(units=20, seed=3).fit(streams)(streams) for _ in range(2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(WindowFeatures(units=20, seed=4).fit(streams)(streams), one)
    assert not np.array_equal(WindowFeatures(units=20, seed=3, smoother=Shrinkage(5.0)).fit(streams)(streams), one)


def test_digest_tells_windows_and_scales_apart():
    streams = random_streams()
    one = WindowFeatures(units=5).fit(streams)
    assert WindowFeatures(units=0).fit(streams).digest == one.digest
    assert WindowFeatures(units=5, windows=9).fit(streams).digest != one.digest
    assert WindowFeatures(units=5, windows=9).fit(random_streams(1, horizon=4.0)).digest != one.digest


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"units": 0, "statistics": False}, "has no features"),
        ({"units": -1}, "whole number of at least 0"),
        ({"units": True}, r"WindowFeatures\(units=True\) is not possible"),
        ({"biases": 0}, "whole number of at least 1"),
        ({"windows": 0}, "whole number of at least 1"),
        ({"windows": True}, "windows=True"),
        ({"seed": -3}, "seed=-3"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, found):
    with pytest.raises(ModelError, match=found):
        WindowFeatures(**options)


def test_many_channels_are_read_in_groups_of_series(monkeypatch):
    """Neither fitting nor computing has the sums of all series in memory, nor as many windows for all as one has."""
    rng, most = np.random.default_rng(0), []
    channels = 300
    values = np.full((40, 20, channels), np.nan)
    values[rng.uniform(size=values.shape) < 0.02] = 1.0
    values[:, 0, :] = rng.normal(size=(40, channels))
    times = [np.arange(20.0)] * 39 + [np.arange(20.0) * 50]
    streams = Streams.from_arrays(times, list(values), horizon=[20.0] * 39 + [1000.0])
    of, limit = features.Windows.of, 5 * channels * 1600

    def watched(some, width):
        windows = of(some, width)
        most.append(windows.sums.size)
        return windows

    expected = WindowFeatures(units=20).fit(streams)(streams)
    monkeypatch.setattr(features, "CHUNK", limit)
    monkeypatch.setattr(features.Windows, "of", staticmethod(watched))
    rows = WindowFeatures(units=20).fit(streams)(streams)
    assert max(most) <= limit
    assert sum(most) < 3 * limit, "short series are not given the windows of the longest"
    np.testing.assert_array_equal(rows, expected)


def test_a_channel_that_a_series_does_not_have(fitted):
    """Its statistics are zero, but for the time that it has been silent."""
    streams = random_streams()
    names = np.array(fitted.names)
    own = np.array(["(c)" in name or "step of c)" in name or "(c," in name for name in names])
    own &= ~np.char.startswith(names, "covariance")
    row = fitted(streams)[-1][own]
    silent = names[own] == "silence(c)"
    count = int(np.ceil(streams.horizon[-1] / fitted.width - 1e-9))
    np.testing.assert_allclose(row[silent], count * fitted.width, rtol=1e-6)
    assert not row[~silent].any()


def test_a_channel_that_a_series_does_not_have_may_be_missing(fitted):
    """With `nan_unobserved` its statistics are NaN; all other numbers are those without it."""
    streams = random_streams()
    missing = WindowFeatures(nan_unobserved=True, units=0).fit(streams)(streams)
    zero = WindowFeatures(units=0).fit(streams)(streams)
    channels, observed = len(streams.schema.channels), np.zeros((len(streams), len(streams.schema.channels)), bool)
    event = np.repeat(np.arange(len(streams.times)), np.diff(streams.obs_offsets))
    observed[np.repeat(np.arange(len(streams)), np.diff(streams.offsets))[event], streams.channel] = True
    assert 0 < observed.sum() < observed.size
    own = np.repeat(~observed, CHANNEL_SIZE, axis=1)
    assert np.isnan(missing[:, : channels * CHANNEL_SIZE][own]).all()
    np.testing.assert_array_equal(np.where(np.isnan(missing), zero, missing), zero)
    assert np.isnan(missing).sum() == own.sum()


def test_names_are_all_different():
    streams = random_streams()
    names = WindowFeatures(units=30, biases=20).fit(streams).names
    assert len(set(names)) == len(names)


def test_fit_to_no_series_is_refused():
    with pytest.raises(StreamError, match="no series"):
        WindowFeatures().fit(random_streams()[:0])

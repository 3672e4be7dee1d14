import dataclasses

import numpy as np
import pytest

from logcde.features import Shrinkage, Windows
from logcde.features.units import Units
from logcde.kernels import windows as kernels
from tests.features.series import CHANNELS, random_streams


def signal_of(seed=0, width=0.1):
    windows = Windows.of(random_streams(seed), width)
    return Shrinkage()(windows), windows.count


def fit(signal, count, units, biases, seed=0):
    drawn = Units.draw(count, signal.shape[1], units, biases, np.random.default_rng(seed))
    drawn.respond(np.arange(len(signal)), signal, count)
    return drawn.units


def drawn(units=40, biases=3, seed=0, data=0):
    return fit(*signal_of(data), units, biases, seed)


def plain_responses(units, unit, signal, count):
    """The convolution of the mixed channels with the taps, zero beyond the series."""
    mixed = signal[units.channels[units.offsets[unit] : units.offsets[unit + 1]], :count].sum(axis=0, dtype=np.float64)
    dilation, reach = units.dilation[unit], kernels.TAPS // 2 * units.dilation[unit]
    taps = np.zeros(2 * reach + 1)
    taps[::dilation] = -1.0
    taps[units.heavy[unit] * dilation] = 2.0
    response = np.convolve(np.pad(mixed, reach), taps[::-1], mode="valid")
    assert len(response) == count
    return response if units.padded[unit] or count <= 2 * reach else response[reach : count - reach]


def test_shares_by_plain_convolution():
    units, (signal, count) = drawn(), signal_of(1)
    shares = units(signal, count)
    assert shares.dtype == np.float32
    assert units.padded.any()
    assert not units.padded.all()
    reach = kernels.TAPS // 2 * units.dilation
    assert (count.min() <= 2 * reach).any(), "no series is shorter than the taps"
    assert (count.max() > 2 * reach).all()
    assert (units.dilation > 1).any()
    assert (np.diff(units.offsets) > 1).any()
    expected = np.empty(shares.shape)
    sharp = np.ones(shares.shape, bool)
    for series in range(len(signal)):
        for unit in range(len(units.dilation)):
            responses = plain_responses(units, unit, signal[series], count[series])
            place = slice(unit * 3, unit * 3 + 3)
            expected[series, place] = (responses[:, None] > units.bias[unit]).mean(axis=0)
            sharp[series, place] = (np.abs(responses[:, None] - units.bias[unit]) > 1e-4).all(axis=0)
    assert sharp.mean() > 0.9
    np.testing.assert_allclose(shares[sharp], expected[sharp], atol=1e-6)


def test_responses_by_plain_convolution():
    units, (signal, count) = drawn(), signal_of(2)
    arrays = units.heavy, units.dilation, units.padded, units.offsets, units.channels
    for series in range(len(signal)):
        for unit in range(len(units.dilation)):
            found = kernels.unit_responses(series, unit, signal, count, *arrays)
            np.testing.assert_allclose(found, plain_responses(units, unit, signal[series], count[series]), atol=1e-4)


def test_shares_do_not_depend_on_the_batch():
    units, (signal, count) = drawn(), signal_of(1)
    whole = units(signal, count)
    for series in range(len(signal)):
        own = signal[series : series + 1, :, : count[series]]
        np.testing.assert_array_equal(units(np.ascontiguousarray(own), count[series : series + 1])[0], whole[series])


def test_constant_signals_stay_between_biases():
    """Taps add up to zero, so inside a series a constant does not change a response."""
    units, (signal, count) = drawn(), signal_of(1)
    units = dataclasses.replace(units, padded=np.zeros_like(units.padded))
    longest = np.flatnonzero(count == count.max())
    shifted = signal[longest] + np.float32(4.0)
    close = units(shifted, count[longest]) - units(np.ascontiguousarray(signal[longest]), count[longest])
    assert np.abs(close).max() < 0.1


def test_seeds_and_names():
    one, two, other = drawn(), drawn(), drawn(seed=1)
    for field in dataclasses.fields(Units):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name))
    assert not np.array_equal(one.bias, other.bias)
    names = one.names(CHANNELS)
    assert len(names) == one.bias.size == one(*signal_of()).shape[1]
    assert len(set(names)) > 0.9 * len(names)  # two biases of a unit may be the same quantile
    assert names[0].startswith("share(")


@pytest.mark.parametrize("windows", [1, 2, 8])
def test_series_of_few_windows(windows):
    signal = np.random.default_rng(0).normal(size=(5, 1, windows)).astype(np.float32)
    units = fit(signal, np.full(5, windows), 30, 2)
    assert (units.dilation == 1).all()
    shares = units(signal, np.full(5, windows))
    assert ((shares >= 0) & (shares <= 1)).all()


def test_biases_lie_between_responses_of_training_series():
    """Shares of the training series are spread over [0, 1], not all 0 or 1."""
    shares = drawn()(*signal_of())
    assert 0.2 < shares.mean() < 0.8

"""Features of a growing series equal those of its prefix offline, to the bit."""

import dataclasses
import json

import numpy as np
import pytest

from logcde.errors import StreamError
from logcde.features import LogSignatureFeatures, OnlineFeatures, WindowFeatures, Windows
from logcde.scaling import RobustScaler
from logcde.streams import Keep, Streams
from tests.features.series import CHANNELS, random_streams, rows_of

WIDTH = 0.5


def fitted_to(width=WIDTH, **options):
    """Features whose windows have this width, up to rounding."""
    return WindowFeatures(windows=16, units=30, **options).fit(random_streams(0, 20, horizon=16 * width))


FITTED = fitted_to()


def prefix(times, rows, end):
    """The stream of all events up to a time, which is its horizon."""
    known = times <= end
    return Streams.from_arrays([times[known]], [rows[known]], CHANNELS, horizon=float(end), empty=Keep())


def check_all_prefixes(fitted, times, rows, later):
    """At each event and at other times before the next."""
    online = OnlineFeatures(fitted)
    assert np.isfinite(online.features(at=0.0)).all()
    np.testing.assert_array_equal(online.features(at=1.0), fitted(prefix(times[:0], rows[:0], 1.0))[0])
    for number, (time, row) in enumerate(zip(times, rows, strict=True)):
        online.observe(time, row)
        until = times[number + 1] if number + 1 < len(times) else time + 3.0
        assert online.last == time
        for end in [time, *(one for one in later if time < one < until)]:
            found = online.features(at=end)
            assert np.isfinite(found).all()
            if end > 0:  # offline, no series ends at 0
                offline = prefix(times, rows, end)
                np.testing.assert_array_equal(found, fitted(offline)[0], err_msg=f"{number} {end}")
                # The sums too, which are in double precision.
                expected = Windows.of(fitted.scaler(offline), fitted.width)
                windows = online.windows(at=end)
                np.testing.assert_array_equal(windows.count, expected.count)
                np.testing.assert_array_equal(windows.sums, expected.sums)
        np.testing.assert_array_equal(online.features(), online.features(at=time))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [0.5, 0.1])
def test_every_prefix(seed, width):
    fitted = FITTED if width == WIDTH else fitted_to(width)
    edges = width * np.arange(40)  # products, which are not always the nearest numbers
    for one in random_streams(seed, 2, width=width):
        times, rows = rows_of(one)
        check_all_prefixes(fitted, times, rows, [*edges, times[-1] + 2.2])


def test_several_events_within_rounding_of_the_end_of_a_window():
    """Whether they belong to the window before or to the next one is known only when time has passed."""
    base = 3 * FITTED.width
    times = np.array([0.2, base, base + 1e-11, base + 3e-11, base + 4e-11, base + 0.2, 4 * FITTED.width, 7.0])
    assert len(set(times)) == len(times)
    rows = np.random.default_rng(0).normal(size=(len(times), 3))
    rows[1, 0] = rows[2, 1] = rows[3, 2] = np.nan
    check_all_prefixes(FITTED, times, rows, [base + 2e-11, base + 5e-11, base + 0.1])


def test_scaler_with_clipped_and_bent_channels():
    streams = random_streams(0, 20)
    streams = dataclasses.replace(streams, value=np.exp(3 * streams.value))
    fitted = WindowFeatures(units=10, scaler=RobustScaler()).fit(streams)
    times, rows = rows_of(streams[1])
    check_all_prefixes(fitted, times, rows, [])


def test_single_precision_values():
    streams = random_streams(0, 20)
    single = dataclasses.replace(streams, value=streams.value.astype(np.float32))
    fitted = WindowFeatures(units=10).fit(single)
    online = OnlineFeatures(fitted)
    for time, row in zip(*rows_of(single[0]), strict=True):
        online.observe(time, row)
    np.testing.assert_array_equal(online.features(at=float(single[0].horizon[0])), fitted(single[0])[0])


def observed(streams, features=FITTED):
    online = OnlineFeatures(features)
    for time, row in zip(*rows_of(streams), strict=True):
        online.observe(time, row)
    return online


@pytest.mark.parametrize("events", [0, 1, 2, 9, 14])
def test_state_through_json(events):
    times, rows = rows_of(random_streams(5, 3, events=40)[1])
    times = np.append(WIDTH * np.arange(1, 3), times[times > 1.0])  # the second event waits
    one = OnlineFeatures(FITTED)
    for time, row in zip(times[:events], rows, strict=False):
        one.observe(time, row)
    other = OnlineFeatures(FITTED).restore(json.loads(json.dumps(one.state(), allow_nan=False)))
    assert other.last == one.last
    np.testing.assert_array_equal(other.features(at=20.0), one.features(at=20.0))
    for online in (one, other):
        online.observe(21.0, [1.0, np.nan, 2.0])
        online.observe(22.5, {"b": 4.0})
    np.testing.assert_array_equal(other.features(at=30.0), one.features(at=30.0))


def test_state_has_no_empty_windows():
    online = OnlineFeatures(FITTED)
    online.observe(1000.2 * WIDTH, {"a": 1.0})
    online.observe(1001.2 * WIDTH, {"a": 3.0})
    assert len(json.dumps(online.state())) < 1000


def test_restore_refuses_other_features():
    state = observed(random_streams(1)[0]).state()
    other = fitted_to(0.1)
    with pytest.raises(StreamError, match="other channels, scales or windows"):
        OnlineFeatures(other).restore(state)
    units = fitted_to(seed=5)  # the sums are the same
    same = OnlineFeatures(units).restore(state)
    np.testing.assert_array_equal(same.features(at=20.0), observed(random_streams(1)[0], units).features(at=20.0))


def test_copy_is_independent():
    one = observed(random_streams(1)[0])
    before, copy = one.features(at=20.0), one.copy()
    copy.observe(20.0, [1.0, 2.0, 3.0])
    copy.observe(21.0, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(one.features(at=20.0), before)
    one.observe(20.0, [-1.0, 2.0, 3.0])
    assert not np.array_equal(one.features(at=22.0), copy.features(at=22.0))


def test_asking_changes_nothing():
    one, other = observed(random_streams(1)[0]), observed(random_streams(1)[0])
    one.features(at=500.0)
    one.windows(at=20.0).sums[:] = 7.0
    assert json.dumps(one.state()) == json.dumps(other.state())


def test_event_without_values_is_ignored():
    one, other = observed(random_streams(1)[0]), observed(random_streams(1)[0])
    one.observe(50.0, {})
    assert json.dumps(one.state()) == json.dumps(other.state())


@pytest.mark.parametrize(
    ("time", "values", "message"),
    [
        (9.0, {"a": 1.0}, r"cannot be taken after one at 9\.0.*in order"),
        (3.0, {"a": 1.0}, "cannot be taken after"),
        (10.0, {"a": 1.0, "pulse": 2.0}, "no channel 'pulse'.*The channels are a, b, c"),
        (10.0, {"a": np.inf}, "one finite number for each of the 3 channels"),
        (10.0, [1.0, 2.0], "one finite number for each of the 3 channels"),
        (-1.0, {"a": 1.0}, "Stamps are finite, from 0 on"),
        (np.nan, {"a": 1.0}, "Stamps are finite"),
        (np.inf, {"a": 1.0}, "Stamps are finite"),
        (1e9, {"a": 1.0}, "units of time of the training data"),
        (1e300, {"a": 1.0}, "units of time of the training data"),
    ],
)
def test_bad_events_change_nothing(time, values, message):
    online = OnlineFeatures(FITTED)
    online.observe(0.0, {"a": 1.0})
    online.observe(9.0, {"a": 3.0})
    before = json.dumps(online.state())
    with pytest.raises(StreamError, match=message):
        online.observe(time, values)
    assert json.dumps(online.state()) == before


@pytest.mark.parametrize(
    ("at", "message"), [(8.0, "known up to 9.0 already"), (np.nan, "not possible"), (1e9, "units of time")]
)
def test_bad_times_of_features(at, message):
    online = OnlineFeatures(FITTED)
    online.observe(9.0, {"a": 3.0})
    with pytest.raises(StreamError, match=message):
        online.features(at=at)


@pytest.mark.parametrize(
    "features", [FITTED, LogSignatureFeatures().fit(random_streams(0, 20))], ids=["sums", "logsigs"]
)
@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((1, 3)), r"values of an event have shape \(1, 3\), but there are 3 channels"),
        (np.array(1.0), r"shape \(\), but"),
        (["x", 1.0, 2.0], "Channel '.*' has the value 'x', which is not a number"),
        ([1.0, 10**400, 2.0], f"Channel '{CHANNELS[1]}' .* too large for float64"),
        ([1.0, 2.0], "Give one finite number for each of the 3 channels"),
    ],
)
def test_rows_that_are_no_rows_are_refused(features, values, said):
    online = features.online()
    with pytest.raises(StreamError, match=said):
        online.observe(0.5, values)
    online.observe(0.5, [1.0, np.nan, 2.0])
    by_name = features.online()
    by_name.observe(0.5, {CHANNELS[0]: 1.0, CHANNELS[2]: 2.0})
    np.testing.assert_array_equal(online.features(at=2.0), by_name.features(at=2.0))

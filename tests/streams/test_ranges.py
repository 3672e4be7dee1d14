"""Ranges of training against slow counting; which series lie far outside, and no false alarms on series left out."""

import dataclasses
import itertools
import os

import numpy as np
import pytest

import logcde as lc
from logcde.datasets import load, physionet2012, sinusoids
from logcde.errors import StreamError
from logcde.streams import OutOfRange, PerChannel, Streams, TrainingRanges, drop_observations
from logcde.streams.ranges import FACTOR, SCALES, SLACK, STRAYS, WIDTHS

CHANNELS = ("a", "b", "rare")


def feed(series: int, seed: int, rate: float = 4.0, length: float = 10.0, size: float = 1.0, first: int = 0) -> Streams:
    """Series with Poisson stamps, some without the rare channel."""
    rng = np.random.default_rng(seed)
    events = []
    for number in range(first, first + series):
        for time in np.cumsum(rng.exponential(1 / rate, size=rng.poisson(rate * length))).tolist():
            values = {name: size * rng.normal() for name in CHANNELS[:2] if rng.uniform() < 0.6}
            if number % 3 == 0 and rng.uniform() < 0.1:
                values["rare"] = size * rng.normal()
            events.append((f"s{number}", time, values or {"a": 0.0}))
    return Streams.from_events(events, channels=CHANNELS, sort=True)


def slow_excesses(ranges: TrainingRanges, streams: Streams) -> dict[str, set[str]]:
    """For each series the reasons for which it is far outside, by loops."""
    found = {}
    for one in streams:
        reasons = set()
        rows = observations(one)
        start = one.times[0]
        for scale in range(SCALES):
            width = ranges.longest * (1 + 1e-15) / 2**scale
            for number in range(len(ranges.channels) + 1):
                counts = {}
                stamps = one.times if number == len(ranges.channels) else [t for t, c, _ in rows if c == number]
                for time in stamps:
                    window = int((time - start) / width)
                    counts[window] = counts.get(window, 0) + 1
                if counts and max(counts.values()) > FACTOR * ranges.most[scale, number] + SLACK:
                    reasons.add("density")
        for number in range(len(ranges.channels)):
            own = [(t, v) for t, c, v in rows if c == number]
            low, high = ranges.lowest[number], ranges.highest[number]
            margin = WIDTHS * (high - low) if np.isfinite(high) else 0.0
            if sum(v < low - margin or v > high + margin for _, v in own) >= STRAYS:
                reasons.add("values")
            gaps = [b[0] - a[0] for a, b in itertools.pairwise(own)]
            if gaps and max(gaps) > max(FACTOR * ranges.silence[number], ranges.longest / 2):
                reasons.add("gaps")
        if one.times[-1] - start > FACTOR * ranges.longest:
            reasons.add("length")
        found[one.ids[0]] = reasons
    return found


def observations(one: Streams) -> list[tuple[float, int, float]]:
    event = np.repeat(np.arange(len(one.times)), np.diff(one.obs_offsets))
    return list(zip(one.times[event].tolist(), one.channel.tolist(), one.value.tolist(), strict=True))


def test_ranges_are_those_of_the_series():
    streams = feed(6, 0)
    ranges = TrainingRanges.of(streams)
    spans = [one.times[-1] - one.times[0] for one in streams]
    assert ranges.longest == max(spans)
    assert ranges.most[0, -1] == max(len(one.times) for one in streams)
    for number in range(3):
        values = streams.value[streams.channel == number]
        expected = (values.min(), values.max()) if len(values) >= 20 else (-np.inf, np.inf)
        assert (ranges.lowest[number], ranges.highest[number]) == expected
        silences = []
        for one, span in zip(streams, spans, strict=True):
            stamps = [t for t, c, _ in observations(one) if c == number]
            silences += np.diff([one.times[0], *stamps, one.times[-1]]).tolist() if stamps else [span]
        np.testing.assert_allclose(ranges.silence[number], max(silences))


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"rate": 30.0}, "density"), ({"size": 50.0}, "values"), ({"length": 80.0}, "length"), ({}, None)],
)
def test_far_series_are_those_of_slow_counting(change, reason):
    ranges = TrainingRanges.of(feed(20, 0))
    other = feed(12, 1, **change, first=20)
    far = {series: reasons for series, reasons in slow_excesses(ranges, other).items() if reasons}
    found = ranges.compare(other)
    if reason is None:
        assert found is None
        assert not far
        return
    assert isinstance(found, OutOfRange)
    assert (found.series, found.total) == (len(far), 12)
    assert {one.reason for one in found.worst} == set().union(*far.values())
    assert reason in {one.reason for one in found.worst}
    for one in found.worst:
        assert one.reason in far[one.series]
        assert one.ratio > 1
    assert [one.ratio for one in found.worst] == sorted((one.ratio for one in found.worst), reverse=True)


def test_message_says_what_was_found_and_what_was_trained_on():
    training = Streams.from_dense(np.random.default_rng(0).uniform(size=(5, 21, 1)), channels=["pulse"])
    ranges = TrainingRanges.of(training)
    dense = Streams.from_dense(np.full((1, 201, 1), 0.5), np.linspace(0, 20, 201), ["pulse"], ids=["p7"])
    found = ranges.compare(
        Streams.concatenate([dense, Streams.from_dense(np.zeros((1, 3, 1)), channels=["pulse"], ids=["p8"])])
    )
    assert str(found).startswith(
        "1 of 2 series lies far outside of what the model was trained on. Series 'p7' has 201 observations of 'pulse' "
        "within 20, in training at most 21. Predictions are extrapolated there."
    )
    both = found + ranges.compare(Streams.from_dense(np.full((1, 9, 1), 99.0), channels=["pulse"], ids=["p9"]))
    assert (both.series, both.total, [one.series for one in both.worst]) == (2, 3, ["p9", "p7"])
    assert "Series 'p9' has 9 values of 'pulse' such as 99, in training 0." in str(both)


def test_pause_counts_if_it_is_long_and_no_training_series_has_one():
    steps = np.arange(41.0)
    training = Streams.from_dense(np.random.default_rng(0).uniform(size=(5, 41, 2)), channels=["a", "b"])
    ranges = TrainingRanges.of(training)

    def without(start: int, stop: int) -> OutOfRange | None:
        values = np.full((1, 41, 2), 0.5)
        values[0, start:stop, 1] = np.nan
        return ranges.compare(Streams.from_dense(values, steps, ["a", "b"], horizon=40.0))

    assert without(10, 25) is None
    found = without(10, 35)
    assert [one.reason for one in found.worst] == ["gaps"]
    assert found.worst[0].text == "has no observation of 'b' for 26, in training for at most 1"
    assert without(0, 30) is None  # what is not known from the start is no pause
    holed = training.value.reshape(5, 41, 2).copy()
    holed[0, 10:30, 1] = np.nan
    ranges = TrainingRanges.of(Streams.from_dense(holed, channels=["a", "b"]))
    assert without(10, 35) is None


def test_stamps_may_begin_anywhere():
    ranges = TrainingRanges.of(feed(10, 0))
    dense = feed(3, 1, rate=30.0)
    later = dataclasses.replace(dense, times=dense.times + 2.0**20, horizon=dense.horizon + 2.0**20)
    assert {one.reason for one in ranges.compare(dense).worst} == {"density"}
    assert {one.reason for one in ranges.compare(later).worst} == {"density", "window"}
    moved = feed(10, 0)
    moved = dataclasses.replace(moved, times=moved.times + 2.0**20, horizon=moved.horizon + 2.0**20)
    np.testing.assert_allclose(TrainingRanges.of(moved).longest, ranges.longest)
    assert TrainingRanges.of(moved).compare(feed(10, 2)) is None


def test_windows_that_are_empty_before_or_after_the_events():
    training = Streams.from_dense(np.random.default_rng(0).uniform(size=(5, 21, 1)), channels=["pulse"], horizon=21.0)
    ranges = TrainingRanges.of(training)
    assert (ranges.before, ranges.after) == (0.0, 1.0)

    def found(start: float, end: float) -> list[tuple[str, str]]:
        one = Streams.from_dense(np.full((1, 21, 1), 0.5), np.arange(21) + start, ["pulse"], origin=0.0, horizon=end)
        outside = ranges.compare(one)
        return [] if outside is None else [(each.reason, each.text) for each in outside.worst]

    assert found(9.0, 39.0) == []
    assert found(500.0, 521.0) == [("window", "begins 500 after the start of time, in training at most 0")]
    assert found(0.0, 70.0) == [("window", "is asked for 50 after its last event, in training for at most 1")]
    assert ranges.compare(training, training.horizon + 30.0).worst[0].reason == "window"
    far = ranges.compare(dataclasses.replace(training, times=training.times + 90.0, horizon=training.horizon + 90.0))
    assert "train and predict with origin=FirstStamp(), in commands --origin first." in str(far)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e308])
def test_extreme_training_series(size):
    """Constant channels, ranges beyond the largest number, single events, and series without any."""
    values = size * np.random.default_rng(0).choice([-1.0, 1.0], size=(30, 1, 1))
    ranges = TrainingRanges.of(Streams.from_dense(values, horizon=2.0))
    assert ranges.longest == 2.0
    assert ranges.compare(Streams.from_dense(values, horizon=2.0)) is None
    other = ranges.compare(Streams.from_dense(np.full((1, 6, 1), 1e300), horizon=6.0))
    assert (other is None) == (size > 1)
    empty = Streams.from_arrays([[]], [np.zeros((0, 1))], ["x1"], 3.0, empty=lc.streams.Keep())
    assert ranges.compare(empty) is None
    assert TrainingRanges.of(empty).longest == 3.0


def test_ranges_that_cannot_be_are_refused():
    ranges = TrainingRanges.of(feed(3, 0))
    for change in (
        {"longest": 0.0},
        {"longest": np.inf},
        {"before": -1.0},
        {"most": ranges.most[:2]},
        {"lowest": np.full(3, np.nan)},
    ):
        with pytest.raises(StreamError, match=f"TrainingRanges.{next(iter(change))}"):
            dataclasses.replace(ranges, **change)


def check_halves(streams: Streams, size: int) -> None:
    """One part of the series against another, also with half of the observations dropped in both."""
    order = np.random.default_rng(0).permutation(len(streams))
    for some in (streams, drop_observations(streams, 0.5, PerChannel(), seed=0)):
        assert TrainingRanges.of(some[order[:size]]).compare(some[order[size : 2 * size]]) is None


def test_no_false_alarm_on_generated_series():
    check_halves(feed(120, 0), 60)
    check_halves(feed(20, 1), 10)
    check_halves(sinusoids("async_sparse", series=60, seed=0).data.streams, 30)


def test_no_false_alarm_on_beginnings_of_series():
    streams = feed(60, 0)
    ranges = TrainingRanges.of(streams[:30])
    for one in streams[30:]:
        for time in np.linspace(one.times[0], one.times[-1], 12):
            rows = [row for row in observations(one) if row[0] <= time]
            events = [("s", t, {CHANNELS[c]: v}) for t, c, v in rows]
            merged = {}
            for _, t, values in events:
                merged.setdefault(t, {}).update(values)
            prefix = Streams.from_events([("s", t, values) for t, values in merged.items()], channels=CHANNELS)
            assert ranges.compare(prefix) is None


@pytest.mark.skipif("LOGCDE_DATA" not in os.environ, reason="LOGCDE_DATA is not set")
def test_no_false_alarm_on_real_series():
    check_halves(physionet2012().streams[:4000], 2000)
    for name in ("JapaneseVowels", "Epilepsy", "BasicMotions", "RacketSports", "NATOPS"):
        streams = load(name).streams
        check_halves(streams, len(streams) // 2)

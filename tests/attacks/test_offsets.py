"""Offsets and epochs: the same data with another zero of time are the same streams, features and predictions."""

import functools
import json
import warnings

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding, Partition, Streams
from logcde.cli.stream_session import Session, When
from logcde.errors import StreamError
from logcde.estimators import (
    LogCDEClassifier,
    LogCDEForecaster,
    LogCDETransformer,
    LogSLiCE,
    Long,
    WindowRidge,
    load,
)
from logcde.features import LogSignatureFeatures, WindowFeatures
from logcde.streams import Earliest, FirstStamp, NumericClock
from logcde.streams.file_scan import Layout, scan, some_streams
from logcde.streams.files import open_table
from logcde.streams.ingest import ReadOptions
from logcde.streams.stamps import ClockOptions
from tests.cli.tables import run

EPOCHS = (1.7e9, 1.7e12, 1.7e15)
"""In seconds, milliseconds and microseconds; floats there hold quarters exactly, of which all stamps are multiples."""
SERIES = 24


@st.composite
def grids(draw):
    """Stamps of a few series, the earliest of all 0, and a value for each."""
    sets = draw(st.lists(st.sets(st.integers(1, 60), min_size=2, max_size=8), min_size=1, max_size=4))
    stamps = [np.array(sorted({0, *sets[0]}), float) / 4, *(np.array(sorted(one), float) / 4 for one in sets[1:])]
    return stamps, [np.cos(7 * one)[:, None] for one in stamps]


@settings(max_examples=30, deadline=None)
@given(grids(), st.sampled_from((6.4e8, *EPOCHS)))
def test_streams_of_moments_count_from_their_earliest_stamp(drawn, offset):
    stamps, values = drawn
    plain = Streams.from_arrays(stamps, values)
    far = Streams.from_arrays([one + offset for one in stamps], values)
    assert plain.schema.clock == NumericClock()
    assert far.schema.clock == NumericClock(offset)
    np.testing.assert_array_equal(far.times, plain.times)
    np.testing.assert_array_equal(far.horizon, plain.horizon)
    np.testing.assert_array_equal(far.to_frame()["time"].to_numpy(), np.concatenate(stamps) + offset)
    for partition in (Partition.every(0.75), Partition.uniform(3), Partition.every_events(2)):
        ours, theirs = (Embedding(depth=2)(streams, partition) for streams in (far, plain))
        np.testing.assert_array_equal(ours.values, theirs.values)
    points = np.array([0.0, 0.25, float(plain.horizon[0])])
    np.testing.assert_array_equal(
        Partition.at(points + offset).cuts(far).points, Partition.at(points).cuts(plain).points
    )


def test_a_part_of_a_series_keeps_the_zero_of_the_whole():
    """However late it begins, and however short it is: numbers that are no moments count from 0."""
    times, values = np.array([0.0, 1.0, 900.0, 900.5]), np.ones((4, 1))
    whole, part = Streams.from_arrays([times], [values]), Streams.from_arrays([times[2:]], [values[2:]])
    assert part.schema.clock == whole.schema.clock == NumericClock()


@settings(max_examples=30, deadline=None)
@given(grids(), st.sampled_from((200.0, 1e5, *EPOCHS)), st.integers(0, 3))
def test_each_series_may_count_from_its_own_first_stamp(drawn, offset, apart):
    stamps, values = drawn
    moved = [one + offset + 4096.0 * apart * k for k, one in enumerate(stamps)]
    streams = Streams.from_arrays(moved, values, origin=FirstStamp())
    np.testing.assert_array_equal(streams.origins, [one[0] for one in moved])
    np.testing.assert_array_equal(streams.times, np.concatenate([one - one[0] for one in stamps]))
    np.testing.assert_array_equal(streams.to_frame()["time"].to_numpy(), np.concatenate(moved))
    further = Streams.from_arrays(moved, values, schema=streams.schema)
    assert further == streams
    assert Streams.from_arrays(moved, values).on_clock(NumericClock(None)).times.tolist() == streams.times.tolist()


@settings(max_examples=30, deadline=None)
@given(grids(), st.floats(0, 2))
def test_streams_that_begin_near_zero_are_untouched(drawn, offset):
    stamps, values = drawn
    streams = Streams.from_arrays([one + offset for one in stamps], values, horizon=20.0)
    assert streams.schema.clock == NumericClock()
    np.testing.assert_array_equal(streams.times, np.concatenate([one + offset for one in stamps]))
    assert streams.horizon.tolist() == [20.0] * len(stamps)


def shape(series, offset):
    """Stamps of a series, which begins at `offset`, and its values: a wave, faster in every second series."""
    rng = np.random.default_rng(series)
    stamps = np.concatenate([[0.0], np.sort(rng.choice(np.arange(1, 160), 19, replace=False)) / 4])
    return stamps + offset, np.sin(stamps * (1 + series % 2) / 4 + rng.uniform(0, 6))


OFFSETS = {"0": lambda _: 0.0, **{f"{one:g}": functools.partial(lambda one, _: one, one) for one in EPOCHS}}
OFFSETS["apart"] = lambda series: 1.7e9 + 86400.0 * series
STATES = {f"s{k}": ("slow", "fast")[k % 2] for k in range(SERIES)}


def table(offset, first=0):
    rows = [
        (f"s{k}", time, "a", value, STATES[f"s{k}"])
        for k in range(first, SERIES)
        for time, value in zip(*(part.tolist() for part in shape(k, OFFSETS[offset](k))), strict=True)
    ]
    return polars.DataFrame(rows, schema=["series", "time", "channel", "value", "state"], orient="row")


@functools.cache
def fitted(learner, offset):
    return LogCDEClassifier(table=Long(), learner=learner, random_state=0).fit(table(offset), STATES)


NETWORK = LogSLiCE(steps=4, hidden=4)


@pytest.mark.parametrize("learner", [WindowRidge(units=10), NETWORK], ids=["features", "network"])
@pytest.mark.parametrize("offset", [*OFFSETS][1:])
def test_classifiers_do_not_depend_on_the_zero_of_time(learner, offset, tmp_path):
    plain, far = fitted(learner, "0"), fitted(learner, offset)
    expected = plain.predict_proba(table("0"))
    np.testing.assert_array_equal(far.predict_proba(table(offset)), expected)
    assert "read as 2023-11-14T22:13:20 in " in far.choices_.pop("origin").reason
    assert "origin" not in plain.choices_
    for name in ("partition", "depth"):
        assert repr(far.choices_.get(name)) == repr(plain.choices_.get(name))
    far.save(tmp_path / "model")
    times, values = shape(3, OFFSETS[offset](3))
    for estimator in (far, load(tmp_path / "model")):
        online = estimator.online()
        for number, (time, value) in enumerate(zip(times, values, strict=True)):
            online.observe(float(time), {"a": float(value)})
            if number == 10:
                online = estimator.online().restore(online.state()).copy()
        found = online.predict(at=float(times[-1] + far.gap_))
        np.testing.assert_allclose(np.exp(found) / np.exp(found).sum(), expected[3], rtol=1e-5)
    # A batch of one series, and a series that has only begun.
    np.testing.assert_array_equal(far.predict_proba(table(offset, SERIES - 1)), expected[-1:])
    assert far.predict_proba(table(offset, SERIES - 1)[:1]).shape == (1, 2)


@pytest.mark.parametrize("offset", [*OFFSETS][1:])
def test_forecasts_do_not_depend_on_the_zero_of_time(offset):
    found = []
    for one in ("0", offset):
        frame = table(one)
        starts = {name: OFFSETS[one](k) for k, name in enumerate(STATES)}
        later = frame.group_by("series", maintain_order=True).agg(polars.last("time", "channel", "value"))
        forecaster = LogCDEForecaster(table=Long(), random_state=0).fit(
            frame, later.with_columns(polars.col("time") + 8)
        )
        at = [[start + 41.0, start + 45.0] for start in starts.values()]
        predicted = forecaster.predict(frame, at=at)
        online = forecaster.online()
        for time, value in zip(*shape(2, starts["s2"]), strict=True):
            online.observe(float(time), {"a": float(value)})
        np.testing.assert_array_equal(online.predict(at=at[2][1]), predicted[2, 1])
        found.append((predicted, forecaster.predict(frame), forecaster.score(frame)))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("offset", ["1.7e+09", "apart"])
def test_commands_do_not_depend_on_the_zero_of_time(offset, tmp_path, capsys):
    found = []
    for one in ("0", offset):
        folder = tmp_path / one
        folder.mkdir()
        table(one).write_parquet(folder / "table.parquet")
        arguments = ("--channel", "channel", "--value", "value", "--target", "state", "--learner", "ridge")
        assert run("train", folder / "table.parquet", *arguments, "-o", folder / "model") == 0
        said = capsys.readouterr().out
        assert ("read as 2023-11-14T22:13:20 in seconds since 1970; --origin" in said) == (one != "0")
        assert run("evaluate", folder / "model", folder / "table.parquet", "--held-out") == 0
        scores = capsys.readouterr().out.splitlines()[1:]
        assert run("predict", folder / "model", folder / "table.parquet", "-o", folder / "p.parquet") == 0
        predictions = polars.read_parquet(folder / "p.parquet")
        starts = np.array([OFFSETS[one](k) for k in range(SERIES)])
        found.append((scores, predictions["probability_fast"].to_list(), (predictions["time"] - starts).to_list()))
    assert found[0] == found[1]


def test_stream_lines_count_from_the_first_stamp_of_their_series():
    """Lines in seconds since 1970, of two series that begin a day apart; the state holds where each began."""
    found = []
    for one in ("0", "apart"):
        estimator = fitted(WindowRidge(units=10), one)
        session = Session(estimator.online(), When.INTERVAL)
        lines = []
        for k in (3, 5):
            start = OFFSETS[one](k)
            for time, value in zip(*shape(k, start), strict=True):
                line = {"series": f"s{k}", "time": float(time), "values": {"a": float(value)}}
                lines += session.take(json.dumps(line).encode())
            restored = Session(estimator.online(), When.INTERVAL)
            restored.restore(json.loads(json.dumps(session.state())))
            session = restored
            lines += session.take(json.dumps({"series": f"s{k}", "predict": start + 41.0}).encode())
            with pytest.raises(StreamError, match=f"before the start of series 's{k}', {start!r}"):
                session.take(json.dumps({"series": f"s{k}", "time": start - 1.0, "values": {"a": 0.0}}).encode())
        found.append([(line.series, line.time - OFFSETS[one](int(line.series[1:])), line.prediction) for line in lines])
    assert found[0] == found[1]
    assert len(found[0]) > 10


@pytest.mark.parametrize("features", [WindowFeatures(units=5), LogSignatureFeatures(scales=(1, 2))], ids=["w", "l"])
@pytest.mark.parametrize("offset", ["1.7e+09", "apart"])
def test_features_do_not_depend_on_the_zero_of_time(features, offset):
    plain, far = (LogCDETransformer(features, table=Long()).fit(table(one)) for one in ("0", offset))
    rows = far.transform(table(offset))
    np.testing.assert_array_equal(rows, plain.transform(table("0")))
    online = far.online()
    start = OFFSETS[offset](3)
    for time, value in zip(*shape(3, start), strict=True):
        online.observe(float(time), {"a": float(value)})
    np.testing.assert_array_equal(online.features(at=float(shape(3, start)[0][-1] + far.gap_)), rows[3])


@pytest.mark.parametrize("origin", ["earliest", "first"])
def test_embedded_intervals_are_stamps(origin, tmp_path, capsys):
    found = []
    for one in ("0", "1.7e+09"):
        table(one).write_parquet(tmp_path / "table.parquet")
        assert (
            run("embed", tmp_path / "table.parquet", "--origin", origin, "--every", 8, "-o", tmp_path / "e.parquet")
            == 0
        )
        zero = OFFSETS[one](0)
        found.append(polars.read_parquet(tmp_path / "e.parquet").with_columns(polars.col("start", "stop") - zero))
    assert found[0].equals(found[1])
    assert run("describe", tmp_path / "table.parquet", "--origin", origin) == 0
    assert "read as 2023-11-14T22:13:20 in seconds since 1970" in capsys.readouterr().out


def test_a_zero_of_time_that_empties_intervals_is_warned_of(tmp_path, capsys):
    table("1.7e+09").write_parquet(tmp_path / "table.parquet")
    intervals = ("--origin", "0", "--intervals", "64", "-o", tmp_path / "e.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run("embed", tmp_path / "table.parquet", *intervals) == 0
    said = (
        "logcde: The partition leaves most intervals empty: only 24 of 1,536 hold an event. If time should count from "
    )
    assert capsys.readouterr().err.startswith(f"{said}where series begin, pass --origin first;")


@pytest.mark.parametrize("policy", [Earliest(), FirstStamp(), FirstStamp(near_zero=True), 1.69e9])
@pytest.mark.parametrize("horizon", [None, 1.7e9 + 90_000.0 * SERIES])
def test_files_read_in_groups_count_from_one_origin(policy, horizon, tmp_path):
    frame = table("apart").drop("state")
    frame.write_parquet(tmp_path / "table.parquet")
    options = ReadOptions(horizon=horizon, clock=ClockOptions(origin=policy))
    found = scan(open_table(tmp_path / "table.parquet"), Layout.long(), options)
    groups = Streams.concatenate(list(some_streams(found, tmp_path, group=100)))
    assert groups == Streams.from_frame(frame, horizon=horizon, origin=policy)

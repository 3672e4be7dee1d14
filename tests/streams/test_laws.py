"""Laws of streams, by Hypothesis: reading agrees with a slow and obvious reader, and nothing is lost on the way."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from logcde.streams import Average, FirstStamp, KeepLast, Schema, Streams, Term

CHANNELS = ("a", "b", "c")
AREA = Term("area", ("a", "c"))

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
times = st.integers(0, 12).map(lambda k: k / 4)
rows = st.lists(
    st.tuples(st.sampled_from(["p", "q", "r"]), times, st.sampled_from(CHANNELS), numbers), min_size=1, max_size=40
)


@st.composite
def inputs(draw):
    """Events at 0 and before the horizon, repeated values, channels never seen, and a term.

    Streams are made in the tests: beartype draws random numbers, which no strategy may.
    """
    series = draw(st.integers(1, 4))
    stamps, values, areas = [], [], []
    for _ in range(series):
        own = sorted(draw(st.sets(times, min_size=1, max_size=6)))
        block = np.array(
            draw(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=len(own), max_size=len(own)))
        )
        seen = np.array(draw(st.lists(st.sampled_from([1, 2, 3, 5, 6, 7]), min_size=len(own), max_size=len(own))))
        block[(seen[:, None] >> np.arange(3)) & 1 == 0] = np.nan
        stamps.append(np.array(own))
        values.append(block)
        areas.append(draw(st.lists(numbers, min_size=len(own), max_size=len(own))))
    ids = draw(st.sampled_from([None, [f"s{k}" for k in range(series)]]))
    return stamps, values, areas, ids


def made(drawn, clock=lambda hours: hours):
    stamps, values, areas, ids = drawn
    return Streams.from_arrays(
        [clock(series) for series in stamps], values, CHANNELS, horizon=4.0, ids=ids, terms={AREA: areas}
    )


def hours_as_datetimes(hours):
    return np.datetime64("2024-02-29T22:30", "ms") + (hours * 3_600_000).astype("timedelta64[ms]")


def hours_as_durations(hours):
    return (hours * 3_600_000_000_000).astype("timedelta64[ns]")


def read_slowly(table, choose):
    """Events of each series as {id: {time: {channel: value}}}, in order of first appearance."""
    found: dict = {}
    for series, time, channel, value in table:
        found.setdefault(series, {}).setdefault(time, {}).setdefault(channel, []).append(value)
    return {s: {t: {c: choose(v) for c, v in seen.items()} for t, seen in at.items()} for s, at in found.items()}


def as_dictionary(streams):
    """The same of streams."""
    found: dict = {}
    for one in streams:
        events = found.setdefault(one.ids[0], {})
        for event, time in enumerate(one.times):
            part = slice(one.obs_offsets[event], one.obs_offsets[event + 1])
            names = [streams.schema.channels[k] for k in one.channel[part]]
            events[float(time)] = dict(zip(names, one.value[part].tolist(), strict=True))
    return found


def check_invariants(streams):
    for one in streams:
        assert (np.diff(one.times) > 0).all()
        assert (one.times >= 0).all()
        assert (one.times <= one.horizon).all()
        assert (np.diff(one.obs_offsets) > 0).all()
        for start, stop in zip(one.obs_offsets[:-1], one.obs_offsets[1:], strict=True):
            assert (np.diff(one.channel[start:stop]) > 0).all()
    assert np.isfinite(streams.value).all()
    for name in ("ids", "offsets", "times", "obs_offsets", "channel", "value", "horizon", "terms"):
        assert not getattr(streams, name).flags.writeable
        assert getattr(streams, name).flags.c_contiguous


@given(rows, st.booleans())
@settings(max_examples=60, deadline=None)
def test_long_rows_in_any_order_agree_with_a_slow_reader(table, last):
    assume(any(time > 0 for _, time, _, _ in table))
    policy, choose = (KeepLast(), lambda v: v[-1]) if last else (Average(), np.mean)
    frame = polars.DataFrame(table, schema=["series", "time", "channel", "value"], orient="row")
    streams = Streams.from_frame(frame, sort=True, duplicates=policy, channels=CHANNELS)
    check_invariants(streams)
    expected, found = read_slowly(table, choose), as_dictionary(streams)
    assert list(found) == list(expected)
    for series, events in expected.items():
        assert list(found[series]) == sorted(events)
        for time, seen in events.items():
            assert found[series][time] == pytest.approx(seen, rel=1e-12, abs=1e-9)
    assert np.all(streams.horizon == max(time for _, time, _, _ in table))


@given(inputs(), st.sampled_from([polars, pandas, pyarrow]))
@settings(max_examples=40, deadline=None)
def test_round_trip_through_frames_of_every_library(drawn, backend):
    streams = made(drawn)
    check_invariants(streams)
    again = Streams.from_frame(streams.to_frame(backend), schema=streams.schema, horizon=streams.horizon)
    assert again == streams


@given(inputs(), st.sampled_from([hours_as_datetimes, hours_as_durations]), st.sampled_from([polars, pandas, pyarrow]))
@settings(max_examples=40, deadline=None)
def test_round_trip_of_datetimes_and_durations(drawn, clock, backend):
    streams = made(drawn, clock)
    again = Streams.from_frame(streams.to_frame(backend), schema=streams.schema, horizon=streams.horizon)
    assert again == streams


@given(inputs())
@settings(max_examples=20, deadline=None)
def test_round_trip_needs_no_schema_where_the_frame_has_it(drawn):
    streams = made(drawn)
    frame = streams.to_frame(polars)
    again = Streams.from_frame(frame, horizon=streams.horizon, terms={"area": ("a", "c")})
    assert again == streams


@given(inputs())
@settings(max_examples=30, deadline=None)
def test_from_wide_from_frame_and_from_events_agree(drawn):
    streams = made(drawn)
    plain = Streams.from_frame(streams.to_frame().drop("area"), channels=CHANNELS, horizon=4.0)
    wide = plain.to_frame(polars).with_columns(polars.col("channel").cast(str))
    wide = wide.pivot(on="channel", index=["series", "time"], values="value", maintain_order=True)
    seen = [channel for channel in CHANNELS if channel in wide.columns]
    missing = [polars.lit(None, polars.Float64).alias(channel) for channel in CHANNELS if channel not in seen]
    assert Streams.from_wide(wide.with_columns(missing), channels=CHANNELS, horizon=4.0) == plain
    events = [(s, t, seen) for s, at in as_dictionary(plain).items() for t, seen in at.items()]
    assert Streams.from_events(events, channels=CHANNELS, horizon=4.0) == plain


@given(inputs(), st.data())
@settings(max_examples=30, deadline=None)
def test_selection_and_concatenation(drawn, data):
    streams = made(drawn)
    n = len(streams)
    streams = streams.with_continuous(("dose",), [0.0, 1.0, 4.0], [1.0, 0.0, 2.0])
    start, stop = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    assert streams[start:stop] == streams[np.arange(start, stop)]
    assert len(streams[start:stop]) == stop - start
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert streams[mask] == streams[np.flatnonzero(mask)] == streams[mask.tolist()]
    order = np.array(data.draw(st.permutations(range(n))))
    assert streams[order][np.argsort(order)] == streams
    assert streams[::-1][::-1] == streams
    assert [one.ids[0] for one in streams] == streams.ids.tolist()
    assert streams[n - 1] == streams[-1] == list(streams)[-1]
    assert Streams.concatenate(list(streams)) == streams
    check_invariants(streams[order])


@given(inputs())
@settings(max_examples=20, deadline=None)
def test_round_trip_with_an_origin_for_each_series(drawn):
    streams = made(drawn, hours_as_datetimes)
    frame = streams.to_frame(polars)
    options = {"terms": {"area": ("a", "c")}, "horizon": 4.0}
    own = Streams.from_frame(frame, origin=FirstStamp(), **options)
    assert (own.times[own.offsets[:-1]] == 0).all()
    assert own.schema.clock.origin is None
    same = Streams.from_frame(frame, origin=dict(zip(own.ids.tolist(), own.origins, strict=True)), **options)
    assert same == own
    assert Streams.from_frame(own.to_frame(), schema=own.schema, origin=own.origins, horizon=own.horizon) == own
    assert own.to_frame().equals(frame)
    back = own[::-1]
    assert back.origins.tolist() == own.origins[::-1].tolist()
    assert Streams.concatenate([own[:1], own[1:]]) == own


def test_equality_compares_content():
    one = Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]])
    assert one == Streams.from_arrays([[0, 1]], [[[1], [2]]])
    assert one != Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.5]]])
    assert one != Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]], channels=("other",))
    assert one != Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]], ids=["p"])
    assert one != Streams.from_arrays([[0.0, 1.0]], [[[1.0], [2.0]]], horizon=3)
    assert one.with_continuous(("u",), [0, 1], [0, 1]) != one.with_continuous(("u",), [0, 1], [0, 2])
    assert one != "one"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_schema_of_earlier_data():
    first = Streams.from_events([("p", 0.0, {"a": 1, "b": 2}), ("p", 2.0, {"c": 1})])
    second = Streams.from_events([("q", 1.0, {"b": 2})], schema=first.schema, horizon=2.0)
    assert second.schema == first.schema == Schema(CHANNELS)
    assert len(Streams.concatenate([first, second])) == 2

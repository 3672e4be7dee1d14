"""What the options identify holds exactly where it is claimed, and the path moves continuously with the data."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.embedding import Embedding
from logcde.paths.realisation import realise
from logcde.streams import Partition, Streams, Term
from tests.embedding import strategies

NAN = np.nan
FULL = Embedding()
AREA, THIRD = Term("area", ("a", "b")), Term("third", ("b", ("a", "b")))


def everything(terms=None):
    times = [[0.0, 0.5, 1.0, 4.0], [0.3, 2.5]]
    table = [[[1.0, NAN], [2.0, 0.5], [2.0, NAN], [NAN, -0.5]], [[NAN, 0.0], [3.0, 1.0]]]
    streams = Streams.from_arrays(times, table, ("a", "b"), [4.0, 5.0], terms=terms)
    return streams.with_continuous(("p",), [[0.0, 0.7, 4.0], [0.0, 5.0]], [[1.0, 0.5, -1.0], [0.3, 0.4]])


@pytest.mark.parametrize(
    ("counts", "time", "beginnings"),
    [
        (True, True, ["With counts and time nothing is identified"]),
        (False, True, ["Without counts", "A log-signature"]),
        (True, False, ["Without time", "A log-signature"]),
        (False, False, ["Without counts", "Without time", "A log-signature"]),
    ],
)
def test_invariances_sentences(counts, time, beginnings):
    sentences = Embedding(3, counts=counts, time=time).invariances()
    assert len(sentences) == len(beginnings)
    assert all(sentence.startswith(words) for sentence, words in zip(sentences, beginnings, strict=True))
    assert "A log-signature keeps the first 3 levels only" in sentences[-1]


@strategies.composite
def repetitions(draw, streams):
    """The same streams with some observations more, none of which changes a value."""
    events = []
    for number, series in enumerate(streams):
        rows = dict(zip(series.times.tolist(), observations(series), strict=True))
        extra = [share * series.horizon[0] for share in draw(st.lists(strategies.shares, max_size=3))]
        known = {}
        for time in sorted({*rows, *extra}):
            row = dict(rows.get(time, {}))
            names = streams.schema.channels
            for name in draw(st.sets(st.sampled_from(names), min_size=0 if row else 1)):
                row.setdefault(name, known.get(name, 0.0))
            known |= row
            events.append((number, time, row))
    return Streams.from_events(events, schema=streams.schema, horizon=streams.horizon)


def observations(series):
    names = series.schema.channels
    for event in range(len(series.times)):
        part = slice(series.obs_offsets[event], series.obs_offsets[event + 1])
        channels, values = series.channel[part].tolist(), series.value[part].tolist()
        yield {names[channel]: value for channel, value in zip(channels, values, strict=True)}


@given(strategies.streams(), st.booleans(), st.data())
@settings(max_examples=50, deadline=None)
def test_without_counts_repetitions_leave_no_trace(streams, time, data):
    more = data.draw(repetitions(streams))
    blind, seeing = Embedding(3, counts=False, time=time), Embedding(3, time=time)
    for once, again in zip(realise(streams, blind), realise(more, blind), strict=True):
        assert np.array_equal(once.u, again.u)
        assert np.array_equal(once.positions, again.positions)
    partition = data.draw(strategies.partitions(streams))
    np.testing.assert_allclose(blind(streams, partition).values, blind(more, partition).values, atol=1e-10)
    for once, again, added in zip(realise(streams, seeing), realise(more, seeing), more, strict=True):
        repeated = len(added.value) > len(streams[int(added.ids[0])].value)
        assert (once.deviation(again).max() > 0) == repeated


def test_without_counts_other_changes_leave_a_trace():
    base = Streams.from_arrays([[0.5, 2.0]], [[[3.0], [3.0]]], horizon=3.0)
    blind = Embedding(counts=False)
    (path,) = realise(base, blind)
    for changed in ([[[3.0], [3.5]]], [[[0.0], [3.0]]]):
        (other,) = realise(Streams.from_arrays([[0.5, 2.0]], changed, horizon=3.0), blind)
        assert path.deviation(other).max() > 0


@strategies.composite
def warped(draw, streams, partition):
    """The same events at other times, each in the query interval it was in."""
    cuts, times = partition.cuts(streams), streams.times.copy()
    for series in range(len(streams)):
        points = cuts.points[cuts.offsets[series] : cuts.offsets[series + 1]]
        part = slice(streams.offsets[series], streams.offsets[series + 1])
        interval = np.minimum(np.searchsorted(points, times[part], side="right") - 1, len(points) - 2)
        for number in np.unique(interval):
            inside = np.flatnonzero(interval == number) + streams.offsets[series]
            share = draw(st.lists(st.integers(0, 999), min_size=len(inside), max_size=len(inside), unique=True))
            start, stop = points[number : number + 2]
            times[inside] = start + np.sort(share) / 1000 * (stop - start)
    return dataclasses.replace(streams, times=times)


@given(strategies.streams(terms=True), st.booleans(), st.data())
@settings(max_examples=50, deadline=None)
def test_without_time_stamps_leave_no_trace(streams, counts, data):
    partition = data.draw(strategies.partitions(streams))
    later = data.draw(warped(streams, partition))
    blind = Embedding(3, counts=counts, time=False)
    np.testing.assert_allclose(blind(streams, partition).values, blind(later, partition).values, atol=1e-10)
    for once, again in zip(realise(streams, blind), realise(later, blind), strict=True):
        assert once.deviation(again).max() == 0
    for once, again, series in zip(realise(streams, FULL), realise(later, FULL), range(len(streams)), strict=True):
        assert (once.deviation(again).max() > 0) == (not np.array_equal(streams[series].times, later[series].times))


def test_without_time_continuous_channels_leave_their_curve():
    streams = everything()
    slower = dataclasses.replace(
        streams,
        times=streams.times * 3,
        horizon=streams.horizon * 3,
        knots=dataclasses.replace(streams.knots, times=streams.knots.times * 3),
    )
    later = dataclasses.replace(streams, times=streams.times + 0.1 * (streams.times < 4))
    blind = Embedding(time=False)
    for path, same, other in zip(*(realise(some, blind) for some in (streams, slower, later)), strict=True):
        assert path.deviation(same).max() < 1e-12
        assert path.deviation(other).max() > 1e-3


def test_without_time_an_event_in_another_interval_leaves_a_trace():
    early, late = (Streams.from_arrays([[time]], [[[3.0]]], horizon=3.0) for time in (1.0, 2.0))
    blind, partition = Embedding(time=False), Partition.at([0.0, 1.5, 3.0])
    assert not np.allclose(blind(early, partition).values, blind(late, partition).values)


# Continuity, with the bound of the proof.


@given(strategies.streams(most_series=1, continuous=True), st.integers(0, 2**32), st.sampled_from([1.0, 1e-3, 1e-8]))
@settings(max_examples=60, deadline=None)
def test_small_changes_move_the_path_by_no_more_than_the_bound(streams, seed, size):
    rng = np.random.default_rng(seed)
    gap = np.diff(streams.times, prepend=-1.0, append=streams.horizon[0] + 1).min()
    shift = size * gap / 3 * rng.uniform(-1, 1, len(streams.times))
    times = np.clip(streams.times + shift, 0, streams.horizon[0])
    moved = dataclasses.replace(
        streams, times=times, value=streams.value + size * rng.uniform(-1, 1, len(streams.value))
    )
    bound = np.zeros(FULL.basis(streams.schema).width)
    delays = np.abs(times - streams.times)
    bound[-1] = delays.sum()
    channels = len(streams.schema.channels)
    for event, observed in enumerate(changes(streams)):
        for channel, change in observed.items():
            bound[channel] += abs(change) * delays[event]
            bound[channels + channel] += delays[event]
    for channel in np.unique(streams.channel):
        bound[channel] += np.abs(moved.value - streams.value)[streams.channel == channel].max()
    if streams.knots is not None:
        heights = streams.knots.values + size * rng.uniform(-1, 1, streams.knots.values.shape)
        moved = dataclasses.replace(moved, knots=dataclasses.replace(streams.knots, values=heights))
        slopes = np.abs(np.diff(streams.knots.values, axis=0) / np.diff(streams.knots.times)[:, None]).max(axis=0)
        apart = np.abs(heights - streams.knots.values).max(axis=0)
        bound[2 * channels : -1] = apart + slopes * delays.sum()
    (before,), (after,) = realise(streams, FULL), realise(moved, FULL)
    assert (before.deviation(after) <= bound * (1 + 1e-9) + 1e-12).all()


def changes(streams):
    """For every event of one series the change of each channel it observes."""
    known, found = {}, []
    for event in range(len(streams.times)):
        part = slice(streams.obs_offsets[event], streams.obs_offsets[event + 1])
        seen = dict(zip(streams.channel[part].tolist(), streams.value[part].tolist(), strict=True))
        found.append({channel: value - known.get(channel, 0.0) for channel, value in seen.items()})
        known |= seen
    return found


@pytest.mark.parametrize("amount", [0.0, 0.7])
def test_terms_move_the_path_continuously(amount):
    embedding = Embedding(3)

    def curved(area, third):
        amounts = {AREA: [[area, 0, 0, 0], [0, 0]], THIRD: [[third, 0, 0, 0], [0, 0]]}
        return realise(everything(amounts)[:1], embedding)[0]

    distances = [curved(amount, 0.0).deviation(curved(amount + e, e)).max() for e in (1e-3, 1e-6, 1e-9, 1e-12)]
    assert all(later < earlier for earlier, later in itertools.pairwise(distances))
    assert distances[-1] < 1e-2

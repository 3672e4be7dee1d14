"""Arrays and their axes, events as tuples, and events that carry Lie elements or signatures."""

import dataclasses
from datetime import datetime

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde import Embedding
from logcde.algebra import Basis, Lie, exp
from logcde.errors import LogcdeWarning, StreamError
from logcde.streams import ChannelScale, ChannelScaler, Partition, Schema, Streams, with_time_channel
from logcde.streams.transforms import keep_observations

CHANNELS = ("W1", "W2", "W3")


def brownian(rng, events, depth):
    basis = Basis(CHANNELS, depth)
    return [rng.normal(size=(n, basis.dimension)) for n in events], [np.arange(1.0, n + 1) for n in events], basis


@given(st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_increments_and_signatures_agree(depth, seed):
    increments, times, basis = brownian(np.random.default_rng(seed), (3, 1, 2), depth)
    streams = Streams.from_increments(times, increments, CHANNELS, depth, ids=["p", "q", "r"])
    assert streams.synchronous
    assert [term.name for term in streams.schema.terms] == list(basis.labels[3:])
    for one, block in zip(streams, increments, strict=True):
        values = one.value.reshape(-1, 3)
        np.testing.assert_allclose(np.diff(values, axis=0, prepend=0.0), block[:, :3], atol=1e-12)
        assert one.terms.tolist() == block[:, 3:].tolist()
    levels = eqx.filter_jit(exp)(Lie(jnp.asarray(np.concatenate(increments)), basis)).levels[1:]
    flat = np.split(np.concatenate([np.asarray(level) for level in levels], axis=1), [3, 4])
    again = Streams.from_signatures(times, flat, CHANNELS, depth, ids=["p", "q", "r"])
    assert again.schema == streams.schema
    np.testing.assert_allclose(again.value, streams.value, atol=1e-10)
    np.testing.assert_allclose(again.terms, streams.terms, atol=1e-9)


def test_signatures_are_read_in_double_precision_whatever_jax_is_set_to():
    area = 1 / 3
    signature = [1.0, 2.0, 0.5, 1.0 + area, 1.0 - area, 2.0]
    with jax.enable_x64(False):
        streams = Streams.from_signatures([[1.0]], [[signature]], ("a", "b"), 2)
    assert streams.terms[0, 0] == pytest.approx(area, rel=1e-14)


def test_terms_of_increments_have_the_brackets_of_the_basis():
    streams = Streams.from_increments([[1.0]], [np.zeros((1, 5))], ("a", "b"), 3)
    assert [term.bracket for term in streams.schema.terms] == [("a", "b"), ("a", ("a", "b")), (("a", "b"), "b")]
    assert Streams.from_frame(streams.to_frame(), schema=streams.schema) == streams


def test_increments_and_signatures_that_are_refused():
    def build(block, depth=2, make=Streams.from_increments):
        return make([[1.0, 2.0]], [block], ("a", "b"), depth, ids=["p"])

    for block, part in (
        (np.zeros((2, 4)), "Series 'p' has increments of shape (2, 4)"),
        (np.zeros(3), "shape (3,)"),
        ([[1.0, 0.0, np.nan]] * 2, "Series 'p', event 0, coordinate 2 is nan"),
        ([[1.0, "up", 0.0]] * 2, "Series 'p', event 0, coordinate 1 has the value 'up'"),
        (np.zeros((1, 3)), "Series 'p' has 2 stamps, but 1 rows"),
    ):
        with pytest.raises(StreamError) as caught:
            build(block)
        assert part in str(caught.value)
    good = [1.0, 2.0, 0.5, 1.3, 0.7, 2.0]
    assert build([good, good], make=Streams.from_signatures).terms.ravel() == pytest.approx([0.3, 0.3])
    with pytest.raises(StreamError, match=r"Series 'p', event 1: this is no signature.*0.5"):
        build([good, [*good[:5], 2.5]], make=Streams.from_signatures)
    with pytest.raises(StreamError, match="6 coordinates"):
        build(np.zeros((2, 7)), make=Streams.from_signatures)


def test_from_events_merges_equal_stamps():
    events = [("p", datetime(2024, 1, 1), {"a": 1, "b": 2}), ("p", datetime(2024, 1, 1, 3), {"b": None})]
    streams = Streams.from_events([*events, ("p", datetime(2024, 1, 1, 6), {"b": 3})])
    assert streams.times.tolist() == [0.0, 6.0]
    assert streams.value.tolist() == [1.0, 2.0, 3.0]
    split = [(7, 1.0, {"a": 1.0}), (7, 1.0, {"b": 2.0}), (7, 1.0, {"a": 1.0})]
    assert Streams.from_events(split).obs_offsets.tolist() == [0, 2]


SMALL_AFTER_LARGE = np.array([[1e16, 3.0], [0.125, -1e-9], [-1e16, 1e20], [1e-3, 0.5], [7.0, 1e-30], [1e16, -1e20]])
STAMPS = np.arange(1.0, 7.0)


def by_increments(terms=False):
    depth, blocks = (2, np.column_stack([SMALL_AFTER_LARGE, np.ones(6)])) if terms else (1, SMALL_AFTER_LARGE)
    other = np.linspace(0.1, 1.0, blocks.size).reshape(blocks.shape)
    return Streams.from_increments([STAMPS, STAMPS], [blocks, other], ("a", "b"), depth, horizon=7.0)


def increments_in(streams, engine):
    """The increments of the first series, one interval for each event."""
    embedding, partition = Embedding(1, counts=False, time=False, roughness=True), Partition.uniform(7)
    if engine == "index":
        places = np.arange(1.0, 7.0)
        return embedding.index(streams).query(np.zeros(6, np.int64), places, places + 1)
    found = embedding(streams, partition) if engine == "host" else embedding.on_device(streams, partition)
    return np.asarray(found.values)[0, 1:]


@pytest.mark.parametrize("terms", [False, True])
@pytest.mark.parametrize("engine", ["host", "device", "index"])
def test_small_increments_after_large_ones_are_kept(engine, terms):
    streams = by_increments(terms)
    found = increments_in(streams, engine)
    np.testing.assert_array_equal(found[:, :2], SMALL_AFTER_LARGE)
    squares = np.vstack([np.zeros(2), SMALL_AFTER_LARGE[1:] ** 2])
    np.testing.assert_allclose(found[:, 2:], squares, rtol=1e-15)


@pytest.mark.parametrize("depth", [2, 3])
def test_areas_of_small_increments_after_large_ones(depth):
    streams = by_increments()[0]
    near = Streams.from_arrays([STAMPS[3:5]], [np.cumsum(SMALL_AFTER_LARGE[3:5], axis=0)], ("a", "b"), 7.0)
    embedding = Embedding(depth, counts=False)
    expected = embedding(near, Partition.at([3.5, 5.5], partial=True)).values
    for engine in (embedding, embedding.on_device):
        np.testing.assert_allclose(engine(streams, Partition.at([3.5, 5.5], partial=True)).values, expected, rtol=1e-12)


def test_increments_are_kept_through_selections_and_transforms():
    streams = by_increments()
    joined = Streams.concatenate(
        [streams[1], streams[[0]], Streams.from_dense(np.ones((1, 2, 2)), channels=("a", "b"))[:0]]
    )
    np.testing.assert_array_equal(increments_in(joined[1], "host")[:, :2], SMALL_AFTER_LARGE)
    clocked = with_time_channel(streams)
    np.testing.assert_array_equal(clocked.change[clocked.channel < 2], streams.change)
    assert clocked.change[clocked.channel == 2].tolist() == [1.0] * 12
    # Without the second event, its increments are part of the third.
    kept = np.ones(24, bool)
    kept[2:4] = False
    found = increments_in(keep_observations(streams, kept), "host")[:, :2]
    np.testing.assert_array_equal(found[2], SMALL_AFTER_LARGE[1:3].sum(axis=0))
    np.testing.assert_array_equal(found[3:], SMALL_AFTER_LARGE[3:])
    assert streams != dataclasses.replace(streams, change=None)
    scaler = ChannelScaler(("a", "b"), (ChannelScale(1.0, 4.0), ChannelScale(0.0, 0.5)))
    np.testing.assert_array_equal(increments_in(scaler(streams), "host")[1:, :2], SMALL_AFTER_LARGE[1:] * [0.25, 2.0])


def test_index_corrects_series_given_by_increments():
    index = Embedding(1, counts=False, time=False).index(by_increments())
    index.correct(0, 4.0, {"a": 1.0})
    found = index.query([0, 0], [4.0, 5.0], [5.0, 6.0])[:, 0]
    np.testing.assert_allclose(found, [1.0, 6.001], rtol=1e-12)
    index.retract(1, 3.0)
    other = np.linspace(0.1, 1.0, 12).reshape(6, 2)
    np.testing.assert_allclose(index.query([1], [4.0], [5.0])[0], other[2:4].sum(axis=0), rtol=1e-15)
    index.append(1, 6.5, {"a": 9.0})
    np.testing.assert_allclose(index.query([1], [6.5], [7.0])[0], [9.0 - other[:, 0].sum(), 0.0])


def test_streams_whose_differences_are_the_increments_are_as_any():
    assert Streams.from_increments([[1.0, 2.0]], [[[0.5], [2.0]]], ("a",), 1).change is None


def test_increments_that_cannot_be_summed_are_refused():
    with pytest.raises(StreamError, match="two events at one stamp"):
        Streams.from_increments([[1.0, 1.0]], [[[1e16], [0.1]]], ("a",), 1, horizon=2.0)
    with pytest.raises(StreamError, match="infinite value inf"):
        Streams.from_increments([[1.0, 2.0]], [[[1.5e308], [1.5e308]]], ("a",), 1)


def test_arrays_with_channels_first():
    steps_first = np.random.default_rng(0).normal(size=(5, 40, 2))
    there = Streams.from_dense(np.swapaxes(steps_first, 1, 2), channels=("a", "b"), channels_first=True)
    assert there == Streams.from_dense(steps_first, channels=("a", "b"))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((5, 2, 40), {"channels": ("a", "b")}),
        ((5, 2, 40), {"schema": Schema(("a", "b"))}),
        ((5, 2, 10), {"times": np.arange(10.0)}),
        ((5, 2, 10), {"times": np.tile(np.arange(10.0), (5, 1))}),
    ],
)
def test_names_and_stamps_tell_which_axis_is_which(shape, options):
    array = np.zeros(shape)
    with pytest.raises(StreamError, match=r"read as 5 series of 2 steps with (4|1)0 channels, but .* channels_first"):
        Streams.from_dense(array, **options)
    assert len(Streams.from_dense(array, **options, channels_first=True).schema.channels) == 2


def test_many_more_channels_than_steps_are_warned_of():
    array = np.zeros((5, 2, 40))
    with pytest.warns(LogcdeWarning, match=r"\(5, 2, 40\) is read as 5 series of 2 steps with 40 channels"):
        assert len(Streams.from_dense(array).schema.channels) == 40
    # With names, or without a doubt, short series of many channels are what they are.
    names = [f"c{k}" for k in range(40)]
    assert Streams.from_dense(array, channels=names) != Streams.from_dense(array, channels_first=False)
    assert len(Streams.from_dense(np.zeros((5, 4, 12))).schema.channels) == 12
    assert len(Streams.from_dense(np.zeros((5, 20, 40))).schema.channels) == 40


def test_lists_of_arrays_with_channels_first_are_told():
    with pytest.raises(StreamError, match="equally many rows. If those are the channels, transpose the arrays"):
        Streams.from_arrays([np.arange(2.0)] * 2, [np.zeros((2, 7)), np.zeros((2, 9))])

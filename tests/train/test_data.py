"""Buckets and the order of batches: every series once in an epoch, lengths within a bucket, an order from a seed."""

import itertools

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import logcde as lc
from logcde.train import Batching
from logcde.train.data import BatchOrder, bucket_edges, buckets_of, examples_of
from tests.train import toys

orders = st.tuples(
    st.lists(st.integers(1, 20), min_size=1, max_size=3), st.integers(1, 8), st.integers(0, 3), st.integers(0, 9)
)


def order_of(sizes, batch, more, seed):
    return BatchOrder(tuple(sizes), batch, batch + more, (seed, 1))


@given(orders, st.integers(0, 3))
def test_epoch_contains_every_series_once(drawn, epoch):
    order = order_of(*drawn)
    bucket, rows = order.epoch(epoch)
    assert len(bucket) == order.per_epoch
    for k, size in enumerate(order.sizes):
        mine = rows[bucket == k]
        assert sorted(mine[mine >= 0].tolist()) == list(range(size))
    assert ((rows >= 0).sum(axis=1) <= order.batch).all()
    assert (rows >= 0).any(axis=1).all()


@given(orders, st.integers(0, 12), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_steps_do_not_depend_on_calls(drawn, first, cuts):
    order = order_of(*drawn)
    expected = order.steps(first, sum(cuts))
    at = 0
    for count in cuts:
        for part, together in zip(order.steps(first + at, count), expected, strict=True):
            assert part.shape == together.shape
            np.testing.assert_array_equal(part[:count], together[at : at + count])
        at += count


def test_epochs_are_shuffled_differently():
    order = BatchOrder((30,), 10, 10, (0, 1))
    assert not np.array_equal(order.epoch(0)[1], order.epoch(1)[1])


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60), st.integers(1, 16), st.integers(1, 5))
def test_bucket_edges_halve_and_leave_no_bucket_empty(lengths, size, buckets):
    lengths = np.array(lengths)
    edges = bucket_edges(lengths, Batching(size, buckets))
    assert len(edges) <= buckets
    assert edges[-1] == lengths.max()
    assert all(2 * short <= long for short, long in itertools.pairwise(edges))
    owner = np.searchsorted(edges, lengths)
    assert all((owner == k).any() for k in range(len(edges)))


def test_buckets_are_padded_to_their_longest_series():
    examples = examples_of(toys.model(each=True), toys.logsigs(), toys.running())
    short, long = buckets_of(examples, Batching(size=8, buckets=4))
    assert short.inputs.logsigs.shape[1] == short.targets.shape[1] == short.inputs.length.max() == 3
    assert long.inputs.logsigs.shape[1] == long.targets.shape[1] == 8
    assert len(short) + len(long) == len(examples)


def test_score_does_not_depend_on_buckets():
    model, data = toys.model(each=True), (toys.logsigs(), toys.running())
    pieces = lc.Inputs.of(data[0], dtype=np.float64)
    ends = np.minimum(2 * np.arange(1, 5) - 1, np.asarray(pieces.length)[:, None] - 1)
    queries = -(-np.asarray(pieces.length) // 2)
    of_pieces = lc.Inputs(
        pieces.logsigs,
        pieces.length,
        pieces.initial,
        pieces.static,
        jnp.asarray(ends, jnp.int32),
        jnp.asarray(queries, jnp.int32),
    )
    coarse = np.take_along_axis(data[1], ends[..., None], axis=1)
    for inputs, targets in (data, (of_pieces, coarse)):
        one, two = (lc.score(model, inputs, targets, batching=Batching(size)) for size in (40, 8))
        assert abs(one - two) < 1e-12 * one

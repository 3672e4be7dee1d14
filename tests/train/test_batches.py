"""What batches have to keep: every series once in an epoch, lengths within a bucket, an order from a seed."""

import itertools

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import logcde as lc
from logcde.train.data import Plan, bucket_edges, buckets_of, examples_of
from tests.train import tasks

plans = st.tuples(
    st.lists(st.integers(1, 20), min_size=1, max_size=3), st.integers(1, 8), st.integers(0, 3), st.integers(0, 9)
)


def plan_of(sizes, batch, more, seed):
    return Plan(tuple(sizes), batch, batch + more, (seed, 1))


@given(plans, st.integers(0, 3))
def test_an_epoch_has_every_series_once(drawn, epoch):
    plan = plan_of(*drawn)
    bucket, rows = plan.epoch(epoch)
    assert len(bucket) == plan.per_epoch
    for k, size in enumerate(plan.sizes):
        mine = rows[bucket == k]
        assert sorted(mine[mine >= 0].tolist()) == list(range(size))
    assert ((rows >= 0).sum(axis=1) <= plan.batch).all()
    assert (rows >= 0).any(axis=1).all()


@given(plans, st.integers(0, 12), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_steps_do_not_depend_on_how_they_are_cut(drawn, first, cuts):
    plan = plan_of(*drawn)
    whole = plan.steps(first, sum(cuts))
    at = 0
    for count in cuts:
        for part, all_of_it in zip(plan.steps(first + at, count), whole, strict=True):
            assert part.shape == all_of_it.shape
            np.testing.assert_array_equal(part[:count], all_of_it[at : at + count])
        at += count


def test_epochs_are_shuffled_anew():
    plan = Plan((30,), 10, 10, (0, 1))
    assert not np.array_equal(plan.epoch(0)[1], plan.epoch(1)[1])


@given(st.lists(st.integers(0, 100), min_size=1, max_size=60), st.integers(1, 16), st.integers(1, 5))
def test_edges(lengths, batch, most):
    lengths = np.array(lengths)
    edges = bucket_edges(lengths, batch, most)
    assert len(edges) <= most
    assert edges[-1] == lengths.max()
    assert all(2 * short <= long for short, long in itertools.pairwise(edges))
    owner = np.searchsorted(edges, lengths)
    assert all((owner == k).any() for k in range(len(edges)))


def test_buckets_are_padded_no_more_than_they_need():
    examples = examples_of(tasks.model(each=True), tasks.logsigs(), tasks.running())
    short, long = buckets_of(examples, batch=8, most=4)
    assert short.inputs.logsigs.shape[1] == short.targets.shape[1] == short.inputs.length.max() == 3
    assert long.inputs.logsigs.shape[1] == long.targets.shape[1] == 8
    assert len(short) + len(long) == len(examples)


def test_buckets_do_not_change_a_score():
    model, data = tasks.model(each=True), (tasks.logsigs(), tasks.running())
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
        one, two = (lc.score(model, inputs, targets, batch=batch) for batch in (40, 8))
        assert abs(one - two) < 1e-12 * one

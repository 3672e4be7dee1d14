"""Events as tuples, and events that carry Lie elements or signatures."""

from datetime import datetime

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logcde.algebra import Basis, Lie, exp
from logcde.errors import StreamError
from logcde.streams import Streams

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

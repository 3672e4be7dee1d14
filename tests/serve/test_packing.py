"""States as bytes: the same to the bit, and refused if anything about them is not as written."""

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import logcde as lc
from logcde.serve.packing import DamagedStateError, pack, unpack
from tests.cli.streaming import a_model

numbers = st.one_of(st.none(), st.floats(), st.floats(width=32))
states = st.recursive(
    st.one_of(numbers, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.text(), st.lists(numbers)),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=8,
)


def bits(value):
    """A state in which floats that are equal but not the same differ."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("d", value)
    if isinstance(value, dict):
        return {name: bits(one) for name, one in value.items()}
    return [type(value), *map(bits, value)] if isinstance(value, list) else (type(value), value)


@given(states)
@example([0.1, -0.0, math.inf, None])
@example([0.5, math.nan, None, 2.0])
@example([None] * 5)
@example([1e300, 0.5, 0.25, 0.125])
@example(["long"] * 1000)
def test_states_come_back_to_the_bit(state):
    assert bits(unpack(pack(state, "m", b"s"), "m", b"s")) == bits(state)


def test_any_change_is_refused():
    content = pack({"sum": np.array([0.5, 1.5, 2.5, 3.5]), "count": 3}, "model", b"p1")
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(DamagedStateError):
            unpack(bytes(changed), "model", b"p1")
    for cut in range(len(content)):
        with pytest.raises(DamagedStateError):
            unpack(content[:cut], "model", b"p1")


@pytest.mark.parametrize(("model", "series"), [("other", b"p1"), ("model", b"p2"), ("model1", b"p"), ("mode", b"lp1")])
def test_states_belong_to_a_model_and_a_series(model, series):
    with pytest.raises(DamagedStateError, match="another model or series"):
        unpack(pack([1.0], "model", b"p1"), model, series)


def test_a_predictor_continues_from_bytes_and_they_are_compact():
    model = a_model()
    predictor, rng = lc.Predictor(model), np.random.default_rng(0)
    for time in np.cumsum(rng.uniform(0.01, 0.3, 50)).tolist():
        predictor.observe(time, {"pulse": float(rng.normal())})
    content = pack(predictor.state(arrays=True), "m", b"s")
    again = lc.Predictor(model).restore(unpack(content, "m", b"s"))
    np.testing.assert_array_equal(again.predict(at=20.0), predictor.predict(at=20.0))
    numbers = [predictor.state(arrays=True)["prefix"]["online"], *predictor.state(arrays=True)["model"]]
    assert len(content) < 8 * sum(np.count_nonzero(one) for one in numbers) + 200

"""States of predictors as bytes: the same values, to the bit, or an error."""

import msgspec
import numpy as np
import pytest

from logcde.online.states import decode, encode

ARRAYS = [
    np.array([0.1, -np.inf, np.nan, -0.0]),
    np.array([0.1, 3.0], np.float32),
    np.zeros(0),
    np.array([[1.5, 2.0], [3.0, 0.1]]),
    np.array(7, np.int32),
    np.array([True, False]),
    np.array([1.0, 2.0], ">f8"),
    np.array([0.0] * 9 + [-0.0, np.nan, 5e-324]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_arrays_keep_their_type_shape_and_bits(array):
    found = decode(encode({"a": [array, None]}))["a"][0]
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.shape == array.shape
    assert found.tobytes() == array.astype(found.dtype).tobytes()
    found[...] = 0  # it may be written to


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode(msgspec.msgpack.Ext(9, b"")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"1234567")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(3, b"")),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(4, msgspec.msgpack.encode([9, b"\x80", b"12345678"]))),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(4, msgspec.msgpack.encode([8, b"\xc0", b"12345678"]))),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(3, msgspec.msgpack.encode(["|O", [1], b"12345678"]))),
        msgspec.msgpack.encode(msgspec.msgpack.Ext(3, msgspec.msgpack.encode(["<f8", [2], b"12345678"]))),
    ],
)
def test_other_bytes_are_refused(content):
    with pytest.raises((ValueError, TypeError)):
        decode(content)


def test_other_objects_are_refused():
    for one in (object(), np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError, match="is no part of a state"):
            encode({"a": one})

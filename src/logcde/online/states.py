"""States of predictors: as bytes, and what restores or refuses them."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from logcde.errors import LogcdeError, ModelError

FORMAT = 1
"""Of the states of predictors."""


FAULTS = (LogcdeError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, MemoryError)
"""What reading a state that is not as expected may raise."""


def restoring(restore: Callable[[], None]) -> None:
    """Report any fault of a state as one error."""
    try:
        restore()
    except FAULTS as error:
        raise ModelError(f"This state cannot be restored: it belongs to another model or schema ({error}).") from error


def check_format(state: dict[str, Any], kind: str) -> None:
    """Refuse the state of a predictor of another kind or version."""
    if state.get("format") != FORMAT or state.get("kind") != kind:
        raise ModelError(f"it is of kind {state.get('kind')!r} and format {state.get('format')!r}")


def encode(state: Any) -> bytes:
    """MessagePack of mappings, lists, texts, numbers, None and arrays of numbers, as `state(arrays=True)` returns them.

    Arrays are extensions: 1 is a vector of 8-byte floats, 2 one of 4-byte floats, both little-endian; 3 is
    MessagePack of the name of the type, the shape and the bytes of any other array; 4 is a vector of 8-byte floats that
    are mostly 0: MessagePack of their number, of bits that tell which are not, and of the bytes of these.

    >>> decode(encode({"sum": np.array([0.5, np.nan]), "count": 2}))
    {'sum': array([0.5, nan]), 'count': 2}
    """
    return _encode(state)


def decode(content: bytes) -> Any:
    """What `encode` was given, to the bit. No content runs code.

    Raises:
        ValueError, TypeError: It is no such content.
    """
    return _decode(content)


_VECTORS = {np.dtype("<f8"): 1, np.dtype("<f4"): 2}
_OTHER, _SPARSE = 3, 4
_KINDS = "fiub"


def _extension(array: object) -> msgspec.msgpack.Ext:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in _KINDS:
        raise TypeError(f"{type(array).__name__} is no part of a state")
    code = _VECTORS.get(array.dtype, _OTHER) if array.ndim == 1 else _OTHER
    if code == 1:
        some = array.view(np.int64) != 0  # so that -0.0 is kept
        if 2 * np.count_nonzero(some) < some.size:
            parts = [some.size, np.packbits(some).tobytes(), array[some].tobytes()]
            return msgspec.msgpack.Ext(_SPARSE, msgspec.msgpack.encode(parts))
    if code != _OTHER:
        return msgspec.msgpack.Ext(code, array.tobytes())
    little = array.astype(array.dtype.newbyteorder("<"))
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode([little.dtype.str, array.shape, little.tobytes()]))


def _array(code: int, content: memoryview) -> np.ndarray:
    for dtype, vector in _VECTORS.items():
        if code == vector:
            return np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))
    if code == _SPARSE:
        size, bits, numbers = msgspec.msgpack.decode(content, type=tuple[int, bytes, bytes])
        if size != 8 * len(bits) - (-size % 8):
            raise ValueError(f"there is a vector of {size} numbers in {len(bits)} bytes")
        some = np.unpackbits(np.frombuffer(bits, np.uint8), count=size).astype(bool)
        if 8 * np.count_nonzero(some) != len(numbers):
            raise ValueError(f"there are {np.count_nonzero(some)} numbers in {len(numbers)} bytes")
        found = np.zeros(size)
        found[some] = np.frombuffer(numbers, "<f8")
        return found
    if code != _OTHER:
        raise ValueError(f"there is an extension of kind {code}")
    name, shape, numbers = msgspec.msgpack.decode(content, type=tuple[str, tuple[int, ...], bytes])
    dtype = np.dtype(name)
    if dtype.kind not in _KINDS or math.prod(shape) * dtype.itemsize != len(numbers):
        raise ValueError(f"there is an array of type {name} and shape {shape} in {len(numbers)} bytes")
    return np.frombuffer(numbers, dtype).reshape(shape).astype(dtype.newbyteorder("="))


_encode = msgspec.msgpack.Encoder(enc_hook=_extension).encode
_decode = msgspec.msgpack.Decoder(ext_hook=_array).decode

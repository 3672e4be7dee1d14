"""States of series as bytes: MessagePack with arrays of numbers, compressed, versioned, checked, tied to one model.

A state is what `AbstractPredictor.state` returns: mappings, lists, numbers and None. Lists of floats become arrays, in
single precision where that loses nothing. Decoding gives the same values, to the bit, and cannot run code.
"""

import hashlib
import zlib
from typing import Any

import msgspec
import numpy as np

from logcde.errors import ArtefactError

VERSION = 1
DIGEST = 16
"""Bytes of the checksum."""
SHORTEST = 4
"""Lists of fewer numbers stay lists."""
LARGEST = 1 << 28
"""Bytes of a state, uncompressed."""
DOUBLE, SINGLE = 1, 2
GAPS = 4
"""Added to the code of an array in which NaN stands for None."""


class DamagedStateError(ArtefactError):
    """The state of a series that is not as it was written, or that belongs to another model or series."""


def pack(state: Any, model: str, series: bytes) -> bytes:
    """Encode the state of a series of a model.

    Args:
        state: Mappings, lists, texts, numbers and None.
        model: Checksum of the model.
        series: Id of the series. The state of another series is refused.

    >>> unpack(pack({"sum": [0.5, None, 2.0, 0.1]}, "ab", b"p1"), "ab", b"p1")
    {'sum': [0.5, None, 2.0, 0.1]}
    """
    body = zlib.compress(msgspec.msgpack.encode(_with_arrays(state)), 1)
    return bytes([VERSION]) + _digest(body, model, series) + body


def unpack(content: bytes, model: str, series: bytes) -> Any:
    """Decode what `pack` returned.

    Raises:
        DamagedStateError: It was changed since, or belongs to another version, model or series.
    """
    if content[:1] != bytes([VERSION]):
        raise DamagedStateError(f"its format is {content[:1].hex() or 'empty'}, this version of logcde reads {VERSION}")
    body = content[1 + DIGEST :]
    if _digest(body, model, series) != content[1 : 1 + DIGEST]:
        raise DamagedStateError("its checksum differs: it was changed, or belongs to another model or series")
    stream = zlib.decompressobj()
    return msgspec.msgpack.decode(stream.decompress(body, LARGEST), ext_hook=_array)


def _digest(body: bytes, model: str, series: bytes) -> bytes:
    key = hashlib.sha256(b"%d:%s%s" % (len(model), model.encode(), series)).digest()
    return hashlib.blake2b(body, digest_size=DIGEST, key=key).digest()


def _with_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_arrays(one) for name, one in value.items()}
    if isinstance(value, list):
        if len(value) >= SHORTEST and set(map(type, value)) <= {float, type(None)}:
            packed = _packed(value)
            return value if packed is None else packed
        return [_with_arrays(one) for one in value]
    return value


def _packed(numbers: list[float | None]) -> msgspec.msgpack.Ext | None:
    """The array of these numbers; None if NaN and None are among them, or nothing but None."""
    double = np.array(numbers, np.float64)
    gaps = numbers.count(None)
    if gaps and (gaps == len(numbers) or np.isnan(double).sum() > gaps):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        single = double.astype(np.float32)
    exact = (single.astype(np.float64).view(np.int64) == double.view(np.int64)).all()
    code, array = (SINGLE, single) if exact else (DOUBLE, double)
    return msgspec.msgpack.Ext(code + GAPS * bool(gaps), array.astype(array.dtype.newbyteorder("<")).tobytes())


def _array(code: int, content: memoryview) -> list[float | None]:
    numbers = np.frombuffer(content, "<f4" if code % GAPS == SINGLE else "<f8").astype(np.float64)
    if code < GAPS:
        return numbers.tolist()
    return [None if missing else number for number, missing in zip(numbers.tolist(), np.isnan(numbers), strict=True)]

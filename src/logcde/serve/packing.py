"""States of series as bytes: versioned, checked, tied to one model and one series; large ones are compressed.

Decoding gives what `AbstractPredictor.state(arrays=True)` returned, to the bit, and cannot run code.
"""

import functools
import hashlib
import zlib
from typing import Any

from logcde.errors import ArtefactError
from logcde.online.states import decode, encode

PLAIN, COMPRESSED = b"\x02", b"\x03"
"""First byte of a state: its format."""
DIGEST = 16
"""Bytes of the checksum."""
LARGE = 2048
"""Bytes from which on a state is compressed: below, that costs more than all else."""
LARGEST = 1 << 28
"""Bytes of a state, uncompressed."""


class DamagedStateError(ArtefactError):
    """The state of a series that is not as it was written, or that belongs to another model or series."""


def pack(state: Any, model: str, series: bytes) -> bytes:
    """Encode the state of a series of a model.

    Args:
        state: Mappings, lists, texts, numbers, arrays and None.
        model: Checksum of the model.
        series: Id of the series. The state of another series is refused.

    >>> unpack(pack({"sum": [0.5, None, 2.0, 0.1]}, "ab", b"p1"), "ab", b"p1")
    {'sum': [0.5, None, 2.0, 0.1]}
    """
    body = encode(state)
    form = PLAIN if len(body) < LARGE else COMPRESSED
    body = body if form == PLAIN else zlib.compress(body, 1)
    return form + _digest(form + body, model, series) + body


def unpack(content: bytes, model: str, series: bytes) -> Any:
    """Decode what `pack` returned.

    Raises:
        DamagedStateError: It was changed since, or belongs to another version, model or series.
    """
    form, body = content[:1], content[1 + DIGEST :]
    if form not in (PLAIN, COMPRESSED):
        raise DamagedStateError(
            f"its format is {form.hex() or 'empty'}, this version of logcde reads {PLAIN.hex()} and {COMPRESSED.hex()}"
        )
    if _digest(form + body, model, series) != content[1 : 1 + DIGEST]:
        raise DamagedStateError("its checksum differs: it was changed, or belongs to another model or series")
    return decode(body if form == PLAIN else zlib.decompressobj().decompress(body, LARGEST))


def _digest(content: bytes, model: str, series: bytes) -> bytes:
    keyed = hashlib.blake2b(b"%d:%s" % (len(series), series), digest_size=DIGEST, key=_key(model))
    keyed.update(content)
    return keyed.digest()


@functools.lru_cache
def _key(model: str) -> bytes:
    return hashlib.sha256(model.encode()).digest()

"""Documents that are read back: JSON with a checksum over all its bytes, refused if anything in it is not as written.

The checksum, the seal, is part of the content: 64 digits after the key "seal", computed over all bytes with zeros in
their place. A JSON document has it as its first key; a safetensors file has it in the metadata of its header, where
quotation marks of other texts are escaped. A seal detects damage and edits. It is no signature: who writes a file can
seal it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

SEAL = "seal"
BLANK = "0" * 64
LARGEST_UNSEALED = 1 << 20
"""Bytes of a document without a right checksum that is decoded nevertheless, to see whether it has another format."""
_PLACE = re.compile(b'"' + SEAL.encode() + rb'": ?"([0-9a-f]{64})"')


class FormatError(ValueError):
    """A document of another format than the expected one."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(f"it has format {document['format']!r}")
        self.document = document


def write_document(content: Mapping[str, Any], format: int, *, indent: int | None = None) -> bytes:
    """Encode a mapping as a sealed JSON document of this format.

    >>> read_document(write_document({"lines": 3}, format=1), format=1)
    {'lines': 3}
    """
    text = json.dumps({SEAL: BLANK, "format": format, **content}, ensure_ascii=False, indent=indent)
    return sealed(text.encode("utf-8", "surrogatepass") + b"\n")


def read_document(content: bytes, format: int) -> dict[str, Any]:
    """Decode what `write_document` returned.

    Raises:
        FormatError: It has another format.
        ValueError: It is damaged.

    >>> read_document(write_document({"lines": 3}, format=1).replace(b"3", b"4"), format=1)
    Traceback (most recent call last):
    ...
    ValueError: its checksum differs: it was changed after it had been written
    """
    damage = None
    try:
        check_seal(content)
    except ValueError as error:
        # Older formats have other checksums or none. A large file of that kind is not worth the memory to decode it.
        if len(content) > LARGEST_UNSEALED:
            raise
        damage = error
    document = parse(content)
    if not isinstance(document, dict) or "format" not in document:
        raise ValueError("it has no format")
    if document["format"] != format:
        raise FormatError(document)
    if damage is not None:
        raise damage
    return {name: value for name, value in document.items() if name not in (SEAL, "format")}


def parse(content: bytes | str) -> Any:
    """Decode JSON, without keys that occur twice.

    >>> parse('{"lines": 3, "lines": 4}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'lines' occurs twice
    """
    try:
        return json.loads(content, object_pairs_hook=_without_doubles)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not JSON ({error})") from error
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def sealed(content: bytes) -> bytes:
    """Fill in the seal of a content that has a blank one.

    >>> check_seal(sealed(b'{"seal": "' + BLANK.encode() + b'"}'))
    """
    start, stop = _place(content)
    return content[:start] + _digest(content, start, stop) + content[stop:]


def check_seal(content: bytes) -> None:
    """Refuse a content that is not as `sealed` returned it, with a `ValueError`."""
    start, stop = _place(content)
    if _digest(content, start, stop) != content[start:stop]:
        raise ValueError("its checksum differs: it was changed after it had been written")


def _place(content: bytes) -> tuple[int, int]:
    found = _PLACE.search(content)
    if found is None:
        raise ValueError("it has no checksum")
    return found.span(1)


def _digest(content: bytes, start: int, stop: int) -> bytes:
    whole = memoryview(content)
    digest = hashlib.sha256(whole[:start])
    digest.update(BLANK.encode())
    digest.update(whole[stop:])
    return digest.hexdigest().encode()


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        doubled = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the key {doubled!r} occurs twice")
    return found

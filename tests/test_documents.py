"""Sealed documents: equal after a round trip, and refused after any change."""

import math

import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from logcde import _documents
from logcde._documents import BLANK, SEAL, FormatError, check_seal, parse, read_document, sealed, write_document

CONTENT = {"name": "Größe \ud800", "numbers": [1, -0.5, math.inf], "nested": {"seal": "ab" * 32}}


def test_documents_survive_a_round_trip():
    for indent in (None, 1):
        assert read_document(write_document(CONTENT, 7, indent=indent), 7) == CONTENT
    assert math.isnan(read_document(write_document({"x": math.nan}, 1), 1)["x"])


def test_any_other_byte_is_refused():
    content = write_document({"lines": 3, "text": '"seal": "x"'}, 1)
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            with pytest.raises(ValueError, match="it |the key|its "):
                read_document(bytes(changed), 1)
    for more in (content[:-1], content + b" ", b" " + content, content * 2):
        with pytest.raises(ValueError, match="it |its "):
            read_document(more, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[1]", "it has no format"),
        (b"{}", "it has no format"),
        (b'{"format": 1}', "it has no checksum"),
        (b'{"format": 1, "format": 1}', "the key 'format' occurs twice"),
        (b'{"format": 1', "it is not JSON"),
        (b'{"format": \xff}', "it is not JSON"),
        (b'{"format": ' + b"9" * 5000 + b"}", "integer string conversion"),
        (b'{"format": 1, "x": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"x":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_document_is_refused(content, said):
    with pytest.raises(ValueError, match=said):
        read_document(content, 1)


def test_other_formats_are_named():
    with pytest.raises(FormatError, match="it has format 2") as error:
        read_document(write_document({"lines": 3}, 2), 1)
    assert error.value.document["lines"] == 3


@given(st.text())
def test_the_seal_in_a_header_is_not_that_of_a_text(text):
    """Quotation marks of other texts are escaped there."""
    metadata = {"text": text + f'"{SEAL}": "{BLANK}"', SEAL: BLANK}
    content = sealed(safetensors.numpy.save({}, metadata))
    check_seal(content)
    size = int.from_bytes(content[:8], "little")
    found = parse(content[8 : 8 + size])["__metadata__"]
    assert found["text"] == metadata["text"]
    assert found[SEAL] != BLANK


def test_large_document_with_a_wrong_checksum_is_not_decoded(monkeypatch):
    content = write_document({"lines": "x" * 2_000_000}, format=1).replace(b"xx", b"xy", 1)
    monkeypatch.setattr(_documents, "parse", None)
    with pytest.raises(ValueError, match="its checksum differs"):
        read_document(content, format=1)

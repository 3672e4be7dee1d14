"""Schemas and terms."""

import pytest

from logcde.errors import StreamError
from logcde.streams import Schema, Term


def test_terms_have_letters_and_degree():
    term = Term("t", (("a", "b"), ("a", ("a", "b"))))
    assert term.letters == ("a", "b", "a", "a", "b")
    assert term.degree == 5
    for bracket in ("a", ("a",), ("a", "b", "c"), ("a", ("b",)), ("a", 3)):
        with pytest.raises(StreamError, match="'t'"):
            Term("t", bracket)


@pytest.mark.parametrize(
    ("channels", "options", "match"),
    [
        ((), {}, "no channel"),
        (("a", "a"), {}, "Two channels are named 'a'"),
        (("a",), {"continuous": ("a",)}, "Two channels are named 'a'"),
        (("a", "time"), {}, "'time' is taken"),
        (("a", "#b"), {}, "'#b' is taken"),
        (("a", "b"), {"terms": (Term("t", ("a", "c")),)}, "'t' uses 'c'"),
        (("a", "b"), {"terms": (Term("t", ("a", "b")), Term("t", ("b", "a")))}, "Two terms"),
        (("a", "b"), {"terms": (Term("value", ("a", "b")),)}, "'value' is the name of another column"),
        (("a", "b"), {"terms": (Term("a", ("a", "b")),)}, "'a' is the name of another column"),
    ],
)
def test_refused_schemas(channels, options, match):
    with pytest.raises(StreamError, match=match):
        Schema(channels, **options)


def test_schemas_compare_by_value():
    assert Schema(("a", "b")) == Schema(("a", "b"))
    assert hash(Schema(("a",))) == hash(Schema(("a",)))
    assert Schema(("a", "b")) != Schema(("b", "a"))

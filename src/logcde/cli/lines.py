"""The lines that `logcde stream` reads and writes, and what is said about a line that is none of these."""

from collections.abc import Sequence
from typing import Annotated, Any, NoReturn, TypeAlias

import msgspec

from logcde.errors import StreamError
from logcde.streams.schema import listed, nearest

Stamp: TypeAlias = float | str
"""A number, or a datetime in ISO 8601."""
Id: TypeAlias = str | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

EXAMPLE = '{"series": "p1", "time": 0.5, "values": {"pulse": 61.0}}'
PURPOSES = ("values", "predict", "close", "forget")


class Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One line of input. It has exactly one of `PURPOSES`."""

    series: Id
    time: Stamp | None = None
    values: dict[str, float | None] | None = None
    terms: list[float] | None = None
    static: list[float] | None = None
    origin: str | None = None
    predict: Stamp | None = None
    close: Stamp | None = None
    forget: bool = False


class Answer(msgspec.Struct, gc=False):
    """One line of output: the stamp is as it was given, a number that is not finite is null."""

    series: Id
    time: Stamp
    prediction: Any


_decode = msgspec.json.Decoder(Line).decode
encode_lines = msgspec.json.Encoder().encode_lines


def read_line(text: bytes) -> Line:
    """A line of input, or a sentence about it.

    >>> read_line(b'{"series": "p1", "predict": 1}').predict
    1.0
    """
    try:
        line = _decode(text)
    except (ValueError, RecursionError) as error:
        _refuse(text, error)
    purposes = (line.values is not None) + (line.predict is not None) + (line.close is not None) + line.forget
    if purposes != 1:
        found = "has none" if purposes == 0 else "has several"
        raise StreamError(f"A line has one of {listed(PURPOSES)}; this one {found}. An example is {EXAMPLE}.")
    if line.values is None:
        for name in ("time", "terms", "static", "origin"):
            if getattr(line, name) is not None:
                raise StreamError(f'"{name}" belongs to a line with "values", and this one has none.')
    return line


def meant(name: str, names: Sequence[str]) -> str:
    """Which of the names may have been meant, and which there are.

    >>> meant("pulze", ["pulse", "temp"])
    "Did you mean 'pulse'? There are 'pulse', 'temp'."
    """
    return f"{nearest(name, names)}There are {listed(names)}."


def _refuse(text: bytes, error: Exception) -> NoReturn:
    """Say what is wrong with a line that cannot be decoded."""
    try:
        document = msgspec.json.decode(text)
    except (ValueError, RecursionError) as fault:
        numbers = any(word in text for word in (b"NaN", b"nan", b"Infinity", b"inf"))
        hint = " JSON has no NaN and no infinity: leave out what was not observed." if numbers else ""
        raise StreamError(f"This is not JSON ({fault}).{hint}") from error
    if not isinstance(document, dict):
        raise StreamError(f"This is JSON, but not a mapping such as {EXAMPLE}.") from error
    for key in document:
        if key not in Line.__struct_fields__:
            raise StreamError(f"The key {key!r} means nothing. {meant(key, Line.__struct_fields__)}") from error
    if "series" not in document:
        raise StreamError(f'"series" is missing, the name of the series. An example is {EXAMPLE}.') from error
    values = document.get("values")
    if isinstance(values, dict):
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float | None):
                raise StreamError(
                    f"Channel {name!r} is {msgspec.json.encode(value).decode()}, which is not a number. Leave out what "
                    "was not observed."
                ) from error
    raise StreamError(f"This line cannot be taken: {error}. An example is {EXAMPLE}.") from error

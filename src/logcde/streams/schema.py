"""The schema of a data set: its channels, its clock, its higher-order terms and its continuous channels."""

import dataclasses
import difflib
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from logcde.errors import StreamError, Where
from logcde.streams.clock import Clock, NumericClock

Bracket: TypeAlias = str | tuple
"""A channel's name, or a pair of brackets: ("a", ("a", "b")) is [a, [a, b]]."""


COLUMNS = ("series", "time", "channel", "value")
"""The columns of a long table other than its terms."""


@dataclasses.dataclass(frozen=True)
class Term:
    """A coordinate of degree two or more of an event's Lie element.

    Attributes:
        name: The name of its column in tables.
        bracket: The Lie bracket of channels, as nested pairs of their names.

    >>> Term("area", ("W1", "W2")).degree
    2
    >>> Term("third", ("W1", ("W1", "W2"))).degree
    3
    """

    name: str
    bracket: Bracket

    def __post_init__(self) -> None:
        for part in _parts(self.bracket):
            if not isinstance(part, str) and not (isinstance(part, tuple) and len(part) == 2):
                raise StreamError(
                    f"Term {self.name!r} has {part!r} in its bracket {self.bracket!r}.",
                    'A bracket is a pair, such as ("a", "b") or ("a", ("a", "b")), of channel names and brackets.',
                )
        if isinstance(self.bracket, str):
            raise StreamError(
                f"Term {self.name!r} is the single channel {self.bracket!r}.",
                "Terms have degree two or more; degree one is the value of the channel.",
            )

    @property
    def letters(self) -> tuple[str, ...]:
        """The channels in the bracket, from left to right."""
        return tuple(part for part in _parts(self.bracket) if isinstance(part, str))

    @property
    def degree(self) -> int:
        """The number of channels in the bracket, counted with repetition."""
        return len(self.letters)


def _parts(bracket: object) -> Iterator[object]:
    yield bracket
    if isinstance(bracket, tuple):
        for part in bracket:
            yield from _parts(part)


@dataclasses.dataclass(frozen=True)
class Schema:
    """Channels in order, clock, higher-order terms and continuous channels of a data set.

    Pass the schema of training data as `schema=` to read further data in the same way.

    >>> Schema(("heart_rate", "glucose")).channels
    ('heart_rate', 'glucose')
    """

    channels: tuple[str, ...]
    clock: Clock = NumericClock()
    terms: tuple[Term, ...] = ()
    continuous: tuple[str, ...] = ()

    @functools.cached_property
    def places(self) -> Mapping[str, int]:
        """The number of each channel by name."""
        return {name: place for place, name in enumerate(self.channels)}

    def __post_init__(self) -> None:
        if not self.channels:
            raise StreamError("There is no channel.", "Streams need at least one.")
        check_names((*self.channels, *self.continuous))
        known = set(self.channels)
        names = Counter(term.name for term in self.terms)
        for term in self.terms:
            if names[term.name] > 1:
                raise StreamError(f"Two terms are named {term.name!r}.", "Rename one of them.")
            if term.name in (*COLUMNS, *self.channels, *self.continuous):
                raise StreamError(
                    f"The term name {term.name!r} is the name of another column already.", "Rename the term."
                )
            for letter in term.letters:
                if letter not in known:
                    raise StreamError(
                        f"Term {term.name!r} uses {letter!r}, which is not a channel.",
                        f"The channels are {listed(self.channels)}.",
                    )


def check_same(first: Schema, other: Schema, number: int) -> None:
    """Refuse a part of a data set, with its number, whose schema differs from that of the first part."""
    for field in ("channels", "clock", "terms", "continuous"):
        ours, theirs = getattr(first, field), getattr(other, field)
        if ours != theirs:
            raise StreamError(
                f"Part {number} has the {field} {theirs!r}, but part 0 has {ours!r}.",
                "Read both with one schema, as in Streams.from_frame(..., schema=first.schema).",
            )


def names_of(channels: Iterable[str]) -> tuple[str, ...]:
    """Channel names as a tuple; a single string is not a list of names.

    >>> names_of(["pulse", "temp"])
    ('pulse', 'temp')
    """
    if isinstance(channels, str):
        raise StreamError(f"The channels are the text {channels!r}.", f"Give a list of names, as in [{channels!r}].")
    return tuple(channels)


def check_names(names: Sequence) -> None:
    """Refuse names that the coordinates of the driving path could not tell apart."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise StreamError(f"{name!r} is not a channel name.", "Names are non-empty strings.")
        if name in seen:
            raise StreamError(f"Two channels are named {name!r}.", "Rename one of them.", where=Where(channel=name))
        if name == "time" or name.startswith(("#", "~")):
            raise StreamError(
                f'The channel name {name!r} is taken: "time" and names that begin with "#" or "~" are coordinates that '
                "the embedding adds by itself.",
                "Rename the channel.",
                where=Where(channel=name),
            )
        seen.add(name)


def listed(names: Sequence[object], most: int = 10) -> str:
    """Names as text for a sentence, at most `most` of them.

    >>> listed(("a", "b", "c"), most=2)
    "'a', 'b' and 1 more"
    """
    text = ", ".join(repr(name) for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def nearest(name: str, names: Sequence[str]) -> str:
    """The name that was probably meant, as a question; empty if none is similar.

    >>> nearest("Tme", ("id", "time")), nearest("weight", ("id", "time"))
    ("Did you mean 'time'? ", '')
    """
    lowered = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name.lower(), lowered, 1)
    return f"Did you mean {lowered[near[0]]!r}? " if near else ""


def missing(column: str, columns: Sequence[str]) -> str:
    """The sentences for a column that a table lacks: similar columns, and those that there are.

    >>> missing("tme", ("id", "time"))
    "There is no column 'tme'. Did you mean 'time'? The columns are 'id', 'time'."
    """
    return f"There is no column {column!r}. {nearest(column, columns)}The columns are {listed(columns)}."

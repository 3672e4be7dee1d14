"""What the columns of a stream mean: its channels, its clock, its higher-order terms, its continuous channels."""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from logcde.errors import StreamError
from logcde.streams.clock import Clock, NumericClock

Bracket: TypeAlias = str | tuple
"""A channel's name, or a pair of brackets: ("a", ("a", "b")) is [a, [a, b]]."""


COLUMNS = ("series", "time", "channel", "value")
"""The columns of a long table beside its terms."""


@dataclasses.dataclass(frozen=True)
class Term:
    """A coordinate of degree two or more of an event's Lie element: a bracket of channels, and its column's name.

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
                    f"Term {self.name!r} has {part!r} in its bracket {self.bracket!r}. A bracket is a pair, such as "
                    '("a", "b") or ("a", ("a", "b")), of channel names and brackets.'
                )
        if isinstance(self.bracket, str):
            raise StreamError(
                f"Term {self.name!r} is the single channel {self.bracket!r}. Terms have degree two or more; "
                "what a channel is worth goes into its values."
            )

    @property
    def letters(self) -> tuple[str, ...]:
        """The channels in the bracket, from left to right."""
        return tuple(part for part in _parts(self.bracket) if isinstance(part, str))

    @property
    def degree(self) -> int:
        """How many channels the bracket joins, with repetition."""
        return len(self.letters)


def _parts(bracket: object) -> Iterator[object]:
    yield bracket
    if isinstance(bracket, tuple):
        for part in bracket:
            yield from _parts(part)


@dataclasses.dataclass(frozen=True)
class Schema:
    """Channels in order, clock, higher-order terms and continuous channels of a data set.

    >>> Schema(("heart_rate", "glucose")).channels
    ('heart_rate', 'glucose')
    """

    channels: tuple[str, ...]
    clock: Clock = NumericClock()
    terms: tuple[Term, ...] = ()
    continuous: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.channels:
            raise StreamError("There is no channel. Streams need at least one.")
        check_names((*self.channels, *self.continuous))
        known = set(self.channels)
        names = [term.name for term in self.terms]
        for term in self.terms:
            if names.count(term.name) > 1:
                raise StreamError(f"Two terms are named {term.name!r}. Rename one of them.")
            if term.name in (*COLUMNS, *self.channels, *self.continuous):
                raise StreamError(
                    f"The term name {term.name!r} is the name of another column already. Rename the term."
                )
            for letter in term.letters:
                if letter not in known:
                    raise StreamError(
                        f"Term {term.name!r} uses {letter!r}, which is not a channel. "
                        f"The channels are {listed(self.channels)}."
                    )


def names_of(channels: Iterable[str]) -> tuple[str, ...]:
    """Channel names as a tuple; a single string is not a list of names.

    >>> names_of(["pulse", "temp"])
    ('pulse', 'temp')
    """
    if isinstance(channels, str):
        raise StreamError(f"The channels are the text {channels!r}. Give a list of names, as in [{channels!r}].")
    return tuple(channels)


def check_names(names: Sequence) -> None:
    """Refuse names that the coordinates of the driving path could not tell apart."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise StreamError(f"{name!r} is not a channel name. Names are non-empty strings.")
        if name in seen:
            raise StreamError(f"Two channels are named {name!r}. Rename one of them.")
        if name == "time" or name.startswith("#"):
            raise StreamError(
                f'The channel name {name!r} is taken: "time" and names that begin with "#" are coordinates that the '
                "embedding adds by itself. Rename the channel."
            )
        seen.add(name)


def listed(names: Sequence[object], most: int = 10) -> str:
    """Names for a sentence, the first few of them.

    >>> listed(("a", "b", "c"), most=2)
    "'a', 'b' and 1 more"
    """
    text = ", ".join(repr(name) for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def nearest(name: str, names: Sequence[str]) -> str:
    """Which of the names may have been meant, as a question; nothing if none is near.

    >>> nearest("Tme", ("id", "time")), nearest("weight", ("id", "time"))
    ("Did you mean 'time'? ", '')
    """
    lowered = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name.lower(), lowered, 1)
    return f"Did you mean {lowered[near[0]]!r}? " if near else ""


def missing(column: str, columns: Sequence[str]) -> str:
    """That a column is not there, and which one may have been meant.

    >>> missing("tme", ("id", "time"))
    "There is no column 'tme'. Did you mean 'time'? The columns are 'id', 'time'."
    """
    return f"There is no column {column!r}. {nearest(column, columns)}The columns are {listed(columns)}."

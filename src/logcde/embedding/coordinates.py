"""The coordinates of the driving path: which letters a schema has under the chosen options (`sec:procedure`)."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from logcde.algebra import Basis
from logcde.embedding.hats import Hats, letters_of
from logcde.streams import Levels, Scales, Schema, Streams

TIME = "time"


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """Letters in their order: values, counts or levels, continuous channels, time last; values in units of `scales`.

    >>> Coordinates(Schema(("a", "b")), depth=2, counts=True, time=True).letters
    ('a', 'b', '#a', '#b', 'time')
    >>> levels = Levels(("a", "b"), ((60.0, 75.0), (0.0,)))
    >>> Coordinates(Schema(("a", "b")), depth=2, counts=True, time=True, levels=levels).letters
    ('a', 'b', '#a', '#a~60', '#a~75', '#b', 'time')
    """

    schema: Schema
    depth: int
    counts: bool
    time: bool
    scales: Scales | None = None
    levels: Levels | None = None

    def __post_init__(self) -> None:
        if self.scales is not None:
            self.scales.check(self.schema.channels)
        if self.levels is not None:
            self.levels.check(self.schema.channels)

    @functools.cached_property
    def letters(self) -> tuple[str, ...]:
        """Names of all letters."""
        channels = self.schema.channels
        counts = tuple(f"#{name}" for name in channels) if self.counted else ()
        if self.levels is not None:
            counts = letters_of(self.levels)
        return (*channels, *counts, *self.schema.continuous, *((TIME,) if self.time else ()))

    @functools.cached_property
    def basis(self) -> Basis:
        """The Lyndon basis over the letters."""
        return Basis(self.letters, self.depth)

    def scaled(self, streams: Streams) -> Streams:
        """Streams in the units of the driving path."""
        return streams if self.scales is None else self.scales(streams)

    @property
    def channels(self) -> int:
        """How many channels are observed at discrete times."""
        return len(self.schema.channels)

    @property
    def counted(self) -> bool:
        """Whether each channel has one letter beside its value, which counts its observations."""
        return self.counts and self.levels is None

    @functools.cached_property
    def hats(self) -> Hats | None:
        """How observations are shared between levels, if there are some."""
        return None if self.levels is None else Hats.of(self.levels, self.scales)

    @property
    def discrete(self) -> int:
        """How many letters move at events only; the continuous ones come after them."""
        levels = 0 if self.hats is None else int(self.hats.starts[-1])
        return self.channels * (2 if self.counted else 1) + levels

    @functools.cached_property
    def term_coordinates(self) -> Float64[np.ndarray, "term lie"]:
        """Each higher-order term of the schema as a Lie element; zero if it is above the depth."""
        rows = np.zeros((len(self.schema.terms), self.basis.dimension))
        for row, term in zip(rows, self.schema.terms, strict=True):
            if term.degree <= self.depth:
                row[:] = self.basis.coordinates(term.bracket)
        return rows

    @functools.cached_property
    def term_support(self) -> Int64[np.ndarray, "support"]:
        """The coordinates that some term reaches."""
        return np.flatnonzero(self.term_coordinates.any(axis=0))


def values_of(letters: Sequence[str]) -> tuple[int, ...]:
    """Which letters are values of channels: neither counts nor time.

    >>> values_of(("a", "b", "#a", "#b", "time"))
    (0, 1)
    """
    return tuple(place for place, name in enumerate(letters) if not name.startswith("#") and name != TIME)

"""The coordinates of the driving path: which letters a schema has under the chosen options (`sec:procedure`).

Knows schemas and bases; nothing of observations or of how they are composed.
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from logcde.algebra import Basis
from logcde.embedding.hat_basis import HatBasis, count_letters
from logcde.errors import EmbeddingError
from logcde.kernels.records import Alphabet
from logcde.streams import ChannelScaler, Schema, SoftBins, Streams

TIME = "time"


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """Letters of the driving path, in order: values, counts (each with its soft bins), roughness, continuous, time.

    Args:
        schema: Channels of the streams.
        depth: Depth of the log-signatures.
        counts: Whether each channel has a letter that counts its observations.
        time: Whether time is a letter, the last one.
        scaler: Takes values from the units of measurement to the units of the path.
        soft_bins: Bins of the values of each channel, each with a letter that counts the observations near its knot.
        roughness: Whether each channel has a letter that sums its squared changes.

    >>> Coordinates(Schema(("a", "b")), depth=2, counts=True, time=True).letters
    ('a', 'b', '#a', '#b', 'time')
    >>> soft_bins = SoftBins(("a", "b"), ((60.0, 75.0), (0.0,)))
    >>> Coordinates(Schema(("a", "b")), depth=2, counts=True, time=True, soft_bins=soft_bins).letters
    ('a', 'b', '#a', '#a~60', '#a~75', '#b', 'time')
    >>> Coordinates(Schema(("a", "b")), depth=2, counts=False, time=True, roughness=True).letters
    ('a', 'b', '~a', '~b', 'time')
    """

    schema: Schema
    depth: int
    counts: bool
    time: bool
    scaler: ChannelScaler | None = None
    soft_bins: SoftBins | None = None
    roughness: bool = False

    def __post_init__(self) -> None:
        if self.scaler is not None:
            self.scaler.check(self.schema.channels)
        if self.soft_bins is not None:
            self.soft_bins.check(self.schema.channels)

    @functools.cached_property
    def letters(self) -> tuple[str, ...]:
        """Names of all letters."""
        channels = self.schema.channels
        counts = tuple(f"#{name}" for name in channels) if self.counted else ()
        if self.soft_bins is not None:
            counts = count_letters(self.soft_bins)
        roughness = tuple(f"~{name}" for name in channels) if self.roughness else ()
        return (*channels, *counts, *roughness, *self.schema.continuous, *((TIME,) if self.time else ()))

    @functools.cached_property
    def basis(self) -> Basis:
        """The Lyndon basis over the letters."""
        return _basis(self.letters, self.depth)

    @functools.cached_property
    def alphabet(self) -> Alphabet:
        """The letters as kernels take them."""
        # With further continuous channels, gaps are factors, time included.
        timed = self.time and not self.schema.continuous
        return Alphabet(self.channels, self.counted, timed, self.basis.width, self.depth)

    def scaled(self, streams: Streams) -> Streams:
        """Streams in the units of the driving path."""
        return streams if self.scaler is None else self.scaler(streams)

    @property
    def channels(self) -> int:
        """Number of channels that are observed at discrete times."""
        return len(self.schema.channels)

    @property
    def counted(self) -> bool:
        """Whether each channel has exactly one count and no soft bins."""
        return self.counts and self.soft_bins is None

    @property
    def plain(self) -> bool:
        """Whether an observation moves its value and its count, if any, and no further letter."""
        return self.soft_bins is None and not self.roughness

    @functools.cached_property
    def hat_basis(self) -> HatBasis | None:
        """How observations are split between soft bins, if there are any."""
        return None if self.soft_bins is None else HatBasis.of(self.soft_bins, self.scaler)

    @property
    def first_roughness(self) -> int:
        """Number of values, counts and soft bins: where the letters of roughness start, if there are any."""
        bins = 0 if self.hat_basis is None else int(self.hat_basis.starts[-1])
        return self.channels * (2 if self.counted else 1) + bins

    @property
    def discrete(self) -> int:
        """Number of letters that move at events only; the continuous ones come after them."""
        return self.first_roughness + (self.channels if self.roughness else 0)

    @functools.cached_property
    def term_coordinates(self) -> Float64[np.ndarray, "term lie"]:
        """Each higher-order term of the schema as a Lie element; zero if its degree exceeds the depth."""
        rows = np.zeros((len(self.schema.terms), self.basis.dimension))
        for row, term in zip(rows, self.schema.terms, strict=True):
            if term.degree <= self.depth:
                row[:] = self.basis.coordinates(term.bracket)
        return rows

    @functools.cached_property
    def term_support(self) -> Int64[np.ndarray, "support"]:
        """The coordinates that some term changes."""
        return np.flatnonzero(self.term_coordinates.any(axis=0))


@functools.lru_cache(maxsize=64)
def _basis(letters: tuple[str, ...], depth: int) -> Basis:
    """The same object for the same letters, with all that it has derived."""
    return Basis(letters, depth)


def checked_depth(depth: int | np.integer) -> int:
    """The depth of a truncation, if it is one.

    >>> checked_depth(np.int64(2))
    2
    """
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < 1:
        raise EmbeddingError(f"The depth is {depth!r}.", "Choose a whole number, 1 or more.")
    return int(depth)


def values_of(letters: Sequence[str]) -> tuple[int, ...]:
    """Positions of the letters that are values of channels: neither counts, roughness nor time.

    >>> values_of(("a", "b", "#a", "#b", "~a", "~b", "time"))
    (0, 1)
    """
    return tuple(place for place, name in enumerate(letters) if not name.startswith(("#", "~")) and name != TIME)


def time_of(letters: Sequence[str]) -> int | None:
    """The position of the letter that is time; None if there is none.

    >>> time_of(("a", "#a", "time"))
    2
    """
    return tuple(letters).index(TIME) if TIME in letters else None

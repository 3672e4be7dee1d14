"""The coordinates of the driving path: which letters a schema has under the chosen options (`sec:procedure`)."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from logcde.algebra import Basis
from logcde.embedding.hat_basis import HatBasis, letters_of
from logcde.streams import ChannelScaler, Schema, SoftBins, Streams

TIME = "time"


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """Letters in their order: values, counts or levels, continuous channels, time last; values in units of `scaler`.

    >>> Coordinates(Schema(("a", "b")), depth=2, counts=True, time=True).letters
    ('a', 'b', '#a', '#b', 'time')
    >>> soft_bins = SoftBins(("a", "b"), ((60.0, 75.0), (0.0,)))
    >>> Coordinates(Schema(("a", "b")), depth=2, counts=True, time=True, soft_bins=soft_bins).letters
    ('a', 'b', '#a', '#a~60', '#a~75', '#b', 'time')
    """

    schema: Schema
    depth: int
    counts: bool
    time: bool
    scaler: ChannelScaler | None = None
    soft_bins: SoftBins | None = None

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
            counts = letters_of(self.soft_bins)
        return (*channels, *counts, *self.schema.continuous, *((TIME,) if self.time else ()))

    @functools.cached_property
    def basis(self) -> Basis:
        """The Lyndon basis over the letters."""
        return Basis(self.letters, self.depth)

    def scaled(self, streams: Streams) -> Streams:
        """Streams in the units of the driving path."""
        return streams if self.scaler is None else self.scaler(streams)

    @property
    def channels(self) -> int:
        """How many channels are observed at discrete times."""
        return len(self.schema.channels)

    @property
    def counted(self) -> bool:
        """Whether each channel has one letter beside its value, which counts its observations."""
        return self.counts and self.soft_bins is None

    @functools.cached_property
    def hat_basis(self) -> HatBasis | None:
        """How observations are shared between levels, if there are some."""
        return None if self.soft_bins is None else HatBasis.of(self.soft_bins, self.scaler)

    @property
    def discrete(self) -> int:
        """How many letters move at events only; the continuous ones come after them."""
        soft_bins = 0 if self.hat_basis is None else int(self.hat_basis.starts[-1])
        return self.channels * (2 if self.counted else 1) + soft_bins

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

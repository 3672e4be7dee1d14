"""How errors name the place: series, channel and stamp in the user's own terms."""

import dataclasses
import math
from typing import SupportsFloat, SupportsIndex

import numpy as np
from jaxtyping import Shaped

from logcde.streams.schema import Schema


@dataclasses.dataclass(frozen=True)
class Places:
    """Names for codes: the series' ids, the schema, and each series' origin where they differ.

    >>> places = Places(np.array(["p1", "p2"], object), Schema(("pulse",)))
    >>> places.at(1, 2.5, 0)
    "Series 'p2', channel 'pulse', at 2.5"
    """

    ids: Shaped[np.ndarray, "series"]
    schema: Schema
    origins: Shaped[np.ndarray, "series"] | None = None

    def series(self, code: SupportsIndex) -> str:
        """For example `Series 'p2'`."""
        return f"Series {name(self.ids[code])}"

    def channel(self, code: SupportsIndex) -> str:
        """For example `channel 'pulse'`."""
        return f"channel {self.schema.channels[code]!r}"

    def stamp(self, code: SupportsIndex, time: SupportsFloat) -> str:
        """A time of one series as the user would write it."""
        number = float(time)
        if not math.isfinite(number):
            return repr(number)
        return self.schema.clock.show(number, None if self.origins is None else self.origins[code])

    def at(self, code: SupportsIndex, time: SupportsFloat, channel: SupportsIndex | None = None) -> str:
        """For example `Series 'p2', channel 'pulse', at 2.5`."""
        what = "" if channel is None else f", {self.channel(channel)}"
        return f"{self.series(code)}{what}, at {self.stamp(code, time)}"


def name(identifier: object) -> str:
    """A series' id as a person would write it.

    >>> name(np.int64(3)), name("p1")
    ('3', "'p1'")
    """
    return repr(identifier.item() if isinstance(identifier, np.generic) else identifier)


def more(others: int) -> str:
    """How often the same fault occurs elsewhere.

    >>> more(0), more(2)
    ('', ' (and 2 more like it)')
    """
    return f" (and {others:,} more like it)" if others else ""

"""Several data sets with one schema become one."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from logcde.errors import StreamError
from logcde.streams.columns import AbstractStreams
from logcde.streams.knots import Knots
from logcde.streams.ragged import offsets_of

Kind = TypeVar("Kind", bound=AbstractStreams)


def join(parts: Sequence[Kind]) -> Kind:
    """The series of all parts, one after another."""
    if not parts:
        raise StreamError("There is nothing to concatenate. Give at least one data set.")
    first = parts[0]
    for number, part in enumerate(parts):
        for field in ("channels", "clock", "terms", "continuous"):
            ours, theirs = getattr(first.schema, field), getattr(part.schema, field)
            if ours != theirs:
                raise StreamError(
                    f"Part {number} has the {field} {theirs!r}, but part 0 has {ours!r}. "
                    "Read both with one schema, as in Streams.from_frame(..., schema=first.schema)."
                )
        if part.ids.dtype.kind != first.ids.dtype.kind:
            raise StreamError(f"The ids of part {number} are {part.ids.dtype}, but those of part 0 {first.ids.dtype}.")

    def chain(field: str) -> np.ndarray:
        return np.concatenate([getattr(part, field) for part in parts])

    knots = [part.knots for part in parts if part.knots is not None]
    return dataclasses.replace(
        first,
        ids=chain("ids"),
        offsets=_chain_offsets([part.offsets for part in parts]),
        times=chain("times"),
        obs_offsets=_chain_offsets([part.obs_offsets for part in parts]),
        channel=chain("channel"),
        value=chain("value"),
        horizon=chain("horizon"),
        terms=chain("terms"),
        knots=_chain_knots(knots) if knots else None,
        origins=None if first.origins is None else chain("origins"),
    )


def _chain_offsets(parts: Sequence[np.ndarray]) -> np.ndarray:
    return offsets_of(np.concatenate([np.diff(offsets) for offsets in parts]))


def _chain_knots(parts: Sequence[Knots]) -> Knots:
    return Knots(
        _chain_offsets([knots.offsets for knots in parts]),
        np.concatenate([knots.times for knots in parts]),
        np.concatenate([knots.values for knots in parts]),
    )

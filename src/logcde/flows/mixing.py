"""The interface of what mixes rows over time in a layer of a recurrent stack."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from logcde.errors import ModelError
from logcde.flows.dynamics import Carry


class AbstractMixer(eqx.Module):
    """Rows to rows of the same size, each of which knows of earlier ones only. One series is one example.

    `start` and `advance` do the same one row at a time.
    """

    @abc.abstractmethod
    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """All rows at once."""

    @abc.abstractmethod
    def start(self) -> Carry:
        """What is kept before the first row."""

    @abc.abstractmethod
    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """What is kept after one more row, and what comes of that row."""


def check_sizes(features: int, state: int) -> None:
    """Refuse a mixer of nothing."""
    if min(features, state) < 1:
        raise ModelError(f"A layer with {features} features and a state of {state} cannot be built.")

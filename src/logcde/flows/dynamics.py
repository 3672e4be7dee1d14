"""The interface of everything that moves a hidden state over intervals, in training and online.

`unroll` moves it over all intervals of a series at once, in whatever way is fastest. `start`, `advance` and `state` do
the same one interval at a time. Both give the same numbers, to rounding.
"""

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

Carry: TypeAlias = PyTree[Any]
"""What is kept between two intervals."""
BatchStats: TypeAlias = PyTree[Any]
"""What is remembered of a batch beside gradients: statistics for later use."""


class AbstractDynamics(eqx.Module):
    """How a hidden state moves, driven by one row of numbers for each interval. One series is one example."""

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """The size of the hidden state that it starts from."""

    @property
    @abc.abstractmethod
    def features(self) -> int:
        """The size of the states that it puts out."""

    @abc.abstractmethod
    def unroll(
        self, hidden: Float[Array, "hidden"], steps: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state at the end of every interval; from interval number `length` on nothing moves it."""

    @abc.abstractmethod
    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def advance(self, carry: Carry, step: Float[Array, "lie"]) -> Carry:
        """What is kept after one more interval."""

    @abc.abstractmethod
    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state that is put out there."""

    @abc.abstractmethod
    def penalty(self) -> Float[Array, ""]:
        """The size of the vector field, as the regulariser of the paper's experiments measures it."""

    def fit_preprocessing(self, steps: Callable[[], Float[Array, "series interval lie"]]) -> "AbstractDynamics":
        """The same before training on series with these steps, zero where there is no interval.

        Most have nothing to fit, and never ask for them.
        """
        return self


class AbstractBatchDynamics(AbstractDynamics):
    """Dynamics that are other in training: at random, or by statistics of the whole batch, which they remember."""

    @abc.abstractmethod
    def apply_train(
        self,
        hidden: Float[Array, "hidden"],
        steps: Float[Array, "interval lie"],
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
        axes: tuple[str, ...],
    ) -> tuple[Float[Array, "interval features"], BatchStats]:
        """`unroll` in training, for one series of a batch whose axes have these names, and what to remember of it."""

    @abc.abstractmethod
    def with_batch_stats(self, batch_stats: BatchStats) -> "AbstractBatchDynamics":
        """The same dynamics with that remembered."""

"""The interface of dynamics: what moves a hidden state over intervals, in training and online.

`unroll` moves it over all intervals of a series at once, in whatever way is fastest. `start`, `advance` and `state` do
the same one interval at a time. Both give the same numbers, to rounding. Dynamics know nothing of how the state was
initialised, of how it is read, or of the scaling of log-signatures.
"""

import abc
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from logcde.embedding.steps import AbstractRaggedSteps, SparseSteps
from logcde.errors import ModelError

Carry: TypeAlias = PyTree[Any]
"""What is kept between two intervals."""
Steps: TypeAlias = Float[Array, "interval lie"] | AbstractRaggedSteps
"""The log-signatures of a series, one for each interval; sparse ones, or factors, for dynamics that take them."""
Step: TypeAlias = Float[Array, "lie"] | AbstractRaggedSteps
"""The log-signature of one interval."""


class AbstractDynamics(eqx.Module):
    """How a hidden state moves, driven by one log-signature for each interval. One series is one example.

    Attributes:
        sparse: Whether `unroll` and `advance` take `SparseSteps` as well.
        factored: Whether they take `FactorSteps` as well.
    """

    sparse: ClassVar[bool] = False
    factored: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """The size of the hidden state that `unroll` and `start` take."""

    @property
    @abc.abstractmethod
    def features(self) -> int:
        """The size of the states that `unroll` and `state` return."""

    @abc.abstractmethod
    def unroll(
        self, hidden: Float[Array, "hidden"], logsigs: Float[Array, "interval lie"], length: Int[Array, ""]
    ) -> Float[Array, "interval features"]:
        """The state at the end of every interval.

        Args:
            hidden: The state before the first interval.
            logsigs: One row for each interval; baselines take other rows, such as pieces of a control.
            length: The number of intervals of this series. Later rows are padding and must not move the state.
        """

    @abc.abstractmethod
    def start(self, hidden: Float[Array, "hidden"]) -> Carry:
        """What is kept before the first interval."""

    @abc.abstractmethod
    def advance(self, carry: Carry, logsig: Float[Array, "lie"]) -> Carry:
        """What is kept after one more interval."""

    @abc.abstractmethod
    def state(self, carry: Carry) -> Float[Array, "features"]:
        """The state at the end of the last interval, as `unroll` gives it."""

    @abc.abstractmethod
    def penalty(self) -> Float[Array, ""]:
        """The size of the vector field, as the regulariser of the paper's experiments measures it."""


class AbstractFittedDynamics(AbstractDynamics):
    """Dynamics with constants that are fitted to the training series before training."""

    @abc.abstractmethod
    def fit_preprocessing(
        self, logsigs: Float[Array, "series interval lie"] | AbstractRaggedSteps
    ) -> "AbstractFittedDynamics":
        """Fit the constants to scaled log-signatures, zero beyond a series' own; once fitted, they stay."""


class AbstractDropoutDynamics(AbstractDynamics):
    """Dynamics with training-time behaviour: dropout."""

    @abc.abstractmethod
    def unroll_train(
        self,
        hidden: Float[Array, "hidden"],
        logsigs: Float[Array, "interval lie"],
        length: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "interval features"]:
        """As `unroll`, with some entries dropped at random by `key`."""


def unroll_with(
    dynamics: AbstractDynamics,
    hidden: Float[Array, "hidden"],
    logsigs: Steps,
    length: Int[Array, ""],
    key: PRNGKeyArray | None,
) -> Float[Array, "interval features"]:
    """`unroll`, or with a key `unroll_train` of dynamics that have it."""
    if isinstance(logsigs, AbstractRaggedSteps):
        sparse = isinstance(logsigs, SparseSteps)
        if not (dynamics.sparse if sparse else dynamics.factored):
            what = "sparse log-signatures" if sparse else "factors"
            raise ModelError(f"{type(dynamics).__name__} takes no {what}.", "Give logsigs.dense().")
    steps: Any = logsigs
    if key is not None and isinstance(dynamics, AbstractDropoutDynamics):
        return dynamics.unroll_train(hidden, steps, length, key=key)
    return dynamics.unroll(hidden, steps, length)

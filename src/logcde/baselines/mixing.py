"""Mixers: what mixes rows over time in a layer of a recurrent model, and the linear recurrence behind all of them.

A recurrence h_t = a_t h_{t-1} + b_t with one factor for each entry composes associatively: (a, b) followed by (a', b')
is (a' a, a' b + b'). `LinearRecurrence` is that composition for the scans of `logcde.scans`.
"""

import abc
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, PyTree

from logcde.errors import ModelError
from logcde.flows.dynamics import Carry
from logcde.scans import AbstractComposition

State: TypeAlias = Inexact[Array, "*entry"]
Rows: TypeAlias = PyTree[Any]
"""One row, or with a leading axis many."""


class AbstractMixer(eqx.Module):
    """Maps rows to rows of the same size, each of which depends on earlier ones only. One series is one example.

    `start` and `advance` do the same one row at a time.
    """

    @abc.abstractmethod
    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """Mix all rows of a series."""

    @abc.abstractmethod
    def start(self) -> Carry:
        """What is kept before the first row."""

    @abc.abstractmethod
    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """What is kept after one more row, and that row, mixed."""


class AbstractRecurrence(AbstractComposition):
    """A linear recurrence: subclasses say which factor and term each row stands for, and how states are read.

    >>> class Decay(AbstractRecurrence):
    ...     recompute = False
    ...
    ...     def element(self, row):
    ...         return jnp.full_like(row, 0.5), row
    ...
    ...     def read(self, state, step):
    ...         return state
    >>> from logcde.scans import Associative
    >>> Associative()(Decay(), jnp.array([1.0, 2.0, 3.0]), jnp.array(0.0)).tolist()
    [1.0, 2.5, 4.25]
    """

    @abc.abstractmethod
    def element(self, row: Rows) -> tuple[State, State]:
        """The factor a_t and the term b_t of one row."""

    def prepare(self, steps: Rows) -> Rows:
        """Nothing: elements may be much larger than rows, so they are made as late as possible."""
        return steps

    def append(self, state: State, step: Rows) -> State:
        """One step of the recurrence."""
        factor, term = self.element(step)
        return factor * state + term

    def lift(self, steps: Rows, state: State) -> tuple[State, State]:
        """Factors and terms; the state enters the first term."""
        factors, terms = jax.vmap(self.element)(steps)
        factors = jnp.broadcast_to(factors, terms.shape)
        return factors, terms.at[0].add(factors[0] * state)

    def combine(self, earlier: tuple[State, State], later: tuple[State, State]) -> tuple[State, State]:
        """(a, b) followed by (a', b') is (a' a, a' b + b')."""
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    def act(self, elements: tuple[State, State], state: State) -> State:
        """The terms: the state is in the first of them already."""
        return elements[1]


def check_sizes(features: int, state: int) -> None:
    """Refuse a mixer without features or without a state."""
    if min(features, state) < 1:
        raise ModelError(
            f"A layer with {features} features and a state of {state} cannot be built.", "Both are 1 or more."
        )

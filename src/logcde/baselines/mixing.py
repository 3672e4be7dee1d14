"""The interface of what mixes rows over time in a layer of a recurrent stack.

Linear recurrences with one factor for each entry, h_t = a_t h_{t-1} + b_t, and ways to run them.

They compose associatively: (a, b) followed by (a', b') is (a' a, a' b + b'). On a CPU one step after another is
fastest, elsewhere a tree within chunks.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, PyTree

from logcde.errors import ModelError
from logcde.flows.dynamics import Carry
from logcde.scans import Associative, Auto, Chunked, Sequential


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


State: TypeAlias = Inexact[Array, "*entry"]
Rows: TypeAlias = PyTree[Any]
RecurrenceScan: TypeAlias = Sequential | Associative | Chunked | Auto
"""`Auto` is `Sequential` on a CPU and `Chunked(128)` elsewhere."""


def recur(
    element: Callable[[Rows], tuple[State, State]],
    read: Callable[[State, Rows], Array],
    rows: Rows,
    start: State,
    scan: RecurrenceScan,
    *,
    again: bool = False,
) -> Array:
    """What `read` makes of the state after every row; `element` makes a factor and a term of one row.

    With `again`, chunks of rows are computed again in the backward pass and only the states between them are kept: for
    elements that are much larger than what they are made of.

    >>> rows, start = jnp.array([1.0, 2.0, 3.0]), jnp.array(0.0)
    >>> recur(lambda row: (jnp.full_like(row, 0.5), row), lambda state, row: state, rows, start, Associative()).tolist()
    [1.0, 2.5, 4.25]
    """

    def one_by_one(before: State, chunk: Rows) -> tuple[State, Array]:
        def extend(state: State, row: Rows) -> tuple[State, Array]:
            factor, term = element(row)
            state = factor * state + term
            return state, read(state, row)

        return jax.lax.scan(extend, before, chunk)

    def as_tree(before: State, chunk: Rows) -> tuple[State, Array]:
        factors, terms = jax.vmap(element)(chunk)
        factors = jnp.broadcast_to(factors, terms.shape)
        terms = terms.at[0].add(factors[0] * before)
        states = jax.lax.associative_scan(_compose, (factors, terms))[1]
        return states[-1], jax.vmap(read)(states, chunk)

    count = max(len(jax.tree.leaves(rows)[0]), 1)
    match scan:
        case Sequential():
            return _in_chunks(one_by_one, rows, start, math.isqrt(count) + 1 if again else count, again)
        case Chunked():
            return _in_chunks(as_tree, rows, start, scan.size, again)
        case Associative():
            return _in_chunks(as_tree, rows, start, count, again)
        case Auto():
            return jax.lax.platform_dependent(
                rows,
                start,
                cpu=lambda rows, start: recur(element, read, rows, start, Sequential(), again=again),
                default=lambda rows, start: recur(element, read, rows, start, Chunked(128), again=again),
            )


def _compose(earlier: tuple[Array, Array], later: tuple[Array, Array]) -> tuple[Array, Array]:
    return later[0] * earlier[0], later[0] * earlier[1] + later[1]


def _in_chunks(
    within: Callable[[State, Rows], tuple[State, Array]], rows: Rows, start: State, size: int, again: bool
) -> Array:
    """One chunk after another; rows of zeros fill the last one, and what comes of them is cut off."""
    count = len(jax.tree.leaves(rows)[0])
    chunks = -(-count // size)

    def cut(leaf: Array) -> Array:
        padding = [(0, chunks * size - count)] + [(0, 0)] * (leaf.ndim - 1)
        return jnp.pad(leaf, padding).reshape(chunks, size, *leaf.shape[1:])

    each = jax.checkpoint(within, prevent_cse=False) if again else within
    out = jax.lax.scan(each, start, jax.tree.map(cut, rows))[1]
    return out.reshape(chunks * size, *out.shape[2:])[:count]

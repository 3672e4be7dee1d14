"""Scans: ways to run a composition over many steps, from the first to the last.

Signatures (`eq:interval_log_signature_method` of the paper), linear flows and linear recurrences all move a state by
steps that compose associatively, so any bracketing gives the same states, to rounding; which one is fastest depends on
the device. A scan decides the order of the operations, an `AbstractComposition` says what they are: a new scan runs all
compositions, and a new composition runs under all scans.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from logcde.errors import ScanError

State: TypeAlias = PyTree[Any]
"""What the steps move."""
Steps: TypeAlias = PyTree[Any]
"""One step, or with a leading axis many. Steps of zeros pad the last chunk; what they give is cut off."""
Element: TypeAlias = PyTree[Any]
"""A step, or a product of steps, in a form that composes; with a leading axis, many."""
Outputs: TypeAlias = PyTree[Any]
"""What is read of the state after every step, with a leading axis."""


class AbstractComposition(eqx.Module):
    """How steps move a state, one by one and as products.

    Attributes:
        recompute: Whether the backward pass computes chunks of steps again and keeps the states between them only: for
            steps whose elements are much larger than the steps themselves.
    """

    recompute: ClassVar[bool]

    @abc.abstractmethod
    def prepare(self, steps: Steps) -> Steps:
        """Do what can be done for many steps at once, before they are appended or lifted."""

    @abc.abstractmethod
    def append(self, state: State, step: Steps) -> State:
        """Move the state by one prepared step."""

    @abc.abstractmethod
    def lift(self, steps: Steps, state: State) -> Element:
        """Turn prepared steps into elements; the state that they move may enter the first of them."""

    @abc.abstractmethod
    def combine(self, earlier: Element, later: Element) -> Element:
        """Multiply elements, associatively; leading axes broadcast."""

    @abc.abstractmethod
    def act(self, elements: Element, state: State) -> State:
        """Move the state by products of all elements up to each one: a state for each."""

    @abc.abstractmethod
    def read(self, state: State, step: Steps) -> Outputs:
        """What is put out after one prepared step, given the state there."""


class AbstractFusedComposition(AbstractComposition):
    """A composition that can also move a state along all steps without forming any element: for `MatrixFree`."""

    @abc.abstractmethod
    def fused(self, steps: Steps, state: State) -> Outputs:
        """What is put out after every step; steps are not prepared."""


class AbstractScan(eqx.Module):
    """A way to run a composition over many steps. All scans give the same outputs, to rounding.

    A subclass sets `parallel`, implements `__call__`, and works wherever `scan=` is an argument.

    Attributes:
        parallel: Whether it multiplies elements. Fields whose products lose their structure refuse such scans.
    """

    parallel: ClassVar[bool]

    @abc.abstractmethod
    def __call__(self, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
        """What the composition puts out after every step, starting from `state`."""


class Sequential(AbstractScan):
    """One step after another: least arithmetic and memory. Best on a CPU, above all with many series at once."""

    parallel: ClassVar[bool] = False

    def __call__(self, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
        """What the composition puts out after every step, starting from `state`."""
        if not composition.recompute:
            return _at_once(_one_by_one, composition, steps, state)
        # About as many chunks as steps in each: few states between chunks, and few within one.
        return _in_chunks(_one_by_one, composition, steps, state, math.isqrt(max(_count(steps), 1)) + 1)


class Associative(AbstractScan):
    """A balanced tree of products: logarithmic depth for some multiple of the arithmetic. For accelerators."""

    parallel: ClassVar[bool] = True

    def __call__(self, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
        """What the composition puts out after every step, starting from `state`."""
        return _at_once(_as_tree, composition, steps, state)


class Chunked(AbstractScan):
    """A tree within chunks of `size` steps, one chunk after another: bounded memory, still parallel."""

    size: int = eqx.field(static=True, default=128)
    parallel: ClassVar[bool] = True

    def __check_init__(self) -> None:
        if self.size < 1:
            raise ScanError(
                f"A chunk needs at least one step, but its size is {self.size}.", "Give a size of 1 or more."
            )

    def __call__(self, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
        """What the composition puts out after every step, starting from `state`."""
        return _in_chunks(_as_tree, composition, steps, state, self.size)


class MatrixFree(AbstractScan):
    """One step after another, each applied to the state without forming its element: a compiled kernel on a CPU.

    For linear flows: their elements are matrices, and the product of a matrix exponential and a vector is cheaper than
    the exponential.
    """

    parallel: ClassVar[bool] = False

    def __call__(self, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
        """What the composition puts out after every step, starting from `state`."""
        if not isinstance(composition, AbstractFusedComposition):
            raise ScanError(
                f"MatrixFree() runs linear flows, but {type(composition).__name__} has no matrix-free form.",
                "Use Auto(), Sequential(), Chunked() or Associative().",
            )
        return composition.fused(steps, state)


class Auto(AbstractScan):
    """The fastest scan for the device that the program is compiled for.

    On a CPU `MatrixFree()` where the composition has that form, otherwise `Sequential()`; elsewhere `Chunked(128)`. The
    job `scans` of `benchmarks` compares them for linear flows.
    """

    parallel: ClassVar[bool] = False

    def __call__(self, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
        """What the composition puts out after every step, starting from `state`."""
        on_cpu = MatrixFree() if isinstance(composition, AbstractFusedComposition) else Sequential()
        if jax.default_backend() == "cpu":  # no other device is here: tracing the other scan would be for nothing
            return on_cpu(composition, steps, state)
        elsewhere = Chunked(128)
        return jax.lax.platform_dependent(
            steps,
            state,
            cpu=lambda steps, state: on_cpu(composition, steps, state),
            default=lambda steps, state: elsewhere(composition, steps, state),
        )


Within: TypeAlias = Callable[[AbstractComposition, Steps, State], tuple[State, Outputs]]
"""Run the steps of one chunk: the last state and the outputs."""


def _one_by_one(composition: AbstractComposition, steps: Steps, state: State) -> tuple[State, Outputs]:
    def extend(state: State, step: Steps) -> tuple[State, Outputs]:
        state = composition.append(state, step)
        return state, composition.read(state, step)

    return jax.lax.scan(extend, state, composition.prepare(steps))


def _as_tree(composition: AbstractComposition, steps: Steps, state: State) -> tuple[State, Outputs]:
    prepared = composition.prepare(steps)
    products = jax.lax.associative_scan(composition.combine, composition.lift(prepared, state))
    states = composition.act(products, state)
    return jax.tree.map(lambda leaf: leaf[-1], states), jax.vmap(composition.read)(states, prepared)


def _at_once(within: Within, composition: AbstractComposition, steps: Steps, state: State) -> Outputs:
    if composition.recompute or not _count(steps):
        return _in_chunks(within, composition, steps, state, max(_count(steps), 1))
    return within(composition, steps, state)[1]


def _in_chunks(within: Within, composition: AbstractComposition, steps: Steps, state: State, size: int) -> Outputs:
    """Run one chunk of `size` steps after another; steps of zeros fill the last one."""
    count = _count(steps)
    chunks = -(-count // size)

    def cut(leaf: Array) -> Array:
        padding = [(0, chunks * size - count)] + [(0, 0)] * (leaf.ndim - 1)
        return jnp.pad(leaf, padding).reshape(chunks, size, *leaf.shape[1:])

    def extend(state: State, chunk: Steps) -> tuple[State, Outputs]:
        return within(composition, chunk, state)

    each = jax.checkpoint(extend, prevent_cse=False) if composition.recompute else extend
    outputs = jax.lax.scan(each, state, jax.tree.map(cut, steps))[1]
    return jax.tree.map(lambda leaf: leaf.reshape(chunks * size, *leaf.shape[2:])[:count], outputs)


def _count(steps: Steps) -> int:
    return len(jax.tree.leaves(steps)[0])

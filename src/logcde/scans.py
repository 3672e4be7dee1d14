"""Composing many steps from left to right: one after another, as a tree, or in chunks.

Factors of the paper's `eq:interval_log_signature_method` compose associatively, so any bracketing gives the same
result; which is fastest depends on the device. A scan knows nothing of what it composes: see `AbstractComposition`.
"""

import abc
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from logcde.errors import EmbeddingError

Step: TypeAlias = PyTree[Any]
Element: TypeAlias = PyTree[Any]


class AbstractComposition(eqx.Module):
    """An associative product and how single steps enter it. Steps and elements are pytrees of arrays."""

    @abc.abstractmethod
    def unit(self) -> Element:
        """The element that changes nothing."""

    @abc.abstractmethod
    def append(self, element: Element, step: Step) -> Element:
        """One element followed by one step."""

    @abc.abstractmethod
    def lift(self, steps: Step) -> Element:
        """Steps as elements, with a leading axis."""

    @abc.abstractmethod
    def combine(self, earlier: Element, later: Element) -> Element:
        """The product; leading axes broadcast."""


class AbstractScan(eqx.Module):
    """Composes steps: `Sequential()`, `Associative()` or `Chunked(size)`. All give the same result, to rounding."""

    @abc.abstractmethod
    def __call__(self, composition: AbstractComposition, steps: Step, starts: Bool[Array, "step"]) -> Element:
        """For every step, the product of the steps since the last start, this one included.

        `starts` says which steps begin anew; the first step always does.
        """


class Sequential(AbstractScan):
    """One step after another: least arithmetic, least memory. Best on a CPU, above all with many series at once."""

    def __call__(self, composition: AbstractComposition, steps: Step, starts: Bool[Array, "step"]) -> Element:
        """For every step, the product of the steps since the last start, this one included."""
        unit = composition.unit()

        def extend(element: Element, step_and_start: tuple[Step, Bool[Array, ""]]) -> tuple[Element, Element]:
            step, start = step_and_start
            element = composition.append(_where(start, unit, element), step)
            return element, element

        return jax.lax.scan(extend, unit, (steps, starts))[1]


class Associative(AbstractScan):
    """As a balanced tree: logarithmic depth for some multiple of the arithmetic. For accelerators and long series."""

    def __call__(self, composition: AbstractComposition, steps: Step, starts: Bool[Array, "step"]) -> Element:
        """For every step, the product of the steps since the last start, this one included."""
        return _tree(composition, steps, starts)[0]


class Chunked(AbstractScan):
    """As a tree within chunks of `size` steps, one chunk after another: bounded memory, still parallel."""

    size: int = eqx.field(static=True, default=128)

    def __check_init__(self) -> None:
        if self.size < 1:
            raise EmbeddingError(f"A chunk needs at least one step, but its size is {self.size}.")

    def __call__(self, composition: AbstractComposition, steps: Step, starts: Bool[Array, "step"]) -> Element:
        """For every step, the product of the steps since the last start, this one included."""
        count = len(starts)
        chunks = -(-count // self.size)

        def cut(leaf: Array) -> Array:
            padding = [(0, chunks * self.size - count)] + [(0, 0)] * (leaf.ndim - 1)
            return jnp.pad(leaf, padding).reshape(chunks, self.size, *leaf.shape[1:])

        def extend(before: Element, chunk: tuple[Step, Bool[Array, "step"]]) -> tuple[Element, Element]:
            within, started = _tree(composition, *chunk)
            elements = _where(started, within, composition.combine(before, within))
            return jax.tree.map(lambda leaf: leaf[-1], elements), elements

        chunked = jax.lax.scan(extend, composition.unit(), jax.tree.map(cut, (steps, starts)))[1]
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], chunked)


class MatrixFree(eqx.Module):
    """One interval after another, each applied to the state without forming its flow: least arithmetic and memory."""


class Auto(eqx.Module):
    """`MatrixFree` on a CPU, where it is a compiled kernel, and `Chunked(128)` elsewhere.

    The job `scans` of `benchmarks` compares them.
    """


def _tree(composition: AbstractComposition, steps: Step, starts: Bool[Array, "step"]) -> tuple[Element, Array]:
    """Products since the last start, and whether there was one."""

    def combine(earlier: tuple[Element, Array], later: tuple[Element, Array]) -> tuple[Element, Array]:
        (left, left_started), (right, right_started) = earlier, later
        return _where(right_started, right, composition.combine(left, right)), left_started | right_started

    return jax.lax.associative_scan(combine, (composition.lift(steps), starts))


def _where(flags: Bool[Array, "*step"], chosen: Element, otherwise: Element) -> Element:
    def select(a: Array, b: Array) -> Array:
        return jnp.where(flags.reshape(flags.shape + (1,) * (b.ndim - flags.ndim)), a, b)

    return jax.tree.map(select, chosen, otherwise)

"""Flows of linear CDEs over intervals, and how they move a hidden state from one interval to the next.

The flow of an interval with matrix A is exp(A), or 1 + A to first order. Flows compose associatively, later ones on
the left: `LinearFlows` is that composition for the scans of `logcde.scans`. Formed flows are blocks "row column block",
see `logcde.flows.blocks`.

`act` moves a state along many intervals without forming a flow: it divides each matrix into parts of norm at most one
and takes the Taylor series on the state itself, up to rounding. On a CPU that is a compiled kernel
(`logcde.kernels.flow`), elsewhere its twin in JAX. The derivative is written by hand: the backward pass keeps the
states, nothing else.
"""

import abc
import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float

from logcde.flows.blocks import expm, identity, matmul, matvec
from logcde.kernels.flow import MOST, WIDEST
from logcde.kernels.flow_ffi import BACKWARD, FORWARD, prepare, target
from logcde.scans import AbstractFusedComposition, AbstractScan, Auto, MatrixFree


class AbstractFlow(eqx.Module):
    """What the matrix A of an interval does to the hidden state.

    Attributes:
        first_order: Whether it is 1 + A, which needs the product of A with the state only.
    """

    first_order: ClassVar[bool]

    @abc.abstractmethod
    def __call__(
        self, matrices: Float[Array, "*interval row column block"]
    ) -> Float[Array, "*interval row column block"]:
        """The flows of these matrices, formed. Zeros must give the identity."""

    @abc.abstractmethod
    def act(
        self, matrices: Float[Array, "interval row column block"], hidden: Float[Array, "row block"]
    ) -> Float[Array, "interval row block"]:
        """The state after every interval, without forming flows."""


class Exponential(AbstractFlow):
    """exp(A): the exact solution of the linear CDE over the interval, as far as the log-signature determines it."""

    first_order: ClassVar[bool] = False

    def __call__(
        self, matrices: Float[Array, "*interval row column block"]
    ) -> Float[Array, "*interval row column block"]:
        """Exponentials of all blocks."""
        # Computed again in the backward pass: the many squarings would take as many times the memory.
        return jax.checkpoint(expm)(matrices)

    def act(
        self, matrices: Float[Array, "interval row column block"], hidden: Float[Array, "row block"]
    ) -> Float[Array, "interval row block"]:
        """Taylor series on the state."""
        return act(matrices, hidden, True)


class Euler(AbstractFlow):
    """1 + A, the first-order flow of earlier implementations: for parity with published numbers."""

    first_order: ClassVar[bool] = True

    def __call__(
        self, matrices: Float[Array, "*interval row column block"]
    ) -> Float[Array, "*interval row column block"]:
        """Blocks plus the identity."""
        return matrices + identity(matrices.shape[-2], matrices[..., 0, 0, :])

    def act(
        self, matrices: Float[Array, "interval row column block"], hidden: Float[Array, "row block"]
    ) -> Float[Array, "interval row block"]:
        """One product with each matrix."""
        return act(matrices, hidden, False)


class LinearFlows(AbstractFusedComposition):
    """The composition of linear flows: a step is the matrix of an interval, an element its flow.

    >>> from logcde.scans import Associative
    >>> matrices = jnp.log(jnp.full((3, 1, 1, 1), 2.0))
    >>> Associative()(LinearFlows(Exponential()), matrices, jnp.ones((1, 1)))[:, 0, 0].round(6).tolist()
    [2.0, 4.0, 8.0]
    """

    flow: AbstractFlow
    recompute: ClassVar[bool] = False

    def prepare(self, steps: Float[Array, "interval row column block"]) -> Float[Array, "interval row column block"]:
        """Form the flows."""
        return self.flow(steps)

    def append(self, state: Float[Array, "row block"], step: Float[Array, "row column block"]) -> Array:
        """Multiply the state by one flow."""
        return matvec(step, state)

    def lift(self, steps: Float[Array, "interval row column block"], state: Float[Array, "row block"]) -> Array:
        """Flows are elements already."""
        return steps

    def combine(
        self, earlier: Float[Array, "*#interval row column block"], later: Float[Array, "*#interval row column block"]
    ) -> Float[Array, "*interval row column block"]:
        """The later flow on the left."""
        return matmul(later, earlier)

    def act(self, elements: Float[Array, "interval row column block"], state: Float[Array, "row block"]) -> Array:
        """Multiply the state by every product."""
        return matvec(elements, state)

    def read(self, state: Float[Array, "row block"], step: Float[Array, "row column block"]) -> Array:
        """The state itself."""
        return state

    def fused(self, steps: Float[Array, "interval row column block"], state: Float[Array, "row block"]) -> Array:
        """Apply the matrices without forming flows."""
        return self.flow.act(steps, state)


def act(
    matrices: Float[Array, "interval row column block"], hidden: Float[Array, "row block"], exact: bool
) -> Float[Array, "interval row block"]:
    """Move the state along all intervals: by exponentials if `exact`, otherwise by 1 + A.

    >>> act(jnp.log(jnp.full((3, 1, 1, 1), 2.0)), jnp.ones((1, 1)), True)[:, 0, 0].round(6).tolist()
    [2.0, 4.0, 8.0]
    """
    size, blocks = hidden.shape
    if size > WIDEST and blocks > 1:  # the kernel takes large blocks one by one
        apart = jax.vmap(lambda m, h: _act(m, h, exact), in_axes=-1, out_axes=-1)
        return apart(matrices[..., None, :], hidden[..., None, :])[..., 0, :]
    states: Array = _act(matrices, hidden, exact)
    return states


def compile_ahead(flow: AbstractFlow, scan: AbstractScan, size: int, dtype: DTypeLike) -> None:
    """Begin to compile the kernels of a model whose blocks have this size, if it will use them.

    >>> compile_ahead(Exponential(), Auto(), 4, jnp.float32)
    """
    if isinstance(scan, Auto | MatrixFree) and jax.default_backend() == "cpu":
        prepare(size, np.dtype(dtype), not flow.first_order)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _act(matrices: Array, hidden: Array, exact: bool) -> Array:
    return _on(FORWARD, _kernel_forward, _twin_forward, exact, matrices, hidden)


def _forward(matrices: Array, hidden: Array, exact: bool) -> tuple[Array, tuple[Array, ...]]:
    states = _on(FORWARD, _kernel_forward, _twin_forward, exact, matrices, hidden)
    return states, (matrices, hidden, states)


def _backward(exact: bool, kept: tuple[Array, ...], cotangent: Array) -> tuple[Array, Array]:
    return _on(BACKWARD, _kernel_backward, _twin_backward, exact, *kept, cotangent)


_act.defvjp(_forward, _backward)


def _on(direction: int, kernel, twin, exact: bool, *arrays: Array):
    """Call the kernel where the program is compiled for a CPU, its twin elsewhere."""
    name = target(direction, arrays[0].shape[-2], np.dtype(arrays[0].dtype), exact)
    if name is None:
        return twin(exact, *arrays)
    return jax.lax.platform_dependent(
        *arrays, cpu=functools.partial(kernel, name), default=functools.partial(twin, exact)
    )


def _kernel_forward(name: str, matrices: Array, hidden: Array) -> Array:
    result = jax.ShapeDtypeStruct((len(matrices), *hidden.shape), hidden.dtype)
    return jax.ffi.ffi_call(name, result, vmap_method="broadcast_all")(matrices, hidden)


def _kernel_backward(name: str, matrices: Array, hidden: Array, states: Array, cotangent: Array) -> tuple[Array, Array]:
    results = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in (matrices, hidden))
    call = jax.ffi.ffi_call(name, results, vmap_method="broadcast_all")
    d_matrices, d_hidden = call(matrices, hidden, states, cotangent)
    return d_matrices, d_hidden


def _twin_forward(exact: bool, matrices: Array, hidden: Array) -> Array:
    def extend(state: Array, matrix: Array) -> tuple[Array, Array]:
        parts = _parts(matrix, exact)

        def one(_: Array, state: Array) -> Array:
            return _climb(matrix, state, parts, exact)[0]

        state = jax.lax.fori_loop(0, parts, one, state)
        return state, state

    return jax.lax.scan(extend, hidden, matrices)[1]


def _twin_backward(exact: bool, matrices: Array, hidden: Array, states: Array, cotangent: Array) -> tuple[Array, Array]:
    before = jnp.concatenate([hidden[None], states[:-1]])

    def retreat(slope: Array, interval: tuple[Array, ...]) -> tuple[Array, Array]:
        matrix, start, given = interval
        parts = _parts(matrix, exact)

        def one(part: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
            # The state at the beginning of a part is computed again from the beginning of the interval.
            slope, d_matrix = found
            begin = jax.lax.fori_loop(0, parts - 1 - part, lambda _, h: _climb(matrix, h, parts, exact)[0], start)
            _, kept = _climb(matrix, begin, parts, exact)
            change, slope = _descend(matrix, kept, slope, parts, exact)
            return slope, d_matrix + change

        slope, d_matrix = jax.lax.fori_loop(0, parts, one, (slope + given, jnp.zeros_like(matrix)))
        return slope, d_matrix

    d_hidden, d_matrices = jax.lax.scan(retreat, jnp.zeros_like(hidden), (matrices, before, cotangent), reverse=True)
    return d_matrices, d_hidden


def _parts(matrix: Array, exact: bool) -> Array:
    """The number of parts; 0 if the exponential overflows, so that the result is NaN."""
    if not exact:
        return jnp.asarray(1, jnp.int32)
    norm = jnp.max(jnp.sum(jnp.abs(matrix), axis=0))
    return jnp.where(norm <= MOST, jnp.maximum(jnp.ceil(norm), 1), 0).astype(jnp.int32)


def _scales(matrix: Array, parts: Array, exact: bool) -> Array:
    """1 / (k parts) for every term k of the series, the last one first."""
    terms = (18 if matrix.dtype == jnp.float64 else 10) if exact else 1
    return 1 / (jnp.arange(terms, 0, -1, dtype=matrix.dtype) * parts.astype(matrix.dtype))


def _climb(matrix: Array, state: Array, parts: Array, exact: bool) -> tuple[Array, Array]:
    """Take one part: the state after it, and v_K, ..., v_1 of the series in Horner's form."""

    def one(v: Array, scale: Array) -> tuple[Array, Array]:
        return state + scale * matvec(matrix, v), v

    return jax.lax.scan(one, state, _scales(matrix, parts, exact))


def _descend(matrix: Array, kept: Array, slope: Array, parts: Array, exact: bool) -> tuple[Array, Array]:
    """Derivatives of one part, by the matrix and by the state before it."""
    transposed = jnp.swapaxes(matrix, 0, 1)

    def one(found: tuple[Array, ...], term: tuple[Array, Array]) -> tuple[tuple[Array, ...], None]:
        slope, total, change = found
        scaled = slope * term[1]
        slope = matvec(transposed, scaled)
        return (slope, total + slope, change + scaled[:, None] * term[0][None, :]), None

    start = (slope, slope, jnp.zeros_like(matrix))
    (_, total, change), _ = jax.lax.scan(one, start, (kept, _scales(matrix, parts, exact)), reverse=True)
    return change, total

"""Flows applied along a sequence without being formed: on a CPU a compiled kernel, elsewhere the same in JAX.

Both divide a matrix into parts of norm at most one and take the Taylor series on the state itself, up to rounding
(`logcde.kernels.flow`). The derivative is written by hand: the backward pass keeps the states, nothing else.

How flows of many intervals become the hidden state after each of them.

Flows compose associatively, later ones on the left. `Sequential`, `Associative` and `Chunked` form the matrix of every
flow first; `MatrixFree` never forms one. All give the same states, to rounding.
"""

import functools
from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.flows.blocks import expm, identity, matmul, matvec
from logcde.kernels.flow import MOST, WIDEST
from logcde.kernels.flow_ffi import targets
from logcde.scans import Associative, Auto, Chunked, MatrixFree, Sequential


def act(
    matrices: Float[Array, "interval row column block"], hidden: Float[Array, "row block"], exact: bool
) -> Float[Array, "interval row block"]:
    """The state after every interval; `exact` for exponentials, otherwise 1 + A.

    >>> act(jnp.log(jnp.full((3, 1, 1, 1), 2.0)), jnp.ones((1, 1)), True)[:, 0, 0].round(6).tolist()
    [2.0, 4.0, 8.0]
    """
    size, blocks = hidden.shape
    if size > WIDEST and blocks > 1:  # large blocks go one by one
        apart = jax.vmap(lambda m, h: _act(m, h, exact), in_axes=-1, out_axes=-1)
        return apart(matrices[..., None, :], hidden[..., None, :])[..., 0, :]
    states: Array = _act(matrices, hidden, exact)
    return states


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _act(matrices: Array, hidden: Array, exact: bool) -> Array:
    return _on(_kernel_forward, _twin_forward, exact, matrices, hidden)


def _forward(matrices: Array, hidden: Array, exact: bool) -> tuple[Array, tuple[Array, ...]]:
    states = _on(_kernel_forward, _twin_forward, exact, matrices, hidden)
    return states, (matrices, hidden, states)


def _backward(exact: bool, kept: tuple[Array, ...], cotangent: Array) -> tuple[Array, Array]:
    return _on(_kernel_backward, _twin_backward, exact, *kept, cotangent)


_act.defvjp(_forward, _backward)


def _on(kernel, twin, exact: bool, *arrays: Array):
    """The kernel where this is compiled for a CPU, its twin elsewhere."""
    names = targets(arrays[0].shape[-2], np.dtype(arrays[0].dtype), exact)
    if names is None:
        return twin(exact, *arrays)
    return jax.lax.platform_dependent(
        *arrays, cpu=functools.partial(kernel, names), default=functools.partial(twin, exact)
    )


def _kernel_forward(names: tuple[str, str], matrices: Array, hidden: Array) -> Array:
    result = jax.ShapeDtypeStruct((len(matrices), *hidden.shape), hidden.dtype)
    return jax.ffi.ffi_call(names[0], result, vmap_method="broadcast_all")(matrices, hidden)


def _kernel_backward(
    names: tuple[str, str], matrices: Array, hidden: Array, states: Array, cotangent: Array
) -> tuple[Array, Array]:
    results = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in (matrices, hidden))
    call = jax.ffi.ffi_call(names[1], results, vmap_method="broadcast_all")
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
    """How many parts; none, so that the result is not a number, if there is no exponential."""
    if not exact:
        return jnp.asarray(1, jnp.int32)
    norm = jnp.max(jnp.sum(jnp.abs(matrix), axis=0))
    return jnp.where(norm <= MOST, jnp.maximum(jnp.ceil(norm), 1), 0).astype(jnp.int32)


def _scales(matrix: Array, parts: Array, exact: bool) -> Array:
    """1 / (k parts) for every term k of the series, the last one first."""
    terms = (18 if matrix.dtype == jnp.float64 else 10) if exact else 1
    return 1 / (jnp.arange(terms, 0, -1, dtype=matrix.dtype) * parts.astype(matrix.dtype))


def _climb(matrix: Array, state: Array, parts: Array, exact: bool) -> tuple[Array, Array]:
    """One part: the state after it, and v_K, ..., v_1 of the series in Horner's form."""

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


class AbstractFlow(eqx.Module):
    """What becomes of the matrix that a log-signature selects: `Exponential()` or `Euler()`."""


class Exponential(AbstractFlow):
    """exp(A): the exact solution of the linear CDE over the interval, as far as the log-signature knows it."""


class Euler(AbstractFlow):
    """1 + A, the first-order flow of earlier implementations: for parity with published numbers."""


FlowScan: TypeAlias = Sequential | Associative | Chunked | MatrixFree | Auto


def states_of(
    matrices: Float[Array, "interval row column block"],
    hidden: Float[Array, "row block"],
    flow: AbstractFlow,
    scan: FlowScan,
) -> Float[Array, "interval row block"]:
    """The state after every interval, from the state before the first and the matrix of each."""
    match scan:
        case Sequential():
            return _sequential(_flows(matrices, flow), hidden)
        case Associative():
            return matvec(_products(_flows(matrices, flow)), hidden)
        case Chunked():
            return _chunked(matrices, hidden, flow, scan.size)
        case MatrixFree():
            return act(matrices, hidden, isinstance(flow, Exponential))
        case Auto():
            return jax.lax.platform_dependent(
                matrices,
                hidden,
                cpu=lambda m, h: states_of(m, h, flow, MatrixFree()),
                default=lambda m, h: states_of(m, h, flow, Chunked(128)),
            )


def _flows(
    matrices: Float[Array, "interval row column block"], flow: AbstractFlow
) -> Float[Array, "interval row column block"]:
    if isinstance(flow, Euler):
        return matrices + identity(matrices.shape[-2], matrices[..., 0, 0, :])
    # Recomputed in the backward pass: its many squarings would take as many times the memory.
    return jax.checkpoint(expm)(matrices)


def _sequential(
    flows: Float[Array, "interval row column block"], hidden: Float[Array, "row block"]
) -> Float[Array, "interval row block"]:
    def extend(state: Array, flow: Array) -> tuple[Array, Array]:
        state = matvec(flow, state)
        return state, state

    return jax.lax.scan(extend, hidden, flows)[1]


def _products(flows: Float[Array, "interval row column block"]) -> Float[Array, "interval row column block"]:
    return jax.lax.associative_scan(lambda earlier, later: matmul(later, earlier), flows)


def _chunked(
    matrices: Float[Array, "interval row column block"],
    hidden: Float[Array, "row block"],
    flow: AbstractFlow,
    size: int,
) -> Float[Array, "interval row block"]:
    count = len(matrices)
    chunks = -(-count // size)
    # Zeros have the identity as their flow.
    padded = jnp.pad(matrices, ((0, chunks * size - count), (0, 0), (0, 0), (0, 0)))

    def extend(state: Array, chunk: Array) -> tuple[Array, Array]:
        states = matvec(_products(_flows(chunk, flow)), state)
        return states[-1], states

    states = jax.lax.scan(extend, hidden, padded.reshape(chunks, size, *matrices.shape[1:]))[1]
    return states.reshape(chunks * size, *hidden.shape)[:count]

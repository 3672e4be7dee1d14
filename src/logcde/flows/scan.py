"""How flows of many intervals become the hidden state after each of them.

Flows compose associatively, later ones on the left. `Sequential`, `Associative` and `Chunked` form the matrix of every
flow first; `Acting` never forms one. All give the same states, to rounding.
"""

from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.embedding.scan import Associative, Chunked, Sequential
from logcde.flows.acting import act
from logcde.flows.blocks import identity, matmul, matvec
from logcde.flows.exponential import expm


class AbstractFlow(eqx.Module):
    """What becomes of the matrix that a log-signature selects: `Exponential()` or `Euler()`."""


class Exponential(AbstractFlow):
    """exp(A): the exact solution of the linear CDE over the interval, as far as the log-signature knows it."""


class Euler(AbstractFlow):
    """1 + A, the first-order flow of earlier implementations: for parity with published numbers."""


class Acting(eqx.Module):
    """One interval after another, each applied to the state without forming its flow: least arithmetic and memory."""


class Fastest(eqx.Module):
    """`Acting` on a CPU, where it is a compiled kernel, and `Chunked(128)` elsewhere.

    The job `scans` of `logcde.bench` compares them.
    """


FlowScan: TypeAlias = Sequential | Associative | Chunked | Acting | Fastest


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
        case Acting():
            return act(matrices, hidden, isinstance(flow, Exponential))
        case Fastest():
            return jax.lax.platform_dependent(
                matrices,
                hidden,
                cpu=lambda m, h: states_of(m, h, flow, Acting()),
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

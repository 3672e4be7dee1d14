"""Factors of intervals in linear CDEs: the matrix of an interval from what it observes, at depth one and two.

No coordinate is formed, so cost grows with events and their entries: see `logcde.kernels.factors`, which computes it on
a CPU, and its twin in JAX below.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.embedding.factor_steps import FactorSteps, owners
from logcde.flows.blocks import matmul
from logcde.kernels.factors_ffi import targets
from logcde.kernels.flow import WIDEST
from logcde.kernels.xla_ffi import is_portable


def composed_matrices(
    letters: Float[Array, "letter row column block"], steps: FactorSteps
) -> Float[Array, "interval row column block"]:
    """The matrix of each interval, given those of all letters.

    >>> import logcde as lc
    >>> streams = lc.Streams.from_arrays([[0.5]], [[[3.0]]], channels=["a"], horizon=2.0)
    >>> logsigs = lc.Embedding(2, counts=False)(streams, lc.Partition.uniform(1), sparse=True)
    >>> steps = jax.tree.map(lambda leaf: leaf[0], FactorSteps.of(logsigs, np.float32))
    >>> a, time = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.array([[0.0, 0.0], [1.0, 0.0]])
    >>> composed_matrices(jnp.stack([a, time])[..., None], steps)[0, :, :, 0].tolist()  # 3 a + 2 time + 1.5 [a, time]
    [[-1.5, 3.0], [2.0, 1.5]]
    """
    if steps.scale is not None:
        letters = letters * jnp.asarray(steps.scale, letters.dtype)[:, None, None, None]
    own = letters if steps.own is None else letters[steps.own]
    second = steps.basis.depth > 1
    real = [jnp.asarray(array, letters.dtype) for array in (steps.amounts, steps.moments, steps.spans)]
    whole = [jnp.asarray(array) for array in (steps.letters, steps.sizes, steps.counts)]
    found: Array = _compose(second, own, *real, *whole)
    return found


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _compose(second: bool, letters: Array, *given: Array) -> Array:
    names = _targets_of(letters, second)
    if names is None:
        return _twin(second, letters, *given)
    return jax.lax.platform_dependent(
        letters, *given, cpu=functools.partial(_kernel, names[0]), default=functools.partial(_twin, second)
    )


def _forward(second: bool, *given: Array) -> tuple[Array, tuple[Array, ...]]:
    return _compose(second, *given), given


def _backward(second: bool, kept: tuple[Array, ...], cotangent: Array) -> tuple[Array | None, ...]:
    names = _targets_of(kept[0], second)

    def twin(*given: Array) -> tuple[Array, ...]:
        _, pull = jax.vjp(lambda *real: _twin(second, *real, *given[4:-1]), *given[:4])
        return pull(given[-1])

    # The twin gives the cotangents of amounts and times, which training does not ask for: the compiler leaves it out.
    of_letters, *of_data = twin(*kept, cotangent)
    if names is not None:
        of_letters = jax.lax.platform_dependent(
            *kept, cotangent, cpu=functools.partial(_kernel_back, names[1]), default=lambda *given: twin(*given)[0]
        )
    return of_letters, *of_data, None, None, None


_compose.defvjp(_forward, _backward)


def _targets_of(letters: Array, second: bool) -> tuple[str, str] | None:
    """The kernels; none for large blocks, whose products are the work of a matrix library."""
    size = letters.shape[-2]
    return None if is_portable() or size > WIDEST else targets(size, np.dtype(letters.dtype), second)


def _kernel(name: str, letters: Array, *given: Array) -> Array:
    result = jax.ShapeDtypeStruct((given[5].shape[-1], *letters.shape[1:]), letters.dtype)
    return jax.ffi.ffi_call(name, result, vmap_method="expand_dims")(letters, *given)


def _kernel_back(name: str, *given: Array) -> Array:
    letters = given[0]
    result = jax.ShapeDtypeStruct(letters.shape, letters.dtype)
    return jax.ffi.ffi_call(name, result, vmap_method="expand_dims")(*given)


def _twin(
    second: bool,
    letters: Array,
    amounts: Array,
    moments: Array,
    spans: Array,
    numbers: Array,
    sizes: Array,
    counts: Array,
) -> Array:
    """The same in JAX, with the matrices of all factors in memory."""
    intervals, factors = len(counts), len(sizes)
    of_factor = owners(counts, factors)
    moved = letters[numbers] * amounts[:, None, None, None]
    events = jax.ops.segment_sum(moved, owners(sizes, len(numbers)), factors)
    time = letters[-1]
    found = jax.ops.segment_sum(events, of_factor, intervals) + spans[:, None, None, None] * time
    if not second or letters.shape[-2] == 1:  # matrices of one row commute
        return found
    # Sums from the start of the series, of which those from the start of the interval are differences.
    until = jnp.cumsum(events, axis=0)
    first = jnp.cumsum(counts) - counts
    at_start = jnp.where((first > 0)[:, None, None, None], until[first - 1], 0)
    before = until - events - at_start[jnp.minimum(of_factor, intervals - 1)]
    pairs = jax.ops.segment_sum(matmul(events, before) - matmul(before, events), of_factor, intervals)
    weighted = jax.ops.segment_sum(events * moments[:, None, None, None], of_factor, intervals)
    return found + (pairs + matmul(weighted, time[None]) - matmul(time[None], weighted)) / 2

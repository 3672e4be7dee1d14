"""Sparse log-signatures in linear CDEs: the matrix of an interval from the matrices of the letters that move there.

Its cost grows with what an interval observes, not with the number of channels, since no matrix of a bracket is kept: at
depth two see `logcde.kernels.brackets`, which computes it on a CPU, and its twin in JAX below. At greater depths the
brackets of an interval's own letters are formed, interval by interval.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.algebra import Basis
from logcde.embedding.steps import SparseSteps
from logcde.flows.blocks import bracket_matrices, matmul
from logcde.kernels.brackets_ffi import targets
from logcde.kernels.flow import WIDEST
from logcde.kernels.xla_ffi import is_portable


def selected_matrices(
    letters: Float[Array, "letter row column block"], steps: SparseSteps
) -> Float[Array, "interval row column block"]:
    """The matrix that each interval selects of a linear vector field, given those of its letters.

    >>> from logcde.embedding.sparse import SparseLogSignatures
    >>> columns = np.array([0.0, 0.0, 2.0]), np.array([0, 2]), np.array([2]), np.array([1])
    >>> logsigs = SparseLogSignatures(*columns, Basis(("a", "b", "c"), 2))
    >>> a, b = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.array([[0.0, 0.0], [1.0, 0.0]])
    >>> steps = jax.tree.map(lambda leaf: leaf[0], SparseSteps.of(logsigs, np.float32))
    >>> selected_matrices(jnp.stack([a, a, b])[..., None], steps)[0, :, :, 0].tolist()  # twice [a, c]
    [[-2.0, 0.0], [0.0, 2.0]]
    """
    steps = steps.with_values(steps.values.astype(letters.dtype))
    if steps.basis.depth == 1 or letters.shape[-2] == 1:  # matrices of one row commute
        interval, increments = steps.increments()
        moved = letters[steps.letters] * increments[:, None, None, None]
        return jax.ops.segment_sum(moved, interval, steps.intervals)
    if steps.basis.depth == 2:
        matrices: Array = _combine(steps.most, letters[steps.letters], steps.values, steps.counts)
        return matrices
    local = Basis.of_width(steps.most, steps.basis.depth)

    @jax.checkpoint
    def of_interval(interval: tuple[Array, Array]) -> Array:
        own, coordinates = interval
        return jnp.tensordot(coordinates, bracket_matrices(letters[own], local), axes=1)

    found: Array = jax.lax.map(of_interval, steps.padded())
    return found


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _combine(most: int, letters: Array, values: Array, counts: Array) -> Array:
    """The matrices of intervals of depth two, given those of the letters of each interval, one after another."""
    names = _targets_of(letters)
    if names is None:
        return _twin(most, letters, values, counts)
    return jax.lax.platform_dependent(
        letters, values, counts, cpu=functools.partial(_kernel, names[0]), default=functools.partial(_twin, most)
    )


def _forward(most: int, letters: Array, values: Array, counts: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    return _combine(most, letters, values, counts), (letters, values, counts)


def _backward(most: int, kept: tuple[Array, Array, Array], cotangent: Array) -> tuple[Array, Array, None]:
    names = _targets_of(kept[0])

    def twin(letters: Array, values: Array, counts: Array, cotangent: Array) -> tuple[Array, Array]:
        _, pull = jax.vjp(lambda letters, values: _twin(most, letters, values, counts), letters, values)
        return pull(cotangent)

    if names is None:
        return *twin(*kept, cotangent), None
    # Two calls: the compiler leaves out the one that nobody asks for.
    back = (functools.partial(_kernel_back, name, place) for place, name in enumerate(names[1:]))
    d_letters, d_values = (
        jax.lax.platform_dependent(
            *kept, cotangent, cpu=kernel, default=lambda *given, place=place: twin(*given)[place]
        )
        for place, kernel in enumerate(back)
    )
    return d_letters, d_values, None


_combine.defvjp(_forward, _backward)


def _targets_of(letters: Array) -> tuple[str, str, str] | None:
    """The kernels; none for large blocks, whose products are the work of a matrix library."""
    return None if is_portable() or letters.shape[-2] > WIDEST else targets(np.dtype(letters.dtype))


def _kernel(name: str, letters: Array, values: Array, counts: Array) -> Array:
    result = jax.ShapeDtypeStruct((len(counts), *letters.shape[1:]), letters.dtype)
    return jax.ffi.ffi_call(name, result, vmap_method="broadcast_all")(letters, values, counts)


def _kernel_back(name: str, place: int, letters: Array, values: Array, counts: Array, cotangent: Array) -> Array:
    like = (letters, values)[place]
    result = jax.ShapeDtypeStruct(like.shape, like.dtype)
    return jax.ffi.ffi_call(name, result, vmap_method="broadcast_all")(letters, values, counts, cotangent)


def _twin(most: int, letters: Array, values: Array, counts: Array) -> Array:
    """The same in JAX: letters and coordinates padded to `most` letters, and C_i of all i by one product."""
    steps = SparseSteps(jnp.arange(len(letters), dtype=jnp.int32), values, counts, Basis.of_width(most, 2), most)
    own, coordinates = steps.padded()
    valid = jnp.arange(most, dtype=jnp.int32) < counts[:, None]
    matrices = jnp.where(valid[:, :, None, None, None], letters[own], 0)
    left, right = np.triu_indices(most, 1)
    pairs = jnp.zeros((len(counts), most, most), values.dtype).at[:, left, right].set(coordinates[:, most:])
    partners = jnp.einsum("qij,qjrcb->qircb", pairs, matrices)
    brackets = matmul(partners, matrices) - matmul(matrices, partners)
    return jnp.einsum("qi,qircb->qrcb", coordinates[:, :most], matrices) + brackets.sum(axis=1)

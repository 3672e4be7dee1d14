"""The algebra under jit, vmap and both modes of differentiation, in both precisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from logcde.algebra import (
    Basis,
    Lie,
    Tensor,
    bch,
    bracket,
    dilate,
    exp,
    expand,
    inverse,
    log,
    multiply_exp,
    product,
    unit,
)

BASIS = Basis.of_width(2, 3)
OPERATIONS = {
    "bch": bch,
    "bracket": bracket,
    "product": lambda x, y: product(exp(x), exp(y)),
    "multiply_exp": lambda x, y: multiply_exp(exp(x), y),
    "letters": lambda x, y: multiply_exp(exp(x), y.level(1)),
    "inverse": lambda x, y: inverse(product(exp(x), exp(y))),
    "log": lambda x, y: log(product(exp(x), exp(y))),
    "dilate": lambda x, y: dilate(x - y, 0.5),
    "commutator": lambda x, y: bracket(expand(x), expand(y)),
    "sum": lambda x, y: -(2.0 * x) + y,
}


def elements(dtype=np.float64, *batch):
    rng = np.random.default_rng(0)
    shape = (2, *batch, BASIS.dimension)
    return [Lie(jnp.asarray(part), BASIS) for part in rng.normal(size=shape).astype(dtype)]


def assert_close(left, right):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), left, right)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_jit_vmap_and_leading_axes_agree(operation):
    x, y = elements(np.float64, 2, 4)
    batched = jax.jit(operation)(x, y)
    assert batched.batch == (2, 4)
    assert_close(jax.jit(jax.vmap(jax.vmap(operation)))(x, y), batched)
    one = jax.jit(operation)(*(Lie(part.coordinates[1, 3], BASIS) for part in (x, y)))
    assert_close(one, jax.tree.map(lambda leaf: leaf[1, 3], batched))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_forward_and_reverse_derivatives(operation):
    x, y = elements()

    def numbers(a, b):
        return jax.tree.leaves(operation(Lie(a, BASIS), Lie(b, BASIS)))

    check_grads(jax.jit(numbers), (x.coordinates, y.coordinates), order=1, modes=("fwd", "rev"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_operations_keep_precision(operation, dtype):
    result = jax.eval_shape(operation, *elements(dtype))
    assert {leaf.dtype for leaf in jax.tree.leaves(result)} == {np.dtype(dtype)}


def test_single_precision_agrees_with_double():
    single, double = jax.jit(bch)(*elements(np.float32)), jax.jit(bch)(*elements(np.float64))
    np.testing.assert_allclose(single.coordinates, double.coordinates, rtol=1e-4, atol=1e-4)


def test_operations_broadcast_leading_axes():
    x, y = elements(np.float64, 4)
    first = Lie(y.coordinates[0], BASIS)
    repeated = Lie(jnp.broadcast_to(first.coordinates, y.coordinates.shape), BASIS)
    for operation in map(jax.jit, (bracket, OPERATIONS["multiply_exp"])):
        assert_close(operation(x, first), operation(x, repeated))
        assert_close(operation(first, x), operation(repeated, x))
    assert_close(dilate(x, jnp.arange(1.0, 5.0)), jax.vmap(dilate)(x, jnp.arange(1.0, 5.0)))


def test_scan_over_factors_compiles_once():
    traces = []

    @jax.jit
    def signature(increments):
        traces.append(None)
        start = unit(BASIS, dtype=increments.dtype)
        return jax.lax.scan(lambda total, step: (multiply_exp(total, step), None), start, increments)[0]

    for seed in range(3):
        result = signature(jnp.asarray(np.random.default_rng(seed).normal(size=(10, 2))))
    assert isinstance(result, Tensor)
    assert len(traces) == 1

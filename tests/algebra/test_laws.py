"""Laws of the algebra, on elements drawn by Hypothesis."""

import itertools
from functools import reduce

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

from logcde import algebra
from logcde.algebra import Basis, Lie, Tensor, unit
from logcde.errors import BasisError

# Compiled once for each basis: Hypothesis calls them many times.
bch, bracket, dilate, exp, expand = map(
    jax.jit, (algebra.bch, algebra.bracket, algebra.dilate, algebra.exp, algebra.expand)
)
inverse, log, multiply_exp = map(jax.jit, (algebra.inverse, algebra.log, algebra.multiply_exp))
product, project = map(jax.jit, (algebra.product, algebra.project))
BASES = [Basis.of_width(*size) for size in [(1, 2), (2, 1), (3, 3), (2, 4)]]
numbers = st.floats(-2, 2, allow_subnormal=False)
laws = settings(max_examples=25, deadline=None)


def assert_close(left, right, scale=1e-10):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=scale, atol=scale), left, right)


def arrays(*shape):
    return hnp.arrays(np.float64, shape, elements=numbers)


def over_bases(shaped):
    """Draw a basis and what belongs to it. All shapes are known beforehand: run-time type checks draw from `random`."""
    return st.one_of(*(st.tuples(st.just(basis), shaped(basis)) for basis in BASES))


def lies(count):
    return over_bases(lambda basis: arrays(count, basis.dimension))


def tensors(count):
    return over_bases(lambda basis: st.tuples(*(arrays(count, basis.width**level) for level in range(basis.depth + 1))))


def paths(pieces=5):
    return over_bases(lambda basis: arrays(pieces, basis.width))


def as_lies(drawn):
    basis, rows = drawn
    return [Lie(row, basis) for row in rows]


def as_tensors(drawn):
    basis, levels = drawn
    return [Tensor(rows, basis) for rows in zip(*levels, strict=True)]


def signature(increments, basis):
    return reduce(multiply_exp, increments, unit(basis))


@laws
@given(tensors(3))
def test_product_is_associative_and_bilinear(drawn):
    a, b, c = as_tensors(drawn)
    assert_close(product(product(a, b), c), product(a, product(b, c)))
    assert_close(product(a, b + 0.5 * c), product(a, b) + 0.5 * product(a, c))
    assert_close(product(a - b, c), product(a, c) + -product(b, c))
    assert_close(product(a, unit(a.basis)), a)
    assert_close(product(unit(a.basis), a), a)


@laws
@given(paths(), st.integers(0, 5))
def test_chen_identity(path, cut):
    basis, increments = path
    whole = product(signature(increments[:cut], basis), signature(increments[cut:], basis))
    assert_close(whole, signature(increments, basis))


@laws
@given(lies(1))
def test_log_undoes_exp(drawn):
    (x,) = as_lies(drawn)
    assert_close(project(log(exp(x))), x)
    assert_close(exp(x), exp(expand(x)))


@laws
@given(tensors(1), st.floats(0.5, 2))
def test_exp_undoes_log_and_inverse_inverts(drawn, constant):
    (a,) = as_tensors(drawn)
    a = Tensor((jnp.full(1, constant), *a.levels[1:]), a.basis)
    assert_close(exp(log(a)), a, 1e-8)
    assert_close(product(a, inverse(a)), unit(a.basis), 1e-7)
    assert_close(product(inverse(a), a), unit(a.basis), 1e-7)


@laws
@given(paths())
def test_inverse_of_a_signature_is_that_of_the_path_backwards(path):
    basis, increments = path
    assert_close(inverse(signature(increments, basis)), signature(-increments[::-1], basis), 1e-8)


def shuffle(u, v):
    for places in itertools.combinations(range(len(u) + len(v)), len(u)):
        left, right = iter(u), iter(v)
        yield tuple(next(left) if place in places else next(right) for place in range(len(u) + len(v)))


@laws
@given(paths())
def test_signatures_are_group_like(path):
    basis, increments = path
    levels = [np.asarray(level) for level in signature(increments, basis).levels]

    def at(word):
        return levels[len(word)].reshape((basis.width,) * len(word) or (1,))[word or (0,)]

    words = [w for k in range(basis.depth + 1) for w in itertools.product(range(basis.width), repeat=k)]
    pairs = [(u, v) for u in words for v in words if len(u) <= len(v) and len(u) + len(v) <= min(basis.depth, 4)]
    for u, v in pairs:
        np.testing.assert_allclose(at(u) * at(v), sum(map(at, shuffle(u, v))), rtol=1e-8, atol=1e-8)


@laws
@given(lies(3))
def test_bracket_is_antisymmetric_and_satisfies_jacobi(drawn):
    x, y, z = as_lies(drawn)
    zero = 0.0 * x
    assert_close(bracket(x, y), -bracket(y, x))
    assert_close(bracket(x, x), zero)
    assert_close(bracket(x, bracket(y, z)) + bracket(y, bracket(z, x)) + bracket(z, bracket(x, y)), zero, 1e-9)
    assert_close(expand(bracket(x, y)), bracket(expand(x), expand(y)))


@pytest.mark.parametrize("basis", BASES)
def test_basis_elements_are_the_brackets_they_are_labelled_with(basis):
    elements = [Lie(row, basis) for row in jnp.eye(basis.dimension)]
    for element, (left, right) in zip(elements, basis.brackets.tolist(), strict=True):
        if left >= 0:
            assert_close(bracket(elements[left], elements[right]), element)


@laws
@given(lies(2), st.floats(-2, 2))
def test_dilation_is_an_automorphism_that_grades(drawn, scale):
    x, y = as_lies(drawn)
    assert_close(dilate(exp(x), scale), exp(dilate(x, scale)), 1e-8)
    assert_close(dilate(bch(x, y), scale), bch(dilate(x, scale), dilate(y, scale)), 1e-8)
    for level in range(1, x.basis.depth + 1):
        assert_close(dilate(x, scale).level(level), x.level(level) * scale**level)


@laws
@given(tensors(2))
def test_multiply_exp_is_product_with_exp(drawn):
    a, b = as_tensors(drawn)
    assert_close(multiply_exp(a, b), product(a, exp(b)), 1e-8)


@laws
@given(lies(2), st.data())
def test_multiply_exp_takes_letters_and_lower_depths(drawn, data):
    x, y = as_lies(drawn)
    basis, a = x.basis, exp(x)
    depth = data.draw(st.integers(1, basis.depth))
    padded = jnp.concatenate([y.truncate(depth).coordinates, jnp.zeros(basis.dimension)])[: basis.dimension]
    expected = product(a, exp(Lie(padded, basis)))
    assert_close(multiply_exp(a, y.truncate(depth)), expected, 1e-8)
    assert_close(multiply_exp(a, expand(y.truncate(depth))), expected, 1e-8)
    if depth == 1:
        assert_close(multiply_exp(a, y.level(1)), expected, 1e-8)


@laws
@given(lies(3))
def test_bch_is_the_group_law(drawn):
    x, y, z = as_lies(drawn)
    assert_close(bch(bch(x, y), z), bch(x, bch(y, z)), 1e-7)
    assert_close(bch(x, -x), 0.0 * x)
    assert_close(bch(x, 0.0 * x), x)


@laws
@given(arrays(2, Basis.of_width(3, 3).dimension))
def test_bch_formula_to_depth_three(coordinates):
    x, y = (Lie(row, Basis.of_width(3, 3)) for row in coordinates)
    xy = bracket(x, y)
    assert_close(bch(x, y), x + y + 0.5 * xy + (1 / 12) * bracket(x, xy) - (1 / 12) * bracket(y, xy))


def test_operations_refuse_different_bases():
    x = Lie(jnp.ones(6), Basis(("a", "b", "c"), 2))
    renamed, deeper = Lie(jnp.ones(6), Basis(("a", "b", "z"), 2)), Lie(jnp.ones(14), Basis(("a", "b", "c"), 3))
    for operation in (bch, bracket, lambda a, b: a + b, lambda a, b: a - b):
        with pytest.raises(BasisError, match="letters differ"):
            operation(x, renamed)
        with pytest.raises(BasisError, match="depths differ"):
            operation(x, deeper)
    for operation in (product, bracket, lambda a, b: a + b, lambda a, b: a - b):
        with pytest.raises(BasisError, match="letters differ"):
            operation(exp(x), exp(renamed))
    with pytest.raises(BasisError, match="Expand the Lie element"):
        bracket(x, exp(x))
    with pytest.raises(BasisError, match="letters differ"):
        multiply_exp(exp(x), renamed)
    with pytest.raises(BasisError, match="depths differ"):
        multiply_exp(exp(x), deeper)
    assert_close(multiply_exp(exp(deeper), deeper.truncate(2)), multiply_exp(exp(deeper), x))


def test_lie_and_tensor_refuse_wrong_shapes():
    basis = Basis.of_width(3, 2)
    with pytest.raises(BasisError, match=r"shape \(4, 5\) do not fit .*width 3, depth 2.* length 6"):
        Lie(jnp.ones((4, 5)), basis)
    with pytest.raises(BasisError, match="levels 0 to 2, but 2 were passed"):
        Tensor((jnp.ones(1), jnp.ones(3)), basis)
    with pytest.raises(BasisError, match=r"Level 2 .* has shape \(8,\).* shape \(9,\)"):
        Tensor((jnp.ones(1), jnp.ones(3), jnp.ones(8)), basis)
    with pytest.raises(BasisError, match="last axis should have length 3"):
        multiply_exp(unit(basis), jnp.ones(2))

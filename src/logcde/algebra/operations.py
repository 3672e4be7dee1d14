"""Exponential, logarithm, bracket and Baker-Campbell-Hausdorff product.

Signatures are exponentials of log-signatures (the paper's section "Tensor algebra, signatures, and log-signatures");
`multiply_exp` appends one factor of `eq:interval_log_signature_method` to a signature. All functions take Lie elements
or tensors, batched over leading axes that broadcast.
"""

from typing import TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from logcde.algebra import levels as on_levels
from logcde.algebra.basis import common_basis
from logcde.algebra.lie import Lie, expand, expand_levels, project
from logcde.algebra.tensor import Tensor, product
from logcde.errors import BasisError

ElementT = TypeVar("ElementT", Tensor, Lie)


def exp(element: Tensor | Lie) -> Tensor:
    """Tensor exponential.

    >>> from logcde.algebra import Basis
    >>> exp(Lie(jnp.array([1.0, 2.0, 0.0]), Basis.of_width(2, 2))).levels[2].tolist()
    [0.5, 1.0, 1.0, 2.0]
    """
    constant, increment = _split(element)
    result = Tensor(on_levels.exp(increment, element.basis.depth), element.basis)
    return result if constant is None else result.scale(jnp.exp(constant))


def log(tensor: Tensor) -> Tensor:
    """Tensor logarithm; the constant term must be positive (it is one for every signature).

    >>> from logcde.algebra import Basis
    >>> x = Lie(jnp.array([1.0, 2.0, 0.5]), Basis.of_width(2, 2))
    >>> project(log(exp(x))).coordinates.tolist()
    [1.0, 2.0, 0.5]
    """
    constant = tensor.levels[0]
    result = on_levels.log(tensor.scale(1 / constant).levels)
    return Tensor((jnp.log(constant), *result), tensor.basis)


def multiply_exp(tensor: Tensor, element: Tensor | Lie | Float[Array, "*#batch letter"]) -> Tensor:
    """Multiply tensor (x) exp(element) in one sweep, which is cheaper than an exponential and a product.

    Args:
        tensor: The left factor.
        element: A vector of letters (degree one), a Lie element or a tensor. A Lie element or tensor may have smaller
            depth than the left factor: higher levels are zero and cost nothing.

    >>> from logcde.algebra import Basis, unit
    >>> multiply_exp(unit(Basis.of_width(2, 2)), jnp.array([1.0, 2.0])).levels[2].tolist()
    [0.5, 1.0, 1.0, 2.0]
    """
    basis = tensor.basis
    if isinstance(element, Tensor | Lie):
        common_basis((basis.truncate(min(basis.depth, element.basis.depth)), element.basis))
        constant, increment = _split(element)
    else:
        if element.shape[-1:] != (basis.width,):
            raise BasisError(
                f"A degree-one element of shape {element.shape} does not fit {basis!r}.",
                f"The last axis should have length {basis.width}, one for each letter.",
            )
        constant, increment = None, (element,)
    batch = jnp.broadcast_shapes(tensor.batch, increment[0].shape[:-1])
    start = tuple(jnp.broadcast_to(level, (*batch, level.shape[-1])) for level in tensor.levels)
    result = Tensor(on_levels.multiply_exp(start, increment), basis)
    return result if constant is None else result.scale(jnp.exp(constant))


def bracket(left: ElementT, right: ElementT) -> ElementT:
    """Lie bracket [left, right] of two Lie elements or two tensors.

    >>> from logcde.algebra import Basis
    >>> basis = Basis(("a", "b"), 2)
    >>> a, b = Lie(jnp.array([1.0, 0.0, 0.0]), basis), Lie(jnp.array([0.0, 1.0, 0.0]), basis)
    >>> bracket(a, b).coordinates.tolist()
    [0.0, 0.0, 1.0]
    """
    common_basis((left.basis, right.basis))
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return product(left, right) - product(right, left)
    if isinstance(left, Lie) and isinstance(right, Lie):
        return project(bracket(expand(left), expand(right)))
    raise BasisError("A Lie element and a tensor have no bracket.", "Expand the Lie element first.")


def bch(left: Lie, right: Lie) -> Lie:
    """Baker-Campbell-Hausdorff product log(exp(left) (x) exp(right)): the log-signature of two paths in sequence.

    >>> from logcde.algebra import Basis
    >>> basis = Basis.of_width(2, 2)
    >>> a, b = Lie(jnp.array([1.0, 0.0, 0.0]), basis), Lie(jnp.array([0.0, 1.0, 0.0]), basis)
    >>> bch(a, b).coordinates.tolist()
    [1.0, 1.0, 0.5]
    """
    common_basis((left.basis, right.basis))
    return project(log(multiply_exp(exp(left), right)))


def dilate(element: ElementT, scale: int | float | Float[Array, "*#batch"]) -> ElementT:
    """Multiply level k by scale**k, which is the effect of scaling a path on its signature and log-signature.

    >>> from logcde.algebra import Basis
    >>> dilate(Lie(jnp.array([1.0, 2.0, 0.5]), Basis.of_width(2, 2)), 2.0).coordinates.tolist()
    [2.0, 4.0, 2.0]
    """
    if isinstance(element, Lie):
        basis, factor = element.basis, jnp.asarray(scale, element.coordinates.dtype)[..., None]
        parts = [element.level(level) * factor**level for level in range(1, basis.depth + 1)]
        return Lie(jnp.concatenate(parts, axis=-1), basis)
    factor = jnp.asarray(scale, element.levels[0].dtype)[..., None]
    return Tensor(tuple(array * factor**level for level, array in enumerate(element.levels)), element.basis)


def _split(element: Tensor | Lie) -> tuple[Array | None, on_levels.Levels]:
    """Constant term (None if it is zero by construction) and levels 1..depth."""
    if isinstance(element, Lie):
        return None, expand_levels(element.coordinates, element.basis)
    return element.levels[0], element.levels[1:]

"""Elements of the truncated tensor algebra that carry their basis.

Product, unit and inverse of the paper's section "Tensor algebra, signatures, and log-signatures". Everything is batched
over leading axes, which broadcast, and works under `jit`, `vmap`, and forward- and reverse-mode differentiation.
"""

import operator
from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, DTypeLike, Float

from logcde.algebra import levels as on_levels
from logcde.algebra.basis import Basis, common_basis
from logcde.errors import BasisError


def _as_arrays(levels: Iterable[ArrayLike]) -> tuple[Array, ...]:
    return tuple(map(jnp.asarray, levels))


class Tensor(eqx.Module):
    """A truncated tensor: `levels[k]` has shape (*batch, width**k) for k = 0..depth, words in C order.

    >>> a = Tensor((jnp.ones(1), jnp.array([1.0, 2.0]), jnp.zeros(4)), Basis.of_width(2, 2))
    >>> (a + a).levels[1].tolist(), (0.5 * a).levels[1].tolist()
    ([2.0, 4.0], [0.5, 1.0])
    """

    levels: tuple[Float[Array, "*batch _"], ...] = eqx.field(converter=_as_arrays)
    basis: Basis = eqx.field(static=True)

    def __check_init__(self) -> None:
        if len(self.levels) != self.basis.depth + 1:
            raise BasisError(
                f"A tensor over {self.basis!r} has levels 0 to {self.basis.depth}, but {len(self.levels)} were passed."
            )
        for level, array in enumerate(self.levels):
            expected = (*self.levels[0].shape[:-1], self.basis.width**level)
            if array.shape != expected:
                raise BasisError(
                    f"Level {level} of a tensor over {self.basis!r} has shape {array.shape}.",
                    f"It should have shape {expected}: batch axes, then one entry for each word of length {level}.",
                )

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the leading axes."""
        return self.levels[0].shape[:-1]

    def truncate(self, depth: int) -> "Tensor":
        """The same element to a smaller depth."""
        return Tensor(self.levels[: depth + 1], self.basis.truncate(depth))

    def scale(self, factor: Float[Array, "*#batch 1"]) -> "Tensor":
        """Multiply each element of the batch by its own number."""
        return Tensor(tuple(level * factor for level in self.levels), self.basis)

    def __add__(self, other: "Tensor") -> "Tensor":
        return _entrywise(operator.add, self, other)

    def __sub__(self, other: "Tensor") -> "Tensor":
        return _entrywise(operator.sub, self, other)

    def __neg__(self) -> "Tensor":
        return jax.tree.map(operator.neg, self)

    def __mul__(self, scalar: int | float | Float[Array, ""]) -> "Tensor":
        return jax.tree.map(lambda level: level * scalar, self)

    __rmul__ = __mul__


def _entrywise(operation: Callable[[Array, Array], Array], left: Tensor, right: Tensor) -> Tensor:
    basis = common_basis((left.basis, right.basis))
    return Tensor(tuple(map(operation, left.levels, right.levels)), basis)


def unit(basis: Basis, batch: tuple[int, ...] = (), dtype: DTypeLike = float) -> Tensor:
    """The unit 1 of the algebra: the signature of a constant path.

    >>> [level.tolist() for level in unit(Basis.of_width(2, 1)).levels]
    [[1.0], [0.0, 0.0]]
    """
    words = [(*batch, basis.width**level) for level in range(1, basis.depth + 1)]
    return Tensor((jnp.ones((*batch, 1), dtype), *(jnp.zeros(shape, dtype) for shape in words)), basis)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Tensor product: by Chen's identity, the signature of two paths in sequence.

    >>> basis = Basis.of_width(2, 2)
    >>> east = Tensor((jnp.ones(1), jnp.array([1.0, 0.0]), jnp.array([0.5, 0.0, 0.0, 0.0])), basis)
    >>> north = Tensor((jnp.ones(1), jnp.array([0.0, 1.0]), jnp.array([0.0, 0.0, 0.0, 0.5])), basis)
    >>> product(east, north).levels[2].tolist()
    [0.5, 1.0, 0.0, 0.5]
    """
    basis = common_basis((left.basis, right.basis))
    return Tensor(on_levels.product(left.levels, right.levels), basis)


def inverse(tensor: Tensor) -> Tensor:
    """Multiplicative inverse; the constant term must not be zero.

    >>> a = Tensor((jnp.ones(1), jnp.array([1.0, 2.0]), jnp.zeros(4)), Basis.of_width(2, 2))
    >>> product(a, inverse(a)).levels[2].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    reciprocal = 1 / tensor.levels[0]
    result = on_levels.inverse(tensor.scale(reciprocal).levels)
    return Tensor(result, tensor.basis).scale(reciprocal)

"""Lie elements by their Lyndon coordinates, and the maps to and from tensors.

The free Lie algebra of the paper's section "Tensor algebra, signatures, and log-signatures". The maps are the cached
sparse maps of the basis; at depths 1 and 2 the projection only selects entries.
"""

import operator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from logcde.algebra.basis import Basis, common_basis
from logcde.algebra.levels import Levels
from logcde.algebra.sparse import SparseMap
from logcde.algebra.tensor import Tensor
from logcde.errors import BasisError


class Lie(eqx.Module):
    """A Lie element: `coordinates` of shape (*batch, basis.dimension) over the brackets of its basis.

    >>> basis = Basis(("a", "b"), 2)
    >>> x = Lie(jnp.array([1.0, 2.0, 0.5]), basis)
    >>> (x - 2 * x).coordinates.tolist()
    [-1.0, -2.0, -0.5]
    """

    coordinates: Float[Array, "*batch lie"] = eqx.field(converter=jnp.asarray)
    basis: Basis = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.coordinates.shape[-1:] != (self.basis.dimension,):
            raise BasisError(
                f"Coordinates of shape {self.coordinates.shape} do not fit {self.basis!r}.",
                f"The last axis should have length {self.basis.dimension}, one for each bracket.",
            )

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the leading axes."""
        return self.coordinates.shape[:-1]

    def level(self, level: int) -> Float[Array, "*batch bracket"]:
        """Coordinates of one level 1..depth."""
        return self.coordinates[..., self.basis.level(level)]

    def truncate(self, depth: int) -> "Lie":
        """The same element to a smaller depth."""
        basis = self.basis.truncate(depth)
        return Lie(self.coordinates[..., : basis.dimension], basis)

    def __add__(self, other: "Lie") -> "Lie":
        basis = common_basis((self.basis, other.basis))
        return Lie(self.coordinates + other.coordinates, basis)

    def __sub__(self, other: "Lie") -> "Lie":
        basis = common_basis((self.basis, other.basis))
        return Lie(self.coordinates - other.coordinates, basis)

    def __neg__(self) -> "Lie":
        return jax.tree.map(operator.neg, self)

    def __mul__(self, scalar: int | float | Float[Array, ""]) -> "Lie":
        return Lie(self.coordinates * scalar, self.basis)

    __rmul__ = __mul__


def apply(sparse: SparseMap, vector: Float[Array, "*batch col"]) -> Float[Array, "*batch row"]:
    """Apply a sparse map to the last axis."""
    rows, cols = sparse.rows.astype(np.int32), sparse.cols.astype(np.int32)
    taken = vector[..., cols]
    if np.any(sparse.coefficients != 1):
        taken = taken * jnp.asarray(sparse.coefficients, vector.dtype)
    if len(rows) == sparse.shape[0] and np.array_equal(rows, np.arange(len(rows))):
        return taken
    zeros = jnp.zeros((*vector.shape[:-1], sparse.shape[0]), vector.dtype)
    unique = bool(np.all(np.diff(rows) > 0))
    return zeros.at[..., rows].add(taken, indices_are_sorted=True, unique_indices=unique)


def expand_levels(coordinates: Float[Array, "*batch lie"], basis: Basis) -> Levels:
    """Levels 1..depth of the tensor with these Lyndon coordinates."""
    return tuple(
        apply(basis.expansion(level), coordinates[..., basis.level(level)]) for level in range(1, basis.depth + 1)
    )


def project_levels(levels: Levels, basis: Basis) -> Float[Array, "*batch lie"]:
    """Lyndon coordinates of the Lie element with these levels 1..depth."""
    parts = [apply(basis.projection(level), array) for level, array in enumerate(levels, start=1)]
    return jnp.concatenate(parts, axis=-1)


def expand(element: Lie) -> Tensor:
    """Expand a Lie element to a tensor: brackets become commutators of words.

    >>> expand(Lie(jnp.array([1.0, 2.0, 0.5]), Basis.of_width(2, 2))).levels[2].tolist()
    [0.0, 0.5, -0.5, 0.0]
    """
    levels = expand_levels(element.coordinates, element.basis)
    return Tensor((jnp.zeros_like(levels[0][..., :1]), *levels), element.basis)


def project(tensor: Tensor) -> Lie:
    """Project a tensor that is a Lie element, such as the logarithm of a signature, to its Lyndon coordinates.

    Reads the tensor at Lyndon words only. If it is not a Lie element, other words are ignored.

    >>> x = Lie(jnp.array([1.0, 2.0, 0.5]), Basis.of_width(2, 2))
    >>> project(expand(x)).coordinates.tolist()
    [1.0, 2.0, 0.5]
    """
    return Lie(project_levels(tensor.levels[1:], tensor.basis), tensor.basis)

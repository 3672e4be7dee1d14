"""Linear vector fields: structure is a type. One matrix for each letter, and those of brackets by commutators.

`Dense` is the LNCDE of the paper, `Diagonal` its D-SLiCE, `BlockDiagonal` its BD-SLiCE; all three are closed under
products, so flows and their compositions keep the structure. Entries start as N(0, scale^2 / block size).
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows.blocks import as_matrix
from logcde.flows.brackets import bracket_matrices

SCALE = 0.25


class AbstractLinearField(eqx.Module):
    """A linear vector field for each letter of a basis."""

    basis: eqx.AbstractVar[Basis]

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """The size of the hidden state."""

    @abc.abstractmethod
    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """The same as plain matrices, one for each coordinate: for tests and for looking at."""

    @abc.abstractmethod
    def generators(self) -> Float[Array, "read row column block"]:
        """One block-diagonal matrix for each coordinate that is read, the first ones of the basis.

        It depends on parameters only: compute it once for each update.
        """

    @abc.abstractmethod
    def letters(self) -> Float[Array, "letter entry"]:
        """The free entries of each letter, whose sizes the regulariser looks at."""


class BlockDiagonal(AbstractLinearField):
    """Blocks of one size on the diagonal; entry i of block k of the hidden state is at i * blocks + k.

    >>> field = BlockDiagonal(Basis.of_width(3, 2), hidden=8, block=4, key=jax.random.key(0))
    >>> field.generators().shape, field.as_matrices().shape
    ((6, 4, 4, 2), (6, 8, 8))
    """

    basis: Basis = eqx.field(static=True)
    matrices: Float[Array, "letter row column block"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        block: int,
        *,
        scale: float = SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if block < 1 or hidden % block:
            raise ModelError(
                f"Blocks of {block} do not fit a hidden state of {hidden}. Choose a block that divides it."
            )
        shape = (basis.width, block, block, hidden // block)
        self.basis = basis
        self.matrices = jax.random.normal(key, shape, dtype) * (scale * block**-0.5)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.matrices.shape[-1] * self.matrices.shape[-2]

    def generators(self) -> Float[Array, "read row column block"]:
        """All brackets, block by block."""
        return bracket_matrices(self.matrices, self.basis)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """With zeros off the diagonal."""
        return as_matrix(self.generators())

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of the blocks."""
        return self.matrices.reshape(self.basis.width, -1)


class Dense(AbstractLinearField):
    """Full matrices: one block.

    >>> Dense(Basis.of_width(3, 2), hidden=8, key=jax.random.key(0)).generators().shape
    (6, 8, 8, 1)
    """

    basis: Basis = eqx.field(static=True)
    matrices: Float[Array, "letter hidden hidden"]

    def __init__(
        self, basis: Basis, hidden: int, *, scale: float = SCALE, dtype: DTypeLike = jnp.float32, key: PRNGKeyArray
    ) -> None:
        self.basis = basis
        self.matrices = jax.random.normal(key, (basis.width, hidden, hidden), dtype) * (scale * hidden**-0.5)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.matrices.shape[-1]

    def generators(self) -> Float[Array, "read row column block"]:
        """All brackets."""
        return bracket_matrices(self.matrices[..., None], self.basis)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """The generators themselves."""
        return self.generators()[..., 0]

    def letters(self) -> Float[Array, "letter entry"]:
        """All entries."""
        return self.matrices.reshape(self.basis.width, -1)


class Diagonal(AbstractLinearField):
    """Diagonal matrices. They commute: brackets vanish, and only the first level of a log-signature is read.

    Exact flows then multiply to something that depends on the end points of the path only; see `Euler` and `Mean`.

    >>> Diagonal(Basis.of_width(3, 2), hidden=8, key=jax.random.key(0)).generators().shape
    (3, 1, 1, 8)
    """

    basis: Basis = eqx.field(static=True)
    diagonals: Float[Array, "letter hidden"]

    def __init__(
        self, basis: Basis, hidden: int, *, scale: float = SCALE, dtype: DTypeLike = jnp.float32, key: PRNGKeyArray
    ) -> None:
        self.basis = basis
        self.diagonals = jax.random.normal(key, (basis.width, hidden), dtype) * scale

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.diagonals.shape[-1]

    def generators(self) -> Float[Array, "read row column block"]:
        """Those of the letters; the others are zero."""
        return self.diagonals[:, None, None, :]

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Zero for brackets."""
        letters = jax.vmap(jnp.diag)(self.diagonals)
        return jnp.pad(letters, ((0, self.basis.dimension - self.basis.width), (0, 0), (0, 0)))

    def letters(self) -> Float[Array, "letter entry"]:
        """The diagonals."""
        return self.diagonals

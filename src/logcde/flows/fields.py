"""Linear vector fields: one matrix for each letter, whose structure is a type; commutators give those of brackets.

`Dense` is the LNCDE of the paper, `Diagonal` its D-SLiCE, `BlockDiagonal` its BD-SLiCE. These three are closed under
products, so flows and their compositions keep the structure. Initial entries are N(0, 1 / block size) times
`init_scale`.

`DiagonalLowRank`, `Sparse` and `WalshHadamard` are open: products lose their structure. The commutator of two
diagonal-plus-low-rank matrices has four times the rank, that of two sparse ones is denser, and that of two
Walsh-Hadamard ones has no such form at all. So they take log-signatures of depth one only, and keep their structure
with the first-order flow `Euler()`, not with an exponential.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, Int, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows.blocks import as_matrix, bracket_matrices

INIT_SCALE = 0.25


class AbstractLinearField(eqx.Module):
    """A linear vector field for each letter of a basis, and by commutators for each of its brackets."""

    basis: eqx.AbstractVar[Basis]

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """The size of the hidden state."""

    @abc.abstractmethod
    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Plain matrices, one for each coordinate: the dense oracle of the structured operations.

        They act on the hidden state followed by the constants, if the field has some.
        """

    @abc.abstractmethod
    def generators(self) -> Float[Array, "read row column block"]:
        """Block-diagonal matrices, one for each coordinate that is read: these are the first ones of the basis.

        They depend on parameters only: compute them once for each update. They may have more rows than the hidden
        state fills; these are constants 1, which no generator changes.
        """

    @abc.abstractmethod
    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """The first of the `generators`, those of letters; the others are their iterated brackets."""

    @abc.abstractmethod
    def letters(self) -> Float[Array, "letter entry"]:
        """The free entries of each letter, whose norms the regulariser penalises."""


class BlockDiagonal(AbstractLinearField):
    """Block-diagonal matrices with blocks of one size; entry i of block k of the hidden state is at i * blocks + k.

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
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if block < 1 or hidden % block:
            raise ModelError(
                f"Blocks of {block} do not fit a hidden state of {hidden}.", "Choose a block that divides it."
            )
        shape = (basis.width, block, block, hidden // block)
        self.basis = basis
        self.matrices = jax.random.normal(key, shape, dtype) * (init_scale * block**-0.5)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.matrices.shape[-1] * self.matrices.shape[-2]

    def generators(self) -> Float[Array, "read row column block"]:
        """Matrices of all brackets, block by block."""
        return bracket_matrices(self.matrices, self.basis)

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """The matrices as they are: blocks are their axes already."""
        return self.matrices

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Zeros between the blocks."""
        return as_matrix(self.generators())

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of the blocks."""
        return self.matrices.reshape(self.basis.width, -1)


class Dense(AbstractLinearField):
    """Full matrices: a single block.

    >>> Dense(Basis.of_width(3, 2), hidden=8, key=jax.random.key(0)).generators().shape
    (6, 8, 8, 1)
    """

    basis: Basis = eqx.field(static=True)
    matrices: Float[Array, "letter hidden hidden"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        *,
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        self.basis = basis
        self.matrices = jax.random.normal(key, (basis.width, hidden, hidden), dtype) * (init_scale * hidden**-0.5)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.matrices.shape[-1]

    def generators(self) -> Float[Array, "read row column block"]:
        """Matrices of all brackets."""
        return bracket_matrices(self.letter_generators(), self.basis)

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """The matrices, each a single block."""
        return self.matrices[..., None]

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """The generators without their axis of blocks, since each is a single one."""
        return self.generators()[..., 0]

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of the matrix of each letter, all of which are free."""
        return self.matrices.reshape(self.basis.width, -1)


class Diagonal(AbstractLinearField):
    """Diagonal matrices. They commute: brackets vanish, and only level one of a log-signature is read.

    The product of exact flows then depends on the end points of the path only. What happened between them enters
    through `Euler()`, or through a readout such as `Mean()`.

    >>> Diagonal(Basis.of_width(3, 2), hidden=8, key=jax.random.key(0)).generators().shape
    (3, 1, 1, 8)
    """

    basis: Basis = eqx.field(static=True)
    diagonals: Float[Array, "letter hidden"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        *,
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        self.basis = basis
        self.diagonals = jax.random.normal(key, (basis.width, hidden), dtype) * init_scale

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.diagonals.shape[-1]

    def generators(self) -> Float[Array, "read row column block"]:
        """Matrices of the letters; those of brackets are zero."""
        return self.letter_generators()

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """Blocks of one number."""
        return self.diagonals[:, None, None, :]

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Zero for brackets, because diagonal matrices commute."""
        letters = jax.vmap(jnp.diag)(self.diagonals)
        return jnp.pad(letters, ((0, self.basis.dimension - self.basis.width), (0, 0), (0, 0)))

    def letters(self) -> Float[Array, "letter entry"]:
        """What is free of a diagonal matrix."""
        return self.diagonals


class AbstractOpenField(AbstractLinearField):
    """A field whose matrices can be applied, but lose their structure when multiplied. Depth one only."""

    def generators(self) -> Float[Array, "read row column block"]:
        """Single dense blocks: an exponential has no other structure."""
        return self.letter_generators()

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """The same: there are no brackets at depth one."""
        return self.as_matrices()[..., None]

    @abc.abstractmethod
    def apply(self, increments: Float[Array, "letter"], state: Float[Array, "hidden"]) -> Float[Array, "hidden"]:
        """Multiply the state by the matrix that these increments select."""


class DiagonalLowRank(AbstractOpenField):
    """Diagonal matrices plus matrices of rank `rank`.

    >>> field = DiagonalLowRank(Basis.of_width(2, 1), hidden=4, rank=1, key=jax.random.key(0))
    >>> field.as_matrices().shape
    (2, 4, 4)
    """

    basis: Basis = eqx.field(static=True)
    diagonals: Float[Array, "letter hidden"]
    columns: Float[Array, "letter hidden rank"]
    rows: Float[Array, "letter rank hidden"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        rank: int,
        *,
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_depth(basis, "Diagonal plus low rank")
        keys = jax.random.split(key, 3)
        each = init_scale**0.5 * (hidden * rank) ** -0.25
        self.basis = basis
        self.diagonals = jax.random.normal(keys[0], (basis.width, hidden), dtype) * init_scale
        self.columns = jax.random.normal(keys[1], (basis.width, hidden, rank), dtype) * each
        self.rows = jax.random.normal(keys[2], (basis.width, rank, hidden), dtype) * each

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.diagonals.shape[-1]

    def apply(self, increments: Float[Array, "letter"], state: Float[Array, "hidden"]) -> Float[Array, "hidden"]:
        """In time proportional to the rank."""
        inner = jnp.einsum("lrh,h,l->lr", self.rows, state, increments)
        return (increments @ self.diagonals) * state + jnp.einsum("lhr,lr->h", self.columns, inner)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Plain matrices, one for each letter."""
        return jax.vmap(jnp.diag)(self.diagonals) + self.columns @ self.rows

    def letters(self) -> Float[Array, "letter entry"]:
        """All entries of the plain matrices."""
        return self.as_matrices().reshape(self.basis.width, -1)


class Sparse(AbstractOpenField):
    """Sparse matrices with `entries` entries in each row, at columns drawn once and shared by all letters.

    >>> Sparse(Basis.of_width(2, 1), hidden=8, entries=2, key=jax.random.key(0)).as_matrices().shape
    (2, 8, 8)
    """

    basis: Basis = eqx.field(static=True)
    values: Float[Array, "letter hidden entry"]
    places: Int[np.ndarray, "hidden entry"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        entries: int,
        *,
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_depth(basis, "Sparse")
        if not 1 <= entries <= hidden:
            raise ModelError(f"{entries} entries do not fit a row of {hidden}.", f"Give 1 to {hidden} entries.")
        for_values, for_places = jax.random.split(key)
        drawn = jax.vmap(lambda k: jax.random.permutation(k, hidden)[:entries])(jax.random.split(for_places, hidden))
        self.basis = basis
        self.values = jax.random.normal(for_values, (basis.width, hidden, entries), dtype) * (
            init_scale * entries**-0.5
        )
        self.places = np.asarray(drawn)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.values.shape[1]

    def apply(self, increments: Float[Array, "letter"], state: Float[Array, "hidden"]) -> Float[Array, "hidden"]:
        """In time proportional to the number of entries."""
        return jnp.sum(jnp.tensordot(increments, self.values, axes=1) * state[self.places], axis=1)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Plain matrices, one for each letter."""
        whole = jnp.zeros((self.basis.width, self.hidden, self.hidden), self.values.dtype)
        return whole.at[:, jnp.arange(self.hidden)[:, None], self.places].set(self.values)

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries."""
        return self.values.reshape(self.basis.width, -1)


class WalshHadamard(AbstractOpenField):
    """The orthogonal Walsh-Hadamard matrix with its rows scaled by a vector for each letter.

    The hidden size is a power of two.

    >>> WalshHadamard(Basis.of_width(2, 1), hidden=8, key=jax.random.key(0)).as_matrices().shape
    (2, 8, 8)
    """

    basis: Basis = eqx.field(static=True)
    factors: Float[Array, "letter hidden"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        *,
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_depth(basis, "Walsh-Hadamard")
        if hidden < 1 or hidden & (hidden - 1):
            raise ModelError(f"The hidden size of a Walsh-Hadamard field is a power of two, but {hidden} is none.")
        self.basis = basis
        self.factors = jax.random.normal(key, (basis.width, hidden), dtype) * init_scale

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.factors.shape[-1]

    def apply(self, increments: Float[Array, "letter"], state: Float[Array, "hidden"]) -> Float[Array, "hidden"]:
        """In h log h by the fast transform."""
        return (increments @ self.factors) * hadamard(state)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Plain matrices, one for each letter."""
        transform = jax.vmap(hadamard)(jnp.eye(self.hidden, dtype=self.factors.dtype))
        return self.factors[:, :, None] * transform

    def letters(self) -> Float[Array, "letter entry"]:
        """The scaling vectors."""
        return self.factors


def hadamard(state: Float[Array, "hidden"]) -> Float[Array, "hidden"]:
    """The orthonormal Walsh-Hadamard transform.

    >>> hadamard(jnp.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    size = len(state)
    for level in range(size.bit_length() - 1):
        pairs = state.reshape(-1, 2, 2**level)
        state = jnp.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
    return state.reshape(size) * size**-0.5


def check_depth(basis: Basis, structure: str) -> None:
    """Refuse log-signatures of depth two or more."""
    if basis.depth > 1:
        raise ModelError(
            f"{structure} fields take log-signatures of depth 1, but this basis has depth {basis.depth}. The Log-ODE "
            "method needs the commutators of the matrices, which do not keep this structure.",
            "Embed with depth=1, or use a block-diagonal field.",
        )

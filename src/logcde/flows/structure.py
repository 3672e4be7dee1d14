"""Structure across letters: linear vector fields in which hundreds of letters have few degrees of freedom.

Both fields wrap another one, and their letters have block-diagonal matrices as its own have. Brackets follow from
these, so that nothing else changes: sparse log-signatures, factors, scans and servers take them as they are.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from logcde.algebra import Basis
from logcde.errors import ModelError
from logcde.flows.blocks import as_matrix, bracket_matrices
from logcde.flows.fields import AbstractLinearField


class AbstractLetterStructure(AbstractLinearField):
    """A field whose matrices of letters are made of those of another field.

    Attributes:
        field: The other field.
    """

    field: eqx.AbstractVar[AbstractLinearField]

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.field.hidden

    def generators(self) -> Float[Array, "read row column block"]:
        """Matrices of all brackets, block by block; of letters only where matrices commute."""
        letters = self.letter_generators()
        return letters if letters.shape[-2] == 1 else bracket_matrices(letters, self.basis)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Zeros between the blocks."""
        return as_matrix(bracket_matrices(self.letter_generators(), self.basis))


class LowRankLetters(AbstractLetterStructure):
    """The matrix of each letter is a sum of few: A_i = sum over k of M_ik B_k, with the mixing M to be learned.

    So the increments of all letters act through as many combinations as the other field has letters, and areas through
    those of the combinations: what M maps to zero leaves no trace. Its parameters are `letters` * `rank` numbers and
    the matrices B_k.

    Args:
        basis: The basis of the log-signatures.
        field: The field of the combinations, over a basis of as many letters as there are combinations.
        key: Draws the mixing, whose rows have unit norm on average.

    >>> from logcde.flows import BlockDiagonal
    >>> inner = BlockDiagonal(Basis.of_width(2, 2), hidden=8, block=4, key=jax.random.key(0))
    >>> field = LowRankLetters(Basis.of_width(50, 2), inner, key=jax.random.key(1))
    >>> field.letter_generators().shape, field.mixing.shape
    ((50, 4, 4, 2), (50, 2))
    """

    basis: Basis = eqx.field(static=True)
    field: AbstractLinearField
    mixing: Float[Array, "letter rank"]

    def __init__(self, basis: Basis, field: AbstractLinearField, *, key: PRNGKeyArray) -> None:
        rank, dtype = field.basis.width, field.letters().dtype
        if rank > basis.width:
            raise ModelError(
                f"{basis.width} letters cannot have {rank} independent combinations.", "Choose a smaller rank."
            )
        self.basis = basis
        self.field = field
        self.mixing = jax.random.normal(key, (basis.width, rank), dtype) * rank**-0.5

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """The matrices B_k, mixed for each letter."""
        return jnp.tensordot(self.mixing, self.field.letter_generators(), axes=1)

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of the B_k, mixed for each letter."""
        return self.mixing @ self.field.letters()


class GroupedLetters(AbstractLetterStructure):
    """The letters of a group act on the blocks of this group only, so that areas between groups are not read.

    Within an interval, the order of observations of different groups leaves no trace but by time. A letter may be in
    several groups, so that groups of two are chosen pairs; a letter in no group acts on all blocks, as time should.

    Args:
        field: The field over all letters. Its blocks are divided among the groups, as evenly as possible.
        groups: The names of the letters of each group.

    >>> from logcde.flows import BlockDiagonal
    >>> basis = Basis(("pulse", "lactate", "ph", "time"), 2)
    >>> inner = BlockDiagonal(basis, hidden=8, block=2, key=jax.random.key(0))
    >>> field = GroupedLetters(inner, (("pulse",), ("lactate", "ph")))
    >>> [label for label, matrix in zip(basis.labels, field.generators()) if not matrix.any()]
    ['[pulse, lactate]', '[pulse, ph]']
    """

    field: AbstractLinearField
    groups: tuple[tuple[str, ...], ...] = eqx.field(static=True)

    def __init__(self, field: AbstractLinearField, groups: Sequence[Sequence[str]]) -> None:
        self.field = field
        self.groups = tuple(tuple(group) for group in groups)
        letters, blocks = field.basis.letters, field.letter_generators().shape[-1]
        unknown = [name for group in self.groups for name in group if name not in letters]
        if unknown:
            raise ModelError(f"{unknown[0]!r} is in a group, but no letter has this name.", "See basis.letters.")
        if not 0 < len(self.groups) <= blocks:
            raise ModelError(
                f"{len(self.groups)} groups cannot share {blocks} blocks.",
                "Give at least one group, and a block for each: a larger hidden size, or a smaller block.",
            )

    @property
    def basis(self) -> Basis:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the other field."""
        return self.field.basis

    def acts(self) -> Bool[np.ndarray, "letter block"]:
        """Whether a letter acts on a block."""
        letters, blocks = self.basis.letters, self.field.letter_generators().shape[-1]
        owner = np.arange(blocks) * len(self.groups) // blocks
        member = np.array([[name in group for group in self.groups] for name in letters])
        free = ~np.any(member, axis=1, keepdims=True)
        return member[:, owner] | free

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """Those of the other field, zero on blocks of other groups."""
        return jnp.where(self.acts()[:, None, None, :], self.field.letter_generators(), 0)

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of these blocks."""
        return self.letter_generators().reshape(self.basis.width, -1)

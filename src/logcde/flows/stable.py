"""Linear vector fields whose flows never grow a state: rotations, and rotations that forget along time.

Skew-symmetric matrices are closed under commutators, and their exponentials are rotations. So the flow of any
log-signature, of any depth and size, is a rotation: the norm of a state of `Orthogonal` never changes.

`Contracting` adds forgetting and an input. Its matrices act on blocks with a constant 1 appended,

    A = [[S - l 1, u], [0, 0]],   S skew-symmetric, l > 0 for time and 0 for all other letters,

and are closed as well: multiples of the identity commute, so the commutator of two has the skew-symmetric part [S, S']
and l = 0. Over an interval of length t the linear part of the flow is exp(-l t) times a rotation, however many
observations there are and whatever their values; what the input adds is at most as long as the u that the
log-signature selects.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from logcde.algebra import Basis
from logcde.embedding.coordinates import time_of
from logcde.errors import ModelError
from logcde.flows.blocks import as_matrix, bracket_matrices
from logcde.flows.fields import INIT_SCALE, AbstractLinearField

MEMORY = (1.0, 64.0)


class AbstractStableField(AbstractLinearField):
    """A linear vector field whose exponential flows have a linear part of norm at most one."""

    @abc.abstractmethod
    def bound(self, norms: Float[Array, "block"], logsig: Float[Array, "lie"]) -> Float[Array, "block"]:
        """The largest norms that the blocks of the state can have after an interval, given those before it.

        `logsig` is what moves the state, after scaling. Time never goes back.
        """


class Orthogonal(AbstractStableField):
    """Skew-symmetric blocks: flows are rotations, and the norm of every block of the state stays what it was.

    Args:
        basis: The basis of the log-signatures.
        hidden: The size of the hidden state.
        block: The block size, at least 2.
        init_scale: Multiplies the initial matrices, whose entries off the diagonal are N(0, 1 / block).
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> field = Orthogonal(Basis.of_width(3, 2), hidden=8, block=4, key=jax.random.key(0))
    >>> matrices = field.as_matrices()
    >>> matrices.shape, bool((matrices == -matrices.mT).all())
    ((6, 8, 8), True)
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
        _check_block(hidden, block)
        shape = (basis.width, block, block, hidden // block)
        self.basis = basis
        self.matrices = jax.random.normal(key, shape, dtype) * (init_scale * (2 * block) ** -0.5)

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.matrices.shape[-1] * self.matrices.shape[-2]

    def generators(self) -> Float[Array, "read row column block"]:
        """Skew-symmetric blocks for all brackets."""
        return bracket_matrices(self.letter_generators(), self.basis)

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """Skew-symmetric blocks for all letters."""
        return _skew(self.matrices)

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """Zeros between the blocks."""
        return as_matrix(self.generators())

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of the skew-symmetric blocks."""
        return _skew(self.matrices).reshape(self.basis.width, -1)

    def bound(self, norms: Float[Array, "block"], logsig: Float[Array, "lie"]) -> Float[Array, "block"]:
        """The norms before."""
        return norms


class Contracting(AbstractStableField):
    """Skew-symmetric blocks that forget along time and take an input: h moves by (S - l) h + u, with l > 0 for time.

    Args:
        basis: The basis of the log-signatures; `time` is one of its letters.
        hidden: The size of the hidden state, without the constants.
        block: The block size, at least 2; kernels see one row more, for the constant.
        time_only: Rotate by time only. Rotation and forgetting are then the same for all inputs, which enter by u.
        memory: The shortest and the longest of the initial time constants 1 / l, which are spaced geometrically over
            the blocks, in units of the time letter after scaling.
        init_scale: Multiplies the initial skew-symmetric parts, whose entries off the diagonal are N(0, 1 / block); for
            all letters but time they are also divided by the root of their number.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    The initial u keep the state near unit size if the increments over a unit of time are independent, of unit size.

    >>> field = Contracting(Basis(("pulse", "time"), 2), hidden=6, block=3, memory=(1.0, 4.0), key=jax.random.key(0))
    >>> field.generators().shape, field.rates().tolist()
    ((3, 4, 4, 2), [1.0, 0.25])
    """

    basis: Basis = eqx.field(static=True)
    rotations: Float[Array, "turning row column block"]
    decays: Float[Array, "block"]
    inputs: Float[Array, "letter row block"]

    def __init__(
        self,
        basis: Basis,
        hidden: int,
        block: int,
        *,
        time_only: bool = False,
        memory: tuple[float, float] = MEMORY,
        init_scale: float = INIT_SCALE,
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        _check_block(hidden, block)
        if not 0 < memory[0] <= memory[1]:
            raise ModelError(
                f"The time constants are {memory}.", "Give the shortest first, above zero, then the longest."
            )
        time, width, blocks = _time_in(basis), basis.width, hidden // block
        for_rotations, for_inputs = jax.random.split(key)
        rates = 1 / np.geomspace(*memory, blocks)
        shares = np.full(1 if time_only else width, max(width - 1, 1) ** -0.5)
        shares[0 if time_only else time] = 1.0
        size = jnp.asarray(shares * init_scale * (2 * block) ** -0.5, dtype)[:, None, None, None]
        self.basis = basis
        self.rotations = jax.random.normal(for_rotations, (len(shares), block, block, blocks), dtype) * size
        self.decays = jnp.asarray(np.log(np.expm1(rates)), dtype)
        each = jnp.asarray(np.sqrt(2 * rates / width), dtype)
        self.inputs = jax.random.normal(for_inputs, (width, block, blocks), dtype) * each

    @property
    def hidden(self) -> int:
        """The size of the hidden state."""
        return self.inputs.shape[-1] * self.inputs.shape[-2]

    @property
    def time_only(self) -> bool:
        """Whether only time rotates."""
        return len(self.rotations) < self.basis.width

    def rates(self) -> Float[Array, "block"]:
        """The rate l of each block."""
        return jax.nn.softplus(self.decays)

    def generators(self) -> Float[Array, "read row column block"]:
        """Blocks with a row and a column for the constant."""
        return bracket_matrices(self.letter_generators(), self.basis)

    def letter_generators(self) -> Float[Array, "letter row column block"]:
        """The same for letters."""
        identity = jnp.eye(self.inputs.shape[1], dtype=self.inputs.dtype)[:, :, None]
        linear = self._turning().at[_time_in(self.basis)].add(-self.rates() * identity)
        letters = jnp.concatenate([linear, self.inputs[:, :, None]], axis=2)
        return jnp.pad(letters, ((0, 0), (0, 1), (0, 0), (0, 0)))

    def as_matrices(self) -> Float[Array, "lie hidden hidden"]:
        """On the hidden state followed by one constant for each block; zeros between the blocks."""
        return as_matrix(self.generators())

    def letters(self) -> Float[Array, "letter entry"]:
        """The entries of skew-symmetric parts and inputs."""
        width = self.basis.width
        return jnp.concatenate([self._turning().reshape(width, -1), self.inputs.reshape(width, -1)], axis=1)

    def bound(self, norms: Float[Array, "block"], logsig: Float[Array, "lie"]) -> Float[Array, "block"]:
        """Norms shrink by exp(-l t) and grow by the norm of the input."""
        added = jnp.tensordot(logsig, self.generators()[:, :-1, -1], axes=1)
        return jnp.exp(-self.rates() * logsig[_time_in(self.basis)]) * norms + jnp.linalg.norm(added, axis=0)

    def _turning(self) -> Float[Array, "letter row column block"]:
        """The skew-symmetric part of each letter."""
        skew = _skew(self.rotations)
        if not self.time_only:
            return skew
        return jnp.zeros((self.basis.width, *skew.shape[1:]), skew.dtype).at[_time_in(self.basis)].set(skew[0])


def _skew(matrices: Float[Array, "letter row column block"]) -> Float[Array, "letter row column block"]:
    return matrices - jnp.swapaxes(matrices, 1, 2)


def _check_block(hidden: int, block: int) -> None:
    if block < 2 or hidden % block:
        raise ModelError(
            f"Rotating blocks of {block} do not fit a hidden state of {hidden}.",
            "Choose a block of 2 or more that divides it.",
        )


def _time_in(basis: Basis) -> int:
    time = time_of(basis.letters)
    if time is None:
        raise ModelError(
            f"A contracting field forgets along time, but {basis!r} has no letter `time`.",
            "Embed with time=True, or use Orthogonal.",
        )
    return time

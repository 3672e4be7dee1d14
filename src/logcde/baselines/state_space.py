"""State-space layers with constant coefficients, LRU and S5: the same diagonal complex recurrence at every row.

LRU after Orvieto et al., "Resurrecting Recurrent Neural Networks for Long Sequences" (2023). S5 after Smith, Warrington
and Linderman, "Simplified State Space Layers for Sequence Modeling" (2023). Parameters are kept as real numbers, pairs
of which are the real and imaginary parts of complex ones.
"""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, DTypeLike, Float, PRNGKeyArray

from logcde.baselines.mixing import AbstractMixer, AbstractRecurrence, check_sizes
from logcde.errors import ModelError
from logcde.flows.dynamics import Carry
from logcde.scans import AbstractScan, Auto


class AbstractStateSpace(AbstractMixer):
    """h_t = a h_{t-1} + B u_t and y_t = Re(C h_t) + d u_t; subclasses give a, B and C.

    Attributes:
        through: The diagonal d.
        scan: How the recurrence is run.
    """

    through: eqx.AbstractVar[Float[Array, "features"]]
    scan: eqx.AbstractVar[AbstractScan]

    @abc.abstractmethod
    def system(
        self,
    ) -> tuple[Complex[Array, "state"], Complex[Array, "state features"], Complex[Array, "features state"]]:
        """The diagonal a, and the matrices B and C."""

    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """Mix all rows of a series."""
        factors, enter, leave = self.system()
        driven = jax.lax.complex(rows @ enter.real.T, rows @ enter.imag.T)
        states = self.scan(_ConstantFactors(factors), driven, jnp.zeros_like(factors))
        return states.real @ leave.real.T - states.imag @ leave.imag.T + rows * self.through

    def start(self) -> Carry:
        """States of zero."""
        return jnp.zeros_like(self.system()[0])

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """The states after one more row, and that row, mixed."""
        factors, enter, leave = self.system()
        state = factors * carry + enter @ row.astype(factors.dtype)
        return state, (leave @ state).real + row * self.through


class _ConstantFactors(AbstractRecurrence):
    """The same factors at every row, which is the term itself."""

    factors: Complex[Array, "state"]
    recompute: ClassVar[bool] = False

    def element(self, row: Complex[Array, "state"]) -> tuple[Complex[Array, "state"], Complex[Array, "state"]]:
        return self.factors, row

    def read(self, state: Complex[Array, "state"], step: Complex[Array, "state"]) -> Complex[Array, "state"]:
        return state


class LinearRecurrentUnit(AbstractStateSpace):
    """LRU: factors exp(-exp(nu) + i exp(theta)), which stay inside the unit circle; inputs are scaled by exp(gain).

    Args:
        features: The size of the rows.
        state: The size of the state.
        scan: How the recurrence is run.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> unit = LinearRecurrentUnit(features=4, state=8, key=jax.random.key(0))
    >>> unit(jnp.ones((5, 4), jnp.float32)).shape
    (5, 4)
    """

    nu: Float[Array, "state"]
    theta: Float[Array, "state"]
    gain: Float[Array, "state"]
    enter: Float[Array, "part state features"]
    leave: Float[Array, "part features state"]
    through: Float[Array, "features"]
    scan: AbstractScan

    def __init__(
        self,
        features: int,
        state: int,
        *,
        scan: AbstractScan = Auto(),
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_sizes(features, state)
        keys = jax.random.split(key, 5)
        squared = jax.random.uniform(keys[0], (state,), dtype, minval=1e-6)
        phase = jax.random.uniform(keys[1], (state,), dtype, minval=1e-6, maxval=2 * math.pi)
        self.nu = jnp.log(-0.5 * jnp.log(squared))
        self.theta = jnp.log(phase)
        self.gain = 0.5 * jnp.log1p(-squared)
        self.enter = jax.random.normal(keys[2], (2, state, features), dtype) * (2 * features) ** -0.5
        self.leave = jax.random.normal(keys[3], (2, features, state), dtype) * state**-0.5
        self.through = jax.random.normal(keys[4], (features,), dtype)
        self.scan = scan

    def system(
        self,
    ) -> tuple[Complex[Array, "state"], Complex[Array, "state features"], Complex[Array, "features state"]]:
        """The system of the parameters."""
        factors = jnp.exp(jax.lax.complex(-jnp.exp(self.nu), jnp.exp(self.theta)))
        enter = jnp.exp(self.gain)[:, None] * self.enter
        return factors, jax.lax.complex(*enter), jax.lax.complex(*self.leave)


class SimplifiedStateSpace(AbstractStateSpace):
    """S5: a continuous system x' = A x + B u, initialised as HiPPO's, with zero-order hold over learnt step lengths.

    Eigenvalues come in conjugate pairs, of which one is kept.

    Args:
        features: The size of the rows.
        state: The number of eigenvalues, conjugates included.
        blocks: The number of equal blocks of the initial A.
        scan: How the recurrence is run.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> layer = SimplifiedStateSpace(features=4, state=16, blocks=8, key=jax.random.key(0))
    >>> layer.system()[0].shape
    (8,)
    """

    poles: Float[Array, "part state"]
    enter: Float[Array, "part state features"]
    leave: Float[Array, "part features state"]
    step: Float[Array, "state"]
    through: Float[Array, "features"]
    scan: AbstractScan

    def __init__(
        self,
        features: int,
        state: int,
        blocks: int = 1,
        *,
        scan: AbstractScan = Auto(),
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_sizes(features, state)
        if blocks < 1 or state % (2 * blocks):
            raise ModelError(
                f"A state of {state} cannot be cut into {blocks} blocks of conjugate pairs.",
                "Give a state that is a multiple of twice the blocks.",
            )
        keys = jax.random.split(key, 4)
        poles, vectors = hippo(state // blocks)
        half = state // blocks // 2
        poles, vectors = np.tile(poles[:half], blocks), np.kron(np.eye(blocks), vectors[:, :half])
        enter = vectors.conj().T @ _lecun(keys[0], (state, features), features)
        leave = _lecun(keys[1], (features, state, 2), state) @ np.array([1, 1j]) @ vectors
        self.poles = _parts(poles, dtype)
        self.enter = _parts(enter, dtype)
        self.leave = _parts(leave, dtype)
        self.step = jax.random.uniform(keys[2], (state // 2,), dtype, math.log(1e-3), math.log(1e-1))
        self.through = jax.random.normal(keys[3], (features,), dtype)
        self.scan = scan

    def continuous(self) -> tuple[Complex[Array, "state"], Complex[Array, "state features"]]:
        """The eigenvalues of A, whose real parts are at most -1e-4, and B, both times the step lengths."""
        steps = jnp.exp(self.step)
        poles = jax.lax.complex(jnp.minimum(self.poles[0], -1e-4) * steps, self.poles[1] * steps)
        return poles, jax.lax.complex(*(self.enter * steps[:, None]))

    def system(
        self,
    ) -> tuple[Complex[Array, "state"], Complex[Array, "state features"], Complex[Array, "features state"]]:
        """Zero-order hold: exp(A) and A^-1 (exp(A) - 1) B. C is doubled for the conjugates that are not kept."""
        poles, enter = self.continuous()
        factors = jnp.exp(poles)
        held = (factors - 1) / poles
        return factors, held[:, None] * enter, 2 * jax.lax.complex(*self.leave)


def hippo(size: int) -> tuple[Complex[np.ndarray, "size"], Complex[np.ndarray, "size size"]]:
    """Eigenvalues and eigenvectors of the normal part of the HiPPO-LegS matrix; conjugates are in the second half.

    >>> poles, vectors = hippo(4)
    >>> np.round(poles.real, 3), bool(np.allclose(poles[:2], poles[:1:-1].conj()))
    (array([-0.5, -0.5, -0.5, -0.5]), True)
    """
    scale = np.sqrt(1 + 2 * np.arange(size))
    lower = np.tril(np.outer(scale, scale), -1)
    # The matrix plus its low-rank part is -1/2 plus a skew matrix, whose eigenvalues are imaginary.
    skew = (lower.T - lower) / 2
    imaginary, vectors = np.linalg.eigh(-1j * skew)
    return -0.5 + 1j * imaginary, vectors


def _lecun(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> np.ndarray:
    """Truncated normal numbers with variance 1 / inputs."""
    return np.asarray(jax.random.truncated_normal(key, -2, 2, shape), float) / (0.87962566103423978 * inputs**0.5)


def _parts(numbers: np.ndarray, dtype: DTypeLike) -> Array:
    return jnp.asarray(np.stack([np.real(numbers), np.imag(numbers)]), dtype)

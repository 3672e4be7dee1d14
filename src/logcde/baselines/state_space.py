"""State-space layers that do not choose: the same diagonal recurrence at every step, over complex numbers.

LRU after Orvieto et al., "Resurrecting Recurrent Neural Networks for Long Sequences" (2023). S5 after Smith, Warrington
and Linderman, "Simplified State Space Layers for Sequence Modeling" (2023). Parameters are kept as real numbers, pairs
of which are the real and imaginary parts of complex ones.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, DTypeLike, Float, PRNGKeyArray

from logcde.baselines.mixing import AbstractMixer, RecurrenceScan, check_sizes, recur
from logcde.errors import ModelError
from logcde.flows.dynamics import Carry
from logcde.scans import Auto


class AbstractStateSpace(AbstractMixer):
    """h_t = a h_{t-1} + B u_t and y_t = Re(C h_t) + d u_t, where `system` says what a, B and C are."""

    through: eqx.AbstractVar[Float[Array, "features"]]
    scan: eqx.AbstractVar[RecurrenceScan]

    @abc.abstractmethod
    def system(
        self,
    ) -> tuple[Complex[Array, "state"], Complex[Array, "state features"], Complex[Array, "features state"]]:
        """The factors of the states, how rows enter them, and how they are read."""

    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """All rows at once."""
        factors, enter, leave = self.system()
        driven = jax.lax.complex(rows @ enter.real.T, rows @ enter.imag.T)
        states = recur(lambda row: (factors, row), lambda state, row: state, driven, jnp.zeros_like(factors), self.scan)
        return states.real @ leave.real.T - states.imag @ leave.imag.T + rows * self.through

    def start(self) -> Carry:
        """States of zero."""
        return jnp.zeros_like(self.system()[0])

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """The states after one more row, and what comes of it."""
        factors, enter, leave = self.system()
        state = factors * carry + enter @ row.astype(factors.dtype)
        return state, (leave @ state).real + row * self.through


class LinearRecurrentUnit(AbstractStateSpace):
    """Factors exp(-exp(nu) + i exp(theta)), inside the unit circle whatever is learnt; `gain` evens their effect out.

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
    scan: RecurrenceScan

    def __init__(
        self,
        features: int,
        state: int,
        *,
        scan: RecurrenceScan = Auto(),
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
        """As the parameters say."""
        factors = jnp.exp(jax.lax.complex(-jnp.exp(self.nu), jnp.exp(self.theta)))
        enter = jnp.exp(self.gain)[:, None] * self.enter
        return factors, jax.lax.complex(*enter), jax.lax.complex(*self.leave)


class SimplifiedStateSpace(AbstractStateSpace):
    """S5: a continuous system x' = A x + B u, started at HiPPO's, held over steps whose lengths are learnt.

    Of `state` eigenvalues, which come in conjugate pairs, one of each pair is kept. They are those of `blocks` equal
    blocks at the start.

    >>> layer = SimplifiedStateSpace(features=4, state=16, blocks=8, key=jax.random.key(0))
    >>> layer.system()[0].shape
    (8,)
    """

    poles: Float[Array, "part state"]
    enter: Float[Array, "part state features"]
    leave: Float[Array, "part features state"]
    step: Float[Array, "state"]
    through: Float[Array, "features"]
    scan: RecurrenceScan

    def __init__(
        self,
        features: int,
        state: int,
        blocks: int = 1,
        *,
        scan: RecurrenceScan = Auto(),
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_sizes(features, state)
        if blocks < 1 or state % (2 * blocks):
            raise ModelError(
                f"A state of {state} cannot be cut into {blocks} blocks of conjugate pairs. Give a state that is a "
                "multiple of twice the blocks."
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
        """The eigenvalues of A, which are left of -1e-4, and B, both with the lengths of steps in them."""
        steps = jnp.exp(self.step)
        poles = jax.lax.complex(jnp.minimum(self.poles[0], -1e-4) * steps, self.poles[1] * steps)
        return poles, jax.lax.complex(*(self.enter * steps[:, None]))

    def system(
        self,
    ) -> tuple[Complex[Array, "state"], Complex[Array, "state features"], Complex[Array, "features state"]]:
        """Held over a step: exp(A), and A^-1 (exp(A) - 1) B. The other half of all pairs doubles what is read."""
        poles, enter = self.continuous()
        factors = jnp.exp(poles)
        held = (factors - 1) / poles
        return factors, held[:, None] * enter, 2 * jax.lax.complex(*self.leave)


def hippo(size: int) -> tuple[Complex[np.ndarray, "size"], Complex[np.ndarray, "size size"]]:
    """Eigenvalues and eigenvectors of the normal part of the HiPPO-LegS matrix; conjugate partners in the other half.

    >>> poles, vectors = hippo(4)
    >>> np.round(poles.real, 3), bool(np.allclose(poles[:2], poles[:1:-1].conj()))
    (array([-0.5, -0.5, -0.5, -0.5]), True)
    """
    scale = np.sqrt(1 + 2 * np.arange(size))
    lower = np.tril(np.outer(scale, scale), -1)
    # The matrix plus its low-rank part is -1/2 and a skew matrix, whose eigenvalues are imaginary.
    skew = (lower.T - lower) / 2
    imaginary, vectors = np.linalg.eigh(-1j * skew)
    return -0.5 + 1j * imaginary, vectors


def _lecun(key: PRNGKeyArray, shape: tuple[int, ...], inputs: int) -> np.ndarray:
    """Normal numbers, none of which are far out, with variance 1 / inputs."""
    return np.asarray(jax.random.truncated_normal(key, -2, 2, shape), float) / (0.87962566103423978 * inputs**0.5)


def _parts(numbers: np.ndarray, dtype: DTypeLike) -> Array:
    return jnp.asarray(np.stack([np.real(numbers), np.imag(numbers)]), dtype)

"""Selective state-space layers, S6 and Mamba: the step, B and C of the recurrence depend on the row.

After Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces" (2023).
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from logcde.baselines.mixing import AbstractMixer, AbstractRecurrence, check_sizes
from logcde.errors import ModelError
from logcde.flows.dynamics import Carry
from logcde.scans import AbstractScan, Auto

SHORTEST, LONGEST, LEAST = 1e-3, 1e-1, 1e-4


class Selective(AbstractMixer):
    """S6: h_t = exp(s_t A) h_{t-1} + s_t B_t u_t and y_t = C_t h_t + d u_t, a state of its own for each feature.

    The steps s_t, B_t and C_t are linear in the row; steps pass through a bottleneck and a softplus.

    Args:
        features: The size of the rows.
        state: The size of the state of each feature.
        rank: The size of the bottleneck; a sixteenth of the features by default.
        scan: How the recurrence is run.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> layer = Selective(features=4, state=8, key=jax.random.key(0))
    >>> layer(jnp.ones((5, 4), jnp.float32)).shape
    (5, 4)
    """

    project: eqx.nn.Linear
    widen: eqx.nn.Linear
    decay: Float[Array, "features state"]
    through: Float[Array, "features"]
    scan: AbstractScan

    def __init__(
        self,
        features: int,
        state: int,
        *,
        rank: int | None = None,
        scan: AbstractScan = Auto(),
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        check_sizes(features, state)
        rank = -(-features // 16) if rank is None else rank
        for_project, for_widen, for_steps = jax.random.split(key, 3)
        self.project = eqx.nn.Linear(features, rank + 2 * state, use_bias=False, dtype=dtype, key=for_project)
        uniform = jax.random.uniform(for_steps, (features,), dtype, math.log(SHORTEST), math.log(LONGEST))
        steps = jnp.maximum(jnp.exp(uniform), LEAST)
        widen = eqx.nn.Linear(rank, features, dtype=dtype, key=for_widen)
        # The inverse of the softplus, so that the layer begins with these steps.
        self.widen = eqx.tree_at(lambda layer: layer.bias, widen, steps + jnp.log(-jnp.expm1(-steps)))
        self.decay = jnp.log(jnp.tile(jnp.arange(1, state + 1, dtype=dtype), (features, 1)))
        self.through = jnp.ones(features, dtype)
        self.scan = scan

    def chosen(
        self, row: Float[Array, "features"]
    ) -> tuple[Float[Array, "features"], Float[Array, "state"], Float[Array, "state"]]:
        """Steps, B and C of a row."""
        state, rank = self.decay.shape[1], self.widen.weight.shape[1]
        narrow, enter, leave = jnp.split(self.project(row), [rank, rank + state])
        return jax.nn.softplus(self.widen(narrow)), enter, leave

    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """Mix all rows of a series."""
        steps, enter, leave = jax.vmap(self.chosen)(rows)
        out = self.scan(_Selection(self.decay), (rows, steps, enter, leave), jnp.zeros_like(self.decay))
        return out + rows * self.through

    def start(self) -> Carry:
        """Zeros: nothing is remembered before the first row."""
        return jnp.zeros_like(self.decay)

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """The states after one more row, and that row, mixed."""
        selection, step = _Selection(self.decay), (row, *self.chosen(row))
        state = selection.append(carry, step)
        return state, selection.read(state, step) + row * self.through


class Gated(AbstractMixer):
    """Mamba: a short convolution over time, a selective layer on `expansion` times the features, and a gate.

    Args:
        features: The size of the rows.
        state: The size of the state of each feature.
        width: The number of rows that the convolution reads.
        expansion: The size of the selective layer in multiples of the features.
        scan: How the recurrence is run.
        dtype: The dtype of the parameters.
        key: Draws the parameters.

    >>> layer = Gated(features=4, state=8, width=3, expansion=2, key=jax.random.key(0))
    >>> layer(jnp.ones((5, 4), jnp.float32)).shape
    (5, 4)
    """

    split: eqx.nn.Linear
    kernel: Float[Array, "width inner"]
    bias: Float[Array, "inner"]
    inner: Selective
    join: eqx.nn.Linear

    def __init__(
        self,
        features: int,
        state: int,
        *,
        width: int = 4,
        expansion: int = 2,
        scan: AbstractScan = Auto(),
        dtype: DTypeLike = jnp.float32,
        key: PRNGKeyArray,
    ) -> None:
        if min(width, expansion) < 1:
            raise ModelError(
                f"A layer with a convolution of width {width} and an expansion of {expansion} cannot be built.",
                "Both are at least 1.",
            )
        keys = jax.random.split(key, 5)
        inner, rank, bound = expansion * features, -(-features // 16), width**-0.5
        self.split = eqx.nn.Linear(features, 2 * inner, use_bias=False, dtype=dtype, key=keys[0])
        self.kernel = jax.random.uniform(keys[1], (width, inner), dtype, -bound, bound)
        self.bias = jax.random.uniform(keys[2], (inner,), dtype, -bound, bound)
        self.inner = Selective(inner, state, rank=rank, scan=scan, dtype=dtype, key=keys[3])
        self.join = eqx.nn.Linear(inner, features, use_bias=False, dtype=dtype, key=keys[4])

    def __call__(self, rows: Float[Array, "interval features"]) -> Float[Array, "interval features"]:
        """Mix all rows of a series."""
        rows, gates = jnp.split(jax.vmap(self.split)(rows), 2, axis=1)
        padded = jnp.pad(rows, ((len(self.kernel) - 1, 0), (0, 0)))
        shifted = [padded[k : k + len(rows)] * weight for k, weight in enumerate(self.kernel)]
        mixed = self.inner(jax.nn.silu(sum(shifted, self.bias)))
        return jax.vmap(self.join)(mixed * jax.nn.silu(gates))

    def start(self) -> Carry:
        """No rows yet, and states of zero."""
        return jnp.zeros_like(self.kernel), self.inner.start()

    def advance(self, carry: Carry, row: Float[Array, "features"]) -> tuple[Carry, Float[Array, "features"]]:
        """The last rows and the states after one more row, and that row, mixed."""
        recent, state = carry
        row, gate = jnp.split(self.split(row), 2)
        recent = jnp.concatenate([recent[1:], row[None]])
        state, mixed = self.inner.advance(state, jax.nn.silu(jnp.sum(recent * self.kernel, axis=0) + self.bias))
        return (recent, state), self.join(mixed * jax.nn.silu(gate))


class _Selection(AbstractRecurrence):
    """The recurrence of `Selective`: a row is its values, step lengths, B and C.

    Elements have a factor for each feature and entry of its state, so the backward pass computes them again.
    """

    decay: Float[Array, "features state"]
    recompute: ClassVar[bool] = True

    def element(self, row: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        value, step, enter, _ = row
        return jnp.exp(-step[:, None] * jnp.exp(self.decay)), (step * value)[:, None] * enter

    def read(self, state: Array, step: tuple[Array, Array, Array, Array]) -> Array:
        return state @ step[3]

"""The optimiser recipe: AdamW in one cycle of the learning rate.

Numbers that differ between runs, the rate, the number of steps and the decay, are in the optimiser's state and not
constants of its program: runs that differ in nothing else share one compiled program, and a checkpoint holds them.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from logcde.errors import TrainingError

WARMUP = 0.05
"""Fraction of the steps in which the learning rate rises."""
ADAM = optax.scale_by_adam()


def one_cycle_adamw(rate: float, steps: int, *, decay: float = 0.0) -> optax.GradientTransformation:
    """Adam whose learning rate rises linearly at first and then falls to zero as a cosine, with weight decay.

    Only matrices decay, and arrays with more axes; biases, gains and other vectors do not.

    Args:
        rate: Peak learning rate.
        steps: Steps of the cycle; those of the training run. Later ones change nothing.
        decay: Weight decay: a step takes the fraction rate * decay of each weight away.

    Returns:
        The `optimiser` of `fit`.

    >>> import logcde as lc
    >>> import numpy as np
    >>> values = np.random.default_rng(0).normal(size=(64, 5, 3))
    >>> logsigs = lc.LogSignatures(values, np.full(64, 5), lc.Basis.of_width(2, 2))
    >>> model = lc.log_slice(logsigs.basis, hidden=8, block=1, outputs=1, key=jax.random.key(0))
    >>> optimiser, options = one_cycle_adamw(1e-2, steps=50, decay=0.1), {"callbacks": (), "key": jax.random.key(1)}
    >>> lc.fit(model, logsigs, values[:, 0, 0], optimiser=optimiser, duration=lc.Steps(50), **options).summary.steps
    50
    """
    for name, number, least in (("rate", rate, "a number above 0"), ("steps", steps, "at least 1")):
        if not 0 < number < float("inf"):
            raise TrainingError(f"{name}={number} is no {name} of an optimiser.", f"Give {least}.")
    if not 0 <= decay < float("inf"):
        raise TrainingError(f"decay={decay} is no weight decay.", "Give at least 0.")
    return optax.GradientTransformation(_Init(rate, steps, decay), _update)


class _State(NamedTuple):
    """State of Adam, and the numbers of its schedule."""

    adam: PyTree[Any]
    step: Int[Array, ""]
    steps: Float[Array, ""]
    rate: Float[Array, ""]
    decay: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class _Init:
    """Initialises the state. All instances compare equal, so that all runs share one compiled program."""

    rate: float = dataclasses.field(compare=False)
    steps: int = dataclasses.field(compare=False)
    decay: float = dataclasses.field(compare=False)

    def __call__(self, params: PyTree) -> _State:
        steps, rate, decay = (jnp.asarray(number, jnp.float32) for number in (self.steps, self.rate, self.decay))
        return _State(ADAM.init(params), jnp.zeros((), jnp.int32), steps, rate, decay)


def _update(updates: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, _State]:
    updates, adam = ADAM.update(updates, state.adam, params)
    done = state.step.astype(state.steps.dtype) / state.steps
    falling = 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip((done - WARMUP) / (1 - WARMUP), 0, 1)))
    rate = state.rate * jnp.minimum(done / WARMUP, 1) * falling

    def scaled(update: Array, parameter: Array) -> Array:
        if parameter.ndim >= 2:
            update = update + state.decay.astype(update.dtype) * parameter
        return -rate.astype(update.dtype) * update

    return jax.tree.map(scaled, updates, params), state._replace(adam=adam, step=state.step + 1)

"""Toy model and data of one shape for all tests of training, so that little has to be compiled."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import logcde as lc
from logcde.baselines import BatchNorm
from logcde.models import AbstractBatchModel

BASIS = lc.Basis.of_width(2, 2)
COUNT = 40
HELD_OUT = np.arange(0, COUNT, 7)
OPTIMISER = optax.adam(1e-2)


def lengths(seed: int = 0) -> np.ndarray:
    """Short and long series: two buckets in batches of 8."""
    return np.where(np.arange(COUNT) % 2, 3, 8) - np.random.default_rng(seed).integers(0, 2, COUNT)


def logsigs(seed: int = 0) -> lc.LogSignatures:
    many = lengths(seed)
    values = np.random.default_rng(seed).normal(size=(COUNT, 8, BASIS.dimension))
    return lc.LogSignatures(values * (np.arange(8) < many[:, None])[..., None], many, BASIS)


def ends(seed: int = 0) -> np.ndarray:
    """Where the two letters end: (series, 2)."""
    return logsigs(seed).values[..., :2].sum(axis=1)


def running(seed: int = 0) -> np.ndarray:
    """Where the two letters are after each interval: (series, interval, 2)."""
    return logsigs(seed).values[..., :2].cumsum(axis=1)


class Toy(AbstractBatchModel):
    """Affine in sums of log-signatures, optionally with noise in training or batch normalisation: quick to compile."""

    weight: jax.Array
    bias: jax.Array
    norm: BatchNorm | None
    scaling: lc.scaling.NoScaling | lc.IncrementRMSScaling
    each: bool = eqx.field(static=True)
    noise: float = eqx.field(static=True)
    spec: None = eqx.field(default=None, static=True)

    def __call__(self, inputs, *, key=None):
        states = self.states(inputs)
        return self.read(states if self.norm is None else self.norm(states), inputs, key)

    def apply_train(self, inputs, *, key, axes):
        if self.norm is None:
            return self(inputs, key=key), None
        valid = jnp.arange(len(inputs.logsigs), dtype=inputs.length.dtype) < inputs.length
        states, batch_stats = self.norm.apply_train(self.states(inputs), valid, axes)
        return self.read(states, inputs, key), batch_stats

    def with_batch_stats(self, batch_stats):
        return dataclasses.replace(self, norm=batch_stats)

    def states(self, inputs):
        valid = jnp.arange(len(inputs.logsigs), dtype=inputs.length.dtype) < inputs.length
        return jnp.cumsum(jnp.where(valid[:, None], self.scaling(inputs.logsigs, BASIS), 0), axis=0)

    def read(self, states, inputs, key):
        if inputs.ends is not None:
            states = states[inputs.ends]
        if key is not None and self.noise:
            states = states + self.noise * jax.random.normal(key, states.shape[1:], states.dtype)
        if not self.each:
            states = states[inputs.outputs - 1]
        states = jnp.concatenate(
            [states, jnp.broadcast_to(inputs.static, (*states.shape[:-1], inputs.static.size))], -1
        )
        return states @ self.weight + self.bias

    def penalty(self):
        return jnp.linalg.norm(self.weight)

    def fit_preprocessing(self, inputs, spec):
        return dataclasses.replace(self, scaling=self.scaling.fit(inputs.logsigs, BASIS))


def options(**given) -> dict:
    """Arguments of `fit` from flat ones: those of `Batching` and `Selection` by their own names, `size` for a batch."""
    batching = {name: given.pop(name) for name in ("size", "buckets") if name in given}
    selected = ("validation", "metrics", "every", "patience", "latest")
    selection = {name: given.pop(name) for name in selected if name in given}
    return {
        "batching": lc.train.Batching(**batching),
        "selection": lc.train.Selection(**selection),
        "callbacks": (),
        **given,
    }


def model(
    each: bool = False,
    outputs: int = 2,
    static: int = 0,
    noise: float = 0.0,
    dtype=jnp.float64,
    seed: int = 0,
    scaling: lc.scaling.NoScaling | lc.IncrementRMSScaling = lc.scaling.NoScaling(),
    normalised: bool = False,
) -> Toy:
    weight, bias = jax.random.normal(jax.random.key(seed), (2, BASIS.dimension + static, outputs), dtype)
    norm = BatchNorm(BASIS.dimension, momentum=0.8, dtype=dtype) if normalised else None
    return Toy(weight, bias[0], norm, scaling, each, noise)


def arrays(tree: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]


def same(left: object, right: object) -> bool:
    """Equal bit for bit."""
    pairs = zip(arrays(left), arrays(right), strict=True)
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)

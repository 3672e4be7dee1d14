"""The order of the Log-ODE method (`sec:theory`), for linear CDEs with a known solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from logcde import Embedding, Partition, Streams
from logcde.flows import BlockDiagonal, Dense, LinearDynamics

HIDDEN, LETTERS = 4, 3


def walks(paths, events, scale, rng):
    """Piecewise-linear paths from zero, one straight piece for each event, and their increments."""
    steps = rng.normal(size=(paths, events, LETTERS)) * scale
    times = np.broadcast_to(np.arange(float(events)), (paths, events))
    return Streams.from_arrays(times, np.cumsum(steps, axis=1), horizon=float(events)), steps


def logsigs_of(streams, depth, partition):
    return Embedding(depth=depth, counts=False, time=False)(streams, partition)


def closed_form(field, steps, start):
    """The states after every piece: exponentials of their matrices, the later ones on the left."""
    letters = np.asarray(field.as_matrices())[:LETTERS]
    flows = scipy.linalg.expm(np.tensordot(steps, letters, 1))
    states = [np.broadcast_to(start, (len(steps), HIDDEN))]
    for piece in range(steps.shape[1]):
        states.append(np.einsum("pij,pj->pi", flows[:, piece], states[-1]))
    return np.stack(states[1:], axis=1)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_linear_log_ode_is_exact_on_straight_pieces(depth):
    streams, steps = walks(1, 8, 0.7, np.random.default_rng(0))
    logsigs = logsigs_of(streams, depth, Partition.every_events(1))
    assert logsigs.lengths.tolist() == [8]
    options = {"init_scale": 1.0, "dtype": jnp.float64, "key": jax.random.key(0)}
    start = np.arange(1.0, HIDDEN + 1)
    for field in (Dense(logsigs.basis, HIDDEN, **options), BlockDiagonal(logsigs.basis, HIDDEN, 2, **options)):
        states = LinearDynamics(field).unroll(jnp.asarray(start), jnp.asarray(logsigs.values[0]), jnp.asarray(8))
        np.testing.assert_allclose(states, closed_form(field, steps, start)[0], rtol=1e-9)


def test_log_ode_order_on_rough_paths_is_half_the_depth():
    """On Brownian-like paths the error falls as the power depth / 2 of the length of the intervals."""
    events, paths, counts = 2**8, 24, np.array([4, 8, 16, 32])
    streams, steps = walks(paths, events, events**-0.5, np.random.default_rng(1))
    start, slopes, exact = np.ones(HIDDEN), {}, None
    for depth in (1, 2, 3):
        many = [logsigs_of(streams, depth, Partition.uniform(int(count))) for count in counts]
        dynamics = LinearDynamics(
            Dense(many[0].basis, HIDDEN, init_scale=0.8, dtype=jnp.float64, key=jax.random.key(0))
        )
        # All partitions at once: padding does not move the state.
        values = np.zeros((len(counts) * paths, counts.max(), many[0].basis.dimension))
        for number, logsigs in enumerate(many):
            values[number * paths : (number + 1) * paths, : counts[number]] = logsigs.values
        unroll = jax.jit(jax.vmap(lambda one, length, d=dynamics: d.unroll(jnp.asarray(start), one, length)[-1]))
        final = unroll(jnp.asarray(values), jnp.asarray(np.repeat(counts, paths))).reshape(len(counts), paths, HIDDEN)
        exact = closed_form(dynamics.field, steps, start)[:, -1] if exact is None else exact
        errors = np.sqrt(np.mean(np.sum((final - exact) ** 2, axis=2), axis=1))
        slopes[depth] = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    for depth, slope in slopes.items():
        assert slope == pytest.approx(depth / 2, abs=0.25), slopes

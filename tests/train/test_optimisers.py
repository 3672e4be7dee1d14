"""The optimiser recipe against Optax's own, and one compiled program for all of its numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.errors import TrainingError
from logcde.train import one_cycle_adamw
from tests.train import toys

KEY = jax.random.key(5)


def train(optimiser, steps=10, **options):
    given = {"size": 8, "every": lc.Steps(5), "key": KEY, "validation": None, "duration": lc.Steps(steps)}
    model = toys.model(dtype=jnp.float32)
    return lc.fit(model, toys.logsigs(), toys.ends(), **toys.options(**given, optimiser=optimiser, **options))


def test_recipe_is_adamw_with_a_warm_up_and_a_cosine():
    def schedule(step):
        done = step / 40
        falling = 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip((done - 0.05) / 0.95, 0, 1)))
        return 0.02 * jnp.minimum(done / 0.05, 1) * falling

    optax_own = optax.adamw(
        schedule, weight_decay=0.3, mask=lambda tree: jax.tree.map(lambda leaf: leaf.ndim > 1, tree)
    )
    ours, expected = train(one_cycle_adamw(0.02, 40, decay=0.3)), train(optax_own)
    for got, wanted in zip(toys.arrays(ours.last), toys.arrays(expected.last), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
    undecayed = train(one_cycle_adamw(0.02, 40))
    assert not np.allclose(undecayed.last.weight, ours.last.weight, rtol=1e-4)


def test_rate_rises_from_zero_and_ends_at_zero():
    optimiser, weights = one_cycle_adamw(0.1, 20), {"w": jnp.ones((2, 2), jnp.float32)}
    state, sizes = optimiser.init(weights), []
    with jax.numpy_dtype_promotion("standard"):
        for _ in range(25):
            updates, state = optimiser.update(weights, state, weights)
            sizes.append(float(jnp.abs(updates["w"]).max()))
    assert sizes[0] == 0.0
    assert sizes[1] == pytest.approx(0.1, rel=1e-3)
    assert sizes[1:20] == sorted(sizes[1:20], reverse=True)
    assert max(sizes[20:]) < 1e-8


def test_runs_with_other_numbers_share_a_program_and_have_their_own_checkpoints(tmp_path):
    assert one_cycle_adamw(0.1, 20) == one_cycle_adamw(0.2, 30, decay=0.5)
    folder = lc.Checkpoints(tmp_path, seconds=0.0)
    train(one_cycle_adamw(0.02, 40, decay=0.3), steps=5, checkpoints=folder)
    resumed = train(one_cycle_adamw(0.02, 40, decay=0.3), checkpoints=folder)
    assert toys.same(resumed.last, train(one_cycle_adamw(0.02, 40, decay=0.3)).last)
    with pytest.raises(lc.errors.CheckpointError, match="optimiser was"):
        train(one_cycle_adamw(0.02, 40, decay=0.2), checkpoints=folder)


@pytest.mark.parametrize(
    ("rate", "steps", "decay", "said"),
    [(0.0, 9, 0.0, "rate=0.0"), (0.1, 0, 0.0, "steps=0"), (0.1, 9, -1.0, "decay=-1.0")],
)
def test_numbers_that_make_no_sense_are_refused(rate, steps, decay, said):
    with pytest.raises(TrainingError, match=said):
        one_cycle_adamw(rate, steps, decay=decay)

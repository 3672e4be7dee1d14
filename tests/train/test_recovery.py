"""Numbers that are not finite: training goes on from the last good state at half the rate, to the same bits."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import logcde as lc
from logcde.errors import NonFiniteError
from logcde.train import loop
from tests.train import toys
from tests.train.test_checkpoint import Watcher, losses

KEY = jax.random.key(5)
LARGEST = 0.008
"""The largest step that the optimiser below survives."""


def fragile(rate):
    """Gradient descent that breaks at step 8 after a large step; gradients of norm 1 move parameters by the rate."""

    def init(params):
        return {"before": params, "count": jnp.zeros((), jnp.int32)}

    def update(updates, state, params=None):
        moved = optax.tree.norm(jax.tree.map(jnp.subtract, params, state["before"]))
        broken = (state["count"] == 7) & (moved > LARGEST)
        updates = jax.tree.map(lambda leaf: jnp.where(broken, jnp.inf, -rate * leaf), updates)
        return updates, {"before": params, "count": state["count"] + 1}

    return optax.GradientTransformation(init, update)


OPTIMISER = fragile(0.02)


def stop():
    raise InterruptedError


def train(folder=None, steps=15, **options):
    kept = None if folder is None else lc.Checkpoints(folder, seconds=0.0)
    given = {"size": 8, "optimiser": OPTIMISER, "every": lc.Steps(5), "key": KEY, "validation": toys.HELD_OUT}
    given |= {"duration": lc.Steps(steps), "checkpoints": kept}
    return lc.fit(toys.model(), toys.logsigs(), toys.ends(), **toys.options(**{**given, **options}))


def test_run_goes_on_from_the_last_evaluation_at_half_the_rate(caplog):
    result = train()
    assert result.summary.steps == 15
    assert result.summary.recoveries == 2
    assert [one.step for one in result.history] == [5, 10, 15]
    assert all(np.isfinite(leaf).all() for leaf in toys.arrays(result.last))
    assert caplog.text.count("Training goes on from step 5") == 2
    assert "A parameter became infinite or NaN at step 8" in caplog.text
    assert "0.5 of the learning rate (1 of at most 3 times)" in caplog.text


def test_recovered_run_is_reproducible_and_resumable(tmp_path, monkeypatch):
    whole = train()
    monkeypatch.setattr(loop, "GROWTH", 1)
    single = train()
    assert toys.same((whole.model, whole.last), (single.model, single.last))
    assert losses(whole) == losses(single)
    for step in (6, 9, 12):
        with pytest.raises(InterruptedError):
            train(tmp_path, callbacks=[Watcher(step, stop)])
    resumed = train(tmp_path, callbacks=[watch := Watcher()])
    assert 9 <= watch.resumed < 15
    assert toys.same((whole.model, whole.last), (resumed.model, resumed.last))
    assert losses(whole) == losses(resumed)
    assert resumed.summary.recoveries == whole.summary.recoveries


def test_last_attempt_raises_with_the_finite_model(tmp_path):
    with pytest.raises(NonFiniteError, match="at step 8, in epoch 2, also at 0.125 of the learning rate") as info:
        train(tmp_path, optimiser=optax.sgd(lambda count: jnp.where(count == 7, jnp.inf, 0.02)))
    assert info.value.step == 8
    assert all(np.isfinite(leaf).all() for leaf in toys.arrays(info.value.model))
    with pytest.raises(NonFiniteError, match="at step 8, in epoch 2. The model"):
        train(recoveries=0)


def test_run_without_trouble_has_no_recovery():
    calm = optax.sgd(0.02)
    with_option, without = train(optimiser=calm), train(optimiser=calm, recoveries=0)
    assert with_option.summary.recoveries == 0
    assert toys.same(with_option.last, without.last)


def test_evaluation_with_a_non_finite_score_is_no_place_to_go_back_to(caplog):
    """Parameters are wild but finite at step 10; the recovery begins at step 5."""
    wild = optax.sgd(lambda count: jnp.select([count == 8, count == 11], [1e200, jnp.inf], 0.02))
    with pytest.raises(NonFiniteError):
        train(optimiser=wild, recoveries=1, clip=None)
    assert "goes on from step 5" in caplog.text


def test_loss_that_is_not_finite_at_the_good_state_raises_at_once(caplog):
    """No learning rate changes the loss of parameters that have not moved."""
    targets = toys.ends() * 1e200
    options = toys.options(optimiser=OPTIMISER, duration=lc.Steps(5), validation=None, key=KEY)
    with pytest.raises(NonFiniteError, match="The loss became inf at step 1, in epoch 1. The model"):
        lc.fit(toys.model(), toys.logsigs(), targets, **options)
    assert not caplog.text

"""Structure across letters: what leaves no trace, models with it trained, saved and served, what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import logcde as lc
from logcde import Basis
from logcde.errors import ModelError
from logcde.flows import BlockDiagonal, GroupedLetters, LinearDynamics, LowRankLetters
from tests.embedding.test_sparse import wide

KEY = jax.random.key(0)
NAMES = ("a", "b", "c", "d", "time")


def state_after(field, logsig):
    dynamics = LinearDynamics(field)
    start = jnp.linspace(0.5, 1.0, dynamics.hidden)
    return dynamics.unroll(start, jnp.asarray(logsig)[None], jnp.asarray(1))[0]


def test_what_the_mixing_drops_leaves_no_trace():
    basis = Basis(NAMES, 2)
    inner = BlockDiagonal(Basis.of_width(2, 2), 8, 4, dtype=np.float64, key=KEY)
    field = LowRankLetters(basis, inner, key=jax.random.key(1))
    rng = np.random.default_rng(0)
    path, dropped = rng.normal(size=5), np.linalg.svd(field.mixing.T)[2][-1]
    assert np.abs(field.mixing.T @ dropped).max() < 1e-12
    one, other = (np.concatenate([increment, np.zeros(10)]) for increment in (path, path + dropped))
    np.testing.assert_allclose(state_after(field, one), state_after(field, other), atol=1e-12)
    assert np.abs(state_after(inner_of(basis), one) - state_after(inner_of(basis), other)).max() > 1e-3


def inner_of(basis):
    return BlockDiagonal(basis, 8, 2, dtype=np.float64, key=KEY)


@pytest.mark.parametrize(
    ("groups", "unread"),
    [
        ([["a", "b"], ["c", "d"]], ["[a, c]", "[a, d]", "[b, c]", "[b, d]"]),
        ([["a", "b"], ["b", "c"]], ["[a, c]"]),
        ([["a"], ["b"], ["c"], ["d"]], ["[a, b]", "[a, c]", "[a, d]", "[b, c]", "[b, d]", "[c, d]"]),
    ],
)
def test_areas_between_groups_leave_no_trace(groups, unread):
    basis = Basis(NAMES, 2)
    field = GroupedLetters(inner_of(basis), groups)
    matrices = np.asarray(field.generators())
    silent = [label for label, matrix in zip(basis.labels, matrices, strict=True) if not matrix.any()]
    assert silent == unread
    logsig = np.random.default_rng(0).normal(size=basis.dimension)
    moved = logsig + 5.0 * np.isin(basis.labels, unread)
    np.testing.assert_allclose(state_after(field, logsig), state_after(field, moved), atol=1e-12)


@pytest.mark.parametrize("options", [{"rank": 3}, {"groups": [["x1", "#x1"], ["x2", "#x2", "x3"]]}])
def test_models_with_structure_train_are_saved_and_serve(options, tmp_path):
    streams, partition = wide(series=20, channels=6, observations=20), lc.Partition.every(1.0)
    logsigs = lc.Embedding(2)(streams, partition, sparse=True)
    scaling = lc.IncrementRMSScaling()
    model = lc.log_slice(logsigs.basis, 8, 2, block=2, scaling=scaling, init_scale=0.05, key=KEY, **options)
    labels = np.arange(20) % 2
    fitted = lc.fit(
        model, logsigs, labels, loss=lc.losses.cross_entropy, duration=lc.Steps(3), callbacks=(), key=KEY
    ).model
    assert any(
        (one != other).any()
        for one, other in zip(*(jax.tree.leaves(each.dynamics) for each in (model, fitted)), strict=True)
    )
    fitted.save(tmp_path / "model")
    loaded = lc.load(tmp_path / "model")
    expected = lc.predict_prefixes(fitted, logsigs.dense())
    np.testing.assert_allclose(lc.predict_prefixes(loaded, logsigs), expected, atol=1e-5)
    predictor = lc.Predictor(loaded)
    one = streams[[3]]
    for event in range(len(one.times)):
        seen = slice(one.obs_offsets[event], one.obs_offsets[event + 1])
        names = [one.schema.channels[channel] for channel in one.channel[seen]]
        predictor.observe(float(one.times[event]), dict(zip(names, one.value[seen].tolist(), strict=True)))
    np.testing.assert_allclose(predictor.predict(at=8.0), expected[3, 7], atol=1e-5)


def test_refused():
    basis = Basis(NAMES, 2)
    with pytest.raises(ModelError, match="5 letters cannot have 6 independent combinations"):
        lc.log_slice(basis, 8, 2, block=2, rank=6, key=KEY)
    with pytest.raises(ModelError, match="'pulse' is in a group, but no letter has this name"):
        lc.log_slice(basis, 8, 2, block=2, groups=[["pulse"]], key=KEY)
    with pytest.raises(ModelError, match="3 groups cannot share 2 blocks"):
        lc.log_slice(basis, 8, 2, block=4, groups=[["a"], ["b"], ["c"]], key=KEY)
    with pytest.raises(ModelError, match="0 groups cannot share"):
        lc.log_slice(basis, 8, 2, block=4, groups=[], key=KEY)

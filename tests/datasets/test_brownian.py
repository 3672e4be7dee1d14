import numpy as np
import pytest

from logcde import Embedding
from logcde.algebra import Basis
from logcde.datasets import aligned_cuts, brownian, oracle
from logcde.datasets.brownian import LETTERS, V1, V2, solve
from logcde.errors import DatasetError

scipy_linalg = pytest.importorskip("scipy.linalg")


@pytest.fixture(scope="module")
def paths():
    return brownian(series=400, seed=5, steps=64)


def test_increments_and_areas_have_the_moments_of_brownian_motion(paths):
    found = paths.increments.reshape(-1, 10)
    size, step = len(found), 1 / 64
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=5 * np.sqrt(step / size))
    np.testing.assert_allclose(found[:, :4].var(axis=0), step, rtol=0.05)
    np.testing.assert_allclose(found[:, 4:].var(axis=0), step**2 / 4, rtol=0.07)
    correlation = np.corrcoef(found.T)
    np.testing.assert_allclose(correlation, np.eye(10), atol=5 / np.sqrt(size))


def test_states_equal_products_of_exponentials(paths):
    state = np.array([1.0, 0.0])
    areas = dict(zip(Basis(LETTERS, 2).labels, paths.increments[7].T, strict=True))
    for step in range(64):
        matrix = areas["W1"][step] * V1 + areas["W2"][step] * V2 + areas["[W1, W2]"][step] * (V2 @ V1 - V1 @ V2)
        state = scipy_linalg.expm(matrix) @ state
    np.testing.assert_allclose(paths.states[7, -1], state, rtol=1e-10)


def test_logsigs_of_intervals_compose_steps(paths):
    data = paths.dataset([0, 10, 64])
    logsigs = Embedding(depth=2, counts=False)(data.streams, data.partition)
    first = paths.increments[:, :10]
    np.testing.assert_allclose(logsigs.values[:, 0, :4], first[:, :, :4].sum(axis=1), atol=1e-12)
    before = np.cumsum(first[:, :, :4], axis=1) - first[:, :, :4]
    area = first[:, :, 4] + 0.5 * (before[:, :, 0] * first[:, :, 1] - before[:, :, 1] * first[:, :, 0])
    place = logsigs.basis.labels.index("[W1, W2]")
    np.testing.assert_allclose(logsigs.values[:, 0, place], area.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(logsigs.values[:, :, 4], np.broadcast_to([10 / 64, 54 / 64], (400, 2)), atol=1e-12)


def test_oracle_error_falls_with_depth_and_intervals(paths):
    errors = {}
    for intervals in (2, 16):
        data = paths.dataset(aligned_cuts(intervals, seed=1, steps=64))
        for depth in (1, 2):
            best = oracle(Embedding(depth=depth, counts=False)(data.streams, data.partition))
            errors[intervals, depth] = float(np.mean((best - data.targets) ** 2))
    assert errors[2, 1] > 20 * errors[2, 2]
    assert errors[2, 1] > 4 * errors[16, 1]
    assert errors[2, 2] > 10 * errors[16, 2]


def test_oracle_is_exact_on_fine_steps(paths):
    data = paths.dataset(np.arange(65))
    best = oracle(Embedding(depth=2, counts=False)(data.streams, data.partition))
    # The rest are areas between a step and the time around it, which do not drive the system.
    np.testing.assert_allclose(best, data.targets, atol=1e-12)


def test_solve_ignores_other_letters():
    steps = np.random.default_rng(0).normal(size=(2, 5, 10)) * 0.1
    changed = steps.copy()
    changed[..., [2, 3, 5, 6, 7, 8, 9]] = 1.0
    np.testing.assert_allclose(solve(steps, Basis(LETTERS, 2)), solve(changed, Basis(LETTERS, 2)), rtol=1e-12)


def test_aligned_cuts_are_increasing_grid_points():
    for intervals in (1, 2, 64):
        cuts = aligned_cuts(intervals, seed=(0, 1), steps=64)
        assert len(cuts) == intervals + 1
        assert (cuts[0], cuts[-1]) == (0, 64)
        assert (np.diff(cuts) > 0).all()


def test_invalid_sizes_are_refused():
    with pytest.raises(DatasetError, match="16 steps cannot be cut into 17 intervals. Choose 1 to 16"):
        aligned_cuts(17, seed=0, steps=16)
    with pytest.raises(DatasetError, match="series=0"):
        brownian(series=0, seed=0)

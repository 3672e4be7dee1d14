"""A slow, obvious log-signature: dense tensors multiplied one by one, in double precision."""

import gc

import numpy as np
import pytest

from logcde.algebra import Basis


def _product(a, b, depth):
    return [
        sum(np.multiply.outer(a[k], b[level - k]).reshape(-1) for k in range(level + 1)) for level in range(depth + 1)
    ]


def _exp(increment, depth):
    levels = [np.ones(1)]
    for level in range(1, depth + 1):
        levels.append(np.multiply.outer(levels[-1], increment).reshape(-1) / level)
    return levels


def _log(tensor, depth):
    rest = [np.zeros(1), *tensor[1:]]
    power, total = rest, [level.copy() for level in rest]
    for k in range(2, depth + 1):
        power = _product(power, rest, depth)
        total = [sum_ + (-1) ** (k + 1) / k * level for sum_, level in zip(total, power, strict=True)]
    return total


def _logsig(path: np.ndarray, depth: int) -> np.ndarray:
    """Coordinates in the Lyndon basis of the log-signature of the piecewise-linear path (point, letter)."""
    width = path.shape[1]
    basis = Basis.of_width(width, depth)
    tensor = [np.ones(1), *(np.zeros(width**level) for level in range(1, depth + 1))]
    for increment in np.diff(path.astype(np.float64), axis=0):
        tensor = _product(tensor, _exp(increment, depth), depth)
    levels = _log(tensor, depth)
    return np.concatenate([basis.projection(level).as_matrix() @ levels[level] for level in range(1, depth + 1)])


@pytest.fixture(autouse=True, scope="module")
def _quick_collections():
    """The clock collects garbage before every sample; what earlier tests left would be gone through each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def reference():
    return _logsig

"""Which of many rows of numbers are the same to rounding, without comparing every row with every other.

Knows nothing of what the numbers mean: rows come in blocks, with how far each may be off.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

EPSILON = np.finfo(np.float64).eps
SKETCHES = 2


class Rows(NamedTuple):
    """Some rows, and for each number the rounding to expect of it."""

    values: Float64[np.ndarray, "row column"]
    rounding: Float64[np.ndarray, "row column"]


Fetch = Callable[[Int64[np.ndarray, "row"]], Rows]


def alike(labels: Int64[np.ndarray, "row"], fetch: Fetch, block: int) -> Int64[np.ndarray, "row"]:
    """Labels that two rows share if they had the same label before and all their numbers agree to rounding.

    Rows are fetched by their positions, at most `block` at once. Each is first reduced to two random sums; only rows
    whose sums agree are compared.

    >>> values = np.array([[1.0, 2.0], [1.0, 2.0 + 1e-15], [1.0, 2.1]])
    >>> alike(np.zeros(3, np.int64), lambda at: Rows(values[at], np.full((len(at), 2), 1e-14)), block=2)
    array([0, 0, 2])
    """
    sums, slack = _sketch(len(labels), fetch, block)
    for sketch in range(SKETCHES):
        labels = _chains(labels, sums[:, sketch], slack[:, sketch])
    result = np.arange(len(labels))
    order = np.argsort(labels, kind="stable")
    for chain in np.split(order, 1 + np.flatnonzero(np.diff(labels[order]))):
        _compare(chain, fetch, block, result)
    return result


def _blocks(index: np.ndarray, block: int) -> Iterator[np.ndarray]:
    return (index[first : first + block] for first in range(0, len(index), block))


def _sketch(count: int, fetch: Fetch, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Random sums of every row, and how far rounding can put the sums of two equal rows apart, half each."""
    rng = np.random.default_rng(0)
    sums, slack = np.zeros((count, SKETCHES)), np.zeros((count, SKETCHES))
    weights = np.zeros((0, SKETCHES))
    for index in _blocks(np.arange(count), block):
        values, rounding = fetch(index)
        if len(weights) != values.shape[1]:
            weights = rng.uniform(0.5, 1.5, (values.shape[1], SKETCHES))
        sums[index] = values @ weights
        slack[index] = (rounding + len(weights) * EPSILON * np.abs(values)) @ weights
    return sums, slack


def _chains(labels: np.ndarray, sums: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Finer labels: a new one begins where the ranges of all sums before end below those of all sums after."""
    low, high = sums - slack, sums + slack
    order = np.lexsort((low, labels))
    same = labels[order][1:] == labels[order][:-1]
    chain, reach = np.zeros(len(labels), np.int64), -np.inf
    current = -1
    for place, row in enumerate(order.tolist()):
        if place == 0 or not same[place - 1] or low[row] > reach:
            current, reach = current + 1, -np.inf
        chain[row] = current
        reach = max(reach, high[row])
    return chain


def _compare(rows: np.ndarray, fetch: Fetch, block: int, result: np.ndarray) -> None:
    """Give rows that agree with the first one its position as their label; go on with the others."""
    while len(rows) > 1:
        values, rounding = fetch(rows[:1])
        agree = []
        for index in _blocks(rows, block):
            others = fetch(index)
            agree.append((np.abs(others.values - values) <= others.rounding + rounding).all(axis=1))
        equal = np.concatenate(agree)
        equal[0] = True
        result[rows[equal]] = rows[0]
        rows = rows[~equal]

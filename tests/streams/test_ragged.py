"""Ragged arrays and stable sorts."""

import numpy as np
import pytest

from logcde.streams.ragged import join_offsets, stable_order, take


@pytest.mark.parametrize("bound", [5, 2**16, 2**20, 2**33])
def test_stable_order(bound):
    codes = np.random.default_rng(1).integers(0, bound, 3_000)
    assert np.array_equal(stable_order(codes, bound), np.argsort(codes, kind="stable"))


def test_join_offsets_inverts_take():
    offsets = np.array([0, 2, 2, 5, 9])
    parts = [take(offsets, np.array(rows))[0] for rows in ([0, 1], [2], [3])]
    assert join_offsets(parts).tolist() == offsets.tolist()

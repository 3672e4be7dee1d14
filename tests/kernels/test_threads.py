import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logcde.kernels import threads


@given(work=st.lists(st.integers(0, 30_000), max_size=40), workers=st.integers(1, 5))
def test_spread_runs_every_piece_once(work, workers):
    done = np.zeros(len(work), int)

    def run(first, last):
        done[first:last] += 1

    threads.spread(run, np.array(work, np.int64), threads=workers)
    assert (done == 1).all()


def test_spread_raises_errors_of_threads():
    def run(first, last):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.spread(run, np.full(100, threads.SMALL), threads=2)

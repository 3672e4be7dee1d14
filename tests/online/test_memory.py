"""A predictor keeps what one interval needs, however long the series."""

import resource
import sys
from pathlib import Path

import jax
import jaxtyping
import numpy as np

from logcde import Embedding, LogSLiCE, Partition, Predictor, Schema


def _megabytes() -> float:
    """What this process occupies; where that is not to be had, the most that it ever occupied."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def test_a_million_events_need_no_more_memory_than_the_first_ones(monkeypatch):
    # Other tests check types on the same way; here it would take twenty times as long as the events themselves.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    schema, embedding = Schema(("a", "b", "c")), Embedding(depth=2)
    model = LogSLiCE(embedding.basis(schema), hidden=8, block=4, outputs=1, key=jax.random.key(0))
    predictor = Predictor(model, schema=schema, embedding=embedding, partition=Partition.every(100.0))
    row, known = np.array([1.0, np.nan, 2.0]), 0.0
    for event in range(1, 1_000_001):
        predictor.observe(event * 0.5, row)
        if event == 100_000:
            predictor.predict()
            size, known = len(str(predictor.state())), _megabytes()
    assert predictor.last == 500_000.0
    assert len(str(predictor.state())) < size + 100
    assert _megabytes() - known < 5

"""Memory of a predictor: constant over a million events."""

import json
import subprocess
import sys

# In a process of its own, without run-time checks of array types, a million events are quick.
CODE = """
import json, resource, sys
import jax, numpy as np
from logcde import Embedding, Partition, Predictor, Schema, log_slice

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

schema, embedding = Schema(("a", "b", "c")), Embedding(depth=2)
model = log_slice(embedding.basis(schema), hidden=8, block=4, outputs=1, key=jax.random.key(0))
predictor = Predictor(model, schema=schema, embedding=embedding, partition=Partition.every(100.0))
row, known = np.array([1.0, np.nan, 2.0]), []
for event in range(1, 1_000_001):
    predictor.observe(event * 0.5, row)
    if event in (100_000, 1_000_000):
        predictor.predict()
        known.append((predictor.last, len(str(predictor.state())), megabytes()))
print(json.dumps(known))
"""


def test_memory_does_not_grow_over_a_million_events():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    (_, size, early), (last, later, late) = json.loads(done.stdout)
    assert last == 500_000.0
    assert later < size + 100
    assert late - early < 5

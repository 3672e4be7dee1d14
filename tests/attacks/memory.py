"""Memory that does not grow: many events through a predictor, and a table larger than memory through `logcde embed`.

Each runs in a process of its own, whose memory in use the operating system reports.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

PREDICTOR = """
import dataclasses, json, sys
import jax
import numpy as np
import logcde as lc
from logcde.embedding import EmbeddingSpec
from tests.attacks.memory import resident
from tests.cli.streaming import EMBEDDING, RULE
count, parts = int(sys.argv[1]), 10
coordinates = EMBEDDING.coordinates(lc.Schema(("pulse", "temp")))
model = lc.models.deep_stable(coordinates.basis, hidden=16, outputs=2, key=jax.random.key(0))
model = dataclasses.replace(model, spec=EmbeddingSpec(coordinates, RULE))
rng, predictor, time, found = np.random.default_rng(0), lc.Predictor(model), 0.0, []
for part in range(parts):
    for _ in range(count // parts // 1000):
        for gap, row in zip(rng.exponential(0.001, 1000).tolist(), rng.normal(size=(1000, 2))):
            time += gap
            predictor.observe(time, row)
        assert np.isfinite(predictor.predict()).all()
    found.append(resident())
print(json.dumps({"events": count, "intervals": int(time / 0.5), "resident_mb": found}))
"""
EMBED = """
import json, resource, sys, threading
from tests.attacks.memory import resident
from logcde.cli import main
found, over = [], threading.Event()
def watch():
    while not over.wait(1.0):
        found.append(resident())
watcher = threading.Thread(target=watch)
watcher.start()
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
finally:
    over.set()
    watcher.join()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"resident_mb": found, "peak_mb": peak}))
"""
CHANNELS = 48
SERIES_ROWS = 2000
"""Rows of each series of the large table."""


def resident() -> float:
    """Megabytes of memory that this process has in use."""
    text = Path("/proc/self/status").read_text()
    return float(text.split("VmRSS:")[1].split()[0]) / 1024


def events(count: int) -> dict[str, Any]:
    """Memory after each tenth of the events that a predictor observes."""
    return _child(PREDICTOR, str(count))


def large_table(size: float, folder: Path | None = None) -> dict[str, Any]:
    """Memory while `logcde embed` reads a Parquet table of so many gigabytes, which is removed afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        table = Path(place, "table.parquet")
        rows = write_table(table, int(size * 1e9))
        words = ("embed", table, "--every", "100", "--depth", "1", "--precision", "float32", "--rows", "20000")
        found = _child(EMBED, *map(str, words), "-o", str(Path(place, "out.parquet")))
        return {"bytes": table.stat().st_size, "rows": rows, "channels": CHANNELS, **_summary(found)}


def write_table(file: Path, size: int) -> int:
    """Write a wide table of random walks of about so many bytes, one series after another. Returns its rows."""
    rng, rows = np.random.default_rng(0), 0
    names = ["series", "time", *(f"x{number}" for number in range(CHANNELS))]
    kinds = [pyarrow.int64(), *[pyarrow.float64()] * (CHANNELS + 1)]
    schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
    with parquet.ParquetWriter(file, schema, compression="none", use_dictionary=False) as writer:
        while rows * 8 * len(names) < size:
            count = 10 * SERIES_ROWS
            time = np.sort(rng.uniform(0, 1000, (10, SERIES_ROWS)), axis=1).ravel()
            series = np.repeat(np.arange(10) + rows // SERIES_ROWS, SERIES_ROWS)
            values = rng.normal(size=(CHANNELS, count)).cumsum(axis=1)
            writer.write_table(pyarrow.Table.from_arrays([series, time, *values], schema=schema))
            rows += count
    return rows


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    """The memory in each tenth of the time, at most."""
    parts = np.array_split(np.array(found["resident_mb"]), 10)
    return {**found, "resident_mb": [float(part.max()) for part in parts if len(part)]}


def _child(code: str, *words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])
